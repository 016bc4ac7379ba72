"""The README says what is true: its session is real output, its commands are the ones that CI runs."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.conftest import PATH, ROOT
from tools.site_reference import declared

README = (ROOT / "README.md").read_text()
SESSION = re.compile(r"<!-- session: gradfix (?P<words>.*?) -->\n```text\n(?P<shown>.*?)```", re.S)


def printed(words: str) -> str:
    run = subprocess.run(
        [sys.executable, "-m", "gradfix", *words.split()], capture_output=True, text=True, cwd=ROOT,
        env={"PATH": "", "COLUMNS": "96", "PYTHONPATH": PATH, "GRADFIX_NO_MEMORY": "1"},
    )  # fmt: skip
    assert run.stderr == ""
    return run.stdout


def test_the_session_is_real() -> None:
    """What the README shows is what the command prints. `python -m tests.test_readme` writes it anew."""
    found = SESSION.search(README)
    assert found["shown"] == printed(found["words"])


@pytest.mark.parametrize("name", ["install", "test"])
def test_the_commands_are_marked(name: str) -> None:
    """CI takes its commands from here."""
    assert re.search(rf"<!-- command: {name} -->\n```console\n\S.*\n```", README)


def test_every_option_shown_exists() -> None:
    """No option in the README is made up."""
    known = frozenset().union(*dict(declared()).values())
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", README)) <= known


if __name__ == "__main__":
    found = SESSION.search(README)
    start, end = found.span("shown")
    (ROOT / "README.md").write_text(README[:start] + printed(found["words"]) + README[end:])
