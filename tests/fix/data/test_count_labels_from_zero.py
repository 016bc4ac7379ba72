"""Labels that count from 1 are counted from 0 in the loss."""

from __future__ import annotations

from dataclasses import replace

import pytest

from explainer.fix.splice import splice
from explainer.model.incident import TENSOR, Fact
from tests.fix.rewriting import best, changed_lines, failed, line_of, rewritten, write

HEAD = "import torch\nimport torch.nn.functional as F\nout = torch.randn(4, 3)\n"
TARGET = {"fields": {"target": "3"}}
RIGHT = {
    "from 0": (HEAD + "y = torch.tensor([0, 1, 2, 3])\nloss = F.cross_entropy(out, y)\n", "loss =", TARGET),
    "from a file": (HEAD + "y = torch.load('y')\nloss = F.cross_entropy(out, y)\n", "loss =", TARGET),
    "another largest label": (HEAD + "y = torch.tensor([1, 2, 7])\nloss = F.cross_entropy(out, y)\n", "loss =", TARGET),
    "a loss of values": (HEAD + "y = torch.tensor([1, 2, 3])\nloss = F.mse_loss(out, y)\n", "loss =", TARGET),
}
TABLE = """import numpy as np
from torch.utils.data import DataLoader
cuts = np.quantile(np.arange(40.0), [0.3, 0.6])
rows = np.stack([np.arange(40), FIRST np.searchsorted(cuts, np.arange(40.0))], 1)
class Rows:
    def __init__(self, rows):
        self.rows = rows.astype(np.int64)
    def __len__(self):
        return len(self.rows)
    def __getitem__(self, index):
        item, y = self.rows[index]
        return item, y
for item, y in DataLoader(Rows(rows[:30]), batch_size=4):
    loss = F.cross_entropy(out, y)
"""
RIGHT["a column of buckets"] = (HEAD + TABLE.replace("FIRST ", ""), "loss =", TARGET)
WRONG = {
    "a column of buckets": (
        HEAD + TABLE.replace("FIRST", "1 +"),
        "loss =",
        TARGET,
        ["loss = F.cross_entropy(out, y - 1)"],
    ),
    "constants": (
        HEAD + "y = torch.tensor([1, 2, 3])\nloss = F.cross_entropy(out, y)\n",
        "loss =",
        TARGET,
        ["loss = F.cross_entropy(out, y - 1)"],
    ),
    "random labels": (
        HEAD + "y = torch.randint(1, 4, (6,))\nloss = F.cross_entropy(out, y)\n",
        "loss =",
        {},
        ["loss = F.cross_entropy(out, y - 1)"],
    ),
}


@pytest.mark.parametrize(("source", "at", "given"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str, given: dict) -> None:
    """Labels that begin with 0, or that the source does not show, are left alone."""
    assert rewritten(tmp_path, "count_labels_from_zero", source, at or None, **given) == source


@pytest.mark.parametrize(("source", "at", "given", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, given: dict, wanted: list[str]) -> None:
    """The loss gets labels less 1; a second time nothing is left to do."""
    after = rewritten(tmp_path, "count_labels_from_zero", source, at or None, **given)
    assert changed_lines(source, after) == wanted
    assert (
        rewritten(tmp_path, "count_labels_from_zero", after, None if at not in after else at or None, **given) == after
    )


GUESSED = ["loss = F.cross_entropy(out, y - 1)"]
STRANGER = {"names.txt": "cat\ndog\nfish\n", "dev.tsv": "cat\ta\ndog\tb\nfish\tc\ncow\td\ncat\te\n"}
TABLE = {"train.py": "CODES = {'W': 0, 'N': 1, 'R': 2, 'M': 3}\ny = [CODES[one] for one in letters]\n"}
LIVE = {
    "a label equal to the number of classes": (3, "3 of 3, from 1", {}, GUESSED),
    "nothing known of the other labels": (3, "", {}, GUESSED),
    "a label further away": (5, "", {}, []),
    "a label 0 beside it": (3, "3 of 3, from 0", {}, []),
    "a table of the program's own that begins at 0": (3, "3 of 3, from 1", TABLE, []),
    "a name in the data that is on no list": (3, "3 of 3, from 1", STRANGER, []),
}


@pytest.mark.parametrize(("classes", "refused", "data", "wanted"), LIVE.values(), ids=LIVE)
def test_a_label_that_the_live_program_has_no_class_for(
    tmp_path, classes: int, refused: str, data: dict[str, str], wanted: list[str]
) -> None:
    """A label equal to the number of classes is a guess that only a run can prove; what shows that it counts from 0 refutes it."""
    source = "import torch.nn.functional as F\nNAMES = open('names.txt')\n\ndef step(net, x, y):\n    out = net(x)\n    loss = F.cross_entropy(out, y)\n"
    for name, text in data.items():
        (tmp_path / name).write_text(text)
    source = data.get("train.py", "") + source
    program = write(tmp_path, {"train.py": source})
    incident = failed({"train.py": line_of(source, "loss =")}, "Target 3 is out of bounds.")
    facts = (Fact(name=TENSOR, value=f"out: [8, {classes}] float32 on cpu"),)
    facts += (Fact(name="live_refused_index", value=refused),) if refused else ()
    incident = replace(incident, facts=facts)
    proposal = best("count_labels_from_zero", program, incident=incident, fields={"target": "3"})
    after = splice(source, proposal.edits) if proposal is not None else source
    assert after is not None
    assert changed_lines(source, after) == wanted
    assert proposal is None or proposal.applicability == "unsafe"


CLIPS = """import csv
import torch.nn.functional as F
from torch.utils.data import DataLoader
class Clips:
    def __init__(self):
        self.rows = list(csv.DictReader(open("clips.csv")))
    def __len__(self):
        return len(self.rows)
    def __getitem__(self, index):
        row = self.rows[index]
        return float(row["x"]), int(row["kind"])
for x, y in DataLoader(Clips(), batch_size=4):
    loss = F.cross_entropy(net(x), y)
"""
COLUMNS = {
    "from 1 to the number of classes": ("x,kind\n1,3\n2,1\n3,2\n", "3 of 3, from 1", "safe"),
    "a batch without a 1": ("x,kind\n1,3\n2,1\n3,2\n", "3 of 3, from 2", None),
    "from 0 in other rows": ("x,kind\n1,3\n2,0\n3,2\n", "3 of 3, from 1", None),
    "words": ("x,kind\n1,3\n2,one\n3,2\n", "3 of 3, from 1", "unsafe"),
    "a batch with a 0": ("x,kind\n1,3\n2,1\n", "3 of 3, from 0", None),
}


@pytest.mark.parametrize(("table", "refused", "applicability"), COLUMNS.values(), ids=COLUMNS)
def test_labels_of_a_file(tmp_path, table: str, refused: str, applicability: str | None) -> None:
    """Counted from 0 where the data set makes them: sure where the whole column says so, not by one batch alone."""
    (tmp_path / "clips.csv").write_text(table)
    program = write(tmp_path, {"train.py": CLIPS})
    incident = failed({"train.py": line_of(CLIPS, "loss =")}, "Target 3 is out of bounds.")
    incident = replace(incident, facts=(Fact(name="live_refused_index", value=refused),))
    proposal = best("count_labels_from_zero", program, incident=incident, fields={"target": "3"})
    assert (proposal.applicability or "safe" if proposal is not None else None) == applicability
    if proposal is not None:
        wanted = ['return float(row["x"]), int(row["kind"]) - 1']
        assert [one.strip() for one in changed_lines(CLIPS, splice(CLIPS, proposal.edits) or "")] == wanted
