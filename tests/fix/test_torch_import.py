"""An edit that writes `torch.` into a file that imports only parts of torch brings the import along."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.splice import splice
from explainer.fix.text.import_line import torch_imports
from explainer.model.patch import Edit
from tests.fix.rewriting import write

BODY = "\n\ndef set_bias(p):\n    p.fill_(1.0)\n"
WRAPPED = "with torch.no_grad():\n        p.fill_(1.0)"
HEADS = {
    "parts of torch": ("import math\nimport torch.nn.functional as F", "import math\nimport torch\nimport torch.nn.functional as F"),
    "a name of torch": ("from torch import nn", "import torch\nfrom torch import nn"),
    "another library": ("import math", "import math\nimport torch"),
    "no imports": ("# of the lab\nEPS = 1e-8", "# of the lab\nimport torch\n\nEPS = 1e-8"),
    "a docstring and no imports": ('"""Doc."""\nEPS = 1e-8', '"""Doc."""\n\nimport torch\nEPS = 1e-8'),
    "a decorated function first": ("@wrap\ndef f():\n    pass", "import torch\n\n@wrap\ndef f():\n    pass"),
    "a docstring and the future": ('"""Doc."""\nfrom __future__ import annotations\nimport math', '"""Doc."""\nfrom __future__ import annotations\nimport math\nimport torch'),
}  # fmt: skip
KNOWN = [
    "import torch",
    "import math, torch",
    "import torch  # all of it",
    "import torch.nn",
    "from lib import T as torch",
]


def edited(head: str, folder: pathlib.Path, new: str = WRAPPED) -> str:
    """A file after an edit of its last statement, with the imports that it needs."""
    text = head + BODY
    program = write(folder, {"train.py": text})
    (path,) = program.files
    at = text.index("p.fill_")
    edit = Edit(file=path, start=at, end=at + len("p.fill_(1.0)"), new=new)
    return splice(text, (*torch_imports([edit], program.files), edit))


@pytest.mark.parametrize(("head", "wanted"), HEADS.values(), ids=HEADS)
def test_it_is_imported(head: str, wanted: str, tmp_path: pathlib.Path) -> None:
    """Before what it imports of torch, else behind all imports."""
    assert edited(head, tmp_path).startswith(wanted + BODY.partition("    p")[0])


@pytest.mark.parametrize("head", KNOWN)
def test_a_file_that_has_the_name_stays(head: str, tmp_path: pathlib.Path) -> None:
    """Nothing but the edit itself."""
    assert edited(head, tmp_path) == head + BODY.replace("p.fill_(1.0)", WRAPPED)


def test_words_are_no_names(tmp_path: pathlib.Path) -> None:
    """A text that speaks of torch, and an attribute of that name, need no import."""
    for new in ('print("torch.no_grad")', "p.torch.fill_(1.0)"):
        assert edited("import math", tmp_path, new) == "import math" + BODY.replace("p.fill_(1.0)", new)
