"""A layer gets its input in the dtype of its weight."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = """import torch
from torch import nn
"""
DOWN = {"left_dtype": "bfloat16", "right_dtype": "float32"}
UP = {"left_dtype": "float32", "right_dtype": "float16"}
NET = """

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(8, 8){stem}
        self.head = nn.Linear(8, 2)
        self.tail = nn.Sequential(nn.Linear(8, 8), nn.Tanh())

    def forward(self, x):
        hidden = self.stem(x)
        {line}
"""


def net(line: str, stem: str = ".bfloat16()") -> str:
    """A module whose forward ends with a line."""
    return HEAD + NET.format(line=line, stem=stem)


RIGHT = {
    "cast already": (net("return self.head(hidden.float())"), "return self.head", DOWN),
    "no layer of torch": (HEAD + "def go(model, x):\n    return model(x)\n", "return model", DOWN),
    "another mismatch": (net("return self.head(hidden)"), "return self.head", {"left_dtype": "float64", "right_dtype": "float32"}),
    "two products": (HEAD + "def go(a, b, c):\n    return a @ b @ c\n", "return a", DOWN),
    "up under autocast": (
        net("return self.head(hidden)").replace("hidden =", "torch.autocast('cpu')\n        hidden ="),
        "return self.head",
        UP,
    ),
    "a layer of a model without a failing library line": (
        HEAD + "from transformers import BertModel\nm = BertModel.from_pretrained('x')\nm.pooler = nn.Linear(4, 4)\nm(1)\n",
        "m(1)",
        DOWN,
    ),
}  # fmt: skip
WRONG = {
    "a float32 head": (
        net("return self.head(hidden).squeeze(-1)"),
        "return self.head",
        DOWN,
        ["return self.head(hidden.float()).squeeze(-1)"],
    ),
    "a sum as its input": (
        net("return self.head(hidden + x)"),
        "return self.head",
        DOWN,
        ["return self.head((hidden + x).float())"],
    ),
    "the cast layer on the same line": (
        net("return self.head(self.stem(x))"),
        "return self.head",
        DOWN,
        ["return self.head(self.stem(x).float())"],
    ),
    "the first of two float32 layers": (
        net("return self.head(self.tail(hidden))"),
        "return self.head",
        DOWN,
        ["return self.head(self.tail(hidden.float()))"],
    ),
    "two layers of one value": (
        net("return self.head(hidden) + self.tail(hidden)"),
        "return self.head",
        DOWN,
        ["return self.head(hidden.float()) + self.tail(hidden.float())"],
    ),
    "a layer in half precision": (
        net("return self.head(self.stem(hidden))", ".half()"),
        "return self.head",
        UP,
        ["return self.head(self.stem(hidden.to(self.stem.weight.dtype)))"],
    ),
    "several parameters": (
        net("return self.tail(hidden)"),
        "return self.tail",
        UP,
        ["return self.tail(hidden.to(next(self.tail.parameters()).dtype))"],
    ),
    "a product": (
        HEAD + "def go(a, b):\n    return (a - 1) @ b\n",
        "return (a",
        DOWN,
        ["return (a - 1).float() @ b"],
    ),
    "a product with half on the right": (
        HEAD + "def go(a, b):\n    return torch.matmul(a, b)\n",
        "return torch",
        UP,
        ["return torch.matmul(a, b.float())"],
    ),
}


@pytest.mark.parametrize(("source", "at", "fields"), RIGHT.values(), ids=RIGHT)
def test_others_stay(tmp_path, source: str, at: str, fields: dict) -> None:
    """What is cast already, what is no layer, and lines with several answers are left alone."""
    assert rewritten(tmp_path, "cast_at_layer", source, at, fields=fields) == source


@pytest.mark.parametrize(("source", "at", "fields", "wanted"), WRONG.values(), ids=WRONG)
def test_the_input_is_cast(tmp_path, source: str, at: str, fields: dict, wanted: list[str]) -> None:
    """The cast stands at the layer that failed; a second time nothing is left to do there."""
    after = rewritten(tmp_path, "cast_at_layer", source, at, fields=fields)
    assert changed_lines(source, after) == wanted


@pytest.mark.torch
@pytest.mark.parametrize("line", ["return self.head(hidden)", "return self.head(self.stem(x))"])
def test_the_repaired_program_trains(tmp_path, line: str) -> None:
    """The float32 head fails on bfloat16; cast, both layers get a gradient."""
    torch = pytest.importorskip("torch")
    source = net(line)
    after = rewritten(tmp_path, "cast_at_layer", source, line, fields=DOWN)
    for text, works in ((source, False), (after, True)):
        space: dict = {}
        exec(text, space)  # noqa: S102 - the program of this test
        model = space["Net"]()
        x = torch.randn(3, 8, dtype=torch.bfloat16)
        if not works:
            with pytest.raises(RuntimeError, match="dtype"):
                model(x)
            continue
        model(x).sum().backward()
        assert model.stem.weight.grad.abs().sum() > 0
        assert model.head.weight.grad.dtype == torch.float32


def test_a_head_put_into_a_half_model(tmp_path) -> None:
    """The library's line names the attribute to which the program gave a float32 layer."""
    from explainer.fix.codemod import Context, find_codemod
    from explainer.fix.splice import splice
    from explainer.model.incident import ExceptionRecord, Frame, Incident
    from tests.fix.rewriting import write

    source = HEAD + (
        "from transformers import BertForSequenceClassification as B\nm = B.from_pretrained('x', dtype=torch.bfloat16)\n"
        "m.classifier = nn.Linear(4, 4)\nm(1)\n"
    )
    program = write(tmp_path, {"train.py": source})
    frames = (
        Frame(file="train.py", line=6, code="m(1)"),
        Frame(file="modeling_bert.py", line=9, code="logits = self.classifier(pooled)", library="transformers"),
        Frame(file="linear.py", line=9, code="return F.linear(input, self.weight, self.bias)", library="torch"),
    )
    incident = Incident(exceptions=(ExceptionRecord(type="RuntimeError", message="dtype", frames=frames),))
    (proposal,) = find_codemod("cast_at_layer")(Context(program=program, incident=incident, fields=DOWN))
    after = splice(source, proposal.edits)
    assert after is not None
    assert changed_lines(source, after) == ["m.classifier = nn.Linear(4, 4).to(m.dtype)"]
