"""Indices, labels and probabilities on which a kernel of an accelerator would assert: asked before it runs.

A kernel that asserts takes its process's context with it: no tensor can be read any more, and the frame that notices is not
the one that failed. On the CPU the same call raises at its line and names the value; where it would assert, it is made there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

_OF_DIMENSION = (
    "index_select", "gather", "scatter", "scatter_", "scatter_add", "scatter_add_", "scatter_reduce", "scatter_reduce_",
    "index_add", "index_add_", "index_copy", "index_copy_", "index_fill", "index_fill_",
)  # fmt: skip
_MASKS = ("torch.bool", "torch.uint8")
_MAX_SAID = 200  # characters of a message in which it says so
_IGNORED = -100  # the default of `ignore_index`


def names_index(error: str) -> bool:
    """Whether an exception, with its type or without, says that an index is refused; memory runs out in other words."""
    said = error[:_MAX_SAID]
    return said.startswith("IndexError") or "out of range" in said or "out of bounds" in said


def would_assert(torch: Any, name: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
    """Whether a call on an accelerator is given an index, a label or a probability that its kernel does not allow."""
    check = _CHECKS.get(name)
    if check is None or not args or not any(_is_away(one) for one in (*args, *keywords.values())):
        return False
    if torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing():
        return False  # a captured stream may not be asked for values
    with suppress(Exception):  # the call itself says what is wrong with it; a fake tensor has no values to ask
        return any(bool(bad) for bad in check(args, keywords))
    return False


def is_refused(name: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> Callable[[Any], bool] | None:
    """Whether a tensor of integers holds a row or a class that a call's table or scores do not have; None for other calls."""
    with suppress(Exception):  # the call itself says what is wrong with it
        if name in ("embedding", "embedding_bag"):
            given = [*args[:2], *(keywords[key] for key in ("input", "weight") if key in keywords)]
            rows = next(one for one in given if one.is_floating_point()).shape[0]
            return lambda one: bool(_outside(one, rows))
        if name in ("cross_entropy", "nll_loss"):
            classes = args[0].shape[1 if args[0].dim() > 1 else 0]
            ignored = keywords.get("ignore_index", _IGNORED)
            return lambda one: bool((((one < 0) | (one >= classes)) & (one != ignored)).any())
        if name == "__getitem__" and _is_tensor(args[1]):
            size = args[0].shape[0]
            return lambda one: bool(((one < -size) | (one >= size)).any())
        if name in _OF_DIMENSION:
            along = args[0].shape[args[1] if len(args) > 1 else keywords["dim"]]
            return lambda one: bool(_outside(one, along))
    return None


def on_cpu(call: Callable[..., Any]) -> Callable[..., Any]:
    """The call on copies in the CPU's memory, which raises there.

    Raises:
        IndexError: from this function itself where the CPU lets the values pass.
    """

    def called(*args: Any, **keywords: Any) -> Any:
        __tracebackhide__ = True
        call(*map(_copied, args), **{key: _copied(one) for key, one in keywords.items()})
        raise IndexError(f"{getattr(call, '__name__', 'call')}: an index is out of range")

    return called


def _copied(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value)(map(_copied, value))
    return value.detach().cpu() if _is_tensor(value) else value


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "is_floating_point")


def _is_away(value: Any) -> bool:
    """Whether a tensor is on an accelerator."""
    return bool(getattr(value, "is_cuda", False) or getattr(value, "is_xpu", False) or getattr(value, "is_mtia", False))


def _table(args: tuple[Any, ...], keywords: dict[str, Any]) -> Iterator[Any]:
    """`F.embedding(input, weight)`, `F.embedding_bag(input, weight)`."""
    given = [*args[:2], *(keywords[key] for key in ("input", "weight") if key in keywords)]
    index, table = given if not given[0].is_floating_point() else given[::-1]
    yield _outside(index, table.shape[0])


def _labels(args: tuple[Any, ...], keywords: dict[str, Any]) -> Iterator[Any]:
    """`F.cross_entropy(input, target)` and `F.nll_loss`: class indices, but for those that are left out."""
    scores, labels = args[0], args[1] if len(args) > 1 else keywords["target"]
    if not labels.is_floating_point():
        ignored = keywords.get("ignore_index", args[4] if len(args) > 4 else _IGNORED)
        classes = scores.shape[1 if scores.dim() > 1 else 0]
        yield (((labels < 0) | (labels >= classes)) & (labels != ignored)).any()


def _of_dimension(args: tuple[Any, ...], keywords: dict[str, Any]) -> Iterator[Any]:
    """`x.gather(dim, index)` and its like, which take no negative index."""
    dim = args[1] if len(args) > 1 else keywords["dim"]
    index = keywords["index"] if "index" in keywords else args[2 if "dim" not in keywords else 1]
    yield _outside(index, args[0].shape[dim] if args[0].dim() else 1)


def _items(args: tuple[Any, ...], _: dict[str, Any]) -> Iterator[Any]:
    """`x[index]`, which counts from the end too."""
    whole, index = args[0], args[1]
    parts = list(index) if isinstance(index, tuple) else [index]
    used = sum(_consumed(one) for one in parts)
    at = 0
    for one in parts:
        if one is Ellipsis:
            at += whole.dim() - used
        if _is_tensor(one) and str(one.dtype) not in _MASKS:
            yield ((one < -whole.shape[at]) | (one >= whole.shape[at])).any()
        at += _consumed(one)


def _consumed(part: Any) -> int:
    """How many dimensions of a tensor a part of its index takes up."""
    if _is_tensor(part) and str(part.dtype) in _MASKS:
        return int(part.dim())
    return 0 if part is None or part is Ellipsis or isinstance(part, bool) else 1


def _probabilities(args: tuple[Any, ...], _: dict[str, Any]) -> Iterator[Any]:
    """`F.binary_cross_entropy(input, target)`: both between 0 and 1."""
    yield ~((args[0] >= 0) & (args[0] <= 1)).all()


def _weights(args: tuple[Any, ...], _: dict[str, Any]) -> Iterator[Any]:
    """`torch.multinomial(weights, n)`: finite and not negative."""
    yield ~(args[0].isfinite() & (args[0] >= 0)).all()


def _classes(args: tuple[Any, ...], keywords: dict[str, Any]) -> Iterator[Any]:
    """`F.one_hot(labels, num_classes)`."""
    count = args[1] if len(args) > 1 else keywords.get("num_classes", -1)
    yield (args[0] < 0).any() if count < 0 else _outside(args[0], count)


def _outside(index: Any, size: int) -> Any:
    return ((index < 0) | (index >= size)).any()


_CHECKS: dict[str, Callable[..., Iterator[Any]]] = {
    **dict.fromkeys(("embedding", "embedding_bag"), _table),
    **dict.fromkeys(("cross_entropy", "nll_loss"), _labels),
    **dict.fromkeys(_OF_DIMENSION, _of_dimension),
    **dict.fromkeys(("__getitem__", "__setitem__"), _items),
    "binary_cross_entropy": _probabilities,
    "multinomial": _weights,
    "one_hot": _classes,
}
