"""The rule base is right about its own samples: what a reproducer printed is explained by its cause.

Driven by the folders of `knowledge/`. Where the text alone cannot decide, one of the look-alikes that the cause declares
may come first, and the cause itself is still among the findings.
"""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

import pytest

from tests.conftest import ROOT

PRINTED = sorted(ROOT.glob("knowledge/*/*/*/printed/*.txt"))
FAMILIES = (
    "inplace",
    "no-graph",
    "backward",
    "nan",
    "precision",
    "checkpoint",
    "distributed",
    "compile",
    "shape",
    "optimizer",
)


def cause_of(path: pathlib.Path) -> str:
    return "/".join(path.relative_to(ROOT / "knowledge").parts[:2])


def without_header(text: str) -> str:
    """A printed sample without its first line, which says where it comes from."""
    return text.partition("\n")[2] if text.startswith("# origin=") else text


def accepted(catalog, cause: str) -> set[str]:
    return {cause, *(one.cause for one in catalog.cause(cause).look_alikes)}


@pytest.mark.parametrize("path", PRINTED, ids=[str(one.relative_to(ROOT / "knowledge")) for one in PRINTED])
def test_printed_sample(explain_log, catalog, path: pathlib.Path) -> None:
    """A reproducer's output puts its cause first, or a declared look-alike with the cause behind it."""
    cause = cause_of(path)
    findings = explain_log(without_header(path.read_text())).findings
    assert findings, "nothing recognised"
    assert findings[0].cause in accepted(catalog, cause)
    assert findings[0].cause == cause or findings[0].confidence != "certain"
    assert cause in [one.cause for one in findings]


def test_most_samples_put_their_own_cause_first(explain_log) -> None:
    """Look-alikes win where the text cannot decide, and only there."""
    own = sum(explain_log(without_header(path.read_text())).findings[0].cause == cause_of(path) for path in PRINTED)
    assert own >= 0.85 * len(PRINTED)


def test_every_cause_of_these_families_is_here(catalog) -> None:
    """A family is whole: each cause has prose, evidence or a wording of its own, and something to do."""
    for name in catalog.cause_ids:
        cause = catalog.cause(name)
        assert cause.fixes or cause.kind == "notice", name
        assert cause.forms or cause.signatures or name == "other/unknown", name


def simplest_reproducers() -> list[pathlib.Path]:
    """One reproducer a family that needs nothing but torch."""
    found = []
    for family in FAMILIES:
        for path in sorted((ROOT / "knowledge" / family).glob("*/*/broken.py")):
            text = path.read_text()
            is_plain = not re.search(
                r"\b(?:transformers|peft|accelerate|multiprocessing|inductor|lightning|trl)\b", text
            )
            toml = (path.parent.parent / "cause.toml").read_text()
            if is_plain and (path.parent / "printed").is_dir() and "\nneeds = " not in toml:
                found.append(path)
                break
    return found


@pytest.mark.torch
@pytest.mark.parametrize("path", simplest_reproducers(), ids=cause_of)
def test_what_torch_prints_today(explain_log, catalog, path: pathlib.Path) -> None:
    """The installed torch still prints what the rules know: run, fail, explain."""
    pytest.importorskip("torch")
    run = subprocess.run(
        [sys.executable, path.name], cwd=path.parent, capture_output=True, text=True, timeout=120,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
    )  # fmt: skip
    findings = explain_log(run.stdout + run.stderr).findings
    assert findings and findings[0].cause in accepted(catalog, cause_of(path))
