"""Hooks go on what gets a gradient."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import changed_lines, rewritten

LOOP = "for name, p in net.named_parameters():\n    p.register_hook(f)\n"
RIGHT = {
    "guarded": ("for p in net.parameters():\n    if p.requires_grad:\n        p.register_hook(f)\n", "p.register"),
    "an activation": ("h = layer(x)\nh.register_hook(f)\n", "h.register"),
    "another loop": ("for h in hidden:\n    h.register_hook(f)\n", "h.register"),
    "another line": (LOOP + "step()\n", "step()"),
    "in a comprehension that chooses": ("kept = [p.register_hook(f) for p in net.parameters() if p.requires_grad]\n", "kept"),
}  # fmt: skip
WRONG = {
    "in a loop": (LOOP, "p.register", ["if p.requires_grad:", "p.register_hook(f)"]),
    "in a comprehension": (
        "kept = [p.register_post_accumulate_grad_hook(f) for p in net.parameters()]\n", "kept",
        ["kept = [p.register_post_accumulate_grad_hook(f) for p in net.parameters() if p.requires_grad]"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str) -> None:
    """Hooks that are guarded, and those on other tensors."""
    assert rewritten(tmp_path, "hook_what_trains", source, at) == source


@pytest.mark.parametrize(("source", "at", "wanted"), WRONG.values(), ids=WRONG)
def test_frozen_parameters_are_passed_over(tmp_path, source: str, at: str, wanted: list[str]) -> None:
    """The registration stands under a question; once is enough."""
    after = rewritten(tmp_path, "hook_what_trains", source, at)
    assert changed_lines(source, after) == wanted
    assert rewritten(tmp_path, "hook_what_trains", after, at) == after
