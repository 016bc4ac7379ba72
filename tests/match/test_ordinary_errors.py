"""Ordinary errors of Python are no failures of torch: a wording that asks for a library's frames is not meant elsewhere."""

from __future__ import annotations

import pytest

import gradfix

HEAD = 'Traceback (most recent call last):\n  File "train.py", line 9, in <module>\n    step(x)\n'
TORCH = '  File "/env/lib/python3.11/site-packages/torch/optim/adam.py", line 45, in __init__\n    if not 0.0 <= lr:\n'


@pytest.mark.parametrize(
    "message",
    [
        "'<=' not supported between instances of 'float' and 'str'",
        "'<' not supported between instances of 'str' and 'int'",
        "'bool' object is not iterable",
    ],
)
def test_an_error_of_ones_own_code(message: str) -> None:
    """Neither by its wording nor by resemblance."""
    assert gradfix.explain(f"{HEAD}TypeError: {message}\n").findings == ()


def test_the_same_words_in_an_optimizer() -> None:
    """There the frames are the library's."""
    said = "TypeError: '<=' not supported between instances of 'float' and 'str'\n"
    assert gradfix.explain(HEAD + TORCH + said).findings[0].cause == "optimizer/option-conflict"
