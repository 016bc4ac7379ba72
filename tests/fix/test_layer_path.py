"""Which modules a pattern or a last name means, among the paths of a live model."""

from __future__ import annotations

import pytest

from explainer.fix.layer_path import narrowed, repathed

LLAVA = (
    "model.language_model.layers.*.self_attn.q_proj", "model.language_model.layers.*.self_attn.v_proj",
    "model.vision_tower.encoder.layers.*.self_attn.q_proj", "model.language_model.embed_tokens", "lm_head",
)  # fmt: skip
PLAIN = ("layers.*.self_attn.q_proj", "layers.*.mlp.up_proj")
OLD = r"language_model\.model\."
PATHED = {
    "the tree of another release": (OLD + r"layers\.\d+\.self_attn\.(q_proj|v_proj)", LLAVA, (OLD, r"model\.language_model\.")),
    "a head that the model has not at all": (r"model\.layers\.[0-9]+\.mlp\.up_proj", PLAIN, (r"model\.", "")),
    "a pattern that fits": (r"layers\.\d+\.self_attn\.q_proj", PLAIN, None),
    "two places of which none is meant more": (r"decoder\.layers\.\d+\.self_attn\.q_proj", LLAVA, None),
    "a part that no layer has": (r"model\.layers\.\d+\.attn\.wq", PLAIN, None),
    "an open pattern": (r".*\.q_proj", LLAVA, None),
    "one word": ("q_proj", LLAVA, None),
    "no live model": (OLD + r"layers\.\d+\.self_attn\.q_proj", (), None),
    "a pattern that is none": (r"model\.layers\.(q_proj", LLAVA, None),
}  # fmt: skip
BLOCKS = ("layers", "layers.*", "layers.*.attn", "out", "out.*.act")
LAYERS = ("layers.*.attn.q", "layers.*.attn.out", "out.*.dense")
NARROWED = {
    "a block of that name": (["q", "out"], LAYERS, BLOCKS, ["q", "attn.out"]),
    "a name of layers alone": (["q"], LAYERS, BLOCKS, None),
    "layers of two owners": (["out"], (*LAYERS, "head.out"), BLOCKS, None),
    "a block of the same owner": (["out"], LAYERS, (*BLOCKS, "decoder.*.attn.out"), None),
    "no layer of that name": (["out"], ("layers.*.attn.q",), BLOCKS, None),
    "a layer at the top": (["out"], ("out",), ("layers.*.out",), None),
    "a number before it": (["out"], ("layers.*.out",), ("out",), None),
}


@pytest.mark.parametrize(("pattern", "layers", "wanted"), PATHED.values(), ids=PATHED)
def test_a_pattern_for_another_tree(pattern: str, layers: tuple[str, ...], wanted: tuple[str, str] | None) -> None:
    """The head that fits nothing, and the one that the model has; nothing where it is not clear."""
    assert repathed(pattern, layers) == wanted


@pytest.mark.parametrize(("names", "layers", "blocks", "wanted"), NARROWED.values(), ids=NARROWED)
def test_a_name_that_fits_too_much(
    names: list[str], layers: tuple[str, ...], blocks: tuple[str, ...], wanted: list[str] | None
) -> None:
    """The part before it tells the layers from the block."""
    assert narrowed(names, layers, blocks) == wanted
