"""The key under which a Trainer's collator handed over the labels, where the model knows them by the name `labels` and made no loss.

Such a key is the only one of the batch that the model's forward does not take. Of its values no more is told than that they can be
the labels of this model: a batch without any labels has lengths, masks and numbers of its rows under names of their own too.
"""

from __future__ import annotations

import inspect
import re
from contextlib import suppress
from types import CodeType, FrameType
from typing import Any

WANTED = "labels"
IGNORED = -100
_UNKNOWN = "did not return a loss from the inputs"
_OF_TRAINER = "num_items_in_batch"
_SAYS_LABELS = re.compile(
    r"(?:^|_)(?:labels?|lbls?|tags?|targets?|class(?:es)?|categor(?:y|ies)|y|gt|gold|truth|answers?)(?:_|$)"
)
_SAYS_OTHER = re.compile(
    r"mask|weight|length|(?:^|_)(?:len|idx|index|indices|guid|uid|group|fold|split|source|speaker|lang\w*|domain|position)(?:_|$|s$)"
)
_LIKE_INPUTS = ("ForTokenClassification", "ForCausalLM", "ForMaskedLM", "LMHeadModel")
_SHIFTS = ("ForCausalLM", "LMHeadModel")
_WRITES = ("ForConditionalGeneration", "ForSeq2SeqLM", "ForSpeechSeq2Seq", *_LIKE_INPUTS[1:])


def batch_key(frames: list[FrameType], error: BaseException) -> str | None:
    """`tags by /here/rows.py:39`: the key, and the function of the program that made the batch."""
    if _UNKNOWN not in str(error):
        return None
    with suppress(Exception):  # a Trainer, a model and a batch of a kind of their own may be anything
        found = _failed_in(frames)
        if found is not None:
            trainer, batch = found
            key, code = _stranger(batch, trainer.model), _code_of(trainer.data_collator)
            if key is not None and code is not None and _can_be_labels(key, batch, trainer.model):
                return f"{key} by {code.co_filename}:{code.co_firstlineno}"
    return None


def _failed_in(frames: list[FrameType]) -> tuple[Any, dict[str, Any]] | None:
    """The Trainer that found no loss, and the batch."""
    for frame in reversed(frames):
        if frame.f_globals.get("__name__") == "transformers.trainer" and frame.f_code.co_name == "compute_loss":
            trainer, batch = frame.f_locals["self"], frame.f_locals["inputs"]
            is_plain = getattr(trainer, "compute_loss_func", None) is None and list(trainer.label_names) == [WANTED]
            return (trainer, dict(batch.items())) if is_plain else None
    return None


def _stranger(batch: dict[str, Any], model: Any) -> str | None:
    """The one key of the batch that is no parameter of a forward which takes `labels`."""
    taken = inspect.signature(_bare(model).forward).parameters
    others = [one for one in batch if one not in taken and one != _OF_TRAINER]
    is_missed = WANTED in taken and WANTED not in batch
    return others[0] if is_missed and len(others) == 1 else None


def _bare(model: Any) -> Any:
    return model.get_base_model() if hasattr(model, "get_base_model") else model


def _code_of(collator: Any) -> CodeType | None:
    """What runs where a collator is called: a function, a method, an object's `__call__`, or what a mixin has for it."""
    while hasattr(collator, "func"):
        collator = collator.func
    if not hasattr(collator, "__code__") and not hasattr(collator, "__func__"):
        kind = type(collator)
        collator = kind.__call__
        if collator.__module__.startswith("transformers."):
            collator = kind.torch_call
    code = getattr(getattr(collator, "__func__", collator), "__code__", None)
    return code if isinstance(code, CodeType) and "site-packages" not in code.co_filename else None


def _can_be_labels(key: str, batch: dict[str, Any], model: Any) -> bool:
    """Whether the values fit the model's head, and either the name, padding that does not count or the classes tell labels."""
    values, model = batch[key], _bare(model)
    config: Any = getattr(model, "config", None)
    kind = type(model).__name__
    inputs = next((one for name, one in batch.items() if name != key and hasattr(one, "shape")), None)
    if inputs is None or not hasattr(values, "shape") or values.dim() == 0 or len(values) != len(inputs):
        return False
    is_named = _SAYS_LABELS.search(key.lower()) is not None and _SAYS_OTHER.search(key.lower()) is None
    if values.dtype.is_floating_point:
        classes = getattr(config, "num_labels", None)
        return is_named and (classes is None or values.shape[1:] in ((), (classes,)))
    seen = set(values.unique().tolist())
    if any(isinstance(one, bool) for one in seen):
        return False
    is_named = is_named or IGNORED in seen
    if kind.endswith(_LIKE_INPUTS) and values.shape != inputs.shape[:2]:
        return False
    if kind.endswith(_SHIFTS) and not _are_inputs(values, batch.get("input_ids")):
        return False
    if kind.endswith(_WRITES):
        return is_named and _are_within(seen, config.vocab_size)
    if not kind.endswith("Classification"):
        return is_named
    is_row = values.dim() == 1 and len(seen) > 1 and config.num_labels > 2 and _SAYS_OTHER.search(key.lower()) is None
    fits = config.num_labels > 1 and _are_within(seen, config.num_labels)
    return fits and (is_named or (is_row and "Token" not in kind))


def _are_inputs(values: Any, ids: Any) -> bool:
    """Whether the labels of a language model are its inputs: it shifts them itself, and those that are shifted would be so twice."""
    return ids is not None and bool(((values == ids) | (values == IGNORED)).all())


def _are_within(seen: set[Any], number: int) -> bool:
    return all(0 <= one < number or one == IGNORED for one in seen)
