"""Which name of a model a word means that fits none of them."""

from __future__ import annotations

import pytest

from explainer.source.network.name_test import ENDS, FIRST, FULL, GLOB, HAS, IS, MATCH, PART, SEARCH, STARTS
from explainer.source.network.near_name import close_names, near_name

NAMES = ("encoder.layers.0.weight", "encoder.layers.1.weight", "encoder.pos_embed", "head.norm.weight", "head.out.bias")
NONE = {
    "another part": ("decoder", STARTS),
    "a number that is not there": ("encoder.layers.7", STARTS),
    "a short word": ("enc", HAS),
    "only a wildcard": ("*", GLOB),
    "only a wildcard of a pattern": (".*", MATCH),
    "a broken pattern": ("encoder.(layer", SEARCH),
    "two letters off": ("encdoerr", STARTS),
    "a part in another part": ("head.layers", STARTS),
    "no path": ("", STARTS),
}
NEAR = {
    "the singular": ("encoder.layer.1", STARTS, "encoder.layers.1"),
    "the plural": ("heads.", STARTS, "head."),
    "a line for a dot": ("encoder_layers_1", STARTS, "encoder.layers.1"),
    "a dot for a line": ("encoder.pos.embed", IS, "encoder.pos_embed"),
    "a capital": ("Encoder.", STARTS, "encoder."),
    "a beginning too many": ("module.head.", STARTS, "head."),
    "two beginnings too many": ("base_model.model.encoder.layers.0", HAS, "encoder.layers.0"),
    "a letter": ("encodr.layers", STARTS, "encoder.layers"),
    "two letters that changed places": ("ecnoder", FIRST, "encoder"),
    "a part anywhere": ("layer", PART, "layers"),
    "the end of a name": (".layer.1.weight", ENDS, ".layers.1.weight"),
    "a glob": ("encoder.layer.*", GLOB, "encoder.layers.*"),
    "a glob of any beginning": ("*.layer.?.weight", GLOB, "*.layers.?.weight"),
    "a pattern": (r"^encoder\.layer\.\d+\.weight$", SEARCH, r"^encoder\.layers\.\d+\.weight$"),
    "a pattern that ends openly": (r"head\.norms.*", MATCH, r"head\.norm.*"),
    "a whole pattern": (r"encoder\.layer\.[01]\.weight", FULL, r"encoder\.layers\.[01]\.weight"),
    "another word for a head": ("classifier.*", GLOB, "head.*"),
    "another word for a head, anchored": ("^fc", MATCH, "^head"),
}


@pytest.mark.parametrize(("word", "how"), NONE.values(), ids=NONE)
def test_nothing_near(word: str, how: str) -> None:
    """What is no name of the model, spelled otherwise or not, stands for none."""
    assert near_name(word, how, NAMES) is None


@pytest.mark.parametrize(("word", "how", "meant"), NEAR.values(), ids=NEAR)
def test_the_name_that_is_meant(word: str, how: str, meant: str) -> None:
    """The word keeps its wildcards and dots."""
    found = near_name(word, how, NAMES)
    assert found is not None
    assert found.text == meant


@pytest.mark.parametrize(
    ("word", "names"),
    [
        ("blok", ("block.weight", "blob.weight")),
        ("classifier", ("head.weight", "score.weight", "body.weight")),
        ("layer", ("encoder.layers.0.weight", "decoder.layers.0.weight")),
    ],
    ids=["two as near", "two heads", "in two parts, from the beginning"],
)
def test_more_than_one_is_none(word: str, names: tuple[str, ...]) -> None:
    """Which of several is meant is not known."""
    assert near_name(word, STARTS, names) is None


def test_what_is_spelled_leads() -> None:
    """One that is the same but for the plural is meant, and not one with another letter."""
    found = near_name("blocks", STARTS, ("block.weight", "blicks.weight"))
    assert found is not None
    assert found.text == "block"


def test_close_names() -> None:
    """The nearest names, else the parts of the model."""
    assert close_names("encoder.layer.7", STARTS, NAMES)[0].startswith("encoder.layers")
    assert close_names("qqq", STARTS, NAMES) == ["encoder", "head"]
