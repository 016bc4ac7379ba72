"""An index that other data brought than that which sized the table: what it comes from is named, and nothing is edited."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping

import pytest

from explainer.catalog.bundle import load_catalog
from explainer.fix.codemod import Context, find_codemod
from explainer.model.incident import ExceptionRecord, Fact, Frame, Incident
from explainer.model.trace import INDEX, TracedLine
from explainer.source.program import read_program
from explainer.workflow import explain_incident, plan_report
from tests.fix.rewriting import failed, line_of

HEAD = "import csv\nimport json\nimport torch\nfrom torch import nn\nimport torch.nn.functional as F\n"
MODEL = """class Factors(nn.Module):
    def __init__(self, n_users, n_items):
        super().__init__()
        self.user = nn.Embedding(n_users, 8)
        self.item = nn.Embedding(n_items, 8)

    def forward(self, user, item):
        return (self.user(user) * self.item(item)).sum(-1)  # fails
"""
HEADED = """def head(width, classes):
    return nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, classes))

"""
COLOURS = "name,colour\n" + "".join(f"{at}.png,{one}\n" for at, one in enumerate(["red", "green", "blue"] * 4))
RATINGS = "user,item\n" + "".join(f"{at % 4},{at % 6}\n" for at in range(24))

SILENT = {
    "an index that an operation makes of those that are there": (
        {"train.py": HEAD + MODEL + "model = Factors(users.max() + 1, items.max() + 1)\nmodel(users, items * 2)\n"},
        {"live_refused_index": "9 of 6, from 0", "traced_index": "mul", "traced_turned_index": "mul"},
    ),
    "positions": (
        {"train.py": HEAD + "table = nn.Embedding(len(words), 8)\ntable(torch.arange(9))  # fails\n"},
        {"live_refused_index": "8 of 6, from 0", "traced_index": "arange"},
    ),
    "a marker below zero": (
        {"train.py": HEAD + "table = nn.Embedding(len(words), 8)\ntable(ids)  # fails\n"},
        {"live_refused_index": "-1 of 6, from -1"},
    ),
    "a text that says neither index nor rows": (
        {"train.py": HEAD + "table = nn.Embedding(len(words), 8)\ntable(ids)  # fails\n"},
        {},
    ),
    "a table of a number alone": (
        {"train.py": HEAD + "table = nn.Embedding(6, 8)\ntable(ids)  # fails\n"},
        {"live_refused_index": "9 of 6, from 0"},
    ),
    "a table that two lengths make": (
        {"train.py": HEAD + "table = nn.Embedding(len(words) + len(marks), 8)\ntable(ids)  # fails\n"},
        {"live_refused_index": "9 of 6, from 0"},
    ),
    "data whose names are all known": (
        {"train.py": HEAD + "net = nn.Linear(8, 3)\nF.cross_entropy(net(x), y)  # fails\n", "a.csv": COLOURS, "b.csv": COLOURS},
        {"live_refused_index": "5 of 3, from 0"},
    ),
    "a table of codes that nothing looks up, and one whose highest is another": (
        {"train.py": HEAD + 'COST = {"a": 0, "b": 5}\nCODES = {"a": 0, "b": 1, "c": 2}\nnet = nn.Linear(8, 3)\nprint(COST["a"])\n'
         "F.cross_entropy(net(x), torch.tensor([CODES[one] for one in names]))  # fails\n"},
        {"live_refused_index": "5 of 3, from 0"},
    ),
    "data of other things": (
        {"train.py": HEAD + "net = nn.Linear(8, 3)\nF.cross_entropy(net(x), y)  # fails\n", "a.csv": COLOURS,
         "b.csv": COLOURS.replace("colour", "shape").replace("red", "round").replace("green", "square")},
        {"live_refused_index": "5 of 3, from 0"},
    ),
    "numbers of a column that never was the index": (
        {"train.py": HEAD + "net = nn.Linear(8, 9)\nF.cross_entropy(net(x), y)  # fails\n", "a.csv": RATINGS + "7,17\n"},
        {"live_refused_index": "17 of 9, from 0"},
    ),
}  # fmt: skip
NAMED = {
    "the highest of the training split, behind a table of models": (
        {
            "data.py": "class Split:\n    def __init__(self, log, week):\n        self.train = log[log[:, 0] < week, 1:]\n"
            "        self.test = log[log[:, 0] >= week, 1:]\n        self.n_users = 40\n"
            "        self.n_items = int(self.train[:, 1].max()) + 1  # named\n",
            "train.py": HEAD + "from data import Split\n" + MODEL
            + 'MODELS = {"plain": Factors}\nsplit = Split(read_log(), 3)\nmodel = MODELS[cfg["model"]](split.n_users, split.n_items)\n',
        },
        {"live_refused_index": "71 of 63, from 0", "traced_index": "from_numpy"},
        "self.n_items = int(",
    ),
    "a helper that counts": (
        {"train.py": HEAD + MODEL + "def count(column):\n    return int(column.max()) + 1\n\n"
         "model = Factors(4, count(items))\nmodel(users, held_out)\n"},
        {"live_refused_index": "33 of 30, from 2"},
        "return int(column",
    ),
    "how many there are in a frame": (
        {"train.py": HEAD + 'n_stores = train["store"].nunique()\ntable = nn.Embedding(n_stores, 4)\ntable(stores(test))  # fails\n'},
        {"live_refused_index": "16 of 12, from 0"},
        "n_stores = ",
    ),
    "a setting": (
        {"config.json": '{\n  "width": 4,\n  "items": 30\n}\n',
         "train.py": HEAD + 'cfg = json.load(open("config.json"))\ntable = nn.Embedding(cfg["items"], cfg["width"])\ntable(ids)  # fails\n'},
        {"live_refused_index": "33 of 30, from 2"},
        '"items": 30',
    ),
    "the code that strangers get": (
        {"train.py": HEAD + "def encode(words, vocab):\n    return torch.tensor([vocab.get(one, len(vocab)) for one in words])\n\n"
         "vocab = index(train)\ntable = nn.Embedding(len(vocab), 4)\ntable(encode(line, vocab))  # fails\n"},
        {"live_refused_index": "3 of 3, from 0"},
        "vocab.get(one",
    ),
    "an intent that is on no list": (
        {"colours.txt": "red green blue\n", "dev.tsv": "red\ta b\nblue\tc d\ngreen\te\nblue\tf\nmauve\tg h\nred\ti\n",
         "train.py": HEAD + HEADED + 'names = Vocabulary(open("colours.txt").read().split())\nn_names = len(names)\n'
         "net = head(8, n_names)\nF.cross_entropy(net(x), y)  # fails\n"},
        {"live_refused_index": "3 of 3, from 0", "traced_index": "tensor"},
        "mauve",
    ),
    "a misspelled class of a table": (
        {"images.csv": COLOURS + "12.png,gren\n",
         "train.py": HEAD + 'CLASSES = ["red", "green", "blue"]\nnet = nn.Linear(8, len(CLASSES))\nloss = nn.CrossEntropyLoss()\n'
         "loss(net(x), y)  # fails\n"},
        {"live_refused_index": "3 of 3, from 1"},
        "gren",
    ),
    "a code of the program's own table": (
        {"codes.py": 'STAGES = {\n    "W": 0,\n    "N": 1,\n    "R": 2,\n    "M": 3,\n}\n\ndef read(letters):\n    return [STAGES[one] for one in letters]\n',
         "train.py": HEAD + "from codes import read\nnet = nn.Linear(8, 3)\nF.cross_entropy(net(x), torch.tensor(read(night)))  # fails\n"},
        {"live_refused_index": "3 of 3, from 1"},
        '"M": 3',
    ),
    "a code that a column is mapped by": (
        {"train.py": HEAD + 'KINDS = dict(a=1)\nLEVELS: dict = {"low": 0, "mid": 1, "high": 2, "other": 4}\ntable = nn.Embedding(3, 8)\n'
         'table(torch.tensor(frame["level"].map(LEVELS).values))  # fails\n'},
        {"live_refused_index": "4 of 3, from 0", "traced_index": "tensor"},
        '"other": 4',
    ),
    "a tag that the training lines lack": (
        {"train.jsonl": '{"tag": "x"}\n{"tag": "y"}\n{"tag": "x"}\n', "dev.jsonl": '{"tag": "y"}\n{"tag": "x"}\n{"tag": "z"}\n',
         "train.py": HEAD + "net = nn.Linear(8, len(tags))\nF.cross_entropy(net(x), y)  # fails\n"},
        {"live_refused_index": "2 of 2, from 0"},
        '"z"',
    ),
    "a tag in a list of objects": (
        {"train.json": '[\n {"tag": "x"},\n {"tag": "y"}\n]\n', "dev.json": '[\n {"tag": "y"},\n {"tag": "x"},\n {"tag": "z"}\n]\n',
         "train.py": HEAD + "net = nn.Linear(8, len(tags))\nF.cross_entropy(net(x), y)  # fails\n"},
        {"live_refused_index": "2 of 2, from 0"},
        '"z"',
    ),
    "a number beyond the classes of a setting": (
        {"config.yaml": "model:\n  num_classes: 6\n", "labels.csv": RATINGS.replace("item", "kind") + "1,8\n",
         "train.py": HEAD + 'import yaml\ncfg = yaml.safe_load(open("config.yaml"))\nnet = nn.Linear(8, cfg["model"]["num_classes"])\n'
         "F.cross_entropy(net(x), y)  # fails\n"},
        {"live_refused_index": "8 of 6, from 0"},
        "1,8",
    ),
    "a new item of the held-out file, where the training file was counted": (
        {"train.csv": RATINGS, "valid.csv": RATINGS + "1,8\n",
         "train.py": HEAD + MODEL + "n_items = items.max() + 1\nmodel = Factors(4, n_items)\nmodel(users, held_out)\n"},
        {"live_refused_index": "8 of 6, from 0"},
        "n_items = ",
    ),
}  # fmt: skip


def told(files: Mapping[str, str], facts: Mapping[str, str], folder: pathlib.Path) -> list[tuple[str, bool]]:
    """The lines that the codemod names, the likeliest first, and whether each is where it begins."""
    for name, text in files.items():
        (folder / name).write_text(text)
    program = read_program(str(folder), ["train.py"])
    incident = failed({"train.py": line_of(files["train.py"], "# fails")}, facts=facts)
    found = list(find_codemod("index_of_other_data")(Context(program=program, incident=incident)))
    assert not any(one.edits for one in found)
    texts = {str(folder / name): text.splitlines() for name, text in files.items()}
    found.sort(key=lambda one: -one.belief)
    return [(texts[one.culprit.file][(one.culprit.line or 0) - 1], one.is_origin) for one in found]


@pytest.mark.parametrize(("files", "facts"), SILENT.values(), ids=SILENT)
def test_an_index_that_no_data_brought(
    files: Mapping[str, str], facts: Mapping[str, str], tmp_path: pathlib.Path
) -> None:
    """Made indices, markers, and data that shows nothing name no line."""
    assert told(files, facts, tmp_path) == []


@pytest.mark.parametrize(("files", "facts", "words"), NAMED.values(), ids=NAMED)
def test_an_index_of_other_data(
    files: Mapping[str, str], facts: Mapping[str, str], words: str, tmp_path: pathlib.Path
) -> None:
    """The stranger's row, the code that it gets, or what the rows were counted of is where the fault begins."""
    line, is_origin = told(files, facts, tmp_path)[0]
    assert words in line
    assert is_origin


def test_a_code_that_may_count_from_one(tmp_path: pathlib.Path) -> None:
    """The code just behind the last may be that of the last thing: what was counted is named, and leads no traced line."""
    source = HEAD + "table = nn.Embedding(len(words), 8)\ntable(ids)  # fails\n"
    found = told({"train.py": source}, {"live_refused_index": "6 of 6, from 1"}, tmp_path)
    assert found == [("table = nn.Embedding(len(words), 8)", False)]


def test_the_row_of_data_is_not_told(tmp_path: pathlib.Path) -> None:
    """Of the user's data the report holds the stranger's cell, and none of its neighbours."""
    files = {"dev.csv": COLOURS + "secret.png,mauve\n", "colours.txt": "red\ngreen\nblue\n"}
    source = HEAD + 'names = open("colours.txt").read().split()\nF.cross_entropy(net(x), y)  # fails\n'
    for name, text in {**files, "train.py": source}.items():
        (tmp_path / name).write_text(text)
    incident = failed({"train.py": line_of(source, "# fails")}, facts={"live_refused_index": "3 of 3, from 0"})
    context = Context(program=read_program(str(tmp_path), ["train.py"]), incident=incident)
    culprit = next(iter(find_codemod("index_of_other_data")(context))).culprit
    assert (culprit.line, culprit.code, culprit.before, culprit.after) == (14, "", (), ())
    assert "mauve" in (culprit.why or "")


PLANNED = {
    "what was counted": ("n = items.max() + 1\ntable = nn.Embedding(n, 4)\n", "table(ids)", "9 of 6, from 0", "n = ", 0),
    "an edit of codes that count from 1": (
        "months = torch.arange(1, 13)\nn = 12\ntable = nn.Embedding(n, 4)\n", "table(months)", "12 of 12, from 1", "table", 1,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("source", "fails", "refused", "words", "edits"), PLANNED.values(), ids=PLANNED)
def test_the_line_before_the_traced_one(  # noqa: PLR0913 - a case and the folder
    source: str, fails: str, refused: str, words: str, edits: int, tmp_path: pathlib.Path
) -> None:
    """What the rows were counted of leads the line that only makes a tensor of the data; an edit that is known leads both."""
    text = f"import torch\nfrom torch import nn\n{source}ids = torch.tensor(read())\n{fails}\n"
    path = tmp_path / "train.py"
    path.write_text(text)
    frame = Frame(file=str(path), line=line_of(text, fails), code=fails)
    record = ExceptionRecord(type="IndexError", message="index out of range in self", frames=(frame,))
    seen = TracedLine(
        kind=INDEX, operation="tensor", file=str(path), line=line_of(text, "ids ="), says="makes the integers"
    )
    facts = (Fact(name="live_refused_index", value=refused), Fact(name="traced_index", value="tensor"))
    catalog = load_catalog()
    incident = Incident(exceptions=(record,), facts=facts, traced=(seen,))
    finding = plan_report(explain_incident(incident, None, catalog), catalog, str(tmp_path)).findings[0]
    assert words in (finding.culprits[0].code or "")
    assert sum(bool(one.changes) for one in finding.fixes) == edits
