"""The values in a message, typed: versions and counts as integers, shapes as tuples, dtypes under one name."""

from __future__ import annotations

import re
from collections.abc import Mapping

Value = int | float | str | tuple[int, ...]
Fields = dict[str, Value]

_DTYPES = {
    "half": "float16", "float": "float32", "double": "float64", "bfloat16": "bfloat16", "long": "int64",
    "long int": "int64", "int": "int32", "short": "int16", "char": "int8", "byte": "uint8", "bool": "bool",
    "complexfloat": "complex64", "complexdouble": "complex128", "float8_e4m3fn": "float8", "float8_e5m2": "float8",
    "c10::half": "float16", "c10::bfloat16": "bfloat16", "fp16": "float16", "bf16": "bfloat16", "fp32": "float32",
    "unsigned char": "uint8", "signed char": "int8", "int64_t": "int64", "__int64": "int64", "long long": "int64",
}  # fmt: skip
_NAMED_WITH_DIGIT = frozenset({"Log2", "Log10", "Exp2", "Atan2"})


def typed_fields(groups: Mapping[str, str | None]) -> Fields:
    """The named groups of a match as values, with what follows from them.

    A group named `...shape` adds `...ndim`, `...numel`, `...first`, `...second`, `...last` and `...square`; one named `...dtype` or `...type` adds
    `...dtype` under torch's own name and `...device`; `node` adds `op`; `version` with `expected` adds `gap`, and
    `rounds` where all rounds wrote `gap` times; a saved
    and a recomputed shape add `ratio` and `differing`.
    """
    fields: Fields = {}
    for name, text in groups.items():
        if text is None:
            continue
        fields[name] = int(text) if re.fullmatch(r"-?\d{1,15}", text) else text
        if name.endswith("shape"):
            _add_shape(fields, name[: -len("shape")], text)
        elif name.endswith(("dtype", "type")):
            _add_dtype(fields, name.removesuffix("type").removesuffix("d"), text)
        elif name == "node":
            fields["op"] = operation_of(text)
    _add_relations(fields)
    return fields


def operation_of(node: str) -> str:
    """The operation of an autograd node: `ReluBackward0`, and `Relu` as torch 2.13 prints it; `Clamp1` is `Clamp`.

    The digit counts the overloads of an operation, except in the names that end with one.
    """
    name = re.sub(r"Backward\d*$", "", node.rpartition("::")[2])
    return name if name in _NAMED_WITH_DIGIT else name.rstrip("0123456789") or name


def dtype_name(text: str) -> str:
    """`torch.cuda.HalfTensor`, `CPUHalfType`, `Half`, `c10::Half` and `torch.float16` are all "float16"."""
    last = text.removeprefix("torch.").removeprefix("cuda.").removesuffix("Tensor").strip()
    if last.endswith("Type"):
        last = last.removesuffix("Type").removeprefix("CPU").removeprefix("CUDA").removeprefix("MPS")
    return _DTYPES.get(last.lower(), last)


def _add_shape(fields: Fields, prefix: str, text: str) -> None:
    sizes = tuple(int(size) for size in re.findall(r"\d{1,12}", text))
    fields[f"{prefix}shape"] = sizes
    fields[f"{prefix}ndim"] = len(sizes)
    numel = 1
    for size in sizes:
        numel *= size
    fields[f"{prefix}numel"] = numel
    if sizes:
        fields[f"{prefix}first"], fields[f"{prefix}last"] = sizes[0], sizes[-1]
        if len(sizes) >= 2:
            fields[f"{prefix}second"] = sizes[1]
        fields[f"{prefix}square"] = "yes" if len(sizes) >= 2 and sizes[-1] == sizes[-2] else "no"


def _add_dtype(fields: Fields, prefix: str, text: str) -> None:
    fields[f"{prefix}dtype"] = dtype_name(text)
    if "cuda" in text.lower():
        fields[f"{prefix}device"] = "cuda"


def _add_relations(fields: Fields) -> None:
    version, expected = fields.get("version"), fields.get("expected")
    if isinstance(version, int) and isinstance(expected, int):
        gap = version - expected
        fields["gap"] = gap
        if gap >= 2 and expected >= gap and expected % gap == 0:
            fields["rounds"] = expected // gap  # as many writes in each round, and none before the first
    saved, again = fields.get("saved_shape"), fields.get("recomputed_shape")
    if isinstance(saved, tuple) and isinstance(again, tuple) and len(saved) == len(again):
        pairs = [(old, new) for old, new in zip(saved, again, strict=True) if old != new]
        fields["differing"] = len(pairs)
        fields["differing_first"] = "yes" if saved and saved[0] != again[0] else "no"
        if len(pairs) == 1 and pairs[0][0]:
            fields["ratio"] = pairs[0][1] / pairs[0][0]
    saved_count, again_count = fields.get("saved_count"), fields.get("recomputed_count")
    if isinstance(saved_count, int) and isinstance(again_count, int) and saved_count:
        fields["count_ratio"] = round(again_count / saved_count, 3)


_BOUNDS = re.compile(r"(?:<=|>=|<|>|==|!=)\s?-?\d+(?:\.\d+)?(?:,\s?(?:<=|>=|<|>|==|!=)\s?-?\d+(?:\.\d+)?)*")


def holds(value: object, constraint: object) -> bool:
    """Whether a value meets a rule's constraint: a number, bounds (">= 2", "> 0, < 1"), a list of values, or a pattern.

    The constraint "absent" holds for a value that the message does not name.
    """
    if value is None:
        return constraint == "absent"
    if isinstance(constraint, list):
        return any(holds(value, one) for one in constraint)
    if isinstance(constraint, bool) or not isinstance(constraint, str):
        return value == constraint
    if _BOUNDS.fullmatch(constraint):
        bounds = re.findall(r"(<=|>=|<|>|==|!=)\s*(-?\d+(?:\.\d+)?)", constraint)
        return all(_compare(value, sign, float(bound)) for sign, bound in bounds)
    return re.fullmatch(constraint, str(value)) is not None


def _compare(value: object, operator: str, bound: float) -> bool:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return {
        "<": number < bound, "<=": number <= bound, ">": number > bound, ">=": number >= bound,
        "==": number == bound, "!=": number != bound,
    }[operator]  # fmt: skip
