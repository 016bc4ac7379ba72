"""What CPython prints of an exception is read back exactly: chains, groups, notes, on every installed Python."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, os.path.dirname(__file__))
from printed_exceptions import sample  # noqa: E402

from explainer.ingest.chain import read_chain  # noqa: E402
from explainer.ingest.text import read_text  # noqa: E402
from tests.conftest import installed_pythons  # noqa: E402

SCRIPT = os.path.join(os.path.dirname(__file__), "printed_exceptions.py")


def as_expected(records) -> list[dict]:
    return [
        {
            "type": record.type,
            "message": record.message,
            "link": record.link,
            "parent": record.parent,
            "frames": [
                [frame.file, frame.line, frame.function, (frame.code or "").partition("\n")[0]]
                for frame in record.frames
            ],
        }
        for record in records
    ]


@settings(max_examples=150, deadline=None)
@given(st.integers(min_value=0, max_value=10**9))
def test_this_python(seed: int) -> None:
    """The reader finds what the generator knows, for any seed."""
    made = sample(seed)
    chain = read_chain(made["text"].split("\n"), 0, lambda _: False)
    assert chain is not None
    assert as_expected(chain.records) == made["exceptions"]


@pytest.mark.parametrize("python", installed_pythons())
def test_every_python(python: str) -> None:
    """The same holds for what each installed interpreter prints."""
    run = subprocess.run([python, SCRIPT, "0", "300"], capture_output=True, text=True, check=True, timeout=120)
    for line in run.stdout.splitlines():
        made = json.loads(line)
        chain = read_chain(made["text"].split("\n"), 0, lambda _: False)
        assert chain is not None, made["seed"]
        assert as_expected(chain.records) == made["exceptions"], made["seed"]


@settings(max_examples=100, deadline=None)
@given(
    st.integers(min_value=0, max_value=10**9),
    st.sampled_from(["[rank3]: ", "3: ", "2026-05-01T10:00:00.123Z ", "job-7 >> "]),
)
def test_under_a_prefix(seed: int, prefix: str) -> None:
    """A launcher's or logger's prefix on every line changes nothing of what is read."""
    made = sample(seed)
    text = "".join(f"{prefix}{line}\n" for line in made["text"].rstrip("\n").split("\n"))
    (incident,) = read_text(text)
    plain = [one for one in made["exceptions"] if one["frames"]]
    found = [one for one in as_expected(incident.exceptions) if one["frames"]]
    assert [one["frames"] for one in found] == [one["frames"] for one in plain]
    assert [one["type"] for one in found] == [one["type"] for one in plain]
