"""The shapes of a cause are read from its folder: programs, recordings, the newest first."""

from __future__ import annotations

import pytest

from explainer.catalog.shape import read_shapes
from explainer.model.shape import Printed


@pytest.fixture
def rules(tmp_path):
    cause = tmp_path / "nan" / "this"
    (cause / "plain" / "printed").mkdir(parents=True)
    (cause / "notes").mkdir()
    (cause / "cause.toml").write_text("")
    (cause / "plain" / "broken.py").write_text("x = 1\n")
    for release in ("2.13.0", "2.6.0", "1.12.1"):
        (cause / "plain" / "printed" / f"{release}.txt").write_text(
            f"# origin=recorded python=3.11 torch={release}\nboom\n"
        )
    return tmp_path


def test_a_shape_is_a_folder_with_a_program(rules) -> None:
    """Other folders are no shapes; a program without fix has none."""
    (shape,) = read_shapes("nan/this", str(rules))
    assert (shape.name, shape.broken, shape.fixed) == ("plain", "x = 1\n", None)


def test_the_newest_recording_comes_first(rules) -> None:
    """Recordings are ordered as releases, not as text, and state their versions."""
    (shape,) = read_shapes("nan/this", str(rules))
    assert [one.name for one in shape.printed] == ["2.13.0", "2.6.0", "1.12.1"]
    assert shape.printed[0] == Printed(name="2.13.0", versions="python 3.11, torch 2.13.0", text="boom\n")


def test_a_recording_without_head_is_whole(rules) -> None:
    """A file without the line of versions loses nothing."""
    (rules / "nan" / "this" / "plain" / "printed" / "2.13.0.txt").write_text("boom\nagain\n")
    assert read_shapes("nan/this", str(rules))[0].printed[0].text == "boom\nagain\n"


@pytest.mark.parametrize("cause", ["nan/no-such-cause", "nan"], ids=["no such cause", "a family"])
def test_nothing_to_read(rules, cause: str) -> None:
    """What is no cause has no shapes."""
    assert read_shapes(cause, str(rules)) == ()
