"""Tables of data: the cells without a number."""

from __future__ import annotations

import pathlib

import pytest

from explainer.source.data.table import find_tables, gaps
from explainer.source.text import make_text

ROWS = [f"2024-01-0{day},{day}.5,{day * 10},shop {day}" for day in range(1, 10)]
HEAD = "day,price,sold,place"


def found(rows: list[str], name: str = "data.csv") -> list[tuple[int, str, str]]:
    text = "\n".join([HEAD, *rows]) + "\n"
    return [(one.line, one.column, one.cell) for one in gaps(make_text(name, text.encode()))]


@pytest.mark.parametrize("cell", ["", "n/a", "-", "nan", "inf", "#DIV/0!", "1e999"])
def test_a_cell_without_a_number(cell: str) -> None:
    rows = [*ROWS[:4], f"2024-01-05,5.5,{cell},shop 5", *ROWS[5:]]
    assert found(rows) == [(6, "sold", cell)]


def test_the_cell_is_marked() -> None:
    file = make_text("data.csv", "\n".join([HEAD, *ROWS, "2024-02-01,oops,1,shop"]).encode())
    (one,) = gaps(file)
    assert file.text[slice(*one.span)] == "oops"


@pytest.mark.parametrize(
    "rows",
    [
        ROWS,
        ROWS[:2],  # too few to say what the column holds
        [f"{one.rpartition(',')[0]}," for one in ROWS],  # words, and empty
        [*ROWS, '2024-02-01,"1,5",,shop'],  # quoted
        [*ROWS, "2024-02-01,1.5,,shop,more"],  # of another length
    ],
    ids=["whole", "short", "words", "quoted", "ragged"],
)
def test_nothing_is_missed(rows: list[str]) -> None:
    assert found(rows) == []


def test_other_delimiters() -> None:
    rows = [one.replace(",", ";").replace(".", ",") for one in [HEAD, *ROWS, "2024-02-01,1.5,,shop"]]
    (one,) = gaps(make_text("data.csv", "\n".join(rows).encode()))
    assert (one.line, one.column) == (11, "sold")


VECTORS = [f"word{number} 0.{number}5 -1.{number} 2e-{number}" for number in range(1, 9)]


@pytest.mark.parametrize("cell", ["nan", "-inf", "1e39", "..", "NULL"])
def test_a_vector_with_a_broken_value(cell: str) -> None:
    """Columns between blanks have no head; what float32 does not hold is infinite there."""
    rows = [*VECTORS[:3], VECTORS[3].replace("-1.4", cell), *VECTORS[4:]]
    for lead in ([], ["9 3"]):  # word2vec writes the counts first
        text = "\n".join([*lead, *rows])
        (one,) = gaps(make_text("words.vec", text.encode()))
        assert (one.line, one.column, one.cell) == (4 + len(lead), "3", cell)
        assert text[slice(*one.span)] == cell


def test_the_first_vector_counts() -> None:
    """Without a head the first line is one of values; with one it names the columns."""
    broken = [VECTORS[0].replace("-1.1", "nan"), *VECTORS[1:]]
    assert [one.line for one in gaps(make_text("words.txt", "\n".join(broken).encode()))] == [1]
    headed = ["word a b c", *VECTORS[:4], "word9 0.5 nan 1", *VECTORS[4:]]
    assert [one.column for one in gaps(make_text("words.dat", "\n".join(headed).encode()))] == ["b"]


@pytest.mark.parametrize(
    "rows",
    [
        VECTORS,
        [*VECTORS, "the note of a day"[:8]],
        ["a text of several words", "that says nothing", *["of numbers"] * 9],
    ],
    ids=["whole", "ragged", "text"],
)
def test_text_that_is_no_table(rows: list[str]) -> None:
    assert list(gaps(make_text("notes.txt", "\n".join(rows).encode()))) == []


def test_plain_text_is_read_where_it_is_named(tmp_path: pathlib.Path) -> None:
    for name in ("words.vec", "log.txt", "a.csv"):
        (tmp_path / name).write_text("x\n")
    names = [pathlib.Path(one.path).name for one in find_tables(str(tmp_path), ['open("words.vec")'])]
    assert names == ["a.csv", "words.vec"]


def test_tables_under_a_folder(tmp_path: pathlib.Path) -> None:
    for name in ("a.csv", "data/b.tsv", ".hidden/c.csv", "data/deep/deeper/still/d.csv", "e.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x\n")
    (tmp_path / "binary.csv").write_bytes(b"\x00\x01")
    names = [pathlib.Path(one.path).relative_to(tmp_path).as_posix() for one in find_tables(str(tmp_path))]
    assert names == ["a.csv", "data/b.tsv"]
