"""What stands around a line: a decorator that keeps what is made there, the parameters of its function."""

from __future__ import annotations

import pathlib

import pytest

from explainer.model.trace import TracedLine
from explainer.verification.around_line import is_memoised, parameters_at
from explainer.verification.traced import _facts_of_carried, _facts_of_writes
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


def test_the_parameters_of_the_innermost_function(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(SOURCE)
    assert parameters_at(str(path), line_of(SOURCE, "by a call")) == {"self", "n"}
    assert parameters_at(str(path), line_of(SOURCE, "# inside")) == frozenset()
    assert parameters_at(str(path), 1) == frozenset()


HISTORY = """class History:
    def extend(self, keys, values):
        for buffer, new in zip(self.buffers, (keys, values)):
            buffer[:, :, self.used : self.end] = new  # fills
        self.used = keys.size(2)  # counts

    def attend(self, q, k, v):
        scores = q @ k
        scores[:, 1:] = 0  # scores
        return scores @ v

    def pick(self, k, v):
        self.table[k] = v  # a pick

    def put(self, key, value):
        self.table[key] = value  # a table

    def append(self, layer, key, value):
        self.kept[layer][:, :, self.used : self.end] = key  # appends

    def step(self, x):
        self.state[0] = x  # a state
"""


@pytest.mark.parametrize(
    ("words", "is_cache"),
    [
        ("fills", True),
        ("counts", False),
        ("a table", False),
        ("a state", False),
        ("scores", False),
        ("a pick", False),
        ("appends", True),
    ],
)
def test_a_buffer_of_keys_and_values_is_a_cache(tmp_path: pathlib.Path, words: str, is_cache: bool) -> None:
    """Whatever it is called: it is filled, slice by slice, with the keys and values that a function is given."""
    path = tmp_path / "history.py"
    path.write_text(HISTORY)
    line = TracedLine(kind="write", operation="__setitem__", file=str(path), line=line_of(HISTORY, f"# {words}"))
    assert ("traced_cache" in dict(_facts_of_writes([line]))) is is_cache


@pytest.mark.parametrize(("operation", "is_cache"), [("__setitem__", True), ("mul", False)])
def test_what_a_cache_carries_on_is_written_into_it(tmp_path: pathlib.Path, operation: str, is_cache: bool) -> None:
    """A second step that goes back through what the first one filled."""
    path = tmp_path / "history.py"
    path.write_text(HISTORY)
    carried = {"operation": operation, "file": str(path), "line": line_of(HISTORY, "# fills"), "function": "fill"}
    assert ("traced_cache" in dict(_facts_of_carried(carried))) is is_cache
