"""A flag that is set behind the operations that it was meant for is found, and set where the tensor is made."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from explainer.fix.splice import splice  # noqa: E402
from tests.fix.rewriting import best, changed_lines, failed, write  # noqa: E402
from tests.live.tracing import lines, shown, weight  # noqa: E402


def edges(points: torch.Tensor) -> torch.Tensor:
    return points[1:] - points[:-1]


@pytest.mark.parametrize("by", ["method", "attribute"])
def test_what_is_read_before_the_flag(by: str) -> None:
    """The operation that took it too early, and the one that made it."""
    w = weight()

    def step() -> None:
        points = torch.rand(4, 3)
        vectors = edges(points)
        if by == "method":
            points.requires_grad_()
        else:
            points.requires_grad = True
        torch.autograd.grad((vectors * w).sum(), points)

    assert shown(lines(step)) == [("early", "__getitem__", "edges"), ("made", "rand", "step")]


def test_a_tensor_that_was_cut_is_not_early() -> None:
    """It required grad from the beginning: what lost it is another line."""
    w = weight()

    def step() -> None:
        points = torch.rand(4, 3, requires_grad=True)
        torch.autograd.grad((edges(points).detach() * w).sum(), points)

    assert "early" not in {one.kind for one in lines(step)}


SOURCE = """import torch
net = torch.nn.Linear(3, 1)
def batch():
    points = torch.rand(4, 3)
    return {"points": points, "vectors": points[1:] - points[:-1]}
def main():
    graph = batch()
    points = graph["points"].requires_grad_()
    energy = net(graph["vectors"]).pow(2).sum()
    (slope,) = torch.autograd.grad(energy, points, create_graph=True)
    slope.pow(2).sum().backward()
main()
"""


KEPT = SOURCE.replace(
    """    points = torch.rand(4, 3)
    return {"points": points, "vectors": points[1:] - points[:-1]}
""",
    """    made = {key: torch.cat([torch.rand(2, 3), torch.rand(2, 3)]) for key in ("points", "noise")}
    made["vectors"] = made["points"][1:] - made["points"][:-1]
    return made
""",
)


@pytest.mark.parametrize(
    ("source", "line"),
    [(SOURCE, "points = torch.rand(4, 3).requires_grad_()"), (KEPT, 'made["points"].requires_grad_()')],
    ids=["a name", "an entry of a dictionary"],
)
def test_the_flag_is_set_where_the_tensor_is_made(source: str, line: str, tmp_path: pathlib.Path) -> None:
    """In the function that makes the batch; a second time nothing is left to do."""
    import gradfix

    path = tmp_path / "train.py"
    path.write_text(source)
    with pytest.raises(RuntimeError, match="not have been used"), gradfix.trace() as seen:
        exec(compile(source, str(path), "exec"), {})  # noqa: S102
    incident = replace(failed(), traced=seen.lines)
    proposal = best("flag_where_made", write(tmp_path, {"train.py": source}), incident=incident)
    assert proposal is not None and proposal.culprit.line == 5
    after = splice(source, proposal.edits)
    assert changed_lines(source, after) == [line]
    exec(compile(after, "after", "exec"), {})  # noqa: S102
    assert best("flag_where_made", write(tmp_path, {"train.py": after}), incident=incident) is None
