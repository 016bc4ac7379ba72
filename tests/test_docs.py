"""The documentation cannot go stale: its commands and options exist, its sessions are real output."""

from __future__ import annotations

import pathlib
import re

import pytest
import yaml

from tests.conftest import ROOT
from tests.test_readme import SESSION, printed
from tools.site_reference import declared

PAGES = sorted((ROOT / "docs").glob("*.md"))
SESSIONS = [(page.name, found["words"]) for page in PAGES for found in SESSION.finditer(page.read_text())]
COMMANDS = dict(declared())
GROUPS = {path[:-1] for path in COMMANDS if path}
CODE = re.compile(r"^```[^\n]*\n(.*?)^```|`([^`\n]+)`", re.S | re.M)


def code_of(text: str) -> list[str]:
    """The code of a page, a line each: fences but for what a session printed, and spans."""
    text = SESSION.sub(lambda found: f"`gradfix {found['words']}`", text)
    return [line for found in CODE.finditer(text) for line in (found[1] or found[2]).splitlines()]


def faults_of(line: str) -> list[str]:
    """What a line of code names that does not exist: commands of gradfix, and options, of any command where alone."""
    called = re.search(r"(?:^|[|/$] ?|run: )gradfix(?P<rest>(?: [^|#>]*)?)", line)
    if called is None:
        every = frozenset().union(*COMMANDS.values())
        return [one for one in re.findall(r"^--?[a-z][a-z-]*", line) if one not in every]
    path: tuple[str, ...] = ()
    own = called["rest"].split(" -- ")[0]  # what follows is another program's
    for word in own.split():
        if (*path, word) in COMMANDS:
            path = (*path, word)
        elif path in GROUPS and not word.startswith("-"):
            return [word]
        else:
            break
    return [one for one in re.findall(r"(?<![\w-])--?[a-z][a-z-]*", own) if one not in COMMANDS[path]]


MADE_UP = {
    "a command": ("gradfix explode train.log", ["explode"]),
    "a command of a group": ("gradfix rules shaw nan/sqrt-at-zero", ["shaw"]),
    "an option": ("python train.py 2>&1 | gradfix explain --fast", ["--fast"]),
    "an option of another command": ("gradfix probe --verbose", ["--verbose"]),
    "an option alone": ("--turbo", ["--turbo"]),
    "a switch of one letter": ("gradfix explain -q", ["-q"]),
}
REAL = {
    "a command": "gradfix explain train.log",
    "a placeholder": "gradfix rules show ID --web",
    "an option alone": "--env",
    "an option that takes back": "gradfix explain train.log --no-probe  # or --nothing",
    "a redirection": "gradfix explain logs --format json > reports.ndjson",
    "Python": "from gradfix import explain",
    "a program that is run": "gradfix run --trace -- torchrun --nproc-per-node 2 train.py",
    "another program": "pip install --upgrade torch",
    "a range": "-1",
}


@pytest.mark.parametrize(("line", "faults"), MADE_UP.values(), ids=MADE_UP.keys())
def test_what_is_made_up_is_found(line: str, faults: list[str]) -> None:
    """A command or option that does not exist is named."""
    assert faults_of(line) == faults


@pytest.mark.parametrize("line", REAL.values(), ids=REAL.keys())
def test_what_exists_passes(line: str) -> None:
    """Commands, options and other programs' lines are left alone."""
    assert faults_of(line) == []


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_commands_exist(page: pathlib.Path) -> None:
    """Every command and option that a page names exists."""
    assert [(line, faults) for line in code_of(page.read_text()) if (faults := faults_of(line))] == []


@pytest.mark.parametrize(("page", "words"), SESSIONS, ids=[f"{page}, {words[-50:]}" for page, words in SESSIONS])
def test_sessions_are_real(page: str, words: str) -> None:
    """What a page shows is what the command prints. `python -m tests.test_docs` writes them anew."""
    shown = [
        found["shown"] for found in SESSION.finditer((ROOT / "docs" / page).read_text()) if found["words"] == words
    ]
    assert shown == [printed(words)]


def test_the_workflow_is_one() -> None:
    """The example for GitHub is YAML, its jobs have steps, and what it uploads is what it wrote."""
    text = (ROOT / "docs" / "agents.md").read_text().partition("<!-- workflow -->\n```yaml\n")[2].partition("```")[0]
    workflow = yaml.safe_load(text)
    steps = workflow["jobs"]["smoke"]["steps"]
    assert {"run", "uses"} >= {key for step in steps for key in step if key in ("run", "uses")}
    (upload,) = (step for step in steps if "upload-sarif" in step.get("uses", ""))
    assert any(f"> {upload['with']['sarif_file']}" in step.get("run", "") for step in steps)
    assert workflow["permissions"]["security-events"] == "write"


def test_there_are_sessions() -> None:
    """The pages show real output; none of them was lost to a change of its mark."""
    assert len(SESSIONS) >= 3


def test_the_site_knows_its_pages() -> None:
    """Every page of docs/ stands in the navigation, and every page of it that is not made is there."""
    navigation = set(re.findall(r"^ +- (?:[\w ]+: )?(\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.M))
    assert {page.name for page in PAGES} == {name for name in navigation if (ROOT / "docs" / name).is_file()}


if __name__ == "__main__":
    for page in PAGES:
        text = SESSION.sub(
            lambda found: found[0].replace(f"```text\n{found['shown']}```", f"```text\n{printed(found['words'])}```"),
            page.read_text(),
        )
        page.write_text(text)
