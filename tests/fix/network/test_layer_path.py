"""Which modules a pattern or a last name means, among the paths of a live model."""

from __future__ import annotations

import pytest

from explainer.fix.network.layer_path import entered, inside, layers_within, leaves, narrowed, repathed

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


ATTENTION = """Target module LlamaAttention(
  (q_proj): Linear(in_features=16, out_features=16, bias=False)
  (rotary): Rotary(
    (table): Embedding(8, 8)
  )
  (norm): LayerNorm((16,), eps=1e-05)
  (o_proj): Linear(in_features=16, out_features=16, bias=False)
) is not supported. Currently, only the following modules are supported: `torch.nn.Linear`."""
STACK = "Target module Sequential(\n  (0): Linear(in_features=4, out_features=4)\n) is not supported."
WITHIN = ["q_proj", "rotary.table", "o_proj"]


def test_the_layers_of_a_printed_block() -> None:
    """By their paths; a block whose parts are numbers has no names to give, one without parts has none."""
    assert layers_within(ATTENTION) == WITHIN
    assert layers_within(STACK) == layers_within("Target module Dropout(p=0.1) is not supported.") == []


INSIDE = {
    "open behind": (".*self_attn.*", (), r".*self_attn\.(q_proj|rotary\.table|o_proj)"),
    "ends with the block": (
        r"model\.layers\.\d+\.attn$",
        (),
        r"model\.layers\.\d+\.attn\.(q_proj|rotary\.table|o_proj)",
    ),
    "several blocks": (".*(self_attn|mlp).*", (), None),
    "layers elsewhere": (".*attn.*", ("layers.*.attn.q_proj", "layers.*.cross_attn.to_q"), None),
    "all of them": (".*attn.*", ("layers.*.attn.q_proj",), r".*attn\.(q_proj|rotary\.table|o_proj)"),
    "a number's place": (r".*layers\.\d+", (), None),
}


@pytest.mark.parametrize(("pattern", "layers", "wanted"), INSIDE.values(), ids=INSIDE)
def test_a_pattern_for_the_layers_in_a_block(pattern: str, layers: tuple[str, ...], wanted: str | None) -> None:
    """It fits what the old one fits, without the block."""
    assert inside(pattern, WITHIN, layers) == wanted


CLIPPED = ("layers.*.q_proj.linear", "layers.*.v_proj.linear", "head")
OUTSIDE = ("layers.*.q_proj", "layers.*.v_proj")
ENTERED = {
    "each of its own": (["q_proj", "v_proj"], ["linear"], CLIPPED, OUTSIDE, ["q_proj.linear", "v_proj.linear"]),
    "beside a layer": (["q_proj", "head"], ["linear"], CLIPPED, OUTSIDE, ["q_proj.linear", "head"]),
    "other layers in one": (["q_proj", "v_proj"], ["dense"], CLIPPED, OUTSIDE, None),
    "one name, from the message alone": (["attn"], ["q", "v"], (), (), ["attn.q", "attn.v"]),
    "two names, from the message alone": (["attn", "mlp"], ["q", "v"], (), (), None),
    "nothing in it": (["attn"], [], (), (), None),
}


@pytest.mark.parametrize(("names", "within", "layers", "blocks", "wanted"), ENTERED.values(), ids=ENTERED)
def test_names_of_blocks(
    names: list[str], within: list[str], layers: tuple[str, ...], blocks: tuple[str, ...], wanted: list[str] | None
) -> None:
    """Told by the layers in them."""
    assert entered(names, within, layers, blocks) == wanted


WIDE = ["model.layers.*.self_attn.q_proj", "model.layers.*.self_attn.o_proj", "model.layers.*.mlp.up_proj", "lm_head"]
WIDE_BLOCKS = ["model", "model.layers.*", "model.layers.*.self_attn", "model.layers.*.mlp", "model.layers.*.mlp.act_fn"]
IN_ALL = r".*layers\.\d+\.(self_attn|mlp)\.(q_proj|o_proj|up_proj)"


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        (r".*layers\.\d+\.(self_attn|mlp).*", IN_ALL),
        (r".*layers\.\d+\.(self_attn|mlp)\..*", IN_ALL),
        (r".*self_attn.*", r".*self_attn\.(q_proj|o_proj)"),
        (r".*self_attn\..*", None),  # no block
        (r".*(self_attn|lm_head).*", None),  # the head is in no block
        (r".*(self_attn", None),
    ],
)
def test_the_layers_of_several_blocks(pattern: str, wanted: str | None) -> None:
    assert leaves(pattern, WIDE, WIDE_BLOCKS) == wanted
