"""The column of token ids that a model of language would train on, where a Trainer dropped it for its name.

T5's decoder makes its input of `labels`, and without them it fails with the words of a model that has no inputs at all. A column
can hold them where its rows are ids of the vocabulary, end as the inputs do, and are neither padded nor aligned with the inputs.
"""

from __future__ import annotations

import re
from typing import Any

INPUTS = "input_ids"
IGNORED = -100
_IDS = re.compile(r"^(?:List|LargeList|Sequence)\((?:feature=)?Value\((?:dtype=)?'u?int(?:32|64)'")
_OTHER_TASKS = ("Classification", "Answering")


def translates(model: Any) -> Any:
    """The configuration of an encoder-decoder that generates text; None for another model."""
    model = model.get_base_model() if hasattr(model, "get_base_model") else model
    config = getattr(model, "config", None)
    is_one = getattr(config, "is_encoder_decoder", None) is True and not type(model).__name__.endswith(_OTHER_TASKS)
    return getattr(config, "decoder", config) if is_one else None


def are_targets(rows: list[Any], inputs: list[Any], config: Any) -> bool:
    """Whether the rows of a column can be what the decoder is to say."""
    if not rows or not all(isinstance(one, list) and one for one in rows) or rows == inputs:
        return False
    seen = {one for row in rows for one in row}
    if not all(type(one) is int and 0 <= one < config.vocab_size for one in seen - {IGNORED}) or len(seen) < 3:
        return False
    # Padding that is not -100 would count in the loss.
    if config.pad_token_id in seen or all(row == list(range(len(row))) for row in rows):
        return False
    if all(config.eos_token_id in one for one in inputs):
        return all(config.eos_token_id in one for one in rows)
    return any(len(one) != len(other) for one, other in zip(rows, inputs, strict=True))


def are_inputs_in_part(rows: list[Any], inputs: list[Any]) -> bool:
    """Whether the rows of a column are the inputs with -100 for what a causal model is not to learn: a prompt, padding."""
    if not rows or not all(
        isinstance(one, list) and len(one) == len(two) for one, two in zip(rows, inputs, strict=True)
    ):
        return False
    pairs = {(one, two) for row, ids in zip(rows, inputs, strict=True) for one, two in zip(row, ids, strict=True)}
    given = {one for one, _ in pairs}
    return IGNORED in given and len(given) > 2 and all(one in (IGNORED, two) for one, two in pairs)


def is_of_ids(feature: object) -> bool:
    """Whether a column holds lists of whole numbers; masks are of 8 bits."""
    return _IDS.match(str(feature)) is not None
