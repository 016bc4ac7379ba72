"""The columns of a Trainer's data sets at its failure: which it dropped, and which of these holds what the labels would.

Of the values no more is told than that: a column fits where its values are those of the labels that the other set has, or, without
such a set, all classes of the model, for each token in a model of tags, or the ids of what its decoder is to say. One that stands
beside the labels in the other set is something else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from types import FrameType
from typing import Any

from .targets import IGNORED, INPUTS, are_inputs_in_part, are_targets, is_of_ids, translates

MAX_ROWS = 2_000
MAX_COLUMNS = 60
ROWS_A_CLASS = 20  # a set of so many has some of each
SETS = ("train_dataset", "eval_dataset")
LABELS = ("labels", "label", "label_ids")
_MISSED = re.compile(r"KeyError: '([\w.-]{1,60})'\s*$")
_NO_INPUT = re.compile(r"\binput_ids or (?:decoder_)?inputs_embeds\b|\bdecoder_input_ids or ")
_WORDS = re.compile(r"^(?:Value\('(?:large_)?string'\)|string)")
_CAUSAL = ("ForCausalLM", "LMHeadModel")
_OF_TOKENS = "TokenClassification"
_INTEGERS = re.compile(r"^(?:Value\('u?int\d+'\)|u?int\d+|ClassLabel)")


def columns(frames: list[FrameType], error: BaseException) -> dict[str, str]:
    """What is known of them: `missed`, a dropped column that the error asks for, and `labels`, where they stand by another name.

    `targets` are these labels where it is for them that a decoder fails; `inputs` the sets that give a causal model nothing but
    tokens, of which it is to learn all.
    """
    found: dict[str, str] = {}
    with suppress(Exception):  # a data set and a Trainer of a kind of their own may be anything
        trainer = _trainer_in(frames)
        if trainer is not None and trainer.args.remove_unused_columns:
            sets = {name: one for name in SETS if (one := _of_datasets(getattr(trainer, name, None))) is not None}
            dropped = {name: _dropped(one, trainer) for name, one in sets.items()}
            missed = _missed(error)
            if any(missed in one for one in dropped.values()):
                found["missed"] = str(missed)
            labels = dict(_labels(trainer, sets, dropped))
            if not labels and _is_all_learned(trainer, sets, dropped):
                found["inputs"] = ", ".join(sets)
            if labels:
                found["labels"] = ", ".join(f"{name}: {one} -> {new}" for name, (one, new) in labels.items())
                if _NO_INPUT.search(str(error)) and translates(trainer.model) is not None:
                    found["targets"] = found["labels"]
    return found


def _trainer_in(frames: list[FrameType]) -> Any:
    """The Trainer whose method runs."""
    for frame in frames:
        if frame.f_globals.get("__name__") == "transformers.trainer" and "self" in frame.f_locals:
            one = frame.f_locals["self"]
            if hasattr(one, "_signature_columns") and hasattr(one, "label_names"):
                return one
    return None


def _of_datasets(given: Any) -> Any:
    """A data set of the library `datasets` with a table behind it."""
    is_table = type(given).__module__.startswith("datasets.") and hasattr(given, "features")
    return given if is_table and hasattr(given, "__len__") else None


def _dropped(dataset: Any, trainer: Any) -> list[str]:
    kept = trainer._signature_columns  # noqa: SLF001 - None until the first loader is made
    return [one for one in dataset.column_names if one not in kept][:MAX_COLUMNS] if kept else []


def _missed(error: BaseException) -> object:
    """The key that a `KeyError` asks for, also one that a worker of a loader raised."""
    if not isinstance(error, KeyError) or not error.args:
        return None
    told = _MISSED.search(str(error.args[0]))
    return told[1] if told else error.args[0]


def _labels(trainer: Any, sets: dict[str, Any], dropped: dict[str, list[str]]) -> Iterator[tuple[str, tuple[str, str]]]:
    """For each set without labels the one column that can only hold them, and the name that the model has for them."""
    names = trainer.label_names
    # A row that a transform makes has other columns than the table behind it.
    if len(names) != 1 or any(one.format["type"] == "custom" for one in sets.values()):
        return
    held = {
        name: next((one for one in (*names, *LABELS) if one in data.column_names), None) for name, data in sets.items()
    }
    for name, data in sets.items():
        other = next((one for one in sets if one != name and held[one]), None)
        if held[name] is not None:
            continue
        beside = set(sets[other].column_names) if other else set()
        own = [one for one in dropped[name] if one not in beside]
        config = translates(trainer.model)
        is_causal = _kind(trainer.model).endswith(_CAUSAL)
        if config is not None or is_causal:
            targets = [one for one in own if _are_targets(data, one, config)]
            if len(targets) == 1:
                yield name, (targets[0], names[0])
            continue
        values = _tags if _kind(trainer.model).endswith(_OF_TOKENS) else _integers
        wanted = values(sets[other], str(held[other])) if other else _classes(trainer.model)
        is_large = wanted is not None and len(data) >= ROWS_A_CLASS * len(wanted)
        fits = [one for one in own if _fits(values(data, one), wanted, is_all=not other or is_large)]
        # Words as few as the classes are names of them, and the column of numbers is something else.
        if len(fits) == 1 and not any(_are_names(data, one, wanted or set()) for one in own):
            yield name, (fits[0], names[0])


def _is_all_learned(trainer: Any, sets: dict[str, Any], dropped: dict[str, list[str]]) -> bool:
    """Whether a causal model is given inputs alone, and no column that was dropped says anything of single tokens.

    Two columns of words, as a prompt and its answer, say that not all of them are to be learned.
    """
    if not sets or not _kind(trainer.model).endswith(_CAUSAL):
        return False
    names = (*trainer.label_names, *LABELS)
    return all(
        INPUTS in data.column_names
        and not any(one in data.column_names for one in names)
        and len(dropped[name]) <= 1
        and all(_WORDS.match(str(data.features[one])) for one in dropped[name])
        for name, data in sets.items()
    )


def _fits(values: set[int] | None, wanted: set[int] | None, *, is_all: bool) -> bool:
    """Whether the values of a column can be classes: every one of them, or of a small set more than one of those elsewhere."""
    if not values or not wanted or len(values) == 1:
        return False
    return values == wanted if is_all else values <= wanted


def _integers(dataset: Any, column: str) -> set[int] | None:
    """The values of a column of whole numbers."""
    if not _INTEGERS.match(str(dataset.features[column])):
        return None
    return {one for one in _read(dataset, column) if isinstance(one, int)}


def _tags(dataset: Any, column: str) -> set[int] | None:
    """The values of a column that has one of them for each token, without those that are not counted."""
    if INPUTS not in dataset.column_names or not is_of_ids(dataset.features[column]):
        return None
    rows, inputs = _read(dataset, column), _read(dataset, INPUTS)
    if any(len(one) != len(other) for one, other in zip(rows, inputs, strict=True)):
        return None
    return {each for row in rows for each in row} - {IGNORED}


def _are_targets(dataset: Any, column: str, config: Any) -> bool:
    is_one = INPUTS in dataset.column_names and is_of_ids(dataset.features[column])
    if is_one and config is None:
        return are_inputs_in_part(_read(dataset, column), _read(dataset, INPUTS))
    return is_one and are_targets(_read(dataset, column), _read(dataset, INPUTS), config)


def _are_names(dataset: Any, column: str, wanted: set[int]) -> bool:
    """Whether a column of words has as few as there are classes."""
    if not _WORDS.match(str(dataset.features[column])):
        return False
    return 1 < len(set(_read(dataset, column))) <= len(wanted)


def _read(dataset: Any, column: str) -> list[Any]:
    return list(dataset.select_columns([column]).with_format(None)[:MAX_ROWS][column])


def _classes(model: Any) -> set[int] | None:
    """The classes of a classifier of transformers; other models have a number of them by default, which means nothing."""
    number = getattr(getattr(model, "config", None), "num_labels", None)
    is_one = _kind(model).endswith("Classification")
    return set(range(number)) if is_one and isinstance(number, int) and number > 1 else None


def _kind(model: Any) -> str:
    return type(model.get_base_model() if hasattr(model, "get_base_model") else model).__name__
