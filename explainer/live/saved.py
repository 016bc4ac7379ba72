"""What a node of the autograd graph has saved, asked for without running anything."""

from __future__ import annotations

from typing import Any


def node_of(tensor: Any) -> Any:
    """The node that made a tensor; None too of a view that was written with grad mode off, of which torch refuses to say it."""
    try:
        return tensor.grad_fn
    except RuntimeError:
        return None


def saved_of(node: Any, name: str) -> Any:
    """What a node saved under a name, checked as a backward checks it; None where a hook packed it.

    To unpack it would run that hook: for a checkpoint the forward of its whole segment, whose values are new and never moved.
    Where torch does not tell of hooks (2.10 and older), it is unpacked.

    Raises:
        RuntimeError: it was written since, or let go.
    """
    if any(getattr(one, "unpack_hook", None) is not None for one in _kept(node, name)):
        return None
    # A custom Function has no `_saved_tensors`, and one `saved_tensors` for all of them.
    return getattr(node, f"_saved_{name}" if hasattr(type(node), f"_saved_{name}") else f"saved_{name}")


def tells_hooks(node: Any, name: str) -> bool:
    """Whether torch tells if a hook packed what a node saved."""
    return all(hasattr(one, "unpack_hook") for one in _kept(node, name))


def names_of(node: Any) -> list[str]:
    """The names under which a node has saved tensors."""
    return [one[len("_raw_saved_") :] for one in dir(node) if one.startswith("_raw_saved_")]


def _kept(node: Any, name: str) -> Any:
    """The saved tensors under a name, still packed; several only where the node has a list of them."""
    raw = getattr(node, f"_raw_saved_{name}", None)
    return raw if isinstance(raw, (list, tuple)) else (raw,)
