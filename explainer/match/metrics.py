"""What the rows of a training log show: named observations that rules refer to.

A row is an optimizer step as the trainer logged it; the thresholds are stated beside each observation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from explainer.model.incident import MetricRow

# A cross-entropy over a vocabulary of 200,000 starts at ln(200000) = 12.2; a first loss above this is no untrained model.
ABSURD_FIRST_LOSS = 30.0
TINY_LEARNING_RATE = 1e-6
EXPLODED = 100.0


def observe(rows: Sequence[MetricRow], failed_at: int | None = None) -> dict[str, str]:
    """The observations that hold for the rows, each with what to say of it.

    `failed_at` is the log's line on which the first exception stands.
    """
    evaluations = [row.value("eval_loss", "val_loss", "valid_loss") for row in rows]
    rows = [row for row in rows if _loss(row) is not None or row.value("grad_norm") is not None]
    losses = [_loss(row) for row in rows]
    norms = [row.value("grad_norm") for row in rows]
    said: dict[str, str] = {}
    said.update(_final_state(rows, losses, norms))
    said.update(_first_row(rows, losses, norms))
    said.update(_course(rows, losses, norms))
    if any(map(_bad, evaluations)):
        said["eval-loss-not-finite"] = "the loss of the evaluation is not finite"
    averages = [row.value("grad_norm_last") for row in rows]
    if any(
        _bad(average) and norm is not None and not _bad(norm) for average, norm in zip(averages, norms, strict=True)
    ):
        said["average-norm-not-finite"] = (
            "the current gradient norm is finite and its running average is not: one step of the epoch was enough for that"
        )
    before = [row for row in rows if failed_at is not None and row.log_line is not None and row.log_line < failed_at]
    if before and all(math.isfinite(loss) for row in before if (loss := row.value("loss")) is not None):
        said["rows-before-failure"] = (
            f"{len(before)} training row{'s were' if len(before) > 1 else ' was'} logged before it"
        )
    return said


_LOSSES = ("loss", "train_loss", "nll_loss", "avr_loss", "avg_loss", "step_loss")


def _loss(row: MetricRow) -> float | None:
    """The training loss of a row: under its usual names, else the first one that is not an evaluation's."""
    found = row.value(*_LOSSES)
    if found is not None:
        return found
    return next(
        (number for name, number in row.values if name.endswith("_loss") and not name.startswith(("eval", "val"))), None
    )


def _lost(loss: float | None, norm: float | None) -> bool:
    """Whether a row's loss is no number: NaN, inf, or the 0 that transformers prints for it beside a spoilt norm."""
    return _bad(loss) or (loss == 0.0 and _bad(norm))


def _bad(value: float | None) -> bool:
    return value is not None and not math.isfinite(value)


def _show(value: float | None) -> str:
    return "absent" if value is None else f"{value:g}"


def _final_state(
    rows: Sequence[MetricRow], losses: Sequence[float | None], norms: Sequence[float | None]
) -> dict[str, str]:
    said: dict[str, str] = {}
    if any(map(_bad, losses)):
        said["loss-not-finite"] = "the loss is not finite in the log"
    if any(map(_bad, norms)):
        said["grad-norm-not-finite"] = "the gradient norm is not finite in the log"
    zero = [loss == 0.0 for loss in losses]
    if any(is_zero and _bad(norm) for is_zero, norm in zip(zero, norms, strict=True)):
        said["loss-zero-grad-nan"] = "a row shows loss 0 beside a gradient norm that is not finite"
    if sum(zero) >= 2 and not any(map(_bad, norms)) and not any(norm for norm in norms):
        said["loss-stays-zero"] = "the loss is exactly 0 in several rows"
    empty = [index for index, norm in enumerate(norms) if norm == 0.0 and (zero[index] or _bad(losses[index]))]
    if empty:
        said["loss-without-gradient"] = (
            f"{len(empty)} of {len(rows)} rows show a loss of {_show(losses[empty[0]])} beside a gradient norm of exactly 0"
        )
    if said and all(_bad(loss) for loss in losses if loss is not None) and len(rows) == 1:
        said["only-final-loss"] = "only one value is shown, at the end of training"
    return said


def _first_row(
    rows: Sequence[MetricRow], losses: Sequence[float | None], norms: Sequence[float | None]
) -> dict[str, str]:
    if not rows or losses[0] is None:
        return {}
    said: dict[str, str] = {}
    loss, norm = losses[0], norms[0]
    rate = rows[0].value("learning_rate")
    recovers = any(norm is not None and not _bad(norm) for norm in norms[1:])
    if math.isfinite(loss) and 0.0 < abs(loss) < ABSURD_FIRST_LOSS and _bad(norm) and not recovers:
        said["first-row-normal-loss-grad-nan"] = (
            f"the first row has a normal loss ({_show(loss)}) and a gradient norm of {_show(norm)}: the forward was"
            " sound, the backward or the reduction was not"
        )
    if abs(loss) >= ABSURD_FIRST_LOSS and len(rows) > 1 and not _explodes([one for one in losses if one is not None]):
        said["first-row-loss-absurd"] = (
            f"the first loss is already absurd ({_show(loss)}): the weights or the forward are wrong before any step"
        )
    if (_bad(loss) or _bad(norm)) and rate is not None and rate < TINY_LEARNING_RATE:
        said["nan-at-tiny-learning-rate"] = (
            f"the first row is not finite at a learning rate of {rate:g}: no step can have diverged yet"
        )
    return said


def _course(rows: Sequence[MetricRow], losses: Sequence[float | None], norms: Sequence[float | None]) -> dict[str, str]:
    said: dict[str, str] = {}
    bad = [_bad(norm) for norm in norms]
    lost = [_lost(loss, norm) for loss, norm in zip(losses, norms, strict=True)]
    finite_losses = [loss for loss, is_lost in zip(losses, lost, strict=True) if loss is not None and not is_lost]
    spoilt = [index for index in range(len(rows)) if bad[index]]
    if spoilt and spoilt[-1] + 1 < len(rows) and not any(lost) and all(loss != 0.0 for loss in losses):
        said["isolated-nonfinite-norm"] = (
            f"{len(spoilt)} of {len(rows)} rows have a gradient norm that is not finite, the loss stays finite and the"
            " rows after it are sound: skipped steps of a gradient scaler look so"
        )
    scales = [scale for row in rows if (scale := row.value("loss_scale")) is not None]
    if len(scales) >= 2 and scales[-1] < scales[0]:
        said["loss-scale-falls"] = f"the loss scale falls from {scales[0]:g} to {scales[-1]:g}"
    first_bad = next((index for index, is_lost in enumerate(lost) if is_lost), None)
    before = finite_losses if first_bad is None else finite_losses[:first_bad]
    if first_bad is not None and _rises(before):
        said["loss-rises-before-nan"] = (
            f"the loss rises from {min(before):g} to {before[-1]:g} before it stops being finite"
        )
    elif first_bad is None and _explodes(finite_losses):
        said["loss-rises-before-nan"] = f"the loss rises from {finite_losses[0]:g} to {finite_losses[-1]:g} in the log"
    finite_norms = [norm for norm in norms if norm is not None and math.isfinite(norm)]
    if any(bad) and any(norm > 1e4 for norm in finite_norms):
        said["huge-norm-beside-nan"] = (
            f"finite gradient norms reach {max(finite_norms):g} beside ones that are not finite"
        )
    if len(finite_losses) >= 4 and len(set(finite_losses)) == 1 and finite_losses[0] != 0.0:
        said["loss-constant"] = f"the loss is {finite_losses[0]:g} in all {len(finite_losses)} rows"
    end = rows[first_bad].value("epoch") if first_bad is not None else None
    if first_bad and end is not None and end > 0.9 and 1.0 - end % 1.0 < 0.04:
        said["nan-at-epoch-end"] = f"the first row that is not finite stands at epoch {end:g}, where an epoch ends"
    if first_bad is not None and first_bad >= 3:
        said["nan-after-good-rows"] = f"{first_bad} rows are sound before the first that is not finite"
    return said


def _explodes(losses: Sequence[float]) -> bool:
    """Whether the loss ends a hundred times as large as it began: what is wrong came about on the way."""
    finite = [abs(one) for one in losses if math.isfinite(one)]
    return len(finite) >= 2 and finite[-1] > EXPLODED * max(finite[0], 1.0)


def _rises(losses: Sequence[float]) -> bool:
    """Whether the loss grows: twice its least value over three rows and more, or fourfold within two."""
    return (len(losses) >= 3 and losses[-1] > 2 * min(losses)) or (len(losses) == 2 and losses[1] > 4 * abs(losses[0]))
