"""A live exception object gives what its printed form gives, and its notes."""

from __future__ import annotations

import sys

import pytest

from explainer.ingest.exception import read_exception_object


def caught(raise_it) -> BaseException:
    try:
        raise_it()
    except BaseException as error:
        return error
    raise AssertionError


def test_frames_and_mark() -> None:
    """Frames have their source line and, from 3.11 on, the failing columns."""

    def fail() -> None:
        values = {}
        values["a"], values["b"]["c"] = 1, values["missing"]

    record = read_exception_object(caught(fail)).exceptions[0]
    frame = record.frames[-1]
    assert frame.code == 'values["a"], values["b"]["c"] = 1, values["missing"]'
    if sys.version_info >= (3, 11):
        assert frame.code[slice(*frame.mark)] == 'values["missing"]'


def test_chain_and_notes() -> None:
    """Origin first; the cause hides the context."""

    def fail() -> None:
        try:
            raise KeyError("origin")
        except KeyError as error:
            raise ValueError("outer") from error

    error = caught(fail)
    if hasattr(error, "add_note"):
        error.add_note("rank 3")
    records = read_exception_object(error).exceptions
    assert [(one.type, one.link) for one in records] == [("KeyError", None), ("ValueError", "direct_cause")]
    if hasattr(error, "add_note"):
        assert records[1].notes == ("rank 3",)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="no exception groups")
def test_group() -> None:
    """Members follow their group."""
    error = ExceptionGroup("two", [ValueError("a"), ExceptionGroup("inner", [KeyError("b")])])  # noqa: F821
    assert [(one.type, one.parent) for one in read_exception_object(error).exceptions] == [
        ("ExceptionGroup", None),
        ("ValueError", 0),
        ("ExceptionGroup", 0),
        ("KeyError", 2),
    ]


def test_hostile_str() -> None:
    """A `__str__` that raises is named, not obeyed."""

    class Hostile(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

    assert read_exception_object(Hostile()).exceptions[0].message == "<str() failed: RuntimeError>"


def test_a_chain_that_bites_its_tail() -> None:
    """Cycles and endless chains end."""
    first, second = ValueError("a"), ValueError("b")
    first.__cause__, second.__cause__ = second, first
    assert len(read_exception_object(first).exceptions) == 2
    last = ValueError("0")
    for number in range(200):
        following = ValueError(str(number))
        following.__cause__ = last
        last = following
    assert len(read_exception_object(last).exceptions) <= 60


def test_what_another_process_sent_as_text() -> None:
    """A worker's traceback, which the exception's message holds, is the failure; the exception only passes it on."""
    sent = (
        "\n\n-- Process 1 terminated with the following error:\nTraceback (most recent call last):\n"
        '  File "/app/train.py", line 9, in work\n    loss.backward()\n'
        "RuntimeError: grad can be implicitly created only for scalar outputs\n"
    )
    try:
        raise RuntimeError(sent)
    except RuntimeError as error:
        incident = read_exception_object(error)
    inner = next(
        one for one in incident.exceptions if "implicitly created" in one.message and "Process" not in one.message
    )
    assert [(one.file, one.line) for one in inner.frames] == [("/app/train.py", 9)]


def test_a_message_that_only_speaks_of_a_traceback() -> None:
    """What is no traceback leaves the exception as it is."""
    try:
        raise ValueError("Traceback (most recent call last): see the log")
    except ValueError as error:
        incident = read_exception_object(error)
    assert [one.type for one in incident.exceptions] == ["ValueError"]
    assert incident.exceptions[0].frames[-1].function == "test_a_message_that_only_speaks_of_a_traceback"


def test_an_explanation_is_printed_as_a_card() -> None:
    """As `gradfix explain` prints it without colour; what a debugger shows is the record."""
    from explainer.render.terminal import Layout, render_terminal
    from explainer.workflow import explain

    def fail() -> None:
        raise RuntimeError("grad can be implicitly created only for scalar outputs")

    report = explain(caught(fail))
    assert f"{report}\n" == render_terminal(report, Layout())
    assert "backward/non-scalar-loss  certain" in str(report)
    assert repr(report).startswith("Explanation(")
