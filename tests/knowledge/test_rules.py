"""The rule base is right about its own recordings: what a reproducer printed is explained by its cause.

Driven by the folders of `knowledge/`. Where the text alone cannot decide, one of the look-alikes that the cause declares
may come first, never with certainty, and the cause itself is still among the findings.
"""

from __future__ import annotations

from collections import Counter

import pytest

from explainer.match.confusion import Confusion, fault_of, read_recordings
from tests.conftest import ROOT


@pytest.fixture(scope="module")
def recordings(catalog) -> list[Confusion]:
    """Every recording of the rule base, explained."""
    return list(read_recordings(str(ROOT / "knowledge"), catalog))


def test_every_recording_is_explained_by_its_cause(recordings, catalog) -> None:
    """The confusion matrix has entries off its diagonal only where the cause declares a look-alike."""
    assert len(recordings) > 200
    assert {one.file: fault_of(one, catalog) for one in recordings if fault_of(one, catalog)} == {}


def test_most_recordings_put_their_own_cause_first(recordings) -> None:
    """Look-alikes win where the text cannot decide, and only there."""
    own = Counter(one.is_own for one in recordings)
    assert own[True] >= 0.9 * len(recordings), [one for one in recordings if not one.is_own]


def test_what_would_decide_is_said(recordings, catalog) -> None:
    """Where a look-alike comes first, the cause's page says what would tell the two apart."""
    for one in recordings:
        if one.found and not one.is_own:
            (decides,) = {
                alike.decides for alike in catalog.cause(one.cause).look_alikes if alike.cause == one.found[0]
            }
            assert len(decides) > 20


def test_every_cause_is_whole(catalog) -> None:
    """Each cause has a wording or a signature, and something to do."""
    for name in catalog.cause_ids:
        cause = catalog.cause(name)
        assert cause.fixes or cause.kind == "notice", name
        assert cause.forms or cause.signatures or name == "other/unknown", name


def test_a_confusion_is_noticed(catalog) -> None:
    """A recording under the wrong cause, an unrecognised one and a certain look-alike are faults."""
    wrong = Confusion("x", "nan/sqrt-at-zero", ("peft/adapter-lifecycle",), "likely")
    nothing = Confusion("x", "nan/sqrt-at-zero", (), None)
    alike = catalog.cause("nan/sqrt-at-zero").look_alikes[0].cause
    assert "no look-alike" in (fault_of(wrong, catalog) or "")
    assert "no rule" in (fault_of(nothing, catalog) or "")
    assert "certainty" in (fault_of(Confusion("x", "nan/sqrt-at-zero", (alike,), "certain"), catalog) or "")
    assert "not among" in (fault_of(Confusion("x", "nan/sqrt-at-zero", (alike,), "likely"), catalog) or "")
    assert fault_of(Confusion("x", "nan/sqrt-at-zero", (alike, "nan/sqrt-at-zero"), "likely"), catalog) is None
