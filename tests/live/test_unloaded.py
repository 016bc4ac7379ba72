"""Loads that `strict=False` lets pass without loading, since a prefix stands before the keys, or these have no dots.

What is left out on purpose is not told.
"""

from __future__ import annotations

import pathlib

import pytest

from explainer.live.state_key import passed_over
from tests.gate import some_at_gate
from tests.live.running import run

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

HEAD = """import torch
from torch import nn


def body():
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 4))


class Net(nn.Module):
    def __init__(self, classes=2):
        super().__init__()
        self.encoder, self.head = body(), nn.Linear(4, classes)

    def forward(self, x):
        return self.head(self.encoder(x))


torch.manual_seed(0)
net, x = Net(), torch.randn(8, 3)
whole, part = Net(5).state_dict(), body().state_dict()
wrapped = {f"module.{name}": value for name, value in Net().state_dict().items()}
flat = {name.replace(".", ""): value for name, value in Net().state_dict().items()}


class Average(nn.Module):
    def __init__(self, model):
        super().__init__()
        for name, one in model.named_parameters():
            self.register_buffer(name.replace(".", ""), one.detach().clone())


LOAD
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    opt.zero_grad()
    net(x).pow(2).mean().backward()
    opt.step()
AFTER
"""
LOAD = "net.encoder.load_state_dict(whole, strict=False)"


def program(load: str, after: str = "") -> str:
    return HEAD.replace("LOAD", load).replace("AFTER", after)


SEEN = {
    "a part from the whole": (program(LOAD), ("encoder.", False, 4, 6)),
    "the whole from a part": (program("net.load_state_dict(part, strict=False)"), ("encoder.", True, 4, 4)),
    "a wrapper's": (program("net.load_state_dict(wrapped, False)"), ("module.", False, 6, 6)),
    "best weights at the end": (program(LOAD, "net.load_state_dict(net.state_dict())"), ("encoder.", False, 4, 6)),
    "no step at all": (program(LOAD).replace("opt.step()", "pass"), ("encoder.", False, 4, 6)),
}
SPELLED = {
    "without dots": (program("net.load_state_dict(flat, strict=False)"), ("", False, 6, 6)),
    "into an average": (
        program("average = Average(net)\naverage.load_state_dict(Net().state_dict(), strict=False)"),
        ("", True, 6, 6),
    ),
}
QUIET = {
    "a new head": program("net.load_state_dict({k: v for k, v in whole.items() if 'head' not in k}, strict=False)"),
    "an old head beside a loaded body": program(
        "net.load_state_dict({f'old.{k}' if 'head' in k else k: v for k, v in Net().state_dict().items()}, strict=False)"
    ),
    "a part of the keys": program("net.load_state_dict({'head.bias': torch.ones(2)}, strict=False)"),
    "another architecture": program("net.load_state_dict({'old.weight': torch.ones(7, 3)}, strict=False)"),
    "tried again": program(
        "if net.load_state_dict(wrapped, strict=False).unexpected_keys:\n"
        "    net.load_state_dict({k[7:]: v for k, v in wrapped.items()})"
    ),
    "tried on another model first": program("body().load_state_dict(wrapped, strict=False)\nnet = nn.DataParallel(net)\n"
    "net.load_state_dict(wrapped, strict=False)\nnet = net.module"),
    "written by hand": program(LOAD + "\nfor k, p in net.encoder.named_parameters():\n    p.data.copy_(part[k])"),
    "without dots, tried first": program(
        "if net.load_state_dict(flat, strict=False).unexpected_keys:\n"
        "    names = {name.replace('.', ''): name for name in net.state_dict()}\n"
        "    net.load_state_dict({names[key]: value for key, value in flat.items()})"
    ),
    "without dots, copied by hand": program(
        "net.load_state_dict(flat, strict=False)\nfor k, p in net.named_parameters():\n    p.data.copy_(flat[k.replace('.', '')])"
    ),
    "without dots, then the average's own": program(
        "average = Average(Net())\nnet.load_state_dict(flat, strict=False)\naverage.load_state_dict(flat)"
    ),
    "without dots, the average's own before": program(
        "for one in (Average(Net()), net):\n    one.load_state_dict(flat, strict=False)"
    ),
    "an average that holds it already": program("Average(net).load_state_dict(net.state_dict(), strict=False)"),
}  # fmt: skip


@pytest.mark.parametrize(("source", "wanted"), some_at_gate(SEEN, ["a part from the whole", "the whole from a part"]))
def test_it_is_seen(tmp_path: pathlib.Path, source: str, wanted: tuple) -> None:
    """The run ends well; the line of the load is told, with the prefix."""
    (tmp_path / "train.py").write_text(source)
    done, _ = run(tmp_path, "train.py")
    finding = done.report.findings[0]
    assert (done.status, finding.cause, finding.confidence) == (0, "shape/state-dict-mismatch", "certain")
    (one,) = done.processes[0].unloaded
    assert (one.prefix, one.is_added, one.fit, one.keys) == wanted
    line = next(at for at, text in enumerate(source.splitlines(), 1) if ".load_state_dict(" in text)
    assert (pathlib.Path(one.file).name, one.line, finding.culprits[0].line) == ("train.py", line, line)


@pytest.mark.parametrize(("source", "wanted"), some_at_gate(SPELLED, ["without dots"]))
def test_other_spellings_are_seen(tmp_path: pathlib.Path, source: str, wanted: tuple) -> None:
    """The line of the load is told, with what stands for the dots; one fix maps the keys where the names have them."""
    (tmp_path / "train.py").write_text(source)
    done, _ = run(tmp_path, "train.py")
    finding = done.report.findings[0]
    assert (done.status, finding.cause, finding.confidence) == (0, "shape/state-dict-mismatch", "certain")
    (one,) = done.processes[0].unloaded
    assert (one.separator, one.is_added, one.fit, one.keys) == wanted
    assert finding.fixes[0].patch


@pytest.mark.parametrize(
    "source", some_at_gate(QUIET, ["a new head", "tried again", "without dots, the average's own before"])
)
def test_what_is_meant_is_not(tmp_path: pathlib.Path, source: str) -> None:
    """A part that is left out, and a load that is made good, are in order."""
    (tmp_path / "train.py").write_text(source)
    done, _ = run(tmp_path, "train.py")
    assert (done.status, done.report, done.processes[0].unloaded) == (0, None, ())


OWN = {"0.weight": (4, 3), "0.bias": (4,), "1.weight": (2, 4), "1.bias": (2,)}
NOT_SURE = {
    "nothing fits": {"a.weight": (9, 9)},
    "one of many": {"net.0.bias": (4,), **{f"other.{n}": (n,) for n in range(9)}},
    "other sizes": {f"net.{key}": (7, *size) for key, size in OWN.items()},
    "most of it is loaded": {**{key: OWN[key] for key in list(OWN)[:2]}, "old.1.weight": (2, 4), "old.1.bias": (2,)},
}


@pytest.mark.parametrize("given", NOT_SURE.values(), ids=NOT_SURE)
def test_what_is_not_sure(given: dict[str, tuple[int, ...]]) -> None:
    """Too few keys that fit, or enough that were loaded."""
    unexpected, missing = [key for key in given if key not in OWN], [key for key in OWN if key not in given]
    assert passed_over(given, OWN, unexpected, missing) is None


@pytest.mark.parametrize(
    ("given", "others", "clashes"),
    [
        ({f"net.{key}": size for key, size in OWN.items()}, [], 0),
        ({f"{name}.{key}": size for key, size in OWN.items() for name in "ab"}, ["b."], 0),
        ({f"net.{key}": (*size[:-1], 9) if key == "1.bias" else size for key, size in OWN.items()}, [], 1),
    ],
    ids=["one prefix", "two that fit", "a size that differs"],
)
def test_what_an_edit_has_to_know(given: dict, others: list[str], clashes: int) -> None:
    """Which other prefixes fit as well, and which keys would then raise."""
    found = passed_over(given, OWN, list(given), list(OWN))
    assert found is not None
    assert (found[1]["others"], found[1]["clashes"]) == (others, clashes)


def spelled(separator: str, **more: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    return {**{key.replace(".", separator): size for key, size in OWN.items()}, **more}


TOKEN = {"token": (1, 4)}
NORMS = {f"norm.{name}": (4,) for name in ("running_mean", "running_var", "mean", "var")}
OTHER_SPELLINGS = {
    "one key": ({"0weight": (4, 3)}, OWN),
    "other sizes": ({key: (7, *size) for key, size in spelled("").items()}, OWN),
    "other names": ({f"fc{key}": size for key, size in spelled("").items()}, OWN),
    "a part of the keys": ({"0weight": (4, 3), "0bias": (4,), **{f"other{n}": (n,) for n in range(9)}}, OWN | NORMS),
    "a part with dots is loaded": (spelled("", **{"head.weight": (2, 2)}), OWN | {"head.weight": (2, 2)}),
    "a new head": ({key: OWN[key] for key in ("0.weight", "0.bias")} | {"1_weight": (2, 4), "1_bias": (2,)}, OWN),
    "an empty state": ({}, OWN),
    "more is loaded than fits": (spelled("", a=(1,), b=(1,)), OWN | {"a": (1,), "b": (1,)}),
    "two spellings": (spelled("") | spelled("_"), OWN),
    "what has no size": (dict.fromkeys(spelled("")), OWN),
    "a name for two keys": ({"1.1.weight": (2,), "11.weight": (2,), "1.1.bias": (2,), "11.bias": (2,)}, {"11weight": (2,), "11bias": (2,)}),
}  # fmt: skip
SPELLINGS = {
    "nothing": (spelled(""), OWN, ("", False, 4, 0)),
    "a line": (spelled("_"), OWN, ("_", False, 4, 0)),
    "a slash": (spelled("/"), OWN, ("/", False, 4, 0)),
    "a dash": (spelled("-"), OWN, ("-", False, 4, 0)),
    "in the module's names": (OWN, spelled("_"), ("_", True, 4, 0)),
    "counters of the average": (spelled("", decay=(), num_updates=()), OWN, ("", False, 4, 0)),
    "a new head of another name": (spelled(""), OWN | {"head.weight": (5, 2), "head.bias": (5,)}, ("", False, 4, 0)),
    "buffers that it does not keep": (spelled("", decay=()), OWN | NORMS | {"head.bias": (2,)}, ("", False, 4, 0)),
    "a name without dots": (spelled("", **TOKEN), OWN | TOKEN, ("", False, 4, 0)),
    "a name without dots, beside what it does not keep": (
        spelled("", **TOKEN, decay=(), steps=(), old=()), OWN | TOKEN | NORMS, ("", False, 4, 0),
    ),
    "a new head of the same name": (spelled("", headweight=(5, 2)), OWN | {"head.weight": (3, 2)}, ("", False, 4, 1)),
    "two names alike": (
        spelled("", **{"11bias": (2,)}), OWN | {"1.1.bias": (2,), "11.bias": (2,)}, ("", False, 4, 2),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("given", "own"), OTHER_SPELLINGS.values(), ids=OTHER_SPELLINGS)
def test_which_spelling_is_not_sure(given: dict, own: dict) -> None:
    """Other names and sizes, or a part that was loaded under names with dots."""
    assert (
        passed_over(given, own, [key for key in given if key not in own], [key for key in own if key not in given])
        is None
    )


@pytest.mark.parametrize(("given", "own", "wanted"), SPELLINGS.values(), ids=SPELLINGS)
def test_other_spellings(given: dict, own: dict, wanted: tuple) -> None:
    """What stands for the dots, on which side, how many keys fit, and how many would clash."""
    found = passed_over(given, own, [key for key in given if key not in own], [key for key in own if key not in given])
    assert found is not None
    fits, told = found
    assert (told["separator"], told["is_added"], told["fit"], told["clashes"]) == wanted
    assert len(fits) == told["fit"] and all(given[key] == own[name] for key, name in fits)
