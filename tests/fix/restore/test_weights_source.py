"""Where weights that are not finite come from: the line is named, and nothing is edited."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.model.incident import Fact
from tests.fix.rewriting import failed, write

UNTOUCHED = (Fact(name="traced_bad_input", value="untouched"),)
HEAD = "import numpy as np\nimport torch\nfrom torch import nn\n"
LOADER = """def load(path):
    rows = []
    with open(path) as lines:
        for line in lines:
            rows.append([float(one) for one in line.split()[1:]])
    return torch.tensor(rows)

"""
SILENT = {
    "weights that are drawn": HEAD + "table = nn.Parameter(torch.randn(4, 2))\n",
    "a table of zeros": HEAD + "table = nn.Embedding.from_pretrained(torch.zeros(4, 2))\n",
    "data": HEAD + 'x = torch.from_numpy(np.load("x.npy"))\ntable = nn.Embedding(4, 2)\n',
}
TOLD = {
    "an archive": (
        HEAD + 'with np.load("v.npz") as store:\n    table = torch.from_numpy(store["v"])\nemb = nn.Embedding.from_pretrained(table)\n',
        [6, 4],
    ),
    "a function that reads lines": (HEAD + LOADER + 'emb = nn.Embedding(4, 2)\nemb.weight = nn.Parameter(load("v.txt"))\n', [12, 6]),
    "an array": (HEAD + 'scale = nn.Parameter(torch.from_numpy(np.load("v.npy")).float())\n', [4, 4]),
}  # fmt: skip


def lines(source: str, folder: pathlib.Path, *, is_seen: bool = True) -> list[tuple[str, int | None]]:
    incident = replace(failed(), facts=UNTOUCHED if is_seen else ())
    found = list(
        find_codemod("weights_source")(Context(program=write(folder, {"train.py": source}), incident=incident))
    )
    assert not any(one.edits for one in found)
    return [(pathlib.Path(one.culprit.file).name, one.culprit.line) for one in found]


@pytest.mark.parametrize("source", SILENT.values(), ids=SILENT)
def test_weights_of_no_file(source: str, tmp_path: pathlib.Path) -> None:
    """What no file gave, none can restore."""
    assert lines(source, tmp_path) == []


@pytest.mark.parametrize(("source", "wanted"), TOLD.values(), ids=TOLD)
def test_weights_of_a_file(source: str, wanted: list[int], tmp_path: pathlib.Path) -> None:
    """The line that makes weights of it leads, then the one that reads it; nothing where no tracer saw them."""
    assert lines(source, tmp_path) == [("train.py", one) for one in wanted]
    assert lines(source, tmp_path, is_seen=False) == []


def test_the_line_of_the_file_leads(tmp_path: pathlib.Path) -> None:
    """A value in a text that the program names, with its line."""
    rows = [f"w{number} {number}.5 -0.{number}" for number in range(8)]
    (tmp_path / "v.txt").write_text("\n".join([*rows, "w8 nan 0.5", "w9 1 2"]))
    assert lines(TOLD["a function that reads lines"][0], tmp_path)[0] == ("v.txt", 9)
