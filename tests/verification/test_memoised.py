"""What a decorator keeps is no state of a step, whenever it was made."""

from __future__ import annotations

import pathlib

import pytest

from explainer.verification.memoised import is_memoised
from tests.fix.rewriting import line_of

SOURCE = """import functools
from functools import cached_property, lru_cache

class Bias:
    @functools.lru_cache(maxsize=8)
    def bias(self, n):
        return self.table(n)  # by a call

    @cached_property
    def directions(self):
        def inner():
            return self.raw * 2  # inside
        return inner()

    @property
    def plain(self):
        return self.raw  # anew

@lru_cache
def scale(net):
    return net.weight.exp()  # by a name
"""


@pytest.mark.parametrize(
    ("words", "kept"), [("by a call", True), ("inside", True), ("anew", False), ("by a name", True)]
)
def test_the_function_around_a_line(tmp_path: pathlib.Path, words: str, kept: bool) -> None:
    path = tmp_path / "train.py"
    path.write_text(SOURCE)
    assert is_memoised(str(path), line_of(SOURCE, words)) is kept


def test_a_file_that_cannot_be_read(tmp_path: pathlib.Path) -> None:
    (tmp_path / "broken.py").write_text("def f(:\n")
    assert not is_memoised(str(tmp_path / "broken.py"), 1)
    assert not is_memoised(str(tmp_path / "none.py"), 1)
