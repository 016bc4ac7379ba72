"""What a checkpointed module keeps from pass to pass is pointed at; nothing is edited."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.model.trace import PARTED, TracedLine
from tests.fix.rewriting import best, failed, line_of, rewritten, write

TOP = "import torch\nfrom torch import nn\nfrom torch.utils.checkpoint import checkpoint\n"
HEAD = "class Layer(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.memory, self.seen = None, 0\n"
STATEFUL = {
    "in the forward": (
        "    def forward(self, x):\n        past = x if self.memory is None else torch.cat([self.memory, x])\n        self.memory = past.detach()\n        return past\n",
        "self.memory = past",
    ),
    "through a method": (
        "    def remember(self, x):\n        self.memory = x\n    def forward(self, x):\n        y = x if self.memory is None else x + self.memory\n        self.remember(x)\n        return y\n",
        "self.remember(x)",
    ),
    "a counter": ("    def forward(self, x):\n        self.seen += 1\n        return x * 2 if self.seen % 2 else x\n", "self.seen += 1"),
    "a list": (
        "    def forward(self, x):\n        for one in self.memory:\n            x = x + one\n        self.memory.append(x)\n        return x\n",
        "self.memory.append(x)",
    ),
    "an entry": ("    def forward(self, x):\n        self.memory[0] = x\n        return self.memory[0] * 2\n", "self.memory[0] = x"),
}  # fmt: skip
PLAIN = {
    "read only": "    def forward(self, x):\n        return x if self.memory is None else x + self.memory\n",
    "written only": "    def forward(self, x):\n        self.last = x.mean()\n        return x\n",
    "emptied": "    def forward(self, x):\n        y = x if self.memory is None else x + self.memory\n        self.memory = None\n        return y\n",
    "outside of the forward": "    def feed(self, x):\n        self.memory = x\n    def forward(self, x):\n        return x + self.memory\n",
}


@pytest.mark.parametrize(("body", "words"), STATEFUL.values(), ids=STATEFUL)
def test_the_line_is_pointed_at(body: str, words: str, tmp_path: pathlib.Path) -> None:
    """With more belief where a trace saw the passes part in the same class; never with an edit."""
    text = TOP + HEAD + body
    program = write(tmp_path, {"train.py": text})
    found = best("state_of_segment", program)
    assert found is not None
    assert not found.edits
    assert found.culprit.line == line_of(text, words)
    parted = TracedLine(
        kind=PARTED, operation="cat", file=str(tmp_path / "train.py"), line=line_of(text, "def forward") + 1
    )
    traced = best("state_of_segment", program, incident=replace(failed(), traced=(parted,)))
    assert traced is not None
    assert traced.belief > found.belief


@pytest.mark.parametrize("body", PLAIN.values(), ids=PLAIN)
def test_a_segment_without_state(body: str, tmp_path: pathlib.Path) -> None:
    """Reading alone, writing alone, or a reset does not part the passes."""
    assert best("state_of_segment", write(tmp_path, {"train.py": TOP + HEAD + body})) is None


def test_without_checkpointing_comes_last(tmp_path: pathlib.Path) -> None:
    """The segment run plainly is right, and costs memory: other edits come first."""
    text = TOP + "def f(layer, x):\n    return checkpoint(layer, x, use_reentrant=False)\n"
    after = rewritten(tmp_path, "without_checkpointing", text, options={"why": "runs again"})
    assert after == "import torch\nfrom torch import nn\ndef f(layer, x):\n    return layer(x)\n"
    program = write(tmp_path, {"train.py": text})
    last, first = (best("without_checkpointing", program, options=one) for one in ({"why": "runs again"}, {}))
    assert last is not None and first is not None
    assert (last.belief, last.culprit.why) == (-0.5, "runs again")
    assert first.belief > 0
