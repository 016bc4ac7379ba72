"""What a kernel of a GPU would assert on is seen before it runs, and raised as the CPU raises it. On a GPU itself: `tests/gpu`."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from torch.nn import functional as F  # noqa: E402

import gradfix  # noqa: E402
from explainer.live.trace import indices  # noqa: E402
from explainer.model.incident import Incident  # noqa: E402
from explainer.verification.live_report import with_live_objects  # noqa: E402

pytestmark = pytest.mark.torch
TABLE = torch.randn(4, 3)
SCORES = torch.randn(2, 3)
WRONG = {
    "a token": ("embedding", F.embedding, (torch.tensor([0, 4]), TABLE), {}, "index out of range in self"),
    "a negative token": ("embedding", F.embedding, (torch.tensor([-1]), TABLE), {}, "index out of range in self"),
    "a label": ("cross_entropy", F.cross_entropy, (SCORES, torch.tensor([0, 3])), {}, "Target 3 is out of bounds."),
    "a label by keyword": (
        "nll_loss", F.nll_loss, (SCORES,), {"target": torch.tensor([0, -1])}, "Target -1 is out of bounds.",
    ),
    "another ignored label": (
        "cross_entropy", F.cross_entropy, (SCORES, torch.tensor([0, -100])), {"ignore_index": -1}, "Target -100 is out of bounds.",
    ),
    "a gathered column": ("gather", torch.gather, (SCORES, 1, torch.tensor([[3], [0]])), {}, "out of bounds"),
    "a gathered column by keyword": (
        "gather", torch.gather, (SCORES,), {"dim": 1, "index": torch.tensor([[3], [0]])}, "out of bounds",
    ),
    "a selected row": ("index_select", torch.index_select, (TABLE, 0, torch.tensor([4])), {}, "index out of range in self"),
    "an item": ("__getitem__", torch.Tensor.__getitem__, (TABLE, torch.tensor([4])), {}, "index 4 is out of bounds"),
    "an item of a column": (
        "__getitem__", torch.Tensor.__getitem__, (TABLE, (..., torch.tensor([3]))), {}, "index 3 is out of bounds",
    ),
    "an item beside a mask": (
        "__getitem__", torch.Tensor.__getitem__, (TABLE, (torch.ones(4).bool(), torch.tensor([3]))), {}, "index 3 is out of bounds",
    ),
    "a probability": ("binary_cross_entropy", F.binary_cross_entropy, (torch.tensor([1.5]), torch.tensor([1.0])), {}, "between 0 and 1"),
    "weights to draw by": ("multinomial", torch.multinomial, (torch.tensor([1.0, float("nan")]), 1), {}, "probability tensor contains"),
    "a class": ("one_hot", F.one_hot, (torch.tensor([3]), 3), {}, "Class values must be smaller than num_classes"),
}  # fmt: skip
RIGHT = {
    "tokens": ("embedding", (torch.tensor([0, 3]), TABLE), {}),
    "an ignored label": ("cross_entropy", (SCORES, torch.tensor([0, -100])), {}),
    "an ignored label that the program names": ("cross_entropy", (SCORES, torch.tensor([0, 7]), None, None, 7), {}),
    "classes as probabilities": ("cross_entropy", (SCORES, torch.randn(2, 3)), {}),
    "an item from the end": ("__getitem__", (TABLE, (slice(None), None, torch.tensor([-3]))), {}),
    "a mask": ("__getitem__", (TABLE, TABLE > 0), {}),
    "a column": ("gather", (SCORES, -1, torch.tensor([[2], [0]])), {}),
    "another call": ("relu", (SCORES,), {}),
    "a call that fails anyway": ("gather", (SCORES,), {}),
}


@pytest.fixture(autouse=True)
def _as_if_away(monkeypatch):
    """The tensors of these tests count as a GPU's; what is asked of them is the same."""
    monkeypatch.setattr(indices, "_is_away", lambda one: isinstance(one, torch.Tensor))


@pytest.mark.parametrize(("name", "call", "args", "keywords", "says"), WRONG.values(), ids=WRONG)
def test_raised_before_the_kernel(name, call, args, keywords, says) -> None:
    """In the words that the CPU has for it."""
    assert indices.would_assert(torch, name, args, keywords)
    with pytest.raises((IndexError, RuntimeError), match=says.replace(".", r"\.")):
        indices.on_cpu(call)(*args, **keywords)


@pytest.mark.parametrize(("name", "args", "keywords"), RIGHT.values(), ids=RIGHT)
def test_let_pass(name, args, keywords) -> None:
    assert not indices.would_assert(torch, name, args, keywords)


def none_of_them(y: torch.Tensor) -> torch.Tensor:
    dropped = torch.rand(len(y)) < 2
    return y.masked_fill(dropped, 5)


def from_one(y: torch.Tensor) -> torch.Tensor:
    return y + 1


@pytest.mark.parametrize("turned", [none_of_them, from_one])
def test_what_made_a_right_index_wrong_is_told_first(turned) -> None:
    """It was given rows of the table, and gave one that is none; where the integers were made follows."""
    table, labels = torch.ones(5, 2, requires_grad=True), torch.arange(5)
    with pytest.raises(IndexError), gradfix.trace() as seen:
        y = labels.clone()
        torch.nn.functional.embedding(turned(y), table)
    assert [one.function for one in seen.lines][:1] == [turned.__name__]


@pytest.mark.parametrize(("turned", "wanted"), [(from_one, ["add"]), (torch.clone, [])])
def test_whether_an_operation_made_it_wrong(turned, wanted: list[str]) -> None:
    """A fact says that the program's own operation made the index of allowed ones; of data that came wrong there is none."""
    labels = torch.arange(5) if wanted else torch.tensor([0, 7])
    with pytest.raises(IndexError) as failed, gradfix.trace():
        y = labels.clone()
        torch.nn.functional.embedding(turned(y), torch.ones(5, 2))
    facts = with_live_objects(Incident(), failed.value).facts
    assert [one.value for one in facts if one.name == "traced_turned_index"] == wanted


def test_integers_that_came_wrong_are_told_where_they_are_made() -> None:
    with pytest.raises(IndexError), gradfix.trace() as seen:
        y = torch.full((4,), 7)
        torch.nn.functional.embedding(y.view(2, 2), torch.ones(5, 2))
    assert [one.operation for one in seen.lines] == ["full"]


def test_what_lends_its_shape_made_no_integers() -> None:
    """Positions are spread over the shape of tokens, which are right ones."""
    with pytest.raises(IndexError), gradfix.trace() as seen:
        tokens = torch.ones(2, 7, dtype=torch.int64)
        torch.nn.functional.embedding(torch.arange(7).expand_as(tokens), torch.ones(5, 2))
    assert [one.operation for one in seen.lines] == ["arange"]


@pytest.mark.parametrize(("rows", "saved"), [(3, "edges"), (2, None), (4, None)])
def test_buckets_of_as_many_edges_as_rows(rows: int, saved: str | None) -> None:
    """What made the buckets is told first; that a row for the last one is all that lacks, only where it is."""
    edges, values = torch.tensor([1.0, 2.0, 3.0][: 3 if rows < 4 else 2]), torch.tensor([0.5, 9.0])
    with pytest.raises(IndexError), gradfix.trace() as seen:
        edges = edges.clone()
        band = torch.bucketize(values, edges)
        torch.nn.functional.embedding(band + 2 if rows == 4 else band, torch.ones(rows, 2))
    assert {one.saved for one in seen.lines} - {None} == ({saved} if saved else set())
    if rows < 4:
        assert [one.operation for one in seen.lines][0] == "bucketize"


def batched(graphs: list[torch.Tensor]) -> torch.Tensor:
    parts, offset = [], 0
    for edges in graphs:
        offset += 3
        parts.append(edges + offset)
    return torch.cat(parts, 1)


@pytest.mark.parametrize(
    "read",
    [
        lambda h, e: h[e[0]],
        lambda h, e: h.index_select(0, e[0]),
        lambda h, e: torch.zeros_like(h).index_add(0, e[0], h[:4]),
    ],
)
def test_what_was_joined_since_it_was_made_wrong(read) -> None:
    """The line that made it of allowed ones is told, though each part of the batch is gone."""
    graphs = [torch.tensor([[0, 1], [1, 2]]), torch.tensor([[2, 1], [1, 0]])]
    with pytest.raises((IndexError, RuntimeError)), gradfix.trace() as seen:
        graphs = [one.clone() for one in graphs]
        read(torch.ones(6, 2), batched(graphs))
    assert [(one.operation, one.function) for one in seen.lines][:1] == [("add", "batched")]


@pytest.mark.parametrize(
    ("said", "names"),
    [
        ("IndexError: too many indices", True),
        ("RuntimeError: index 7 is out of bounds for dimension 0 with size 6", True),
        ("index out of range in self", True),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", False),
    ],
)
def test_what_says_that_an_index_is_refused(said: str, names: bool) -> None:
    assert indices.names_index(said) == names
