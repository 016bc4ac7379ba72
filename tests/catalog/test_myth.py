"""The table of myths is read, and refused with a reason; the command shows it."""

from __future__ import annotations

import json

import pytest

from explainer.catalog.bundle import load_catalog
from explainer.catalog.check import check_rules
from explainer.catalog.myth import KEYS, read_myths
from explainer.catalog.place import rule_files
from explainer.cli.myth import list_myths, show_myth
from explainer.errors import RuleError, UsageError
from explainer.model.finding import Finding
from explainer.model.report import Report
from explainer.model.rule import Myth
from explainer.render.json import to_plain
from explainer.render.terminal import Layout, render_terminal
from tests.catalog.test_catalog import CAUSE, own_rules

TABLE = """remedy = "a remedy"
claim = "it helps"
verdict = "wrong"
shows = "it does not: 1 for 2"
instead = "another"
since = "0.1.0"
"""
PROGRAM = 'print("gradient: 1")\nassert 1 == 1\n'
PRINTED = "# origin=recorded python=3.11 torch=2.13.0\ngradient: 1\n"
NAMING = CAUSE + '\n[[myth]]\nremedy = "a remedy"\nwhy = "it does not help"\nexperiment = "a-remedy"\n'


def rules_with_myth(tmp_path, cause: str = NAMING, slug: str = "a-remedy", **files: str):
    """Rules of one cause and one myth, with `files` in place of its own; an empty text leaves the file out."""
    folder = own_rules(tmp_path, cause)
    place = folder / "myths" / slug
    (place / "printed").mkdir(parents=True)
    texts = {"table": TABLE, "program": PROGRAM, "printed": PRINTED} | files
    names = {"table": "myth.toml", "program": "experiment.py", "printed": "printed/2.13.0.txt", "stray": "cause.toml"}
    for name, text in texts.items():
        if text:
            (place / names[name]).write_text(text)
    return folder


def faults_of(folder) -> list[str]:
    # The reproducer of the cause is not what is tested here.
    return [f"{one.file}: {one.message}" for one in check_rules(str(folder)) if "myth" in one.file + one.message]


FAULTY = {
    "no table": ({"table": ""}, "cannot be read"),
    "no TOML": ({"table": "remedy = "}, "no valid TOML"),
    "a key that is missing": ({"table": TABLE.replace('claim = "it helps"\n', "")}, "claim: Field required"),
    "an unknown key": ({"table": TABLE + 'colour = "red"\n'}, "colour: Extra inputs"),
    "an unknown verdict": ({"table": TABLE.replace('"wrong"', '"bad"')}, "verdict: Input should be"),
    "an empty text": ({"table": TABLE.replace('"another"', '""')}, "instead: String should have at least 1"),
    "keys out of order": ({"table": "\n".join(reversed(TABLE.split("\n")[:-1])) + "\n"}, "keys out of order"),
    "no experiment": ({"program": ""}, "experiment.py: cannot be read"),
    "an experiment that does not parse": ({"program": "def"}, "does not parse"),
    "an experiment that asserts nothing": ({"program": 'print("gradient: 1")\n'}, "asserts nothing"),
    "a long experiment": ({"program": "x = 1\n" * 60 + "assert x\n"}, "under 60 are wanted"),
    "no recording": ({"printed": ""}, "is empty"),
    "a recording without header": ({"printed": "gradient: 1\n"}, "no header"),
    "a cause among the myths": ({"stray": CAUSE}, "holds no causes"),
    "a name that is no slug": ({"slug": "A_Remedy"}, "no slug"),
}


@pytest.mark.parametrize(("change", "fault"), FAULTY.values(), ids=FAULTY.keys())
def test_faulty(tmp_path, change: dict[str, str], fault: str) -> None:
    """A fault of a myth is named with its file."""
    assert any(fault in one for one in faults_of(rules_with_myth(tmp_path, **change)))


def test_sound(tmp_path) -> None:
    """A myth with table, experiment and recording, named by a cause, has no fault."""
    assert faults_of(rules_with_myth(tmp_path)) == []


def test_named_by_no_cause(tmp_path) -> None:
    """A myth that no cause names cannot be met."""
    assert faults_of(rules_with_myth(tmp_path, CAUSE)) == ["myths/a-remedy/myth.toml: no cause names this experiment"]


def test_a_name_without_folder(tmp_path) -> None:
    """A cause that names an experiment has one, in its own rules or in gradfix's."""
    folder = own_rules(tmp_path, NAMING)
    assert faults_of(folder) == ["mine/own-cause/cause.toml: experiment 'a-remedy' is no folder of myths/"]
    (folder / "mine" / "own-cause" / "cause.toml").write_text(NAMING.replace("a-remedy", "cast-drops-gradient"))
    assert [one for one in check_rules(str(folder)) if "experiment" in one.message] == []


def test_a_myth_is_no_cause(tmp_path) -> None:
    """The folder of myths is not read as a family, whatever lies in it."""
    folder = rules_with_myth(tmp_path, stray=CAUSE)
    assert [path for path, _, _ in rule_files(str(folder)) if "myth" in path] == []
    assert "mine/own-cause" in load_catalog(str(folder)).cause_ids


def test_read(tmp_path) -> None:
    """A user's myths stand among ours, with their program and recordings."""
    pages = {page.slug: page for page in read_myths(str(rules_with_myth(tmp_path)))}
    mine = pages["a-remedy"]
    assert (mine.verdict, mine.program, mine.printed) == ("wrong", PROGRAM, (("2.13.0", PRINTED),))
    assert list(pages) == sorted(pages) and "cast-drops-gradient" in pages


def test_a_broken_table_is_refused(tmp_path) -> None:
    """A table without one of its keys cannot be shown."""
    with pytest.raises(RuleError, match=r"myths/a-remedy/myth.toml: no text under 'since'"):
        read_myths(str(rules_with_myth(tmp_path, table=TABLE.replace('since = "0.1.0"\n', ""))))


def test_list(capsys) -> None:
    """All myths in a line each; as JSON with the causes that name them."""
    assert list_myths("text", None) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(read_myths()) and any(
        line.split()[:2] == ["cast-drops-gradient", "wrong"] for line in lines
    )
    list_myths("json", None)
    rows = {row["slug"]: row for row in json.loads(capsys.readouterr().out)}
    assert set(KEYS) < set(rows["cast-drops-gradient"])
    assert rows["cast-drops-gradient"]["causes"] == ["no-graph/checkpoint-inputs-need-grad"]


def test_show(capsys) -> None:
    """One myth, also by a part of its name: what is hoped, what was shown, the program, what it printed."""
    assert show_myth("cast-drops", "text", None) == 0
    text = capsys.readouterr().out
    places = [text.find(part) for part in ("cast-drops-gradient  wrong", "hope", "shown", "instead", "met in", "    import torch", "printed, torch 2.13.0", "# origin=recorded")]  # fmt: skip
    assert -1 not in places and places == sorted(places)
    show_myth("cast-drops-gradient", "json", None)
    assert {"program", "printed", "path", "causes"} < set(json.loads(capsys.readouterr().out))


REFUSED = {
    "none like it": ("zzzz", "text", "`gradfix rules myths` shows them"),
    "a typo": ("cast-drop-gradeint", "text", "did you mean cast-drops-gradient"),
    "several": ("retain-graph", "text", "did you mean retain-graph-"),
    "nothing": ("", "text", "no myth ''"),
    "another format": ("cast-drops-gradient", "xml", "it is text or json"),
}


@pytest.mark.parametrize(("wanted", "name", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(wanted: str, name: str, message: str) -> None:
    """What names no myth, or several, is refused with the nearest."""
    with pytest.raises(UsageError, match=message.replace("?", r"\?")):
        show_myth(wanted, name, None)


def card_with_myth(experiment: str | None, *, is_verbose: bool, incident) -> str:
    myth = Myth(remedy="a remedy", why="it does not help", experiment=experiment)
    finding = Finding(cause="a/cause", title="T", summary="S.", kind="failure", confidence="certain", score=1.0, myths=(myth,))  # fmt: skip
    report = Report(incident=incident, findings=(finding,))
    assert to_plain(report)["findings"][0]["myths"][0]["experiment"] == experiment
    return render_terminal(report, Layout(is_verbose=is_verbose))


CARDS = {
    "the plain card": ("a-remedy", False, False),
    "no experiment": (None, True, False),
    "verbose": ("a-remedy", True, True),
}


@pytest.mark.parametrize(("experiment", "is_verbose", "is_named"), CARDS.values(), ids=CARDS.keys())
def test_card(read, experiment: str | None, is_verbose: bool, is_named: bool) -> None:
    """Only `--verbose` names the experiment of a myth; JSON always carries it."""
    card = card_with_myth(experiment, is_verbose=is_verbose, incident=read("RuntimeError: x\n"))
    assert ("experiment: gradfix rules myths a-remedy" in card) == is_named


def test_every_experiment_of_ours_is_read_by_its_cause(catalog) -> None:
    """Each myth leads to a cause and each named experiment to a page."""
    named = {myth.experiment for cause in catalog.cause_ids for myth in catalog.cause(cause).myths if myth.experiment}
    assert named == {page.slug for page in read_myths()}
