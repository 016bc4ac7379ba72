"""A helper of arrays computes in torch for a tensor."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

PAIRS = """import numpy as np
{more}

def lengths(xyz, pairs):
    delta = xyz[pairs[:, 0]] - xyz[pairs[:, 1]]
    return {value}


wanted = lengths(np.ones((3, 2)), PAIRS)
loss = {call}
"""
TORCH = "import torch\n"
NORM, CALL = "np.linalg.norm(delta, axis=-1)", "torch.as_tensor(lengths(net(x), PAIRS)).sum()"
RIGHT = {
    "another form": PAIRS.format(more=TORCH, value="np.lexsort(delta, axis=-1)", call=CALL),
    "one that is copied": PAIRS.format(more=TORCH, value=NORM, call="torch.tensor(lengths(net(x), PAIRS)).sum()"),
    "tensors alone": PAIRS.format(more=TORCH, value=NORM, call=CALL).replace("wanted = lengths(np.ones((3, 2)), PAIRS)\n", ""),
    "a choice already": PAIRS.format(more=TORCH, value=f"delta.norm() if isinstance(delta, torch.Tensor) else {NORM}", call=CALL),
}  # fmt: skip


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_what_has_no_such_form_stays(source: str, tmp_path: pathlib.Path) -> None:
    """No form in torch, a caller that cuts the graph by itself, a helper that no array is given."""
    assert rewritten(tmp_path, "torch_beside_numpy", source, "np.l") == source


@pytest.mark.parametrize("more", [TORCH, ""], ids=["torch is there", "torch is not"])
def test_a_tensor_is_computed_in_torch(more: str, tmp_path: pathlib.Path) -> None:
    """The array's way stays; a second time nothing is left to do."""
    source = PAIRS.format(more=more, value=NORM, call=CALL)
    after = rewritten(tmp_path, "torch_beside_numpy", source, "np.linalg")
    new = f"    return torch.linalg.norm(delta, axis=-1) if isinstance(delta, torch.Tensor) else {NORM}"
    assert diff_lines(source, after) == [*([] if more else ["+import torch"]), f"-    return {NORM}", f"+{new}"]
    assert rewritten(tmp_path, "torch_beside_numpy", after, "np.linalg") == after


SCALES = """import numpy as np
import torch
FACTOR = 2595.0

def mel({arguments}):
    return {value}


span = mel({numbers})
loss = mel({tensors}).sum()
"""
INSIDE = {
    "a parameter within": ("hz", "FACTOR * np.log10(1.0 + hz / 700)", "900.0", "net(x)", "hz"),
    "read twice": ("hz", "np.log(hz) - np.exp(-hz)", "900.0", "net(x)", "hz"),
    "two parameters": ("hz, low", "FACTOR * np.log10(low + hz)", "900.0, 1.0", "net(x), 1.0", None),
}


@pytest.mark.parametrize(("arguments", "value", "numbers", "tensors", "name"), INSIDE.values(), ids=INSIDE)
def test_a_parameter_in_the_argument(
    arguments: str, value: str, numbers: str, tensors: str, name: str | None, tmp_path: pathlib.Path
) -> None:
    """Numbers go NumPy's way as before; of two parameters none says which way to go."""
    source = SCALES.format(arguments=arguments, value=value, numbers=numbers, tensors=tensors)
    after = rewritten(tmp_path, "torch_beside_numpy", source, "return ")
    new = f"    return {value.replace('np.', 'torch.')} if isinstance({name}, torch.Tensor) else {value}"
    assert diff_lines(source, after) == ([f"-    return {value}", f"+{new}"] if name else [])


@pytest.mark.torch
def test_arrays_and_tensors_get_the_same() -> None:
    """What torch computes by the same name and words is what NumPy does."""
    torch = pytest.importorskip("torch")
    import numpy as np

    array = np.random.default_rng(0).normal(size=(4, 3))
    assert np.allclose(torch.linalg.norm(torch.tensor(array), axis=-1).numpy(), np.linalg.norm(array, axis=-1))


MADE = """import numpy as np
import torch


def roughness(curves):
    curves = np.asarray(curves)
    steps = {inner}
    return {value}


seen = roughness(np.ones((2, 24)))
loss = roughness(net(x))
"""
STEPS, SQUARE = "np.diff(curves, n=2, axis=-1)", "np.square(steps).mean()"


def test_all_that_is_computed_of_what_was_made_an_array(tmp_path: pathlib.Path) -> None:
    """A tensor is left as it is, and what follows computes in torch with it."""
    source = MADE.format(inner=STEPS, value=SQUARE)
    after = rewritten(tmp_path, "torch_beside_numpy", source, "np.asarray")
    choice = "if isinstance(curves, torch.Tensor) else"
    assert diff_lines(source, after) == [
        "-    curves = np.asarray(curves)",
        f"-    steps = {STEPS}",
        f"-    return {SQUARE}",
        f"+    curves = curves {choice} np.asarray(curves)",
        f"+    steps = torch.diff(curves, n=2, axis=-1) {choice} {STEPS}",
        f"+    return torch.square(steps).mean() {choice} {SQUARE}",
    ]
    assert rewritten(tmp_path, "torch_beside_numpy", after, "np.asarray") == after


@pytest.mark.parametrize(("inner", "value"), [("np.lexsort(curves)", SQUARE), (STEPS, "np.lexsort(steps)")])
def test_a_part_without_a_form_leaves_all(inner: str, value: str, tmp_path: pathlib.Path) -> None:
    """Half of it in torch would fail at the other half."""
    source = MADE.format(inner=inner, value=value)
    assert rewritten(tmp_path, "torch_beside_numpy", source, "np.asarray") == source
