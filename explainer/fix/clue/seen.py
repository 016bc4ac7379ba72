"""The tensors of the frame that failed, as the live program had them: shapes, dtypes, devices. None in a text alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass

from explainer.fix.codemod import Context
from explainer.model.incident import MODULE, TENSOR

_FACT = re.compile(
    r"(?P<name>.+?): \[(?P<shape>[\d, ]*)\] (?P<dtype>\w+) on (?P<device>\w+)(?P<mode> in inference mode)?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenTensor:
    """A tensor that a name held when its frame failed."""

    shape: tuple[int, ...]
    dtype: str
    device: str
    is_inference: bool

    @property
    def is_integer(self) -> bool:
        """Whether it counts: `int64`, `uint8`; a bool does not."""
        return self.dtype.lstrip("u").startswith("int")


def seen_tensors(context: Context) -> Mapping[str, SeenTensor]:
    """The tensors of the program's innermost frame by the text that reads them; {} where nothing live was looked at."""
    found = (_FACT.fullmatch(str(one.value)) for one in context.incident.facts if one.name == TENSOR)
    return {
        one["name"]: SeenTensor(
            shape=tuple(int(size) for size in re.findall(r"\d+", one["shape"])), dtype=one["dtype"], device=one["device"],
            is_inference=one["mode"] is not None,
        )
        for one in found
        if one is not None
    }  # fmt: skip


def seen(node: ast.expr, context: Context) -> SeenTensor | None:
    """The tensor that a name, an attribute or an item stands for, as in `batch["labels"]`; None where it was not seen."""
    return seen_tensors(context).get(ast.unparse(node))


def seen_modules(context: Context) -> Mapping[str, str]:
    """The kind of device that each module of that frame is on, by its name; {} where all are on the CPU."""
    parts = (str(one.value).partition(": ") for one in context.incident.facts if one.name == MODULE)
    return {name: device for name, _, device in parts}
