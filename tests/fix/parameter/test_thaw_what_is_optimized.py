"""What an optimizer is given of a model is thawed before; of a whole model, or a list, nothing tells what was to train."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

TOP = "import itertools\nimport torch\n"
FROZEN = (
    "for p in itertools.chain(encoder.body.parameters(), encoder.table.parameters()):\n    p.requires_grad = False\n"
)
THAWED = {
    "what a method hands out": (
        "encoder.get_input_embeddings()",
        "encoder.get_input_embeddings().requires_grad_(True)",
    ),
    "a part": ("encoder.head", "encoder.head.requires_grad_(True)"),
    "a part of one's own": ("self.model.head", "self.model.head.requires_grad_(True)"),
}
WHOLE = (
    "model.parameters()",
    "self.model.parameters()",
    "trainer.model.parameters()",
    "[model.weight]",
    "self.parameters()",
)


@pytest.mark.parametrize(("part", "line"), THAWED.values(), ids=THAWED)
def test_a_part_is_thawed(part: str, line: str, tmp_path: pathlib.Path) -> None:
    source = TOP + FROZEN + f"opt = torch.optim.AdamW({part}.parameters(), lr=0.1)\nloss.backward()\n"
    assert diff_lines(source, rewritten(tmp_path, "thaw_what_is_optimized", source, "loss.backward")) == [f"+{line}"]


@pytest.mark.parametrize("given", WHOLE)
def test_a_whole_model_stays(given: str, tmp_path: pathlib.Path) -> None:
    source = TOP + FROZEN + f"opt = torch.optim.AdamW({given}, lr=0.1)\nloss.backward()\n"
    assert rewritten(tmp_path, "thaw_what_is_optimized", source, "loss.backward") == source


def test_two_optimizers_of_which_one_has_it_all(tmp_path: pathlib.Path) -> None:
    source = (
        TOP
        + FROZEN
        + "a = torch.optim.SGD(net.head.parameters())\nb = torch.optim.SGD(net.parameters())\nloss.backward()\n"
    )
    assert rewritten(tmp_path, "thaw_what_is_optimized", source, "loss.backward") == source


@pytest.mark.parametrize(
    ("frozen", "trainable", "is_thawed"),
    [(FROZEN, None, True), (FROZEN, "2", False), ("", "0", True), ("", None, False)],
)
def test_only_where_all_is_frozen(frozen: str, trainable: str | None, is_thawed: bool, tmp_path: pathlib.Path) -> None:
    """By what the live program had, else by a freeze that is seen."""
    source = TOP + frozen + "opt = torch.optim.SGD(net.head.parameters())\nloss.backward()\n"
    facts = {"live_trainable": trainable} if trainable is not None else {}
    after = rewritten(tmp_path, "thaw_what_is_optimized", source, "loss.backward", facts=facts)
    assert ("net.head.requires_grad_(True)" in after) is is_thawed


LISTS = {
    "by name": 'joining = [p for n, p in net.named_parameters() if "head" in n]',
    "what is frozen yet": "joining = [p for p in phase.parameters(net) if not p.requires_grad]",
}
GIVEN = {
    "alone": "opt = torch.optim.SGD(joining, lr=0.1)",
    "in a group": 'opt = torch.optim.SGD([{"params": joining, "lr": 0.1}])',
    "in a group with a name": 'group = {"params": joining}\nopt = torch.optim.SGD(params=[group])',
}


@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)
@pytest.mark.parametrize("line", LISTS.values(), ids=LISTS)
def test_chosen_parameters_are_thawed(line: str, given: str, tmp_path: pathlib.Path) -> None:
    source = f"{TOP}net.requires_grad_(False)\n{line}\n{given}\nloss.backward()\n"
    after = rewritten(tmp_path, "thaw_what_is_optimized", source, "loss.backward")
    assert diff_lines(source, after) == ["+for parameter in joining:", "+    parameter.requires_grad_(True)"]


@pytest.mark.parametrize(
    "line",
    ["joining = [p for p in net.parameters()]", "joining = [p for p in net.parameters() if p.requires_grad]"],
    ids=["all", "what trains"],
)
def test_a_list_that_chooses_nothing_stays(line: str, tmp_path: pathlib.Path) -> None:
    source = f"{TOP}net.requires_grad_(False)\n{line}\nopt = torch.optim.SGD(joining)\nloss.backward()\n"
    assert rewritten(tmp_path, "thaw_what_is_optimized", source, "loss.backward") == source
