"""Which code runs in evaluation mode only."""

from __future__ import annotations

import ast
import pathlib

import pytest

from explainer.source.file import read_source
from explainer.source.network.eval_only import is_eval_only

# The line in question writes `mark`.
IN_TRAINING_TOO = {
    "no branch": "def forward(self, x):\n    mark = x\n",
    "the branch of training": "def forward(self, x):\n    if self.training:\n        mark = x\n",
    "another flag": "def forward(self, x):\n    if self.deterministic:\n        x = 1\n    else:\n        mark = x\n",
    "behind the branch": "def forward(self, x):\n    if not self.training:\n        x = 1\n    mark = x\n",
    "a function that training uses as well": """def norm(x):
    mark = x
def forward(self, x):
    if not self.training:
        return norm(x)
    return norm(2 * x)
""",
    "a function that nobody is seen to use": "def norm(x):\n    mark = x\n",
}
IN_EVALUATION = {
    "not training": "def forward(self, x):\n    if not self.training:\n        mark = x\n",
    "otherwise": "def forward(self, x):\n    if self.training:\n        x = 1\n    else:\n        for one in x:\n            mark = one\n",
    "a function that is chosen": """def decode(x):
    mark = x
norm.forward = lambda x: (train if norm.training else decode)(x)
""",
    "a method that is called": """class A:
    def _decode(self, x):
        mark = x
    def forward(self, x):
        if self.training:
            return x
        else:
            return self._decode(x)
""",
}


def marked(text: str, folder: pathlib.Path) -> bool:
    (folder / "a.py").write_text(text)
    file = read_source(str(folder / "a.py"))
    (mark,) = [one for one in file.walk() if isinstance(one, ast.Name) and one.id == "mark"]
    return is_eval_only(mark, file)


@pytest.mark.parametrize("text", IN_TRAINING_TOO.values(), ids=IN_TRAINING_TOO)
def test_code_of_training(text: str, tmp_path: pathlib.Path) -> None:
    """What training may run is not said to be of evaluation alone."""
    assert not marked(text, tmp_path)


@pytest.mark.parametrize("text", IN_EVALUATION.values(), ids=IN_EVALUATION)
def test_code_of_evaluation(text: str, tmp_path: pathlib.Path) -> None:
    """What stands behind a module's `training`, there or through a function, is."""
    assert marked(text, tmp_path)
