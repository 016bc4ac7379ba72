"""The manual page: every command and option of the help, in roff that is taken without a warning."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.conftest import ROOT
from tools.man_page import man_page
from tools.site_reference import declared


@pytest.fixture(scope="module")
def page() -> str:
    return man_page()


def test_it_holds_every_command_and_option(page: str) -> None:
    """Of what the command line declares."""
    plain = page.replace("\\-", "-")
    commands = [(words, options) for words, options in declared() if words and words != ("rules",)]
    assert len(commands) > 15
    for words, options in commands:
        section = plain.partition(f".SS gradfix {' '.join(words)}\n")[2].partition("\n.S")[0]
        missing = [one for one in options if one not in ("-h", "--help") and f"\\fB{one}\\fR" not in section]
        assert (words, missing) == (words, [])


def test_no_line_of_text_is_a_command(page: str) -> None:
    """What begins with a dot is roff's; a help text that does so is kept from it."""
    known = (".TH", ".SH", ".SS", ".TP", ".PP", ".nf", ".fi", ".B", ".I")
    assert [line for line in page.split("\n") if line.startswith((".", "'")) and not line.startswith(known)] == []


def test_roff_takes_it(page: str) -> None:
    """Rendered, without a warning, an example stands as in the help."""
    if shutil.which("groff") is None:
        pytest.skip("groff is not here")
    done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-P-cbou"], input=page, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "gradfix run --fix -- python train.py" in done.stdout.replace("−", "-").replace("‐", "-")


def test_the_wheel_carries_it() -> None:
    """The build hook puts it where `man` looks."""
    assert '"share/man/man1/gradfix.1"' in (ROOT / "hatch_build.py").read_text()
