"""The table of interfaces is right about the libraries that are installed: what it calls gone is gone, what came is there."""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import warnings

import pytest
from packaging.version import Version

from explainer.catalog.bundle import load_catalog
from explainer.catalog.interface import changes, distributions, find_change
from explainer.model.interface import Change

# Where classes and functions live that the libraries' first module does not show.
PLACES = {
    "transformers": (
        "transformers",
        "transformers.cache_utils",
        "transformers.models.llama.modeling_llama",
        "transformers.tokenization_utils_base",
        "transformers.generation",
    ),
    "torch": (
        "torch",
        "torch.nn",
        "torch.nn.functional",
        "torch.nn.utils",
        "torch.optim",
        "torch.optim.lr_scheduler",
        "torch.utils.data",
        "torch.nn.parallel",
        "torch.distributed",
        "torch.distributed.fsdp",
        "torch.distributed.fsdp.wrap",
        "torch.amp",
    ),
    "trl": ("trl",),
    "peft": ("peft", "peft.tuners.lora"),
    "accelerate": ("accelerate", "accelerate.utils", "accelerate.state", "accelerate.optimizer"),
    "lightning": (
        "pytorch_lightning",
        "pytorch_lightning.callbacks",
        "pytorch_lightning.loggers",
        "pytorch_lightning.strategies",
    ),
    "numpy": ("numpy",),
}
# numpy 2.0 has `np.bool` again, as another type; torchmetrics puts `np.Inf` back.
CAME_BACK = {("numpy", "bool"), ("numpy", "Inf")}


def found(library: str, name: str) -> object | None:
    """The class or function of that dotted name, or None."""
    head, *rest = name.split(".")
    if head == library:
        return found_module(name) or (found(library, ".".join(rest)) if rest else None)
    for place in PLACES[library]:
        value = getattr(importlib.import_module(place), head, None)
        for part in rest:
            value = getattr(value, part, None)
        if value is not None:
            return value
    return None


def found_module(path: str) -> object | None:
    """The module, or what a module holds under the last part."""
    try:
        return importlib.import_module(path)
    except ImportError:
        module, _, name = path.rpartition(".")
        if not module:
            return None
        try:
            return getattr(importlib.import_module(module), name, None)
        except ImportError:
            return None


def has(library: str, kind: str, owner: str, name: str) -> bool | None:
    """Whether the installed release has a name; None where that cannot be told without running more."""
    if kind == "import":
        value = found_module(f"{owner}.{name}")
        return value is not None and getattr(value, "__module__", "") != "torch._linalg_utils"
    thing = found(library, owner)
    if thing is None or kind == "value":
        return None
    if kind == "method":
        return hasattr(thing, name)
    if kind == "argument":
        return accepts(thing, name)
    return True if hasattr(thing, name) else None  # attributes are often set by `__init__`


def accepts(thing: object, name: str) -> bool | None:
    try:
        parameters = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return None
    if name in [one.name for one in parameters]:
        return True
    return None if any(one.kind is one.VAR_KEYWORD for one in parameters) else False


def verdicts(change: Change, version: Version) -> list[tuple[str, bool]]:
    """Each thing that the table claims of this release and that can be decided, and whether it is so."""
    claims = []
    if change.old is not None and change.removed is not None and (change.library, change.old) not in CAME_BACK:
        there = has(change.library, change.kind, change.of, change.old)
        gone = version >= Version(change.removed)
        claims.append(("old", None if there is None else there != gone))
    if change.new is not None and change.added is not None and version >= Version(change.added):
        there = has(change.library, change.kind, *change.new_place)
        claims.append(("new", there))
    return [(what, holds) for what, holds in claims if holds is not None]


def decide(library: str) -> tuple[list[Change], list[tuple[str, Change]]]:
    """The changes that the installed release could decide, and the claims that it refutes."""
    version = Version(Version(importlib.metadata.version(distributions(library)[0])).base_version)
    decided, wrong = [], []
    for change in changes(load_catalog(), library):
        answers = verdicts(change, version)
        decided.extend([change] if answers else [])
        wrong.extend((what, change) for what, holds in answers if not holds)
    return decided, wrong


@pytest.mark.torch
@pytest.mark.parametrize("library", sorted(PLACES))
def test_the_installed_release_agrees(library: str) -> None:
    """No claim about the installed release is refuted by it, and at least a third of the entries were decided."""
    pytest.importorskip(PLACES[library][0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        decided, wrong = decide(library)
    assert [f"{what}: {one.of} {one.old} -> {one.new}" for what, one in wrong] == []
    assert len(decided) * 3 >= len(list(changes(load_catalog(), library)))


def test_table_is_large_and_dated() -> None:
    """Every library has its entries, each with a release and with something to write."""
    table = list(changes(load_catalog()))
    assert len(table) >= 500
    assert {one.library for one in table} == set(PLACES)
    assert all((one.added or one.removed or one.deprecated) and one.write for one in table)


def test_find_change() -> None:
    """A codemod asks for an old name of a class and gets the new one; of an heir too, and of no other class."""
    catalog = load_catalog()
    asked = ("transformers", "TrainingArguments", "evaluation_strategy")
    assert find_change(catalog, *asked).new == "eval_strategy"
    assert find_change(catalog, "transformers", "Seq2SeqTrainingArguments", "evaluation_strategy").removed == "4.51"
    assert find_change(catalog, "transformers", "MyArguments", "evaluation_strategy") is None
    assert find_change(catalog, "trl", "TrainingArguments", "evaluation_strategy") is None


if __name__ == "__main__":
    for library in sorted(PLACES):
        try:
            decided, wrong = decide(library)
        except importlib.metadata.PackageNotFoundError:
            continue
        for one in decided:
            print("ran", "/".join(map(str, (library, one.kind, one.of, one.old, one.new))))
        for what, one in wrong:
            print("wrong", what, library, one.kind, one.of, one.old, one.new, one.added, one.removed)
