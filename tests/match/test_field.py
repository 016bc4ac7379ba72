"""Values of a message become numbers, shapes and dtypes, and rules may ask for them."""

from __future__ import annotations

import pytest

from explainer.match.field import dtype_name, holds, typed_fields


def test_what_follows_from_a_shape() -> None:
    """A shape gives its dimensions, size and form."""
    fields = typed_fields(
        {"shape": "[1, 1, 512, 512]", "type": "torch.cuda.HalfTensor", "version": "34", "expected": "32"}
    )
    wanted = {
        "ndim": 4,
        "numel": 262144,
        "second": 1,
        "last": 512,
        "square": "yes",
        "dtype": "float16",
        "device": "cuda",
        "gap": 2,
    }
    assert {name: fields[name] for name in wanted} == wanted


def test_a_scalar_has_no_last_dimension() -> None:
    """`[]` is a shape of no dimensions."""
    fields = typed_fields({"shape": "[]"})
    assert (fields["ndim"], fields["numel"], "last" in fields) == (0, 1, False)


@pytest.mark.parametrize(
    ("version", "expected", "rounds"),
    [("11", "9", None), ("2", "1", None), ("3", "2", None), ("2", "0", None), ("12", "10", 5), ("4", "2", 1)],
)
def test_rounds_of_equally_many_writes(version: str, expected: str, rounds: int | None) -> None:
    """Where each round wrote as often as the last one, counted from 0, the rounds are counted."""
    assert typed_fields({"version": version, "expected": expected}).get("rounds") == rounds


def test_saved_and_recomputed() -> None:
    """Two shapes that differ in one dimension give their ratio."""
    fields = typed_fields(
        {
            "saved_shape": "[1, 104, 64]",
            "recomputed_shape": "[1, 208, 64]",
            "saved_count": "27",
            "recomputed_count": "8",
        }
    )
    assert (fields["ratio"], fields["differing"], fields["differing_first"], fields["count_ratio"]) == (
        2.0,
        1,
        "no",
        0.296,
    )


@pytest.mark.parametrize(
    ("printed", "name"),
    [("Half", "float16"), ("torch.float16", "float16"), ("c10::Half", "float16"), ("torch.cuda.LongTensor", "int64"),
     ("torch.FloatTensor", "float32"), ("BFloat16", "bfloat16"), ("Weird", "Weird"), ("CPUBFloat16Type", "bfloat16"), ("CUDABoolType", "bool")],
)  # fmt: skip
def test_dtype_names(printed: str, name: str) -> None:
    """All spellings of a dtype are torch's own name."""
    assert dtype_name(printed) == name


HELD_NOT = {
    "missing": (None, 4), "another number": (3, 4), "too small": (3, ">= 4"), "a word where a number is asked": ("x", ">= 4"),
    "not in the list": (3, [4, 5]), "a part of the pattern": ("Relu6", "Relu"), "present": (3, "absent"), "outside": (1.3, ">= 0.8, <= 1.2"),
}  # fmt: skip
HELD = {
    "equal": (4, 4), "at least": (4, ">= 4"), "listed": (4, [4, 5]), "pattern": ("Relu", "Relu|Tanh"), "absent": (None, "absent"),
    "listed pattern": ("Relu", ["Tanh", "Re.*"]), "a fraction": (0.5, "< 1"), "between": (0.9, ">= 0.8, <= 1.2"),
}  # fmt: skip


@pytest.mark.parametrize(("value", "constraint"), HELD_NOT.values(), ids=HELD_NOT.keys())
def test_does_not_hold(value: object, constraint: object) -> None:
    """A constraint that the value does not meet."""
    assert not holds(value, constraint)


@pytest.mark.parametrize(("value", "constraint"), HELD.values(), ids=HELD.keys())
def test_holds(value: object, constraint: object) -> None:
    """A constraint that the value meets."""
    assert holds(value, constraint)


@pytest.mark.parametrize(
    ("node", "operation"),
    [("ReluBackward0", "Relu"), ("Relu", "Relu"), ("Clamp1", "Clamp"), ("ClampBackward1", "Clamp"), ("Log2Backward0", "Log2"),
     ("torch::autograd::CopySlices", "CopySlices"), ("TBackward", "T"), ("NormBackward3", "Norm")],
)  # fmt: skip
def test_operations(node: str, operation: str) -> None:
    """A node's operation, whatever the release calls the node."""
    assert typed_fields({"node": node})["op"] == operation
