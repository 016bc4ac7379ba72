"""Makes the program its own reference: run eagerly, without activation checkpointing, and with a copy of every saved tensor.

Non-reentrant checkpointing recomputes a segment and takes what comes out, also where a write in place has changed its input
meanwhile (torch 2.13: no error, wrong gradients). A copy made when autograd saves a tensor is what no later write reaches, so
the gradients are those of the values that were used. Compiled code is left out by `TORCHDYNAMO_DISABLE` in the environment.
"""

from __future__ import annotations

from typing import Any

_OWN = ("use_reentrant", "preserve_rng_state", "context_fn", "determinism_check", "debug", "early_stop")


def become_twin() -> None:
    """Replace `torch.utils.checkpoint.checkpoint` by a plain call, and have autograd keep copies."""
    import torch

    from .imports import after_import

    after_import("torch.utils.checkpoint", _uncheckpoint)
    # Never left: it holds in this thread, the one that imports torch, as long as the program runs.
    torch.autograd.graph.saved_tensors_hooks(_copy, _same).__enter__()


def _uncheckpoint(module: Any) -> None:
    module.checkpoint = plain_call


def plain_call(function: Any, *arguments: Any, **keywords: Any) -> Any:
    """What `checkpoint(function, ...)` computes, without checkpointing."""
    return function(*arguments, **{name: value for name, value in keywords.items() if name not in _OWN})


def _copy(tensor: Any) -> Any:
    return tensor.clone()


def _same(tensor: Any) -> Any:
    return tensor
