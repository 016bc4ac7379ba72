"""`gradfix rules show ID --web`: a file that stands alone, a browser where there is one, one line where there is none."""

from __future__ import annotations

import html
import os
import pathlib
import re
import subprocess
import sys

import pytest

from tests.conftest import PATH


def show(cache: pathlib.Path, *words: str, browser: str | None = None) -> subprocess.CompletedProcess:
    """Runs the command with a cache folder of its own, and a browser or none."""
    environment = {"PATH": "", "PYTHONPATH": PATH, "XDG_CACHE_HOME": str(cache), "HOME": str(cache)}
    if browser:
        environment["BROWSER"] = browser
    command = [sys.executable, "-m", "gradfix", "rules", "show", *words, "--web"]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=cache, timeout=120)


needs_bare_linux = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a browser is always there")


@pytest.fixture
def browser(tmp_path) -> str:
    """A browser that writes down what it is asked to open."""
    script = tmp_path / "browser"
    script.write_text(f"#!/bin/sh\nprintf %s \"$1\" > '{tmp_path}/opened'\n")
    script.chmod(0o755)
    return f"{script} %s"


@needs_bare_linux
def test_the_page_opens(tmp_path, browser: str) -> None:
    """The browser gets the file whose path is printed."""
    run = show(tmp_path, "op-on-saved-tensor", browser=browser)
    path = pathlib.Path(run.stdout.strip())
    assert (run.returncode, run.stderr) == (0, "")
    assert (tmp_path / "opened").read_text() == path.as_uri()


@needs_bare_linux
def test_without_a_browser(tmp_path) -> None:
    """Where nothing can be opened the path is printed all the same, one line says so, and the status is 0."""
    run = show(tmp_path, "op-on-saved-tensor")
    assert (run.returncode, run.stderr.count("\n")) == (0, 1)
    assert "no browser could be opened" in run.stderr
    assert os.path.isfile(run.stdout.strip())


def test_the_page_stands_alone(tmp_path) -> None:
    """It has prose, programs, diff and recordings, loads nothing, and its links to causes lead to files beside it."""
    path = pathlib.Path(show(tmp_path, "op-on-saved-tensor").stdout.strip())
    page = path.read_text()
    text = html.unescape(re.sub(r"<[^>]+>", "", page))
    assert all(one in text for one in ("What happens", "inplace=True", "+++ fixed.py", "RuntimeError", "torch 1.12.1"))
    assert re.findall(r"<(?:script|link|img|iframe)|src=", page) == []
    beside = set(re.findall(r'href="([^":]+\.html)"', page))
    assert len(beside) > 3 and {name for name in beside if not (path.parent / name).is_file()} == set()


@pytest.mark.slow
def test_rules_of_a_user_have_pages_of_their_own(tmp_path) -> None:
    """A cause of --knowledge is shown with its programs, in another folder than gradfix's own."""
    cause = tmp_path / "rules" / "own" / "cause-of-mine"
    (cause / "plain").mkdir(parents=True)
    (cause / "cause.toml").write_text('title = "Mine"\nsummary = "S."\nsince = "0.1.0"\nkind = "notice"\n')
    (cause / "plain" / "broken.py").write_text("assert False, 'mine alone'\n")
    own = show(tmp_path, "own/cause-of-mine", "--knowledge", str(tmp_path / "rules")).stdout.strip()
    assert "mine alone" in pathlib.Path(own).read_text()
    assert os.path.dirname(own) != os.path.dirname(show(tmp_path, "op-on-saved-tensor").stdout.strip())


FAULTS = {"an unknown cause": ("nonsense", "no cause"), "an ambiguous one": ("inplace/", "did you mean")}


@pytest.mark.parametrize(("wanted", "says"), FAULTS.values(), ids=FAULTS.keys())
def test_what_is_not_there(tmp_path, wanted: str, says: str) -> None:
    """An unknown cause is the usual error, and no page is written."""
    run = show(tmp_path, wanted)
    assert (run.returncode, run.stdout, run.stderr.count("\n")) == (2, "", 1)
    assert says in run.stderr and list(tmp_path.iterdir()) == []


def test_a_cache_that_cannot_be_written(tmp_path) -> None:
    """A file where the cache folder should be is one line, no traceback."""
    (tmp_path / "gradfix").write_text("")
    run = show(tmp_path, "op-on-saved-tensor")
    assert (run.returncode, run.stderr.count("\n")) == (2, 1)
    assert "cannot be written" in run.stderr
