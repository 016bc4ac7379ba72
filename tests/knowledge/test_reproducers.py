"""Every cause is an experiment that runs: `broken.py` fails as its rules say, `fixed.py` trains what it should.

The programs run in forks of one process a test worker, which has imported torch once (`server.py`).
"""

from __future__ import annotations

import pathlib
from collections import defaultdict

import pytest

from tests.knowledge.reproducer import KNOWLEDGE, Run, Runner, Shape, shapes

SHAPES = shapes()
COMPILED = "compile/donated-buffer/plain"

# Gradients that are zero because the mathematics says so, with the reason.
ZERO = {
    "nan/sqrt-at-zero/rmse-loss": "the model is exact, the loss is at its minimum",
    "nan/pow-domain/acos-of-a-cosine": "the cosine of equal vectors is clamped, where the slope is zero",
    "no-graph/grad-of-non-leaf/rebound-by-the-update": "the program zeroes the gradient after its update",
    "no-graph/grad-of-non-leaf/scaled-after-the-flag": "the program zeroes the gradient after its update",
}


def ready(shape: Shape) -> None:
    missing = shape.missing()
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")


def marked(shape: Shape):
    """Several processes of torch each, or a compilation, of which the gate makes one: by hand."""
    is_compiled = shape.cause.startswith("compile/") and shape.name != COMPILED
    is_long = is_compiled or shape.cause.startswith("distributed/")
    return pytest.param(shape, marks=pytest.mark.slow) if is_long else shape


@pytest.mark.torch
@pytest.mark.parametrize("shape", [marked(one) for one in SHAPES], ids=lambda shape: shape.name)
def test_broken(shape: Shape, runner: Runner, catalog) -> None:
    """The program fails on the installed torch, and what it prints is explained by its cause."""
    ready(shape)
    run = runner.run(shape.folder / "broken.py")
    assert run.status is not None, "still running"
    findings = explained(run, catalog)
    if not catalog.cause(shape.cause).forms and not catalog.cause(shape.cause).signatures:
        assert not findings or findings[0].confidence == "possible"
        return
    if not shape.is_failure and not findings:
        return  # a silent fault prints nothing: the program's own assertions are the experiment
    alike = {one.cause for one in catalog.cause(shape.cause).look_alikes}
    assert findings, run.output[-2000:]
    assert findings[0].cause in {shape.cause, *alike}
    assert findings[0].cause == shape.cause or findings[0].confidence != "certain"
    assert shape.cause in [one.cause for one in findings]


def explained(run: Run, catalog):
    from explainer.ingest.text import read_text
    from explainer.workflow import explain_incident

    (incident, *_) = read_text(run.output)
    return explain_incident(incident, None, catalog).findings


FIXED = [one for one in SHAPES if (one.folder / "fixed.py").exists()]
FIRST = {
    one.cause: one for one in reversed(FIXED)
}  # what the edits make of the others is compared with them byte by byte


@pytest.mark.torch
@pytest.mark.parametrize(
    "shape",
    [marked(one) if FIRST[one.cause] is one else pytest.param(one, marks=pytest.mark.slow) for one in FIXED],
    ids=lambda shape: shape.name,
)
def test_fixed(shape: Shape, runner: Runner) -> None:
    """The fixed program ends well; what an optimizer owns has finite gradients, and no group's are all zero."""
    ready(shape)
    run = runner.run(shape.folder / "fixed.py")
    assert run.status == 0, run.output[-2000:]
    if run.gradients is None or not run.gradients:
        assert trains_in_children(shape), "no parameter was seen to train"
        return
    assert all(one["finite"] for one in run.gradients)
    groups = defaultdict(list)
    for one in run.gradients:
        groups[one["group"]].append(one)
    assert all(any(one["given"] for one in group) for group in groups.values())
    if shape.name not in ZERO:
        assert all(any(one["moves"] for one in group) for group in groups.values())


def trains_in_children(shape: Shape) -> bool:
    """Whether the training happens in processes that the program starts, which the server does not see."""
    text = (shape.folder / "fixed.py").read_text()
    return "multiprocessing" in text or "subprocess" in text


PRINTED = [path for shape in SHAPES for path in sorted((shape.folder / "printed").glob("*.txt"))]


@pytest.mark.parametrize("path", PRINTED, ids=lambda path: str(path.relative_to(KNOWLEDGE)))
def test_nothing_is_faked(path: pathlib.Path, catalog) -> None:
    """A failure is raised by torch or a library, not by the reproducer, and no file of ours is named like a library."""
    from explainer.ingest.text import read_text

    assert {one.name for one in path.parent.parent.iterdir()} <= {"broken.py", "fixed.py", "printed"}
    (incident, *_) = read_text(path.read_text().partition("\n")[2])
    frames = incident.exceptions[-1].frames if incident.exceptions else ()
    own = [frame for frame in frames[-1:] if frame.file.endswith("broken.py") and frame.code]
    is_raised = any(frame.code.startswith(("raise ", "assert ")) for frame in own)
    assert not is_raised or catalog.cause(cause_of(path)).kind == "silent"


def cause_of(path: pathlib.Path) -> str:
    return "/".join(path.relative_to(KNOWLEDGE).parts[:2])


@pytest.mark.torch
def test_most_causes_are_reproduced_here() -> None:
    """At least 90 % of the causes have a shape that runs on a CPU with the libraries of the tests."""
    pytest.importorskip("peft")
    causes = {str(path.parent.relative_to(KNOWLEDGE)) for path in KNOWLEDGE.glob("*/*/cause.toml")}
    reproduced = {shape.cause for shape in SHAPES if not shape.missing()}
    assert len(reproduced) >= 0.9 * len(causes), sorted(causes - reproduced)
