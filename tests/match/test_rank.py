"""Causes are weighed by evidence; confidence says how sure; nothing is forced."""

from __future__ import annotations

import pytest

from explainer.catalog.bundle import load_catalog
from explainer.catalog.catalog import Catalog
from explainer.ingest.text import read_text
from explainer.match.rank import rank_causes
from explainer.model.environment import Environment, Gpu, Package
from tests.match.rules import RULES, catalog

RAISED = 'Traceback (most recent call last):\n  File "/p/train.py", line 3, in step\n    {code}\n  File "/p/b.py", line 4, in g\n    z()\nRuntimeError: {message}\n'
INPLACE = "one was modified by an inplace operation"


def findings(text: str, environment: Environment | None = None):
    return rank_causes(next(iter(read_text(text))), environment, catalog())


def evidence(text: str, environment: Environment | None = None) -> list[str]:
    (finding,) = [one for one in findings(text, environment) if one.cause == "a/activation"]
    return [one.id for one in finding.evidence if one.id != "signature"]


NOTHING = {
    "nothing": "all is well\n",
    "another exception": RAISED.format(code="x()", message="disk full"),
    "advice in a message": RAISED.format(code="x()", message="disk full"),
}


@pytest.mark.parametrize("text", NOTHING.values(), ids=NOTHING.keys())
def test_nothing_is_forced(text: str) -> None:
    """What no wording fits has no finding."""
    assert findings(text) == ()


def test_prior_decides_without_evidence() -> None:
    """Two causes of one message and no evidence: the commoner one first, and only possible."""
    ranked = findings(f"RuntimeError: {INPLACE}\n")
    assert [one.cause for one in ranked] == ["a/parameter", "a/activation"]
    assert ranked[0].confidence == "possible"


def test_evidence_decides() -> None:
    """Evidence turns the order and makes it likely."""
    ranked = findings(f"RuntimeError: {INPLACE}, which is output 0 of ReluBackward0\n")
    assert (ranked[0].cause, ranked[0].confidence) == ("a/activation", "likely")
    assert ranked[0].score > 0.8
    assert "output of Relu" in [one.says for one in ranked[0].evidence]


def test_certain_needs_a_proof() -> None:
    """A message with one cause is certain; so is evidence that proves."""
    assert findings("RuntimeError: grad only for scalar outputs\n")[0].confidence == "certain"
    assert findings(f"RuntimeError: {INPLACE} beyond doubt\n")[0].confidence == "certain"


SEEN_NOT = {
    "line": RAISED.format(code="x = x + y", message=INPLACE),
    "no-trainer": f"RuntimeError: {INPLACE}\n",
    "warned": RAISED.format(code="x()", message=INPLACE),
    "frozen": "trainable params: 12 || all params: 13\n" + RAISED.format(code="x()", message=INPLACE),
    "rises": "{'loss': 1.0}\n{'loss': nan}\n" + RAISED.format(code="x()", message=INPLACE),
    "old-gpu": RAISED.format(code="x()", message=INPLACE),
    "five": "transformers==4.46.1\n" + RAISED.format(code="x()", message=INPLACE),
    "torch-release": RAISED.format(code="x()", message=INPLACE),
}
SEEN = {
    "line": RAISED.format(code="x += y", message=INPLACE),
    "no-trainer": RAISED.format(code="x()", message=INPLACE),
    "warned": "/p/x.py:3: UserWarning: be careful\n" + RAISED.format(code="x()", message=INPLACE),
    "frozen": "trainable params: 0 || all params: 13\n" + RAISED.format(code="x()", message=INPLACE),
    "rises": "{'loss': 1.0}\n{'loss': 1.5}\n{'loss': 3.0}\n{'loss': nan}\n"
    + RAISED.format(code="x()", message=INPLACE),
    "old-gpu": "GPU: Tesla T4\n" + RAISED.format(code="x()", message=INPLACE),
    "five": "transformers==5.1.0\n" + RAISED.format(code="x()", message=INPLACE),
    "torch-release": "torch==1.13.1\n" + RAISED.format(code="x()", message=INPLACE),
}


@pytest.mark.parametrize(("name", "text"), SEEN_NOT.items(), ids=SEEN_NOT.keys())
def test_not_observed(name: str, text: str) -> None:
    """Evidence that the text does not show is not claimed."""
    assert name not in evidence(text)


@pytest.mark.parametrize(("name", "text"), SEEN.items(), ids=SEEN.keys())
def test_observed(name: str, text: str) -> None:
    """Each kind of evidence is read from where it stands."""
    assert name in evidence(text)


def test_what_the_log_says_outranks_this_machine() -> None:
    """A version in the log is the one of the run."""
    here = Environment(packages=(Package(name="transformers", version="5.0.0", source="here"),))
    assert "five" in evidence(RAISED.format(code="x()", message=INPLACE), here)
    assert "five" not in evidence("transformers==4.46.1\n" + RAISED.format(code="x()", message=INPLACE), here)


def test_gpu_of_the_environment() -> None:
    """A GPU's ability is read from the probe."""
    old = Environment(gpus=(Gpu(name="Tesla T4", capability="7.5", bf16=False, source="NVML"),))
    assert "old-gpu" in evidence(RAISED.format(code="x()", message=INPLACE), old)


def test_a_messenger_loses_against_a_cause() -> None:
    """A launcher's line is the finding only where nothing else shows."""
    assert findings("failed (exitcode: 1) local_rank: 0\n")[0].cause == "c/launcher"
    both = findings(f"RuntimeError: {INPLACE}\nfailed (exitcode: 1) local_rank: 0\n")
    assert both[0].cause == "a/parameter"


def test_the_first_failure_wins() -> None:
    """Of two failures the one that came first is the root."""
    scalar = RAISED.format(code="x()", message="grad only for scalar outputs")
    ranked = findings(scalar + RAISED.format(code="y()", message=INPLACE))
    assert ranked[0].cause == "b/certain"


def test_an_unknown_first_failure_lowers_confidence() -> None:
    """Where an unknown exception came first, what a later one says is no more than possible."""
    ranked = findings(
        RAISED.format(code="x()", message="disk full")
        + RAISED.format(code="y()", message=INPLACE + " output 0 of Relu")
    )
    assert ranked[0].confidence == "possible"


NOTICE = (
    "train.py:3: FutureWarning: `is_gradient_checkpointing` is deprecated and will be removed in v6. Use `x` instead.\n"
)


def test_a_notice_beside_an_unknown_exception() -> None:
    """A library's notice explains no exception that nobody knows, nor one of which only the class is known."""
    rules, hardly = load_catalog(), "AttributeError: 'float' object has no attribute 'detach'"
    trace = 'Traceback (most recent call last):\n  File "train.py", line 5, in <module>\n    x()\n'
    alone, beside = (next(iter(read_text(text))) for text in (NOTICE, NOTICE + trace + hardly + "\n"))
    assert [one.cause for one in rank_causes(alone, None, rules)] == ["trainer/api-version"]
    assert rank_causes(beside, None, rules) == ()


NO_LEAF = (
    "train.py:3: UserWarning: The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be "
    "populated during autograd.backward().\n"
)


@pytest.mark.parametrize(
    ("warning", "code", "causes"),
    [
        (NO_LEAF, 'raise ValueError("no layer was scored")', ["no-graph/grad-of-non-leaf"]),
        (NO_LEAF, "x()", []),
        (NOTICE, 'raise ValueError("no layer was scored")', []),
    ],
    ids=["raised by the program", "raised below", "what is deprecated"],
)
def test_a_warning_beside_what_a_program_raises(warning: str, code: str, causes: list[str]) -> None:
    """The program's own words say nothing of a cause: what it was warned of at a line of its own is possible, and no more."""
    trace = f'Traceback (most recent call last):\n  File "train.py", line 5, in <module>\n    {code}\nValueError: no layer was scored\n'
    ranked = rank_causes(next(iter(read_text(warning + trace))), None, load_catalog())
    assert [one.cause for one in ranked] == causes
    assert all(one.confidence == "possible" for one in ranked)


def test_a_broken_rule_breaks_nothing() -> None:
    """A cause whose evidence cannot be read is left out and named; the others are ranked."""
    broken = {**RULES, "causes": {**RULES["causes"], "a/broken": {"title": "T", "summary": "S", "since": "0", "signature": ["overwritten"], "evidence": [{"id": "x", "reads": "message", "pattern": "(", "weight": 1.0, "says": "x"}]}}}  # fmt: skip
    faults: list[str] = []
    ranked = rank_causes(next(iter(read_text(f"RuntimeError: {INPLACE}\n"))), None, Catalog(broken), faults)
    assert "a/parameter" in [one.cause for one in ranked]
    assert faults and faults[0].startswith("a/broken: ")
