"""What is unknown: gathered by message, and made into rules."""

from __future__ import annotations

import pathlib
import random

import pytest

from explainer.catalog.bundle import load_catalog
from explainer.catalog.cluster import read_cluster
from explainer.cli.entry import main
from explainer.errors import RuleError
from explainer.fleet.cluster import Clusters, to_toml
from explainer.fleet.row import Row
from explainer.fleet.template import template_of
from tests.fleet.logs import unknown_failure


def row(message: str, exception: str = "TeamError", **more) -> Row:
    return Row(job="j", file="a.log", failure=1, status="unknown", exception=exception, message=message, template=template_of(message), **more)  # fmt: skip


APART = {
    "other exceptions": [row("stage 1 is sealed", "AError"), row("stage 1 is sealed", "BError")],
    "other words": [row("stage 1 is sealed by the team"), row("the team has opened stage 1")],
    "other lengths": [row("stage 1 is sealed"), row("stage 1 is sealed again")],
    "short and different": [row("no flux"), row("no time")],
}
TOGETHER = {
    "other values": ([row("stage 1 is sealed"), row("stage 22 is sealed")], "stage <number> is sealed"),
    "a word that differs": ([row("user anna may not open stage 1"), row("user bert may not open stage 2")], "user <any> may not open stage <number>"),
}  # fmt: skip


def clusters_of(rows: list[Row]) -> Clusters:
    clusters = Clusters()
    for one in rows:
        clusters.add(one)
    return clusters


@pytest.mark.parametrize("rows", APART.values(), ids=APART.keys())
def test_what_stays_apart(rows: list[Row]) -> None:
    """Messages that say different things are different clusters."""
    assert len(clusters_of(rows).ranked()) == 2


@pytest.mark.parametrize(("rows", "template"), TOGETHER.values(), ids=TOGETHER.keys())
def test_what_belongs_together(rows: list[Row], template: str) -> None:
    """Messages that differ in values, or in a word of many, are one."""
    (cluster,) = clusters_of(rows).ranked()
    assert (cluster.template, cluster.count) == (template, 2)


HOSTILE = {
    "quotes": "it said \"no\" and 'never' for good reasons",
    "three quotes": "this ''' ends a literal string of TOML early",
    "marks of expressions": "cost (a|b)* [x] {2} is too high for ^this$",
    "a backslash": "path \\server\\share is not there any more",
    "a control character": "the bell \x07 and delete \x7f were printed",
    "brackets": "a <number> that was printed as such",
    "many values": " ".join(f"value{at} {at}" for at in range(40)),
}


@pytest.mark.parametrize("message", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_cluster_becomes_a_rule(message: str, tmp_path: pathlib.Path) -> None:
    """Whatever a message holds, the rule that is laid out from its cluster is one that loads and recognises it."""
    from explainer.catalog.scaffold import lay_out
    from explainer.workflow import explain

    (cluster,) = clusters_of([row(message)]).ranked()
    (tmp_path / "cluster.toml").write_text(to_toml(cluster))
    lay_out(str(tmp_path / "rules"), "mine/made-up-failure", "0.1.0", read_cluster(str(tmp_path / "cluster.toml")))
    load_catalog(str(tmp_path / "rules"))
    text = f'Traceback (most recent call last):\n  File "a.py", line 1, in f\nTeamError: {message}\n'
    assert explain(text, knowledge=str(tmp_path / "rules")).findings[0].cause == "mine/made-up-failure"


def test_from_triage_to_rule(tmp_path: pathlib.Path, run_triage, capsys: pytest.CaptureFixture[str]) -> None:
    """What no rule knew is explained, all of it, once `rules new --from-cluster` has made rules of the clusters."""
    logs, out, mine = tmp_path / "logs", tmp_path / "out", str(tmp_path / "mine")
    logs.mkdir()
    for number in range(12):
        (logs / f"{number}.log").write_text(unknown_failure(random.Random(number)))
    _, rows, _ = run_triage(logs, out=out, workers=1)
    assert {row.status for row in rows} == {"unknown"}
    files = sorted((out / "clusters").glob("*.toml"))
    assert len(files) == 3
    for name, file in zip("abc", files, strict=True):
        assert main(["rules", "new", f"team/made-up-{name}", "--from-cluster", str(file), "--knowledge", mine]) == 0
    main(["rules", "check", mine])
    assert "cause.toml:" not in capsys.readouterr().out  # only the prose is still to be written
    _, rows, _ = run_triage(logs, knowledge=mine, workers=1)
    assert {row.cause for row in rows} == {"team/made-up-a", "team/made-up-b", "team/made-up-c"}


NO_CLUSTERS = {"no TOML": "x = [", "another file": 'title = "a cause"', "no messages": 'schema = "gradfix.cluster/1"\nexception = "E"\nmessages = []'}  # fmt: skip


@pytest.mark.parametrize("text", NO_CLUSTERS.values(), ids=NO_CLUSTERS.keys())
def test_what_is_no_cluster(text: str, tmp_path: pathlib.Path) -> None:
    """A file of another kind is refused, by name."""
    (tmp_path / "c.toml").write_text(text)
    with pytest.raises(RuleError, match=r"c\.toml"):
        read_cluster(str(tmp_path / "c.toml"))
