"""The pages that the documentation makes from the rules, the command line and the docstrings."""

from __future__ import annotations

import posixpath
import re

import pytest

from explainer.catalog.myth import MythPage
from explainer.model.interface import Change
from explainer.render.link import DOCUMENTATION, cause_link
from tests.conftest import ROOT
from tools.site_page import cause_pages, cell, families, family_pages, message_page
from tools.site_reference import command_page, commands, library_page
from tools.site_table import interface_page, myth_page

MYTH = MythPage(
    slug="retain-graph", remedy="retain_graph=True", claim="it keeps the graph", verdict="wrong", shows="the gradient is 2.0 where 1.0 is meant",
    instead="detach the state", since="0.1.0", path="experiment.py", program="print(2.0)\n", printed=(("1.13.1", "older\n"), ("2.13.0", "gradient: 2.0\n")),
)  # fmt: skip
CHANGE = Change(
    library="transformers", kind="argument", of="TrainingArguments", old="evaluation_strategy", new="eval_strategy", added="4.41.0", removed="4.46.0",
    write='eval_strategy="steps" | "no"', note="a note", checked="source",
)  # fmt: skip


@pytest.fixture(scope="module")
def pages(catalog) -> dict[str, str]:
    """The pages about causes, families and messages."""
    folder = str(ROOT / "knowledge")
    found = {**dict(cause_pages(folder, catalog)), **dict(family_pages(catalog))}
    return {**found, "messages.md": message_page(catalog)}


def test_every_cause_and_family_has_a_page(pages, catalog) -> None:
    """One page a cause, one a family, and one of all families."""
    expected = {f"causes/{name}.md" for name in catalog.cause_ids}
    expected |= {f"causes/{family}/index.md" for family in families(catalog)} | {"causes/index.md", "messages.md"}
    assert set(pages) == expected


def test_links_lead_to_pages(pages) -> None:
    """Every link between the pages has its page; what leads to the myths needs their page."""
    broken = [
        (path, target)
        for path, text in pages.items()
        for target in re.findall(r"\]\(([^):#\s]+\.md)", text)
        if posixpath.normpath(posixpath.join(posixpath.dirname(path), target)) not in {*pages, "myths.md"}
    ]
    assert broken == []


def test_every_message_is_listed(pages, catalog) -> None:
    """Each sample of each form stands on the page of messages."""
    folded = " ".join(pages["messages.md"].split())
    samples = [sample["text"] for _, form in catalog.forms() for sample in form.get("sample", ())]
    assert len(samples) > 1000
    assert [text for text in samples if " ".join(text.split()) not in folded and text.isprintable()] == []


def test_a_family_lists_its_causes(pages, catalog) -> None:
    """The page of a family links to each of its causes, and to no other's."""
    names = {name.partition("/")[2] for name in catalog.cause_ids if name.startswith("nan/")}
    assert set(re.findall(r"\| \[[\w-]+\]\(([\w-]+)\.md\)", pages["causes/nan/index.md"])) == names


def test_there_is_no_page_without_tables(catalog) -> None:
    """Without myths and interfaces their pages are left out."""
    assert (myth_page((), catalog), interface_page(())) == (None, None)


def test_a_myth_shows_its_experiment(catalog) -> None:
    """The remedy is the heading with the slug as its anchor; verdict, numbers, program and recordings follow."""
    page = myth_page((MYTH,), catalog)
    parts = ["## retain\\_graph=True { #retain-graph }", "wrong", "it keeps the graph", "2.0 where 1.0", "detach the state", "print(2.0)", "torch 2.13.0", "gradient: 2.0", "older"]  # fmt: skip
    places = [page.find(part) for part in parts]
    assert -1 not in places and places == sorted(places)


def test_an_interface_is_a_row() -> None:
    """A change is one row of its library's table; bars in it do not end a cell."""
    page = interface_page((CHANGE,))
    (row,) = [line for line in page.splitlines() if "evaluation" in line]
    assert "## transformers" in page
    assert [one.strip() for one in re.split(r"(?<!\\)\|", row)[1:-1]] == [
        "`TrainingArguments`", "`evaluation_strategy`", "`eval_strategy`", "4.41.0", "", "4.46.0", 'eval\\_strategy="steps" \\| "no" (a note)'
    ]  # fmt: skip


CELLS = {
    "a bar": ("a | b", "a \\| b"),
    "a bar in code": ("`a | b`", "`a \\| b`"),
    "lines": ("a\nb", "a b"),
    "a tag": ("<a>", "\\<a\\>"),
}


@pytest.mark.parametrize(("text", "shown"), CELLS.values(), ids=CELLS.keys())
def test_cells(text: str, shown: str) -> None:
    """A value stays in its cell."""
    assert cell(text) == shown


def test_every_command_shows_its_help() -> None:
    """The reference holds the usage line of every command, with the options that it has."""
    page = command_page()
    assert {("explain",), ("probe",), ("rules", "show")} <= set(commands())
    assert [words for words in commands() if f"Usage: gradfix {' '.join(words)}".rstrip() not in page] == []
    assert "--tracebacks-only" in page and "--web" in page and "\x1b" not in page


def test_the_public_names_are_documented() -> None:
    """Each public name of `gradfix` stands in the reference, on its own or with its module."""
    page = library_page()
    assert {"::: explainer.workflow.explain", "::: explainer.errors.GradfixError", "::: explainer.model.report"} <= set(
        page.splitlines()
    )


def test_addresses_agree(pages) -> None:
    """The address that reports link to is that of the site's page, and the package names the same documentation."""
    path = "causes/inplace/op-on-saved-tensor"
    assert f"{path}.md" in pages
    assert cause_link("inplace/op-on-saved-tensor") == f"{DOCUMENTATION}{path}/"
    assert f'Documentation = "{DOCUMENTATION}"' in (ROOT / "pyproject.toml").read_text()
