"""A copy for a record no longer takes the place of the entry that a loss reads."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.fix.splice import splice
from explainer.model.trace import CUT, DEAD_TERM, STARVING_CUT, TracedLine
from tests.fix.rewriting import best, diff_lines, failed, line_of, write

# The loss reads the entries `h` and `z` after `record` had them.
PROGRAM = """import torch
from torch import nn

torch.manual_seed(0)
net, head = nn.Linear(4, 3), nn.Linear(4, 1)
rows = []
HELPER

class Recorder:
    keep = ("h", "z")

    def __init__(self):
        self.rows = {"h": [], "z": []}

    def record(self, out, step=0):
        BODY


def total(out):
    return out["h"].square().mean() + out["z"].square().mean()


recorder = Recorder()
x = torch.randn(6, 4)
out = {"h": net(x), "z": head(x), "x": x}
ANSWER = recorder.record(out)
loss = total(out)
loss.backward()
grads = [one.grad for part in (net, head) for one in part.parameters()]
"""
CURED = {
    "an entry by its key": (
        'out["h"] = out["h"].detach().cpu()\nself.rows["h"].append(out["h"])',
        ['-out["h"] = out["h"].detach().cpu()', '-self.rows["h"].append(out["h"])', '+kept = out["h"].detach().cpu()', '+self.rows["h"].append(kept)'],
    ),
    "entries of a setting": (
        "for name in self.keep:\n    out[name] = out[name].detach()\n    self.rows[name].extend(out[name])",
        ["-out[name] = out[name].detach()", "-self.rows[name].extend(out[name])", "+kept = out[name].detach()", "+self.rows[name].extend(kept)"],
    ),
    "two entries": (
        'out["h"] = out["h"].detach()\nout["z"] = out["z"].data.cpu()\nself.rows["h"] += [out["h"], out["z"]]',
        [
            '-out["h"] = out["h"].detach()', '-out["z"] = out["z"].data.cpu()', '-self.rows["h"] += [out["h"], out["z"]]',
            '+kept_h = out["h"].detach()', '+kept_z = out["z"].data.cpu()', '+self.rows["h"] += [kept_h, kept_z]',
        ],
    ),
    "a name that is taken": (
        'kept = self.rows\nout["h"] = out["h"].detach()\nkept["h"].append(out["h"])',
        ['-out["h"] = out["h"].detach()', '-kept["h"].append(out["h"])', '+kept_h = out["h"].detach()', '+kept["h"].append(kept_h)'],
    ),
    "a copy that has a name": (
        'seen = out["h"].detach().clone()\nout["h"] = seen\nself.rows["h"].append(out["h"].mean())',
        ['-out["h"] = seen', '-self.rows["h"].append(out["h"].mean())', '+self.rows["h"].append(seen.mean())'],
    ),
    "an entry that has a name": (
        'part = out["h"]\nout["h"] = part.detach().numpy()\nself.rows["h"].append(out["h"])',
        ['-out["h"] = part.detach().numpy()', '-self.rows["h"].append(out["h"])', "+kept = part.detach().numpy()", '+self.rows["h"].append(kept)'],
    ),
    "a function that copies": (
        'out["h"] = to_host(out["h"])\nself.rows["h"].append(out["h"])',
        ['-out["h"] = to_host(out["h"])', '-self.rows["h"].append(out["h"])', '+kept = to_host(out["h"])', '+self.rows["h"].append(kept)'],
    ),
    "items that are put away together": (
        "for name, part in out.items():\n    out[name] = part.detach().cpu()\nrows.append(out)",
        ["+out = dict(out)"],
    ),
    "entries that another loop reads": (
        "for name in self.keep:\n    out[name] = out[name].detach()\nfor name in self.keep:\n    self.rows[name].append(out[name])",
        ["+import copy", "+out = copy.copy(out)"],
    ),
    "an update of all": (
        "out.update({name: part.detach() for name, part in out.items()})\nrows.append(out)",
        ["+out = dict(out)"],
    ),
    "another name of the container": (
        'seen = out\nseen["h"] = seen["h"].detach()\nself.rows["h"].append(seen["h"])',
        ['-seen["h"] = seen["h"].detach()', '-self.rows["h"].append(seen["h"])', '+kept = seen["h"].detach()', '+self.rows["h"].append(kept)'],
    ),
    "a copy that is handed back": (
        'out["h"] = out["h"].detach()\nreturn out["h"]',
        ['-out["h"] = out["h"].detach()', '-return out["h"]', '+kept = out["h"].detach()', "+return kept"],
    ),
    "other entries stay as they are read": (
        'out["h"] = out["h"].detach()\nself.rows["h"].append((out["h"], out["x"]))\nout["n"] = len(out)',
        ['-out["h"] = out["h"].detach()', '-self.rows["h"].append((out["h"], out["x"]))', '+kept = out["h"].detach()', '+self.rows["h"].append((kept, out["x"]))'],
    ),
}  # fmt: skip
HELPER = "\n\ndef to_host(part):\n    return part.detach().cpu()\n"
LEFT = {
    "nothing reads the copy": 'out["h"] = out["h"].detach()',
    "the entry is stopped on purpose": 'out["h"] = out["h"].detach()  # z alone is to train: stop here\nself.rows["h"].append(out["h"])',
    "a target": 'out["target"] = out["target"].detach()\nself.rows["h"].append(out["target"])',
    "another value is written": 'out["h"] = out["h"].detach() * 0.5\nself.rows["h"].append(out["h"])',
    "a mean is written": 'out["h"] = out["h"].detach().mean()\nself.rows["h"].append(out["h"])',
    "the value of another entry is written": 'out["h"] = out["z"].detach()\nself.rows["h"].append(out["h"])',
    "the entry gets another value behind": 'out["h"] = out["h"].detach()\nout["h"] = out["h"] * 2\nrows.append(out["h"])',
    "what the object keeps itself": 'self.rows["h"] = self.rows["h"].detach()\nrows.append(self.rows["h"])',
    "a gradient that is put aside": "out.grad = out.grad.detach()\nrows.append(out.grad)",
    "entries are added to what is put away": 'for name, part in out.items():\n    out[name] = part.detach()\nout["n"] = step\nrows.append(out)',
    "the container gets another value": 'out["h"] = out["h"].detach()\nout = dict(out)\nrows.append(out["h"])',
}  # fmt: skip


def _program(body: str, answer: str = "answer") -> str:
    text = PROGRAM.replace("BODY", body.replace("\n", "\n        "))
    return text.replace("HELPER", HELPER if "to_host(" in body else "").replace("ANSWER", answer)


def _after(folder: pathlib.Path, text: str, words: tuple[str, ...], kind: str = STARVING_CUT) -> str:
    """A program after the edit, where a trace saw a graph end in the lines with some words."""
    lines = [number for number, one in enumerate(text.splitlines(), 1) if any(word in one for word in words)]
    file = str(folder / "train.py")
    traced = tuple(TracedLine(kind=kind, operation="detach", file=file, line=one) for one in lines)
    proposal = best("copy_beside_entry", write(folder, {"train.py": text}), incident=replace(failed(), traced=traced))
    return text if proposal is None else splice(text, proposal.edits) or ""


def _mended(
    folder: pathlib.Path, text: str, words: tuple[str, ...] = ("detach()", ".data"), kind: str = STARVING_CUT
) -> list[str]:
    """The lines that the edit changes, without their indentation."""
    return [one[0] + one[1:].strip() for one in diff_lines(text, _after(folder, text, words, kind))]


@pytest.mark.parametrize("body", LEFT.values(), ids=LEFT)
def test_other_writes_stay(body: str, tmp_path: pathlib.Path) -> None:
    """What may be meant, has no reader here, or writes another value than that of the entry is the author's to change."""
    assert _mended(tmp_path, _program(body)) == []


def test_what_no_trace_saw_stays(tmp_path: pathlib.Path) -> None:
    """A record is right wherever no loss reads the entry behind it."""
    assert _mended(tmp_path, _program(CURED["an entry by its key"][0]), words=()) == []


def test_a_container_that_the_caller_goes_on_with_stays(tmp_path: pathlib.Path) -> None:
    """`out = record(out)` hands on the copies, whatever becomes of the dictionary that it was given."""
    body = "for name, part in out.items():\n    out[name] = part.detach()\nreturn out"
    assert _mended(tmp_path, _program(body, answer="out")) == []
    assert _mended(tmp_path, _program(body, answer="seen")) == ["+out = dict(out)"]


@pytest.mark.torch
@pytest.mark.parametrize(("body", "changed"), CURED.values(), ids=CURED)
def test_the_record_gets_the_copy(body: str, changed: list[str], tmp_path: pathlib.Path) -> None:
    """The loss reads the entry with its graph, and the gradients are those of a program that records nothing."""
    torch = pytest.importorskip("torch")
    text = _program(body)
    after = _after(tmp_path, text, ("detach()", ".data"))
    assert [one[0] + one[1:].strip() for one in diff_lines(text, after)] == changed
    found, expected = dict[str, list](), dict[str, list]()
    exec(after, found)  # noqa: S102 - the program of a test
    exec(_program("pass"), expected)  # noqa: S102
    assert all(map(torch.equal, found["grads"], expected["grads"]))
    kept = [one for each in (found["rows"], *found["recorder"].rows.values()) for one in each]  # type: ignore[attr-defined]
    assert not any(getattr(one, "requires_grad", False) for one in kept)


OTHERS = {
    "an attribute of an output": (
        "def hook(module, given, out):\n    out.hidden = out.hidden.detach()\n    seen.append(out.hidden.norm())\n    names.append(out.name)\n",
        ["-out.hidden = out.hidden.detach()", "-seen.append(out.hidden.norm())", "+kept = out.hidden.detach()", "+seen.append(kept.norm())"],
    ),
    "an output that is put away": (
        "import torch\n\n\ndef hook(module, given, out):\n    out.hidden = out.hidden.detach()\n    seen.append(out)\n",
        ["+import copy", "+out = copy.copy(out)"],
    ),
    "attributes by their names": (
        "def watch(out, names):\n    for name in names:\n        setattr(out, name, getattr(out, name).detach())\n        seen[name] = getattr(out, name)\n",
        [
            "-setattr(out, name, getattr(out, name).detach())", "-seen[name] = getattr(out, name)",
            "+kept = getattr(out, name).detach()", "+seen[name] = kept",
        ],
    ),
    "layers of a list": (
        "def watch(layers):\n    for at, part in enumerate(layers):\n        layers[at] = part.detach().cpu()\n    seen.append(layers)\n",
        ["+layers = list(layers)"],
    ),
    "parts of an entry": (
        'def watch(out):\n    out["maps"] = [one.detach() for one in out["maps"]]\n    seen.extend(out["maps"])\n',
        ['-out["maps"] = [one.detach() for one in out["maps"]]', '-seen.extend(out["maps"])', '+kept = [one.detach() for one in out["maps"]]', "+seen.extend(kept)"],
    ),
    "numbers for a log": (
        "def log(step, losses):\n    for name in losses:\n        losses[name] = losses[name].detach().item()\n    print(step, losses)\n    seen.update(losses.items())\n",
        ["+losses = dict(losses)"],
    ),
    "a loss of the same function": (
        'for x, y in loader:\n    out = model(x)\n    out["h"] = out["h"].detach()\n    seen.append(out["h"])\n    loss = (out["h"] - y).square().mean()\n    loss.backward()\n',
        ['-out["h"] = out["h"].detach()', '-seen.append(out["h"])', '+kept = out["h"].detach()', "+seen.append(kept)"],
    ),
    "a loss of the same container": (
        "for x, y in loader:\n    out = model(x)\n    for name, part in out.items():\n        out[name] = part.detach()\n    seen.append(out)\n    loss = total(out, y)\n    loss.backward()\n",
        ["+kept = dict(out)", "-out[name] = part.detach()", "-seen.append(out)", "+kept[name] = part.detach()", "+seen.append(kept)"],
    ),
    "a loss that a caller differentiates": (
        'def total(out, y):\n    out["h"] = out["h"].detach()\n    seen.append(out["h"])\n    return (out["h"] - y).square().mean()\n\n\nloss = total(model(x), y)\nloss.backward()\n',
        ['-out["h"] = out["h"].detach()', '-seen.append(out["h"])', '+kept = out["h"].detach()', "+seen.append(kept)"],
    ),
}  # fmt: skip
STAYS = {
    "a loss of what is detached alone": 'for x, y in loader:\n    out = model(x)\n    out["h"] = out["h"].detach()\n    loss = head(out["h"]).mean()\n    loss.backward()\n',
    "a state between windows": 'for x in windows:\n    loss = step(x, state)\n    loss.backward()\n    state["h"] = state["h"].detach()\n',
    "a batch of data": 'def to_host(batch):\n    batch["x"] = batch["x"].cpu()\n    seen.append(batch["x"])\n',
}  # fmt: skip


@pytest.mark.parametrize(("text", "changed"), OTHERS.values(), ids=OTHERS)
@pytest.mark.parametrize("kind", [STARVING_CUT, CUT, DEAD_TERM])
def test_other_containers_are_left_as_they_were(
    text: str, changed: list[str], kind: str, tmp_path: pathlib.Path
) -> None:
    """What reads the copy gets it by name, or in a container of its own; what a loss is computed of keeps its graph."""
    assert _mended(tmp_path, text, kind=kind) == changed


@pytest.mark.parametrize("text", STAYS.values(), ids=STAYS)
def test_what_is_no_record_stays(text: str, tmp_path: pathlib.Path) -> None:
    """A value that only the loss reads, a state or data are no copy for a record."""
    assert _mended(tmp_path, text, words=("detach()", "cpu()")) == []


def test_a_copy_in_a_function_of_its_own_is_made_there(tmp_path: pathlib.Path) -> None:
    """The trace names the line of that function, which others may call; the caller is changed and is where the fault begins."""
    text = _program(CURED["a function that copies"][0])
    line = TracedLine(
        kind=STARVING_CUT, operation="detach", file=str(tmp_path / "train.py"), line=line_of(text, "part.detach")
    )
    proposal = best(
        "copy_beside_entry", write(tmp_path, {"train.py": text}), incident=replace(failed(), traced=(line,))
    )
    assert proposal is not None
    assert proposal.is_origin
    assert proposal.culprit.code == 'out["h"] = to_host(out["h"])'
