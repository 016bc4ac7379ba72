"""What NumPy is handed in bfloat16 becomes float32, at the call; what it can read stays."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

SAID = "Got unsupported ScalarType BFloat16"
HEAD = "import numpy as np\nimport torch\nout = torch.randn(4, 3).bfloat16()\n"
HALF, WHOLE = "[4, 3] bfloat16", "[4, 3] float32"
HANDED = {
    "a method": ("kept = out.numpy()\n", {}, "kept = out.float().numpy()"),
    "what was moved": (
        "kept = torch.sigmoid(out).cpu().numpy()\n", {}, "kept = torch.sigmoid(out).float().cpu().numpy()",
    ),
    "what was taken out of the graph": (
        "kept.append(out.detach().cpu().numpy())\n", {"out": HALF}, "kept.append(out.float().detach().cpu().numpy())",
    ),
    "a sum": ("kept = (out + 1).numpy()\n", {}, "kept = (out + 1).float().numpy()"),
    "one of two": (
        "kept = out.numpy() + y.numpy()\n", {"out": HALF, "y": WHOLE}, "kept = out.float().numpy() + y.numpy()",
    ),
    "a function of NumPy": ("kept = np.asarray(out)\n", {"out": HALF}, "kept = np.asarray(out.float())"),
    "a metric": (
        "kept = auc(labels, out)\n", {"out": HALF, "labels": WHOLE}, "kept = auc(labels, out.float())",
    ),
    "the parts of a list": ("kept = np.stack([out, out])\n", {"out": HALF}, "kept = np.stack([out.float(), out.float()])"),
    "a list": (
        "kept = np.concatenate(parts)\n", {"parts[0]": HALF, "parts[1]": HALF},
        "kept = np.concatenate([each.float() for each in parts])",
    ),
}  # fmt: skip
KEPT = {
    "float32": ("kept = out.float().cpu().numpy()\n", {}),
    "a tensor of float32": ("kept = out.numpy()\n", {"out": WHOLE}),
    "a function of torch's": ("kept = torch.mean(out)\n", {"out": HALF}),
    "a list of several dtypes": ("kept = np.concatenate(parts)\n", {"parts[0]": HALF, "parts[1]": WHOLE}),
}


@pytest.mark.parametrize(("line", "tensors", "wanted"), HANDED.values(), ids=HANDED)
def test_it_is_handed_float32(tmp_path: pathlib.Path, line: str, tensors: dict, wanted: str) -> None:
    after = rewritten(tmp_path, "float_for_numpy", HEAD + line, "kept", message=SAID, tensors=tensors)
    assert changed_lines(HEAD + line, after) == [wanted]


@pytest.mark.parametrize(("line", "tensors"), KEPT.values(), ids=KEPT)
def test_what_numpy_can_read_stays(tmp_path: pathlib.Path, line: str, tensors: dict) -> None:
    source = HEAD + line
    assert rewritten(tmp_path, "float_for_numpy", source, "kept", message=SAID, tensors=tensors) == source


def test_another_message(tmp_path: pathlib.Path) -> None:
    """A value on a GPU, or with a graph, is not cast for it."""
    source = HEAD + "kept = out.numpy()\n"
    said = "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
    assert rewritten(tmp_path, "float_for_numpy", source, "kept", message=said) == source
