"""What is asked for, and what to run next, where nothing was recognised."""

from __future__ import annotations

from dataclasses import replace

import pytest

from explainer.match.nearest import describe_unknown
from explainer.model.incident import Fact

OWN = """Traceback (most recent call last):
  File "train.py", line 9, in <module>
    fit()
  File "train.py", line 5, in fit
    {line}
RuntimeError: only 1 of 40 batches could be trained on
"""
CALL = OWN.replace("{line}", "check(batches)")


@pytest.fixture
def described(read, catalog):
    """What is said of a text of which nothing is known, with facts of a run."""

    def describe(text: str, *facts: str):
        incident = replace(read(text), facts=tuple(Fact(name=one, value="1") for one in facts))
        return describe_unknown(incident, catalog)

    return describe


def test_what_the_program_raised_itself(described) -> None:
    """What it caught before is in no traceback: the run notes exceptions where they are raised."""
    unknown = described(OWN.format(line="raise RuntimeError(message)"))
    assert unknown.next_command == "gradfix run -- python train.py"
    assert "may have caught it" in unknown.missing[-1]


def test_a_run_has_noted_what_was_raised(described) -> None:
    """Nothing is missing then, and a trace is what is left."""
    unknown = described(OWN.format(line="raise RuntimeError(message)"), "live_run")
    assert (unknown.next_command, unknown.missing) == ("gradfix run --trace -- python train.py", ())


@pytest.mark.parametrize("text", [CALL, "RuntimeError: only 1 of 40 batches could be trained on\n", "a line\n"])
def test_the_output_of_the_program(described, text: str) -> None:
    """Elsewhere more of the output helps."""
    assert described(text).next_command == "python train.py 2>&1 | gradfix explain"
