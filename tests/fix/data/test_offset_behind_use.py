"""The offset of a batch grows behind its use, and rows are drawn from 0."""

from __future__ import annotations

from dataclasses import replace

import pytest

from explainer.fix.splice import splice
from explainer.model.trace import INDEX, TracedLine
from tests.fix.rewriting import best, failed, line_of, write

COLLATE = """import torch


def collate(graphs):
    xs, es, ys, offset = [], [], [], 0
    for x, e, y in graphs:
        xs.append(x)
        offset += len(x)
        es.append(e + offset)
        ys.append(y)
    return torch.cat(xs), torch.cat(es, 1), torch.cat(ys)
"""
LOOP = """import torch


def batched(trees):
    total = 0
    edges = []
    for tree in trees:
        total += tree["n"]
        moved = tree["edges"] + total
        edges.append((moved, total))
    return edges
"""
RIGHT = {
    "behind already": COLLATE.replace("        offset += len(x)\n", "").replace("ys.append(y)\n", "ys.append(y)\n        offset += len(x)\n"),
    "an offset that begins elsewhere": COLLATE.replace("[], 0\n", "[], start\n"),
    "an offset that is set anew": COLLATE.replace("        xs.append(x)\n", "        xs.append(x)\n        offset = starts[x]\n"),
    "another sum": COLLATE.replace("e + offset", "e + 1"),
}  # fmt: skip
WRONG = {
    "edges of graphs": (COLLATE, "e + offset", "offset += len(x)"),
    "read once more": (LOOP, "+ total", 'total += tree["n"]'),
}


def edited(folder, codemod: str, source: str, at: str, operation: str, **given) -> str:
    """The source after the edit for a line that a trace saw make refused integers."""
    seen = TracedLine(kind=INDEX, operation=operation, file="train.py", line=line_of(source, at))
    incident = replace(failed({"train.py": 1}), traced=(seen,))
    found = best(codemod, write(folder, {"train.py": source}), incident=incident, **given)
    return splice(source, found.edits) if found is not None else source


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str) -> None:
    """An offset that is used before it grows, or is another thing, is left alone."""
    assert edited(tmp_path, "offset_behind_use", source, "e + ", "add") == source


@pytest.mark.parametrize(("source", "at", "grows"), WRONG.values(), ids=WRONG)
def test_the_offset_grows_behind_its_use(tmp_path, source: str, at: str, grows: str) -> None:
    after = edited(tmp_path, "offset_behind_use", source, at, "add")
    lines, old = ([line.strip() for line in text.splitlines()] for text in (after, source))
    assert sorted(lines) == sorted(old)
    assert [line for line in lines if line != grows] == [line for line in old if line != grows]
    name = grows.partition(" ")[0]
    reads = [number for number, line in enumerate(lines) if name in line and line != grows]
    assert lines.index(grows) > max(reads)


DRAW = "import torch\nsteps = 50\nt = torch.randint(1, steps + 1, (8,))\nx = torch.ones(50)[t]\n"
AT_END = {"fields": {"index": "50", "rows": "50"}}


@pytest.mark.parametrize(
    ("source", "given", "wanted"),
    [
        (DRAW, AT_END, "torch.randint(0, steps, (8,))"),
        (DRAW, {"fields": {"index": "53", "rows": "50"}}, None),
        (DRAW.replace("randint(1,", "randint(2,"), AT_END, None),
        (DRAW.replace("steps + 1", "steps + 2"), AT_END, None),
        (DRAW.replace("(1, steps + 1, (8,))", "(low=1, high=steps + 1, size=(8,))"), AT_END, "torch.randint(low=0, high=steps, size=(8,))"),
    ],
)  # fmt: skip
def test_rows_are_drawn_from_0(tmp_path, source: str, given: dict, wanted: str | None) -> None:
    """Only where 1 to n was drawn, and n was refused."""
    after = edited(tmp_path, "draw_from_zero", source, "randint", "randint", **given)
    assert after == (
        source
        if wanted is None
        else source.replace(source[source.index("torch.randint") : source.index("\nx")], wanted)
    )
