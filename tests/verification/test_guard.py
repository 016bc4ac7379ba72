"""A project is put back as it was; a folder that is not one project's own is left alone."""

from __future__ import annotations

import pathlib
import tempfile

import pytest

from explainer.verification import guard as module
from explainer.verification.guard import Guard


@pytest.mark.parametrize("place", ["home", "temporary", "above"])
def test_a_shared_folder_is_left_alone(tmp_path: pathlib.Path, monkeypatch, place: str) -> None:
    """What others write there meanwhile must stay."""
    inner = tmp_path / "inner" if place == "above" else tmp_path
    inner.mkdir(exist_ok=True)
    monkeypatch.setenv("HOME", str(inner if place != "temporary" else tmp_path / "elsewhere"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path if place == "temporary" else tmp_path / "other"))
    (tmp_path / "notes").write_text("before")
    guard = Guard(str(tmp_path))
    (tmp_path / "notes").write_text("of someone else")
    (tmp_path / "new").write_text("of someone else")
    assert guard.restore() == ()
    assert (tmp_path / "notes").read_text() == (tmp_path / "new").read_text() == "of someone else"
    assert guard.why_not.endswith(("is the home folder, or one above it", "is the temporary folder, or one above it"))


def test_too_many_files(tmp_path: pathlib.Path, monkeypatch) -> None:
    """All of it or nothing: a tree that is too large is not put back by halves."""
    monkeypatch.setattr(module, "MAX_FILES", 2)
    for name in "abc":
        (tmp_path / name).write_text("before")
    guard = Guard(str(tmp_path))
    (tmp_path / "a").write_text("after")
    assert (guard.restore(), (tmp_path / "a").read_text()) == ((), "after")
    assert "more than 2 files" in guard.why_not


def test_what_an_editor_saved_is_kept(tmp_path: pathlib.Path, monkeypatch) -> None:
    """Nobody can tell who wrote a source file meanwhile: it is put back, and what it became can be found."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "elsewhere"))
    (tmp_path / "elsewhere").mkdir()
    root = tmp_path / "project"
    (root / "inner").mkdir(parents=True)
    (root / "train.py").write_text("before")
    (root / "log.txt").write_text("before")
    guard = Guard(str(root))
    (root / "train.py").write_text("edited")
    (root / "log.txt").write_text("printed")
    (root / "inner" / "new.py").write_text("written by hand")
    assert guard.restore() == ()
    assert (root / "train.py").read_text() == (root / "log.txt").read_text() == "before"
    assert not (root / "inner" / "new.py").exists()
    kept = pathlib.Path(str(guard.kept))
    found = {str(one.relative_to(kept)): one.read_text() for one in kept.rglob("*") if one.is_file()}
    assert found == {"train.py": "edited", "inner/new.py": "written by hand"}


def test_a_project_is_put_back(tmp_path: pathlib.Path) -> None:
    """Below the temporary folder as anywhere."""
    (tmp_path / "a").write_text("before")
    guard = Guard(str(tmp_path))
    (tmp_path / "a").write_text("after")
    (tmp_path / "new").write_text("x")
    assert (guard.restore(), guard.why_not) == ((), None)
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("a", "before")]
