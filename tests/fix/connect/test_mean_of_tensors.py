"""A mean or sum of Python's own takes losses out of the graph; of plain numbers it may stay."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from explainer.model.incident import ExceptionRecord, Incident
from explainer.model.trace import CUT, TracedLine
from tests.fix.rewriting import diff_lines, line_of, rewritten, write

TOP = "import math\nimport statistics\nfrom statistics import fmean\nimport torch\nnet = torch.nn.Linear(3, 1)\n"
WRONG = {
    "a list": ("def f(xs):\n    losses = [net(x).mean() for x in xs]\n    return fmean(losses)\n", "    return torch.stack(losses).mean()"),
    "a generator": ("def f(xs):\n    return statistics.fmean(net(x).mean() for x in xs)\n", "    return torch.stack([net(x).mean() for x in xs]).mean()"),
    "values of a table": ("def f(x):\n    parts = {'a': net(x).mean()}\n    return fmean(parts.values())\n", "    return torch.stack(list(parts.values())).mean()"),
    "a sum": ("def f(xs):\n    return math.fsum([net(x).mean() for x in xs])\n", "    return sum([net(x).mean() for x in xs])"),
}  # fmt: skip


@pytest.mark.parametrize(("body", "after"), WRONG.values(), ids=WRONG)
def test_it_is_taken_in_torch(body: str, after: str, tmp_path: pathlib.Path) -> None:
    """A second time nothing is left to do."""
    found = rewritten(tmp_path, "mean_of_tensors", TOP + body, "return")
    assert diff_lines(TOP + body, found)[1:] == [f"+{after}"]
    assert rewritten(tmp_path, "mean_of_tensors", found, "return") == found


def test_numbers_stay(tmp_path: pathlib.Path) -> None:
    """What is logged has no graph to lose."""
    source = TOP + "def f(xs):\n    shown = [net(x).mean().item() for x in xs]\n    return fmean(shown)\n"
    assert rewritten(tmp_path, "mean_of_tensors", source, "return") == source


HANDED = (
    TOP
    + "class Objective:\n    combine = staticmethod(fmean)\n    def __call__(self, parts):\n        return self.combine(parts)  # cut\n"
)


@pytest.mark.parametrize("is_traced", [True, False])
def test_a_function_that_is_handed_on(is_traced: bool, tmp_path: pathlib.Path) -> None:
    """Only a trace tells that what it is given has a graph."""
    program = write(tmp_path, {"train.py": HANDED})
    line = TracedLine(kind=CUT, operation="__float__", file=str(tmp_path / "train.py"), line=line_of(HANDED, "# cut"))
    failed = ExceptionRecord(type="RuntimeError", message="element 0 of tensors does not require grad")
    incident = Incident(exceptions=(failed,), traced=(line,) if is_traced else ())
    found = list(find_codemod("mean_of_tensors")(Context(program=program, incident=incident)))
    texts = [splice(HANDED, one.edits) or "" for one in found]
    taken = "staticmethod(lambda values: torch.stack(list(values)).mean())"
    assert [taken in one for one in texts] == ([True] if is_traced else [])
