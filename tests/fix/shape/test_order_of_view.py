"""A view that names a tensor's sizes in another order moves the axes first."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

MESSAGE = "view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous subspaces). Use .reshape(...) instead."
PROGRAM = """\
def forward(self, clips):
    b, c, t, h, w = clips.{shape}
{between}    frames = clips.view({sizes})
    return self.encoder(frames)
"""


def edited(folder: pathlib.Path, sizes: str, shape: str = "shape", between: str = "") -> list[str]:
    """What becomes of the refused view."""
    source = PROGRAM.format(sizes=sizes, shape=shape, between=between)
    return changed_lines(source, rewritten(folder, "reshape_for_view", source, "clips.view", message=MESSAGE))


@pytest.mark.parametrize(
    ("sizes", "mended"),
    [
        ("b * t, c, h, w", "clips.transpose(1, 2).reshape(b * t, c, h, w)"),
        ("(b * t, c, h, w)", "clips.transpose(1, 2).reshape((b * t, c, h, w))"),
        ("b, h * w, t, c", "clips.permute(0, 3, 4, 2, 1).reshape(b, h * w, t, c)"),
        ("-1, c, h, w", "clips.transpose(1, 2).reshape(-1, c, h, w)"),
        ("b, c, t, h * w", "clips.reshape(b, c, t, h * w)"),
        ("b, -1", "clips.reshape(b, -1)"),
        ("b * t, 3, h, w", "clips.reshape(b * t, 3, h, w)"),
    ],
)
def test_the_order_of_the_names(tmp_path: pathlib.Path, sizes: str, mended: str) -> None:
    """As the program writes it; a number is no name."""
    assert edited(tmp_path, sizes) == [f"frames = {mended}"]


def test_by_a_call(tmp_path: pathlib.Path) -> None:
    """`size()` gives the same."""
    assert edited(tmp_path, "b * t, c, h, w", "size()") == ["frames = clips.transpose(1, 2).reshape(b * t, c, h, w)"]


@pytest.mark.parametrize("between", ["    clips = clips.transpose(1, 2)\n", "    t = t // 2\n"])
def test_what_has_changed_since(tmp_path: pathlib.Path, between: str) -> None:
    """The names are those of another tensor, or of other sizes."""
    assert edited(tmp_path, "b * t, c, h, w", between=between) == ["frames = clips.reshape(b * t, c, h, w)"]


def test_the_values_are_moved(tmp_path: pathlib.Path) -> None:
    """Each frame has its own channels."""
    torch = pytest.importorskip("torch")
    clips = torch.arange(2 * 3 * 4 * 5 * 6).reshape(2, 3, 5, 6, 4).permute(0, 1, 4, 2, 3)
    source = "def take(clips):\n    b, c, t, h, w = clips.shape\n    return clips.view(b * t, c, h, w)\n"
    space: dict[str, object] = {}
    exec(rewritten(tmp_path, "reshape_for_view", source, "clips.view", message=MESSAGE), space)  # noqa: S102
    frames = space["take"](clips)  # type: ignore[operator]
    assert torch.equal(frames[5], clips[1, :, 1])
