"""Tables of data: the cells without a number."""

from __future__ import annotations

import pathlib

import pytest

from explainer.source.table import find_tables, gaps
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


def test_tables_under_a_folder(tmp_path: pathlib.Path) -> None:
    for name in ("a.csv", "data/b.tsv", ".hidden/c.csv", "data/deep/deeper/still/d.csv", "e.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x\n")
    (tmp_path / "binary.csv").write_bytes(b"\x00\x01")
    names = [pathlib.Path(one.path).relative_to(tmp_path).as_posix() for one in find_tables(str(tmp_path))]
    assert names == ["a.csv", "data/b.tsv"]
