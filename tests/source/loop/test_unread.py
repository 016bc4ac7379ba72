"""Names that are bound for nothing."""

from __future__ import annotations

import pytest

from explainer.source.loop.unread import vain_bindings

USED = {
    "read behind": "def f(x):\n    x = x + 1\n    return x",
    "on the same line": "def f(x): y = x + 1; return y",
    "in the next round": "def f(xs, h):\n    for x in xs:\n        print(h)\n        h = h + x",
    "in an inner function": "def f(x):\n    y = x\n    def g():\n        return y\n    return g",
    "in a lambda": "def f(x):\n    y = x\n    return lambda: y",
    "added to": "def f(x):\n    y = x\n    y += 1",
    "global": "def f(x):\n    global y\n    y = x",
    "an attribute": "def f(x):\n    x.data = x.data + 1",
    "a module's": "x = 1",
    "meant to be unread": "def f(x):\n    _ = x.sum()",
    "seen by locals": "def f(x):\n    y = x\n    return locals()",
}
VAIN = {
    "an argument": ("def f(x):\n    x = x.detach()", "x = x.detach()"),
    "a loop's name": ("def f(xs):\n    for x in xs:\n        x = x.detach()", "x = x.detach()"),
    "read before alone": ("def f(x):\n    print(x)\n    x = x + 1", "x = x + 1"),
    "bound again": ("def f(x):\n    y = x\n    y = 2\n    return 3", "y = x"),
}


@pytest.mark.parametrize("text", USED.values(), ids=USED)
def test_what_is_read(text: str) -> None:
    assert vain_bindings("", text) == set()


@pytest.mark.parametrize(("text", "statement"), VAIN.values(), ids=VAIN)
def test_what_is_not(text: str, statement: str) -> None:
    assert ("f", statement) in vain_bindings("", text)


def test_a_text_that_does_not_parse() -> None:
    assert vain_bindings("", "def f(:") == set()


def test_what_stood_there_before() -> None:
    """Only what a change writes is held against it; a line that is moved stood there."""
    text = "def f(x):\n    y = x\n    return x"
    assert vain_bindings(text, text) == set()
    assert vain_bindings(text, text.replace("    y", "    if x:\n        y")) == set()
    assert vain_bindings(text, text.replace("y = x", "y = x\n    z = x")) == {("f", "z = x")}
