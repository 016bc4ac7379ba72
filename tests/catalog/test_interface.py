"""The table of interfaces: checked strictly, searched by words, extended by a folder of the user's own."""

from __future__ import annotations

import json

import pytest

from explainer.catalog.bundle import load_catalog
from explainer.catalog.check import check_rules
from explainer.catalog.interface import find_change, find_changes
from explainer.cli.app import run_app

CHANGE = '[[change]]\nkind = "argument"\nof = "Net"\nold = "a"\nnew = "b"\nadded = "1.0"\nremoved = "2.0"\nwrite = "`b=1`"\nchecked = "run"\n'
FAULTS = {
    "neither old nor new": CHANGE.replace('old = "a"\nnew = "b"\nadded = "1.0"\n', ""),
    "no release": CHANGE.replace('added = "1.0"\nremoved = "2.0"\n', ""),
    "nothing to write": CHANGE.replace('write = "`b=1`"\n', ""),
    "unknown kind": CHANGE.replace("argument", "option"),
    "unknown key": CHANGE + 'since = "1.0"\n',
    "added without a new name": CHANGE.replace('new = "b"\n', ""),
    "removed without an old name": CHANGE.replace('old = "a"\n', ""),
    "a release that is no release": CHANGE.replace('"2.0"', '"two"'),
    "keys out of order": CHANGE.replace('old = "a"\nnew = "b"\n', 'new = "b"\nold = "a"\n'),
    "deprecated after it was removed": CHANGE.replace('removed = "2.0"', 'deprecated = "2.1"\nremoved = "2.0"'),
    "twice": CHANGE + CHANGE,
}


@pytest.fixture
def folder(tmp_path):
    """A folder of rules with one table in it."""
    (tmp_path / "interfaces").mkdir()
    (tmp_path / "interfaces" / "mylib.toml").write_text(CHANGE)
    return tmp_path


@pytest.mark.parametrize("text", FAULTS.values(), ids=FAULTS.keys())
def test_faults_are_named(folder, text: str) -> None:
    """A table that is wrong is refused with its file."""
    (folder / "interfaces" / "mylib.toml").write_text(text)
    faults = check_rules(str(folder))
    assert faults and faults[0].file == "interfaces/mylib.toml"


def test_a_sound_table_has_no_faults(folder) -> None:
    """A table of one change is sound."""
    assert check_rules(str(folder)) == []


def test_own_table_extends_the_rules(folder) -> None:
    """A user's folder may bring tables of its own; those of gradfix stay."""
    catalog = load_catalog(str(folder))
    assert find_change(catalog, "mylib", "Net", "a").new == "b"
    assert find_change(catalog, "transformers", "TrainingArguments", "no_cuda").new == "use_cpu"


def test_own_entry_comes_first(folder) -> None:
    """Where a user's table names a change of gradfix's, the user's is told."""
    text = CHANGE.replace('"Net"', '"TrainingArguments"').replace('old = "a"', 'old = "no_cuda"')
    (folder / "interfaces" / "transformers.toml").write_text(text)
    catalog = load_catalog(str(folder))
    assert find_change(catalog, "transformers", "TrainingArguments", "no_cuda").new == "b"
    assert find_change(catalog, "transformers", "Seq2SeqTrainingArguments", "evaluation_strategy") is not None


WORDS = {"old name": "evaluation_str", "library and name": "trl max_seq", "class and name": "DynamicCache usable"}


@pytest.mark.parametrize("words", WORDS.values(), ids=WORDS.keys())
def test_search(catalog, words: str) -> None:
    """Every word must occur, in whichever field."""
    found = find_changes(catalog, words)
    assert 1 <= len(found) <= 4


def test_search_of_the_command_line(capsys) -> None:
    """The command prints the change with its releases and what to write, or as JSON; 1 where nothing is found."""
    assert run_app(["rules", "interfaces", "TrainingArguments", "evaluation_strategy"]) == 0
    assert (
        "evaluation_strategy -> eval_strategy  (argument; added 4.41, deprecated 4.41, removed 4.51)"
        in capsys.readouterr().out
    )
    assert run_app(["rules", "interfaces", "no_cuda", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["new"] == "use_cpu"
    assert run_app(["rules", "interfaces", "no-such-name"]) == 1
