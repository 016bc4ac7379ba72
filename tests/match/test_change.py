"""What changed since the last good run: what is found, and what stands first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from explainer.match.change import differences, rank_changes
from explainer.model.circumstances import Circumstances
from explainer.model.finding import Culprit, Finding
from explainer.model.incident import ExceptionRecord, Frame, Incident
from explainer.model.rule import Cause, EvidenceRule

GOOD = Circumstances(
    python="3.11.7", packages=(("idna", "3.6"), ("numpy", "1.26.4"), ("tinyloss", "1.0"), ("transformers", "4.57.0")),
    machine=(("GPUs", "1 x Tesla T4"), ("driver", "550.54")), commit="aaaa", files=(("model.py", "11"), ("train.py", "22")),
    settings=(("config.yaml: lr", "0.001"),), arguments=("--epochs", "3", "--fp16"), variables=(("OMP_NUM_THREADS", "4"),),
)  # fmt: skip


def finding(cause: str, file: str = "train.py") -> Finding:
    return Finding(
        cause=cause, title="", summary="", kind="failure", confidence="likely", score=0.9,
        culprits=(Culprit(file=file, line=3),),
    )  # fmt: skip


def cause(name: str, **applies: str) -> Cause:
    return Cause(
        id=name, title="", summary="", kind="failure", status="stable", since="0.1.0", prior={}, applies=applies
    )


INCIDENT = Incident(
    exceptions=(
        ExceptionRecord(
            type="RuntimeError",
            frames=(Frame(file="train.py", line=3), Frame(file="/s/tinyloss.py", library="tinyloss")),
        ),
    )
)

SAME = {
    "nothing": GOOD,
    "what was not looked at": Circumstances(),
    "a flag written otherwise": Circumstances(arguments=("--epochs=3", "--fp16")),
}
ONE = {
    "a package": (
        Circumstances(packages=(*GOOD.packages[:3], ("transformers", "5.0.0"))),
        ("transformers", "4.57.0", "5.0.0"),
    ),
    "a new package": (Circumstances(packages=(*GOOD.packages, ("apex", "0.1"))), ("apex", None, "0.1")),
    "a package that is gone": (Circumstances(packages=GOOD.packages[1:]), ("idna", "3.6", None)),
    "python": (Circumstances(python="3.12.1"), ("python", "3.11.7", "3.12.1")),
    "the driver": (Circumstances(machine=(GOOD.machine[0], ("driver", "560.1"))), ("driver", "550.54", "560.1")),
    "a file": (Circumstances(files=(("model.py", "99"), ("train.py", "22"))), ("model.py", "11", "99")),
    "a setting": (Circumstances(settings=(("config.yaml: lr", "1.0"),)), ("config.yaml: lr", "0.001", "1.0")),
    "another configuration file": (
        Circumstances(settings=(*GOOD.settings, ("b.yaml: lr", "1"), ("b.yaml: seed", "2"))),
        ("b.yaml", None, "read"),
    ),
    "an option": (Circumstances(arguments=("--fp16", "--epochs", "4")), ("--epochs", "3", "4")),
    "a flag that is gone": (Circumstances(arguments=("--epochs", "3")), ("--fp16", "", None)),
    "an override": (Circumstances(arguments=("--epochs", "3", "--fp16", "lr=1")), ("lr", None, "1")),
    "a variable": (Circumstances(variables=()), ("OMP_NUM_THREADS", "4", None)),
    "the commit": (Circumstances(commit="bbbb"), ("git commit", "aaaa", "bbbb")),
}


@pytest.mark.parametrize("now", SAME.values(), ids=SAME.keys())
def test_nothing_changed(now: Circumstances) -> None:
    """What is the same, or was not looked at in both runs, is no change."""
    assert list(differences(GOOD, now)) == []


@pytest.mark.parametrize(("now", "change"), ONE.values(), ids=ONE.keys())
def test_one_change(now: Circumstances, change: tuple) -> None:
    """Each part is compared, and named with what it was and is."""
    assert [(one.name, one.before, one.now) for one in differences(GOOD, now)] == [change]


NOW = Circumstances(
    python="3.12.1", packages=(("idna", "3.7"), ("numpy", "2.0.0"), ("tinyloss", "1.1"), ("transformers", "5.0.0")),
    machine=(("GPUs", "1 x Tesla T4"), ("driver", "560.1")), commit="bbbb", files=(("model.py", "12"), ("train.py", "23")),
    settings=(("config.yaml: lr", "0.1"),), arguments=("--epochs", "4", "--fp16"), variables=(("OMP_NUM_THREADS", "8"),),
)  # fmt: skip


def names(*causes: Cause) -> list[str]:
    found = rank_changes(list(differences(GOOD, NOW)), [finding(one.id) for one in causes], causes, INCIDENT)
    return [one.name for one in found]


def test_the_order_of_suspicion() -> None:
    """The library that a cause names, the file with the line, the traceback's library, torch's neighbours, the rest."""
    order = names(cause("a/b", transformers=">=5"))
    assert order[:5] == ["transformers", "train.py", "tinyloss", "numpy", "config.yaml: lr"]
    assert order[-2:] == ["idna", "git commit"]
    assert order.index("--epochs") < order.index("model.py") < order.index("python")


def test_the_first_cause_outranks_the_second() -> None:
    """Libraries of several causes stand in the order of the findings."""
    order = names(cause("a/b", numpy=">=2"), cause("c/d", transformers=">=5"))
    assert order[:3] == ["numpy", "transformers", "train.py"]


def test_a_release_that_came_to_apply() -> None:
    """Of a cause's libraries the one whose new release it occurs with, and not the old, comes first; the reason is said."""
    two = cause("a/b", numpy=">=1", transformers=">=5")
    found = rank_changes(list(differences(GOOD, NOW)), [finding("a/b")], [two], INCIDENT)
    assert [one.name for one in found[:2]] == ["transformers", "numpy"]
    assert found[0].why == "a/b occurs with transformers >=5"


@pytest.mark.parametrize(("version", "first"), [(">=2", "numpy"), ("<2", "train.py")])
def test_a_release_that_speaks_for_a_cause(version: str, first: str) -> None:
    """A library whose installed release is evidence for a cause is named by it too; one whose release is not, is not."""
    rule = EvidenceRule(
        id="x", reads="environment", says="", weight=1.0, conditions={"package": "numpy", "version": version}
    )  # fmt: skip
    assert names(replace(cause("a/b"), evidence=(rule,)))[0] == first


def test_python_may_be_named() -> None:
    """A cause may apply to releases of Python."""
    assert names(cause("a/b", python=">=3.12"))[0] == "python"


def test_a_traceback_of_another_machine() -> None:
    """A file is known in the traceback by the end of its path."""
    frames = (Frame(file="/content/project/model.py", line=3),)
    incident = Incident(exceptions=(ExceptionRecord(type="RuntimeError", frames=frames),))
    found = rank_changes(list(differences(GOOD, NOW)), [], [], incident)
    assert (found[0].name, found[0].why) == ("model.py", "it is in the traceback")
