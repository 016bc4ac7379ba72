"""The cut that a trace saw on the way to the loss is taken out, and the gradients are those of a program without it."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from explainer.model.trace import CUT, CUT_STATE, DEAD_TERM, TracedLine
from tests.fix.detach.test_copy_what_is_saved import run
from tests.fix.rewriting import best, changed_lines, diff_lines, failed, line_of, write

TOP = "import torch\nimport numpy as np\nfrom torch import nn\ntorch.manual_seed(0)\nnet = nn.Linear(4, 4)\nx = torch.randn(6, 4)\n"
GIVEN = "def use(pool, values):\n    return pool(values)\n"
CALL = "loss = use(pool, [net(x).pow(2).mean(), net(x * 2).pow(2).mean()]).mean()\nloss.backward()\n"
RIGHT = "loss = (net(x).pow(2).mean() + net(x * 2).pow(2).mean()) / 2\nloss.backward()\n"
CUTS = {
    "numbers of a list": ("def pool(values):\n    return torch.tensor([float(v) for v in values])\n", ["+    return torch.stack([v for v in values])"]),
    "a tensor by its type": ("def pool(values):\n    return torch.FloatTensor([v for v in values])\n", ["+    return torch.stack([v for v in values])"]),
    "items of a list": ("def pool(values):\n    return torch.tensor([v.item() for v in values])\n", ["+    return torch.stack([v for v in values])"]),
    "a detached mean": ("def pool(values):\n    return sum(v.detach() for v in values) / len(values)\n", ["+    return sum(v for v in values) / len(values)"]),
    "numbers with a name": (
        "seen = []\ndef pool(values):\n    found = [v.item() for v in values]\n    seen.append(found)\n    return torch.tensor(found)\n",
        ["+    found = [v for v in values]", "+    seen.append([one.item() for one in found])", "+    return torch.stack(found)"],
    ),
    "the data": ("def pool(values):\n    return torch.stack([v.data for v in values])\n", ["+    return torch.stack([v for v in values])"]),
}  # fmt: skip


@pytest.mark.torch
@pytest.mark.parametrize(("pool", "added"), CUTS.values(), ids=CUTS)
def test_the_traced_cut_goes(pool: str, added: list[str], tmp_path: pathlib.Path) -> None:
    """A helper that is handed from function to function: the source does not show what it is given."""
    torch = pytest.importorskip("torch")
    import gradfix

    text = TOP + pool + GIVEN + CALL
    with pytest.raises(RuntimeError, match="does not require grad"), gradfix.trace() as seen:
        run(tmp_path, "train", text)
    program = write(tmp_path, {"train.py": text})
    incident = replace(failed(), traced=seen.lines)
    proposal = best("reconnect_traced", program, incident=incident)
    assert proposal is not None
    after = splice(text, proposal.edits)
    assert [one for one in diff_lines(text, after) if one[0] == "+"] == added
    expected = run(tmp_path, "right", TOP + RIGHT)
    assert all(map(torch.allclose, run(tmp_path, "fixed", after), expected))


DECISIONS = {
    "a probability": ("p = torch.sigmoid(net(x))\nhard = (p > 0.5).float()\n", "hard = p"),
    "in place": ("hard = (torch.sigmoid(net(x)) > 0.5).float()\n", "hard = torch.sigmoid(net(x))"),
    "of what is no probability": ("h = net(x)\nhard = (h > 0.5).float()\n", None),
    "behind another layer": ("h = net(torch.sigmoid(net(x)))\nhard = (h > 0.5).float()\n", None),
}


@pytest.mark.parametrize(("made", "line"), DECISIONS.values(), ids=DECISIONS)
def test_a_decision_gives_way_to_its_probability(made: str, line: str | None, tmp_path: pathlib.Path) -> None:
    """Only for what is a probability: another threshold has other soft forms."""
    text = f"{TOP}{made}loss = 1 - hard.mean()\nloss.backward()\n"
    traced = TracedLine(kind=CUT, operation="gt", file=str(tmp_path / "train.py"), line=line_of(text, "> 0.5"))
    context = Context(
        program=write(tmp_path, {"train.py": text}),
        incident=replace(failed(), traced=(traced,)),
        options={"steps": True},
    )
    found = list(find_codemod("reconnect_traced")(context))
    assert [changed_lines(text, splice(text, one.edits)) for one in found] == ([[line]] if line else [])


def lines(text: str, words: str, folder: pathlib.Path, **given: object) -> list:
    traced = TracedLine(kind=CUT, operation="detach", file=str(folder / "train.py"), line=line_of(text, words), **given)  # type: ignore[arg-type]
    program = write(folder, {"train.py": text})
    return list(
        find_codemod("reconnect_traced")(Context(program=program, incident=replace(failed(), traced=(traced,))))
    )


METER = """import torch
class Meter:
    def __init__(self):
        self.total, self.seen = 0.0, []
    def track(self, value):
        if isinstance(value, torch.Tensor):
            value = value.mean().item()
        self.total += value
        return value
    def list(self, penalty):
        read = penalty.mean().item()
        self.seen.append(read)
        return sum(self.seen)
    def keep(self, term):
        number = term.item()
        self.seen.append(number)
        return number
"""
TRACKED = {
    "value = ": ["+            value = value.mean()", "+        self.total += torch.as_tensor(value).item()"],
    "read = ": ["+        read = penalty.mean()"],
    "number = ": ["+        number = term", "+        self.seen.append(number.item())"],
}


@pytest.mark.parametrize("words", TRACKED)
def test_a_meter_keeps_numbers(words: str, tmp_path: pathlib.Path) -> None:
    """What a helper gives a loss is a tensor again; what it adds up or stores for itself holds no graph."""
    traced = TracedLine(
        kind=DEAD_TERM, operation="item", file=str(tmp_path / "train.py"), line=line_of(METER, words), says=""
    )
    program = write(tmp_path, {"train.py": METER})
    context = Context(program=program, incident=replace(failed(), traced=(traced,)), options={"terms": True})
    (proposal,) = find_codemod("reconnect_traced")(context)
    assert [one for one in diff_lines(METER, splice(METER, proposal.edits)) if one[0] == "+"] == TRACKED[words]


def test_a_target_is_less_likely(tmp_path: pathlib.Path) -> None:
    """A cut that the line calls one on purpose comes after all others."""
    text = "h = x.detach()\ntarget = y.detach()\n"
    (plain,), (meant,) = lines(text, "h =", tmp_path), lines(text, "target", tmp_path)
    assert plain.belief > 0 > meant.belief


@pytest.mark.parametrize("line", ["h = x.argmax(-1)", "h = (x > 0).float()", "h = x + 1"])
def test_what_has_no_form_stays(line: str, tmp_path: pathlib.Path) -> None:
    """Steps and integers have no derivative, and a line without a cut has nothing to take out."""
    assert not lines(line + "\n", line, tmp_path)


def test_a_guess_is_no_fact(tmp_path: pathlib.Path) -> None:
    """What the tracer only concludes leads to no edit."""
    assert not lines("h = x.item()\n", "h =", tmp_path, is_guess=True)


def test_a_term_is_no_plain_cut(tmp_path: pathlib.Path) -> None:
    """What leaves a term of the loss without a graph changes the gradients of all that goes into it: the other fix says so."""
    program = write(tmp_path, {"train.py": "h = x.item()\n"})
    places = [
        TracedLine(kind=kind, operation="item", file=str(tmp_path / "train.py"), line=1) for kind in (CUT, DEAD_TERM)
    ]
    counts = []
    for traced in (places, places[:1]):
        context = Context(program=program, incident=replace(failed(), traced=tuple(traced)))
        counts.append(len(list(find_codemod("reconnect_traced")(context))))
    assert counts == [0, 1]


def test_what_takes_arrays_as_well(tmp_path: pathlib.Path) -> None:
    """A copy of an argument in a given dtype stays a conversion, which keeps the graph of a tensor."""
    source = "import torch\ndef mel(wave):\n    wave = torch.tensor(wave, dtype=torch.float32)\n    return wave.abs()\n"
    (found,) = lines(source, "wave = ", tmp_path)
    assert [one for one in diff_lines(source, splice(source, found.edits)) if one[0] == "+"] == [
        "+    wave = torch.as_tensor(wave, dtype=torch.float32)"
    ]


STATES = {
    "h = h.detach()": [],
    "h, c = h.detach(), c.detach()": [],
    "h, c = (h.detach(), c.detach())": [],
    "state = tuple(part.detach() for part in state)": [],
    "state = [part.data for part in state]": [],
    "h.detach_()": [],
    "h = cell(x, h.detach())": ["+        h = cell(x, h)"],
    "h, c = cell(x, (h.detach(), c.detach()))": ["+        h, c = cell(x, (h, c))"],
    "self.state = h.detach()": ["+        self.state = h"],
    "if t: h = h.detach()": ["+        if t: pass"],
}


@pytest.mark.parametrize("line", STATES)
def test_a_state_keeps_its_graph(line: str, tmp_path: pathlib.Path) -> None:
    """A line that only cuts goes; one that does more stays without its cut."""
    text = f"def run(self, cell, xs, h, c, state):\n    for t, x in enumerate(xs):\n        h = cell(x, h)\n        {line}\n    return h\n"
    traced = TracedLine(kind=CUT_STATE, operation="detach", file=str(tmp_path / "train.py"), line=4)
    program = write(tmp_path, {"train.py": text})
    context = Context(program=program, incident=replace(failed(), traced=(traced,)), options={"states": True})
    (proposal,) = find_codemod("reconnect_traced")(context)
    changed = [one for one in diff_lines(text, splice(text, proposal.edits)) if one[0] in "+-"]
    assert changed == [f"-        {line}", *STATES[line]]
