"""Masks of minus infinity become the dtype's smallest number."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.fix.splice import splice
from explainer.model.incident import Fact
from explainer.model.trace import TracedLine
from tests.fix.rewriting import best, changed_lines, failed, line_of, rewritten, write

HEAD = "import math\nimport torch\nfrom torch import nn\nnet = nn.Linear(4, 4)\nx, pad = torch.randn(8, 4), torch.zeros(8, 4).bool()\nscores = net(x)\n"

RIGHT = {
    "a finite number": "scores = scores.masked_fill(pad, -1e9)",
    "the dtype's own end": "scores = scores.masked_fill(pad, torch.finfo(scores.dtype).min)",
    "zeros": "scores = scores.masked_fill(pad, 0.0)",
    "a mask of data": "x = x.masked_fill(pad, float('-inf'))",
    "a mask without grad": "with torch.no_grad():\n    best = scores.masked_fill(pad, float('-inf')).argmax(-1)",
    "plus infinity": "low = scores.masked_fill(pad, float('inf')).amin(-1)",
}


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_other_masks_stay(tmp_path, body: str) -> None:
    """Finite masks and masks without gradient are left alone."""
    source = f"{HEAD}{body}\nloss = scores.softmax(-1).sum()\nloss.backward()\n"
    assert rewritten(tmp_path, "finite_mask", source, "loss.backward()") == source


LEAST = "torch.finfo(scores.dtype).min"
WRONG = {
    "float of a word": (
        "scores = scores.masked_fill(pad, float('-inf'))",
        f"scores = scores.masked_fill(pad, {LEAST})",
    ),
    "minus math.inf": ("scores = scores.masked_fill(pad, -math.inf)", f"scores = scores.masked_fill(pad, {LEAST})"),
    "minus torch.inf": ("scores = scores.masked_fill(pad, -torch.inf)", f"scores = scores.masked_fill(pad, {LEAST})"),
    "in place": ("scores.masked_fill_(pad, float('-inf'))", f"scores.masked_fill_(pad, {LEAST})"),
    "by where": ("scores = torch.where(pad, float('-inf'), scores)", f"scores = torch.where(pad, {LEAST}, scores)"),
    "as a function": (
        "scores = torch.masked_fill(scores, pad, -float('inf'))",
        f"scores = torch.masked_fill(scores, pad, {LEAST})",
    ),
}


@pytest.mark.parametrize(("body", "wanted"), WRONG.values(), ids=WRONG)
def test_infinite_masks_become_finite(tmp_path, body: str, wanted: str) -> None:
    """However minus infinity is spelled, the smallest number of the scores' dtype takes its place."""
    source = f"{HEAD}{body}\nloss = scores.softmax(-1).sum()\nloss.backward()\n"
    after = rewritten(tmp_path, "finite_mask", source, "loss.backward()")
    zeros = "loss = scores.softmax(-1).masked_fill(pad, 0.0).sum()"
    assert changed_lines(source, after) == [wanted, zeros]
    assert rewritten(tmp_path, "finite_mask", after, "loss.backward()") == after


EMPTY = {
    "a mask of what is shown": (
        "scores = torch.where(~pad, scores, -torch.inf)\nw = torch.softmax(scores, dim=-1)",
        "w = torch.softmax(scores, dim=-1).masked_fill(pad, 0.0)",
    ),
    "a mask of what is shown by its name": (
        "scores = torch.where(pad, scores, -torch.inf)\nw = torch.softmax(scores, dim=-1)",
        "w = torch.softmax(scores, dim=-1).masked_fill(~pad, 0.0)",
    ),
    "in one expression": (
        "w = torch.softmax(scores.masked_fill(pad, -torch.inf), dim=-1)",
        f"w = torch.softmax(scores.masked_fill(pad, {LEAST}), dim=-1).masked_fill(pad, 0.0)",
    ),
    "a mask that is another by then": (
        "scores = scores.masked_fill(pad, -torch.inf)\npad = pad.float()\nw = scores.softmax(-1)",
        None,
    ),
    "a logarithm": ("scores = scores.masked_fill(pad, -torch.inf)\nw = scores.log_softmax(-1)", None),
    "two softmaxes": (
        "scores = scores.masked_fill(pad, -torch.inf)\nw = scores.softmax(-1) + scores.softmax(0)",
        None,
    ),
}


@pytest.mark.parametrize(("body", "wanted"), EMPTY.values(), ids=EMPTY)
def test_a_row_that_is_masked_throughout_reads_nothing(tmp_path, body: str, wanted: str | None) -> None:
    """Its weights are zeros where the softmax of the masked scores is known."""
    source = f"{HEAD}{body}\nloss = w.sum()\nloss.backward()\n"
    after = rewritten(tmp_path, "finite_mask", source, "loss.backward()")
    assert (changed_lines(source, after)[-1] if "0.0)" in after else None) == wanted


RANGES = {
    "float32 scores": ("", "scores = scores.masked_fill(pad, -1e9)", []),
    "float16 scores": (
        "net.half()\n",
        "scores = scores.masked_fill(pad, -1e9)",
        [f"scores = scores.masked_fill(pad, {LEAST})"],
    ),
    "a constant by its name": (
        "HIDDEN = -1e9\nnet.half()\n",
        "scores = scores.masked_fill(pad, HIDDEN)",
        [f"scores = scores.masked_fill(pad, {LEAST})"],
    ),
    "one of several constants": (
        "HIDDEN = -1e4 if net.training else -1e9\nnet.half()\n",
        "scores = scores.masked_fill(pad, HIDDEN)",
        [],
    ),
    "a large number": ("FAR = 1e9\nnet.half()\n", "scores = scores.masked_fill(pad, FAR)", []),
    "a number that float16 has": ("net.half()\n", "scores = scores.masked_fill(pad, -1e4)", []),
}


@pytest.mark.parametrize(("head", "body", "wanted"), RANGES.values(), ids=RANGES)
def test_constants_of_float16(tmp_path, head: str, body: str, wanted: list[str]) -> None:
    """A constant that float16 does not have is replaced only where the program uses float16."""
    source = f"{HEAD}{head}{body}\nloss = scores.softmax(-1).sum()\nloss.backward()\n"
    after = rewritten(tmp_path, "finite_mask", source, "loss.backward()", options={"by_range": True})
    assert changed_lines(source, after) == wanted


def test_a_refused_constant_leads(tmp_path) -> None:
    """At its own line the message leaves nothing open; elsewhere it is one way out of float16 among others."""
    source = (
        f"{HEAD}net.half()\nHIDDEN = -1e9\nscores = scores.masked_fill(pad, HIDDEN)\nloss = scores.softmax(-1).sum()\n"
    )
    said = "value cannot be converted to type at::Half without overflow"
    program = write(tmp_path, {"train.py": source})
    beliefs = []
    for at in ("masked_fill", "loss ="):
        incident = failed({"train.py": line_of(source, at)}, said)
        found = best("finite_mask", program, incident=incident, options={"by_range": True})
        assert found is not None
        assert found.culprit.line == line_of(source, "masked_fill")
        beliefs.append(found.belief)
    assert beliefs[0] > 3.0 > beliefs[1]


ADDED = """import math
import torch
from torch import nn
import torch.nn.functional as F

class Attention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.q, self.k = nn.Linear(dim, dim), nn.Linear(dim, dim)
    def forward(self, x, bias):
        scores = self.q(x) @ self.k(x).transpose(-2, -1)
        SUM
        return scores.softmax(-1) @ x

def bias_of(pad):
    n = pad.size(1)
    MAKE

model = Attention(4)
x, pad = torch.randn(2, 3, 4), torch.tensor([[True, False, False], [False, False, False]])
loss = model(x, bias_of(pad)).sum()
loss.backward()
"""
SUMS = {
    "a sum": "scores = scores + bias",
    "in place": "scores += bias",
    "scaled": "scores = (scores + bias) / 2",
}
MADE = {
    "filled": (
        'return torch.zeros(pad.shape).masked_fill(pad, float("-inf"))[:, None]',
        "return torch.zeros(pad.shape).masked_fill(pad, -1e9)[:, None]",
    ),
    "filled in place": (
        "bias = torch.zeros(pad.shape)\n    bias.masked_fill_(pad, -math.inf)\n    return bias[:, None]",
        "bias.masked_fill_(pad, -1e9)",
    ),
    "written": (
        "bias = torch.zeros(pad.shape)\n    bias[pad] = float('-inf')\n    return bias.unsqueeze(1)",
        "bias[pad] = -1e9",
    ),
    "chosen": (
        "return torch.where(pad, -torch.inf, 0.0)[:, None]",
        "return torch.where(pad, -1e9, 0.0)[:, None]",
    ),
    "0 times infinity": (
        "return (pad.float() * float('-inf')).unsqueeze(1)",
        "return (pad.float() * -1e9).unsqueeze(1)",
    ),
    "the future and what is padded": (
        "future = torch.triu(torch.ones(n, n, dtype=torch.bool), diagonal=1)\n"
        "    return torch.zeros(len(pad), n, n).masked_fill(future | pad[:, None], float('-inf'))",
        "return torch.zeros(len(pad), n, n).masked_fill(future | pad[:, None], -1e9)",
    ),
}
KEPT = {
    "what is added to nothing": ("pass", "return torch.zeros(pad.shape).masked_fill(pad, float('-inf'))[:, None]"),
    "the strict upper half": ("scores += bias", "return torch.triu(torch.full((n, n), float('-inf')), diagonal=1)"),
    "a program that looks for infinities": (
        "scores = scores.masked_fill(torch.isinf(bias), -1e9) + bias * 0",
        "return torch.zeros(pad.shape).masked_fill(pad, float('-inf'))[:, None]",
    ),
}


@pytest.mark.parametrize("summed", SUMS.values(), ids=SUMS)
@pytest.mark.parametrize(("made", "wanted"), MADE.values(), ids=MADE)
def test_masks_that_are_added_become_finite(tmp_path, made: str, wanted: str, summed: str) -> None:
    """A mask that is made elsewhere and added gets a number of which a sum with scores is finite; an empty row reads nothing."""
    source = ADDED.replace("SUM", summed).replace("MAKE", made)
    after = rewritten(tmp_path, "finite_mask", source, "loss.backward()")
    zeros = "return scores.softmax(-1).masked_fill(bias <= -1e9, 0.0) @ x"
    assert changed_lines(source, after) == ([wanted] if " * float" in made else [zeros, wanted])
    assert rewritten(tmp_path, "finite_mask", after, "loss.backward()") == after


SCALED = {
    "a mask that is scaled": "scores = scores + bias * self.slope",
    "a mask that is called otherwise by then": "scores = scores + bias\n        bias = None",
    "logarithms": "scores = scores + bias\n        kept = scores.log_softmax(-1)",
}


@pytest.mark.parametrize("summed", SCALED.values(), ids=SCALED)
def test_no_zeros_where_the_softmax_cannot_name_its_mask(tmp_path, summed: str) -> None:
    """What hides no more is not compared with: a slope may have raised it, a name may be bound anew, a logarithm has no zeros."""
    source = ADDED.replace("SUM", summed).replace("MAKE", MADE["filled"][0])
    if "log_softmax" in summed:
        source = source.replace("scores.softmax(-1) @ x", "kept")
    after = rewritten(tmp_path, "finite_mask", source, "loss.backward()")
    assert changed_lines(source, after) == [MADE["filled"][1]]


@pytest.mark.parametrize(("summed", "made"), KEPT.values(), ids=KEPT)
def test_infinities_that_no_softmax_sums_stay(tmp_path, summed: str, made: str) -> None:
    """What is not a part of the scores, hides no whole row, or is asked for."""
    source = ADDED.replace("SUM", summed).replace("MAKE", made)
    assert rewritten(tmp_path, "finite_mask", source, "loss.backward()") == source


CAUSAL = {
    "the upper half": ("torch.ones(n, n).triu(1).bool()", True),
    "by name": ("torch.triu(torch.ones(n, n), diagonal=1) > 0", True),
    "not the lower half": ("~torch.tril(torch.ones(n, n, dtype=torch.bool))", True),
    "the lower half is 0": ("self.seen[:n, :n] == 0", True),
    "positions": ("at[None, :] > at[:, None]", True),
    "one of two": ("pad & torch.ones(n, n).triu(1).bool()", True),
    "both": ("torch.ones(n, n).triu(1).bool() | (at[None] > at[:, None])", True),
    "the diagonal too": ("torch.ones(n, n).triu().bool()", False),
    "less than the lower half": ("torch.tril(torch.ones(n, n), diagonal=-1) == 0", False),
    "positions up to their own": ("at[None, :] >= at[:, None]", False),
    "what is padded": ("pad[:, None]", False),
    "the future or what is padded": ("torch.ones(n, n).triu(1).bool() | pad[:, None]", False),
    "a limit of its own": ("torch.triu(torch.ones(n, n), diagonal=shift).bool()", False),
}


@pytest.mark.parametrize(("mask", "is_causal"), CAUSAL.values(), ids=CAUSAL)
def test_a_causal_mask_is_no_suspect(tmp_path, mask: str, is_causal: bool) -> None:
    """Where each position sees itself no row is empty: such a mask speaks for nothing."""
    from tests.fix.rewriting import best, write

    source = f"""import torch
from torch import nn

class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.tril(torch.ones(8, 8)))
        self.score = nn.Linear(4, 4)
    def forward(self, x, pad, shift):
        n = x.size(1)
        at = torch.arange(n)
        scores = self.score(x)
        return scores.masked_fill({mask}, float("-inf")).softmax(-1)

loss = Attention()(torch.randn(2, 4, 4), None, 1).sum()
loss.backward()
"""
    proposal = best("finite_mask", write(tmp_path, {"train.py": source}))
    assert proposal is not None
    assert (proposal.belief <= -0.5) == is_causal


BONDS = """import torch
from torch import nn
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Linear(4, 4)
    def forward(self, x, bias):
        return (self.score(x) + bias).softmax(-1)
bonds = torch.tensor([[1.0, 0, 1, 0], [0, 0, 0, 0]])
net = Attention()
bias = LOG
out = net(torch.ones(2, 4), bias)
out[0].pow(2).sum().backward()
gradient = net.score.weight.grad
"""
NAN_OF_INFINITY = Fact(name="traced_nan_of_infinity", value="softmax")


@pytest.mark.torch
@pytest.mark.parametrize("log", ["bonds.log()", "torch.log(bonds)"])
def test_a_row_without_weights_stays_finite(tmp_path, log: str) -> None:
    """The logarithm of weights that is added to scores; the other rows have the gradients that they were meant to have."""
    torch = pytest.importorskip("torch")
    source = BONDS.replace("LOG", log)
    incident = replace(failed({"train.py": line_of(source, "out =")}), facts=(NAN_OF_INFINITY,))
    program = write(tmp_path, {"train.py": source})
    assert best("finite_mask", program, incident=replace(incident, facts=())) is None
    proposal = best("finite_mask", program, incident=incident)
    assert proposal is not None
    assert changed_lines(source, splice(source, proposal.edits)) == [f"bias = {log}.clamp_min(-1e9)"]
    gradients = []
    for text in (
        splice(source, proposal.edits),
        source.replace("bonds = ", "bonds = torch.ones(2, 4) * ").replace("[0, 0, 0, 0]", "[1, 1, 1, 1]"),
    ):
        space: dict = {}
        torch.manual_seed(0)
        exec(text, space)  # noqa: S102
        gradients.append(space["gradient"])
    assert gradients[0].isfinite().all()
    torch.testing.assert_close(*gradients)


CHOICE = """import torch
from torch import nn
class Choice:
    def __init__(self, scores, legal):
        self.logp = torch.log_softmax(scores.masked_fill(~legal, VALUE), dim=-1)
    def entropy(self):
        return -(self.logp.exp() * self.logp).sum(-1)
net = nn.Linear(4, 4)
x, legal = torch.ones(2, 4), torch.tensor([[True, False, True, True], [True, True, False, False]])
Choice(net(x), legal).entropy().mean().backward()
gradient = net.weight.grad
"""


@pytest.mark.torch
def test_a_mask_that_is_multiplied_by_nothing(tmp_path) -> None:
    """The entropy of what may be chosen: the gradients are those of the chosen rows alone."""
    torch = pytest.importorskip("torch")
    source = CHOICE.replace("VALUE", 'float("-inf")')
    line = line_of(source, "masked_fill")
    seen = TracedLine(kind="not-finite", operation="masked_fill", file="train.py", line=line, says="")
    incident = replace(failed(), facts=(Fact(name="traced_nan_of_mask", value="mul"),), traced=(seen,))
    proposal = best("finite_mask", write(tmp_path, {"train.py": source}), incident=incident)
    assert proposal is not None
    after = splice(source, proposal.edits)
    assert after == CHOICE.replace("VALUE", "torch.finfo(scores.dtype).min")
    space: dict = {}
    torch.manual_seed(0)
    exec(after, space)  # noqa: S102
    logp = [
        scores[legal].log_softmax(-1) for scores, legal in zip(space["net"](space["x"]), space["legal"], strict=True)
    ]
    (wanted,) = torch.autograd.grad(torch.stack([-(one.exp() * one).sum() for one in logp]).mean(), space["net"].weight)
    torch.testing.assert_close(space["gradient"], wanted)


@pytest.mark.torch
def test_the_same_gradients_where_a_row_sees_something() -> None:
    """With the smallest number, or with -1e9 that is added; a row that sees nothing is finite."""
    torch = pytest.importorskip("torch")
    scores = torch.randn(4, 6, generator=torch.Generator().manual_seed(0), requires_grad=True)
    values = torch.arange(6.0)
    hidden = torch.tensor([0, 2, 5, 6])[:, None] > torch.arange(6)

    def gradient_of(masked):
        return torch.autograd.grad((masked.softmax(-1) @ values)[:3].square().sum(), scores)[0]

    meant = gradient_of(scores[:3].masked_fill(hidden[:3], -torch.inf))
    for masked in (
        scores.masked_fill(hidden, torch.finfo(scores.dtype).min),
        scores + torch.zeros(4, 6).masked_fill(hidden, -1e9),
    ):
        assert masked.softmax(-1).isfinite().all()
        torch.testing.assert_close(gradient_of(masked), meant)


POOLED = """import torch, yaml
from torch import nn


class Pool(nn.Module):
    def __init__(self, mask_value):
        super().__init__()
        self.mask_value = mask_value

    def forward(self, score, shown):
        return score.masked_fill(~shown, self.mask_value).softmax(-1)


KINDS = {"pool": Pool}
cfg = yaml.safe_load(open("config.yaml"))
pool = KINDS[cfg["kind"]](**cfg["options"])
"""


@pytest.mark.parametrize(("value", "new"), [("-.inf", ["-10000.0"]), ("-1.0e+9", None)])
def test_the_value_of_a_configuration_file(tmp_path: pathlib.Path, value: str, new: list[str] | None) -> None:
    """Under the name of what the mask fills with, also where a registry makes the module; its line leads."""
    (tmp_path / "config.yaml").write_text(f"kind: pool\noptions:\n  mask_value: {value}\n")
    proposal = best("finite_mask", write(tmp_path, {"train.py": POOLED}))
    if new is None:
        assert proposal is None
        return
    assert proposal is not None
    assert (pathlib.Path(proposal.culprit.file).name, proposal.culprit.line) == ("config.yaml", 3)
    assert ([edit.new for edit in proposal.edits], proposal.is_origin) == (new, True)


def test_a_value_that_is_handed_on_under_other_names(tmp_path: pathlib.Path) -> None:
    """`value` of the helper that fills is the module's `mask_value`, which the file gives."""
    (tmp_path / "config.yaml").write_text("kind: pool\noptions:\n  mask_value: -.inf\n")
    helper = "def hide(score, shown, value):\n    return score.masked_fill(~shown, value)\n\n\nclass Pool"
    source = POOLED.replace("class Pool", helper).replace(
        "score.masked_fill(~shown, self.mask_value)", "hide(score, shown, self.mask_value)"
    )
    proposal = best("finite_mask", write(tmp_path, {"train.py": source}))
    assert proposal is not None
    assert ([edit.new for edit in proposal.edits], proposal.culprit.line) == (["-10000.0"], 3)
