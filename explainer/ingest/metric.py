"""Lines of training metrics: HF Trainer's dictionaries, Lightning's and tqdm's postfixes, fairseq, DeepSpeed, prints."""

from __future__ import annotations

import re
from functools import cache

from explainer.model.incident import MetricRow

_ALIASES = {
    "gnorm": "grad_norm",
    "gradnorm": "grad_norm",
    "gradient_norm": "grad_norm",
    "total_norm": "grad_norm",
    "lr": "learning_rate",
    "train_loss": "loss",
    "training_loss": "loss",
    "train/loss": "loss",
    "train_loss_step": "loss",
    "loss_step": "loss",
    "lm_loss": "loss",
    "total_loss": "loss",
    "train/grad_norm": "grad_norm",
    "train/learning_rate": "learning_rate",
}
_WANTED = ("loss", "gnorm", "grad_norm", "grad norm", "gradnorm", "Loss", "LOSS")
_MAX_LENGTH = 4000


@cache
def _pair() -> re.Pattern[str]:
    number = r"[-+]?(?:nan|NaN|NAN|inf|Inf|Infinity|\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|\.\d+)"
    return re.compile(
        r"(?P<name>[A-Za-z_][\w/.-]{0,40}(?: [A-Za-z_]\w{0,20})?)['\"]?(?:\s{0,3}[=:]\s{0,8}|\s{1,3})['\"]?"
        rf"(?:tensor\()?(?P<value>{number})(?![\w%])(?:\.0)?(?: \((?P<last>{number})\))?"
    )


def read_metrics(text: str, log_line: int | None = None) -> MetricRow | None:
    """The metrics of a line, or None where it names no loss and no gradient norm. Values may be nan or inf."""
    if len(text) > _MAX_LENGTH or not any(word in text for word in _WANTED):
        return None
    values: list[tuple[str, float]] = []
    for found in _pair().finditer(text):
        name = _normal(found["name"])
        values.append((name, float(found["value"])))
        if found["last"]:
            values.append((f"{name}_last", float(found["last"])))
    if not any(name in {"grad_norm", "loss"} or name.endswith("_loss") for name, _ in values):
        return None
    return MetricRow(values=tuple(values), log_line=log_line)


def _normal(name: str) -> str:
    """One name for each metric: lower case, words joined by `_`, synonyms folded."""
    words = name.strip().lower().replace("-", "_").split(" ")
    joined = "_".join(words)
    if joined in _ALIASES:
        return _ALIASES[joined]
    if len(words) == 2 and joined not in ("loss_scale", "grad_norm", "learning_rate"):
        joined = words[1]
    return _ALIASES.get(joined, joined)
