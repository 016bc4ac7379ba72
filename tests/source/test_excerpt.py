"""The line that a frame names is read from the user's file, and nothing else is."""

from __future__ import annotations

import os
import pathlib

import pytest

from explainer.source.excerpt import MAX_SOURCE, read_line


def test_reads_the_line(tmp_path: pathlib.Path) -> None:
    """Relative to the root, stripped; none past the end."""
    (tmp_path / "train.py").write_text("a = 1\n    b = a\n\n")
    assert read_line("train.py", 2, str(tmp_path)) == "b = a"
    assert read_line(str(tmp_path / "train.py"), 1, "/nowhere") == "a = 1"
    assert read_line("train.py", 3, str(tmp_path)) is None
    assert read_line("train.py", 4, str(tmp_path)) is None


@pytest.mark.parametrize("name", ["missing.py", "a\x00b.py", "a\udc80b.py", "passwd", "folder.py", "x" * 5000 + ".py"])
def test_unreadable_names(tmp_path: pathlib.Path, name: str) -> None:
    """A name that a damaged log holds is no failure of ours."""
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "passwd").write_text("secret\n")
    assert read_line(name, 1, str(tmp_path)) is None


def test_only_regular_files_of_bounded_size(tmp_path: pathlib.Path) -> None:
    """A pipe is not opened, which would wait for ever; nor is a file too large for source."""
    os.mkfifo(tmp_path / "pipe.py")
    assert read_line("pipe.py", 1, str(tmp_path)) is None
    with open(tmp_path / "large.py", "w") as file:
        file.truncate(MAX_SOURCE + 1)
    assert read_line("large.py", 1, str(tmp_path)) is None
