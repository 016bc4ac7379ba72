"""What the tracer saw of a failure: lines of the program, as facts."""

from __future__ import annotations

from dataclasses import dataclass

WRITE, HIDDEN_WRITE, CUT, STARVING_CUT, GRAD_OFF, NOT_FINITE, FREED, PARTED, CROSSED = (
    "write", "hidden-write", "cut", "starving-cut", "grad-off", "not-finite", "freed", "parted", "crossed",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedLine:
    """A line that wrote, cut, made or freed what failed, and the operation in it.

    `kind` is `write` (of a tensor that backward needs), `hidden-write` (one that autograd does not see, so that the gradient
    is wrong without an error), `cut` (of the graph), `starving-cut` (one that keeps parameters of an optimizer from training), `grad-off`
    (where grad mode was switched off before a cut), `not-finite` (the first such value), `freed` (the backward that used the
    graph up), `crossed` (n values against n in a column) or `parted` (where a checkpoint's replay differs). `node` is autograd's
    name of what it disturbs or computes; `is_guess` marks what the tracer concludes rather than saw.
    """

    kind: str
    operation: str
    file: str
    line: int
    function: str | None = None
    node: str | None = None
    says: str = ""
    is_guess: bool = False
