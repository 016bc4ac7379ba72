"""A loop that writes each step into one tensor collects them in a list, where that is the same."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

SOURCE = """import torch
def encode(x, cell):
    n, steps, _ = x.shape
    h = x.new_zeros(n, 3)
    trace = torch.zeros(n, steps, 3)
    for t in range(steps):
        h = cell(x[:, t], h)
        trace[:, t] = h
    return trace.sum(1)
def cell(x, h):
    return torch.tanh(x + h)
out = torch.func.vmap(lambda x: encode(x, cell))(torch.randn(2, 4, 5, 3))
"""
FIRST = SOURCE.replace("torch.zeros(n, steps, 3)", "torch.empty((steps, n, 3), device=x.device)").replace(
    "trace[:, t]", "trace[t]"
)
LEFT = {
    "read in the loop": SOURCE.replace("h = cell(x[:, t], h)", "h = cell(x[:, t], trace[:, t - 1])"),
    "written twice": SOURCE.replace("        trace[:, t] = h\n", "        trace[:, t] = h\n        trace[0, t] = 0\n"),
    "not each step": SOURCE.replace("        trace", "        if t == 2:\n            continue\n        trace"),
    "longer than the loop": SOURCE.replace("torch.zeros(n, steps, 3)", "torch.zeros(n, steps + 1, 3)"),
    "under a condition": SOURCE.replace("        trace[:, t] = h", "        if t:\n            trace[:, t] = h"),
    "a part of a step": SOURCE.replace("trace[:, t] = h", "trace[:2, t] = h[:2]"),
    "backwards": SOURCE.replace("range(steps)", "reversed(range(steps))"),
    "given": SOURCE.replace("    trace = torch.zeros(n, steps, 3)\n", "").replace("encode(x, cell):", "encode(x, cell, trace):"),
    "has another name": SOURCE.replace("    for t", "    kept = trace\n    for t"),
    "trained": SOURCE.replace("torch.zeros(n, steps, 3)", "torch.zeros(n, steps, 3, requires_grad=True)"),
}  # fmt: skip


@pytest.mark.torch
def test_the_steps_are_stacked(tmp_path: pathlib.Path) -> None:
    """The program fails under its transform, and computes the same without one."""
    torch = pytest.importorskip("torch")
    after = rewritten(tmp_path, "collect_steps", SOURCE, at="trace[:, t] = h")
    assert diff_lines(SOURCE, after) == [
        "-    trace = torch.zeros(n, steps, 3)", "+    trace = []", "-        trace[:, t] = h", "+        trace.append(h)",
        "+    trace = torch.stack(trace, dim=1)",
    ]  # fmt: skip
    with pytest.raises(RuntimeError, match="vmap: inplace"):
        exec(SOURCE, {"__name__": "train"})  # noqa: S102 - the program of the test
    before, now = {"__name__": "train"}, {"__name__": "train"}
    exec(SOURCE.rpartition("out = ")[0], before)  # noqa: S102 - the program of the test
    exec(after, now)  # noqa: S102 - the program of the test
    x = torch.randn(4, 5, 3)
    assert torch.equal(before["encode"](x, before["cell"]), now["encode"](x, now["cell"]))  # type: ignore[operator]


def test_along_the_first_axis(tmp_path: pathlib.Path) -> None:
    after = rewritten(tmp_path, "collect_steps", FIRST, at="trace[t] = h")
    assert "    trace = torch.stack(trace)\n" in after


@pytest.mark.parametrize("source", LEFT.values(), ids=LEFT)
def test_what_a_list_would_not_be_is_left_alone(source: str, tmp_path: pathlib.Path) -> None:
    at = next(one.strip() for one in source.splitlines() if "t] = " in one)
    assert rewritten(tmp_path, "collect_steps", source, at=at) == source
