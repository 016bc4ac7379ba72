"""What NumPy would have said under `errstate(divide="ignore")` is heard in a traced run, and changes nothing."""

from __future__ import annotations

import linecache
from contextlib import ExitStack

import numpy as np
import pytest

from explainer.live.trace.place import Places
from explainer.live.trace.silenced import Silenced
from explainer.model.incident import Incident
from explainer.verification.traced import with_trace

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
ZEROS = np.zeros(2)


def heard(**given: object) -> list[dict]:
    """What is told of a logarithm of 0 under `errstate` with some arguments; its value is the same."""
    silenced = Silenced(Places(torch).here)
    plain = np.errstate
    with ExitStack() as undo:
        silenced.watch(np, undo)
        for _ in range(2):
            with np.errstate(**given):
                assert np.isneginf(np.log(ZEROS)).all()
    assert np.errstate is plain
    return silenced.told()


@pytest.mark.parametrize("given", [{"divide": "ignore"}, {"all": "ignore"}, {"all": "ignore", "over": "raise"}])
def test_what_was_ignored_is_told_once(given: dict) -> None:
    (one,) = heard(**given)
    assert (one["says"], one["function"]) == ("divide by zero encountered in log", "heard")
    assert "np.log(" in linecache.getline(one["file"], one["line"])


def test_what_the_program_hears_itself_is_its_own() -> None:
    assert heard(divide="call", call=lambda *_: None) == []
    with pytest.raises(FloatingPointError):
        heard(divide="raise")


def test_the_incident_has_the_warning_where_data_was_not_finite() -> None:
    """Elsewhere the program kept it from its values."""
    bad = {
        "input": "data",
        "direction": "forward",
        "kind": "nan",
        "operation": "to",
        "file": "train.py",
        "line": 3,
        "function": "fit",
    }
    told = {"not_finite": bad, "silenced": heard(divide="ignore")}
    (warning,) = with_trace(Incident(), told).warnings
    assert (warning.message, warning.code) == (
        "divide by zero encountered in log",
        "assert np.isneginf(np.log(ZEROS)).all()",
    )
    assert with_trace(Incident(), {**told, "not_finite": {**bad, "input": None}}).warnings == ()
