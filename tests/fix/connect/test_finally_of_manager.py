"""Context managers that switch gradients off, and are left by an exception that a caller catches."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.mending import run
from tests.fix.rewriting import changed_lines, rewritten

PROGRAM = """import contextlib
import torch
from torch import nn
net = nn.Linear(2, 1)


@contextlib.contextmanager
def scoring(model):
    BEFORE
    yield model
    BEHIND


def check(x):
    with scoring(net) as model:
        if x is None:
            raise ValueError("nothing to score")
        return model(x).sum()


def report(x):
    try:
        return check(x)
    except ValueError:
        return None


for x in (torch.ones(3, 2), FAILING):
    report(x)
    loss = net(torch.ones(3, 2)).sum()
    loss.backward()
"""
RESTORED = ["try:", "yield model", "finally:"]
MANAGERS = {
    "grad mode": (
        "was = torch.is_grad_enabled()\n    torch.set_grad_enabled(False)",
        "torch.set_grad_enabled(was)\n    print('scored')",
        [*RESTORED, "torch.set_grad_enabled(was)", "print('scored')"],
    ),
    "flags": (
        "model.requires_grad_(False)",
        "model.requires_grad_(True)",
        [*RESTORED, "model.requires_grad_(True)"],
    ),
    "grad mode that is never switched on": (
        "torch.set_grad_enabled(False)", "print('scored')", ["with torch.no_grad():", "yield model", "print('scored')"],
    ),
}  # fmt: skip


def source_of(before: str, behind: str, failing: str = "None") -> str:
    return PROGRAM.replace("BEFORE", before).replace("BEHIND", behind).replace("FAILING", failing)


@pytest.mark.torch
@pytest.mark.parametrize(("before", "behind", "wanted"), MANAGERS.values(), ids=MANAGERS)
def test_it_puts_back_on_every_way_out(tmp_path: pathlib.Path, before: str, behind: str, wanted: list[str]) -> None:
    """The program fails behind the exception that was caught, and goes on with the edit; a second time nothing is left."""
    pytest.importorskip("torch")
    import torch

    source = source_of(before, behind)
    options = {"switches": "grad mode" if "set_grad" in before else "flags"}
    with pytest.raises(RuntimeError, match="does not require grad"):
        run(source, tmp_path / "train.py")
    torch.set_grad_enabled(True)
    after = rewritten(tmp_path, "finally_of_manager", source, "loss.backward()", options=options)
    found = [line.strip() for line in after.splitlines()]
    assert [found[found.index(wanted[0]) + at] for at in range(len(wanted))] == wanted
    run(after, tmp_path / "after.py")
    assert rewritten(tmp_path, "finally_of_manager", after, "loss.backward()", options=options) == after


LEFT = {
    "nobody catches": source_of(*MANAGERS["grad mode"][:2]).replace("except ValueError:\n        return None", "finally:\n        pass"),
    "no gradients are switched": source_of("model.eval()", "model.train()"),
    "no context manager": source_of(*MANAGERS["grad mode"][:2]).replace("@contextlib.contextmanager\n", ""),
}  # fmt: skip


@pytest.mark.parametrize("source", LEFT.values(), ids=LEFT)
def test_others_stay(tmp_path: pathlib.Path, source: str) -> None:
    """Where no exception is caught the program ends with it; other generators are not for a `with`."""
    for switches in ("grad mode", "flags"):
        options = {"switches": switches}
        assert rewritten(tmp_path, "finally_of_manager", source, "loss.backward()", options=options) == source


def test_no_decorator_on_a_generator(tmp_path: pathlib.Path) -> None:
    """`no_grad` on a context manager would end where that is made."""
    source = source_of(*MANAGERS["grad mode"][:2])
    assert rewritten(tmp_path, "enable_grad", source, "loss.backward()").count("@torch.no_grad()") == 0


CLASS = """import torch

class Evaluating:
    def __init__(self, net):
        self.net = net

    def __enter__(self):
        self.net.eval()
        KEPT
        torch.set_grad_enabled(False)

    def __exit__(self, *exc):
        BEHIND
        self.net.train()

net = torch.nn.Linear(2, 1)
with Evaluating(net):
    net(torch.ones(1, 2))
loss = net(torch.ones(1, 2)).sum()
loss.backward()
"""
WAS = "self.was = torch.is_grad_enabled()"


@pytest.mark.torch
@pytest.mark.parametrize(
    ("kept", "behind", "wanted"),
    [
        (WAS, "pass", ["torch.set_grad_enabled(self.was)"]),
        ("pass", "pass", ["torch.set_grad_enabled(True)"]),
        (WAS, "torch.set_grad_enabled(self.was)", []),
    ],
    ids=["what it kept", "nothing kept", "right"],
)
def test_a_class_puts_back_what_it_switched_off(
    tmp_path: pathlib.Path, kept: str, behind: str, wanted: list[str]
) -> None:
    """In `__exit__`, which runs on every way out; the edited program trains."""
    pytest.importorskip("torch")
    source = CLASS.replace("KEPT", kept).replace("BEHIND", behind)
    options = {"switches": "grad mode"}
    after = rewritten(tmp_path, "finally_of_manager", source, "loss.backward()", options=options)
    assert changed_lines(source, after) == wanted
    run(after, tmp_path / "after.py")


@pytest.mark.torch
@pytest.mark.parametrize("behind", ["torch.set_grad_enabled(self.was)", "torch.set_grad_enabled(mode=self.was)"])
def test_what_is_noted_too_late(tmp_path: pathlib.Path, behind: str) -> None:
    """The mode is noted before the switch; a second time nothing is left to do, and `__enter__` gets no decorator."""
    pytest.importorskip("torch")
    source = CLASS.replace("        KEPT\n", "").replace("BEHIND", behind)
    source = source.replace("set_grad_enabled(False)\n", f"set_grad_enabled(False)\n        {WAS}\n")
    options = {"switches": "grad mode"}
    after = rewritten(tmp_path, "finally_of_manager", source, "loss.backward()", options=options)
    assert after.index(WAS) < after.index("torch.set_grad_enabled(False)")
    assert rewritten(tmp_path, "finally_of_manager", after, "loss.backward()", options=options) == after
    assert rewritten(tmp_path, "enable_grad", source, "loss.backward()").count("@torch.no_grad()") == 0
    run(after, tmp_path / "after.py")
