"""Runs a program that fails, and mends it by what its own failure shows: message, line, and the tensors of the frame."""

from __future__ import annotations

import pathlib
import traceback

import pytest

from explainer.live.compare import compared
from tests.fix.rewriting import changed_lines, rewritten


def run(source: str, path: pathlib.Path) -> dict:
    """The names of a program after it ran."""
    space: dict = {}
    path.write_text(source)
    exec(compile(source, str(path), "exec"), space)  # noqa: S102 - the program of a test
    return space


def mended(codemod: str, source: str, folder: pathlib.Path, **context: object) -> str:
    """The program after the best edit of a codemod for its own failure; as it was where none is proposed."""
    path = folder / "train.py"
    with pytest.raises((RuntimeError, ValueError, TypeError, IndexError)) as caught:
        run(source, path)
    frames = traceback.extract_tb(caught.value.__traceback__)
    line = next(one.lineno for one in reversed(frames) if one.filename == str(path))
    tensors = {name: text.removesuffix(" on cpu") for name, text in compared(caught.value)["tensors"].items()}
    at = source.splitlines()[(line or 1) - 1].strip()
    return rewritten(folder, codemod, source, at, message=str(caught.value), tensors=tensors, **context)


def is_mended(codemod: str, head: str, body: str, line: str, equal: str, folder: pathlib.Path) -> bool:
    """Whether an edit changes a program to one line, and `out` is then what another way of writing the same gives."""
    import torch

    source = f"{head}{body}\n"
    after = mended(codemod, source, folder)
    assert changed_lines(source, after) == [line]
    wanted, got = run(f"{head}out = {equal}\n", folder / "wanted.py")["out"], run(after, folder / "after.py")["out"]
    return got == wanted if isinstance(got, torch.Size) else torch.allclose(got, wanted, atol=1e-6)
