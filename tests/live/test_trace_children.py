"""A forked child is traced as its parent is."""

from __future__ import annotations

import multiprocessing

import pytest

torch = pytest.importorskip("torch")

import gradfix  # noqa: E402

pytestmark = pytest.mark.torch


def _modes() -> int:
    return len(torch.overrides._get_current_function_mode_stack())


class _Modes(torch.utils.data.Dataset):
    """Gives for each index how many modes its process runs under."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> int:
        return _modes()


def test_a_forked_child_is_traced() -> None:
    """It may train, as its parent would; a loader's worker goes on without the mode."""
    context = multiprocessing.get_context("fork")

    def step() -> None:
        ours, theirs = context.Pipe()
        child = context.Process(target=lambda: theirs.send(_modes()))
        child.start()
        assert ours.poll(60)
        assert ours.recv() == _modes() >= 1
        child.join(60)
        loader = torch.utils.data.DataLoader(_Modes(), num_workers=1, multiprocessing_context=context)
        assert [one.item() for one in loader] == [0, 0]

    with gradfix.trace():
        step()
