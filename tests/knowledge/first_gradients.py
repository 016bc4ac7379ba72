"""Runs a program and saves the gradients with which each optimizer first steps. Standard library, numpy and torch only.

    python first_gradients.py OUT.npz SCRIPT [ARGUMENT ...]

Without any step those of the leaves that the program's names hold at its end, by their names. An optimizer that computes its
gradients itself, by a closure, is asked behind its step. A program that seeds nothing is seeded.
"""

from __future__ import annotations

import os
import random
import runpy
import sys
from typing import Any


def main(out: str, script: str) -> None:
    """Run, then save; a program that fails saves nothing and fails."""
    import numpy
    import torch
    from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

    stepped: dict[int, Any] = {}
    found: dict[str, Any] = {}

    def note(optimizer: Any, *_: Any) -> None:
        if id(optimizer) in stepped or all(
            one.grad is None for group in optimizer.param_groups for one in group["params"]
        ):
            return
        stepped[id(optimizer)] = optimizer
        for at, group in enumerate(optimizer.param_groups):
            for number, parameter in enumerate(group["params"]):
                save(found, f"optimizer {len(stepped)} group {at} parameter {number}", parameter)

    register_optimizer_step_pre_hook(note)
    register_optimizer_step_post_hook(note)
    torch.manual_seed(0)
    numpy.random.seed(0)
    random.seed(0)
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    names = runpy.run_path(script, run_name="__main__")
    if not stepped:
        for name, value in names.items():
            for inner, leaf in leaves(name, value):
                save(found, inner, leaf)
    numpy.savez(out, **found)


def save(found: dict[str, Any], name: str, parameter: Any) -> None:
    """A parameter's gradient in full precision; one that it lacks is an empty array."""
    import numpy

    gradient = parameter.grad
    if gradient is None:
        if parameter.requires_grad:
            found[name] = numpy.zeros(0)
        return
    gradient = gradient.to_dense() if gradient.is_sparse else gradient
    gradient = gradient.full_tensor() if hasattr(gradient, "full_tensor") else gradient
    gradient = gradient.detach().resolve_conj()
    found[name] = gradient.cpu().numpy() if gradient.is_complex() else gradient.double().cpu().numpy()


def leaves(name: str, value: Any) -> list[tuple[str, Any]]:
    """The leaves that a name of the program holds, with names of their own."""
    import torch

    if isinstance(value, torch.nn.Module):
        return [(f"{name}.{inner}", one) for inner, one in value.named_parameters()]
    if isinstance(value, torch.Tensor) and value._base is None and value.requires_grad and value.is_leaf:
        return [(name, value)]
    if isinstance(value, (list, tuple)):
        return [leaf for at, one in enumerate(value) for leaf in leaves(f"{name}[{at}]", one)]
    return []


if __name__ == "__main__":
    sys.argv = sys.argv[1:]
    target = sys.argv.pop(0)
    main(target, sys.argv[0])
