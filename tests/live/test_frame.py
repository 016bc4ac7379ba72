"""Our wrappers leave no frame in a traceback that the program sees."""

from __future__ import annotations

import pathlib
import sys
import traceback

import pytest

from explainer.live import frame

WRAPPER = """
def wrapped(function):
    def noted():
        try:
            return function()
        except Exception as error:
            leave_no_frame(error)
            raise
    return noted
"""


def wrapped(function):
    """A wrapper as those of `live/`: its code says that it stands there."""
    scope = {"leave_no_frame": frame.leave_no_frame}
    exec(compile(WRAPPER, str(pathlib.Path(frame.__file__).parent / "wrapper.py"), "exec"), scope)
    return scope["wrapped"](function)


def fail() -> None:
    raise ValueError("x")


def names(trace) -> list[str]:
    return [one.name for one in traceback.extract_tb(trace)]


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_no_frame_is_left(depth: int) -> None:
    """One wrapper or several, one round the other."""
    function = fail
    for _ in range(depth):
        function = wrapped(function)
    with pytest.raises(ValueError, match="x") as failed:
        function()
    assert names(frame.without_our_frames(failed.value.__traceback__))[-1] == "fail"
    assert "noted" not in names(frame.without_our_frames(failed.value.__traceback__))
    if sys.version_info >= (3, 11):
        assert "noted" not in names(failed.value.__traceback__)


def test_a_failure_of_our_own_keeps_its_last_frame() -> None:
    """A traceback is never empty."""

    def nothing() -> None:
        raise KeyError

    nothing.__code__ = nothing.__code__.replace(co_filename=str(pathlib.Path(frame.__file__).parent / "wrapper.py"))
    with pytest.raises(KeyError) as failed:
        nothing()
    assert names(frame.without_our_frames(failed.value.__traceback__))[-1] == "nothing"
