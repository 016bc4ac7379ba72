"""The samples of one split are cut as those of the other are, where a longer one met the model's table."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from explainer.model.incident import Incident
from explainer.source.program import read_program
from tests.fix.rewriting import failed

SHAPE = "The size of tensor a (87) must match the size of tensor b (64) at non-singleton dimension 1"
Files = Mapping[str, str]
# Each program cuts what trains; the fault is the text between the bars, what it becomes stands behind the second.
TOKENIZER = """def encode_train(rows):
    return tokenizer(rows["text"], truncation=True)
def encode_valid(rows):
    return tokenizer(rows["text"])
train = train.map(encode_train, batched=True)
valid = valid.map(encode_valid, batched=True)
"""
CASES: dict[str, tuple[str, str, str]] = {
    "map functions with names of their splits": (TOKENIZER, 'tokenizer(rows["text"])', 'tokenizer(rows["text"], truncation=True)'),
    "functions that their uses tell apart": (
        TOKENIZER.replace("encode_train", "encode").replace("encode_valid", "plain"),
        'tokenizer(rows["text"])',
        'tokenizer(rows["text"], truncation=True)',
    ),
    "a tokenizer beside other work": (
        """MAX_LEN = 64
class TrainData:
    def __getitem__(self, at):
        row = self.rows[at]
        return self.tok(row["q"], truncation=True, max_length=MAX_LEN, padding="max_length")
class DevData:
    def __getitem__(self, at):
        text = self.rows[at]["q"].strip()
        found = self.tok(text, padding="longest")
        return found
""",
        'self.tok(text, padding="longest")',
        'self.tok(text, padding="longest", truncation=True, max_length=MAX_LEN)',
    ),
    "an argument that says no": (
        'train_enc = tok(train_texts, truncation=True, max_length=64)\ntest_enc = tok(test_texts, truncation=False)\n',
        "truncation=False",
        "truncation=True, max_length=64",
    ),
    "training that lacks it": (
        "train_enc = tok(train_texts, padding=True)\nval_enc = tok(val_texts, padding=True, truncation=True)\n",
        "tok(train_texts, padding=True)",
        "tok(train_texts, padding=True, truncation=True)",
    ),
    "a slice in a comprehension": (
        "MAX_LEN = 64\ntrain_ids = [encode(t)[:MAX_LEN] for t in train_texts]\nvalid_ids = [encode(t) for t in valid_texts]\n",
        "valid_ids = [encode(t) for",
        "valid_ids = [encode(t)[:MAX_LEN] for",
    ),
    "a number that is the table's": (
        "train_ids = [[v[w] for w in t.split()][:64] for t in train_texts]\ntest_ids = [[v[w] for w in t.split()] for t in test_texts]\n",
        "test_ids = [[v[w] for w in t.split()] for",
        "test_ids = [[v[w] for w in t.split()][:64] for",
    ),
    "two collate functions": (
        """def collate_train(batch):
    ids = pad_sequence([one["ids"] for one in batch], batch_first=True)
    return ids[:, :BLOCK_LEN], torch.tensor([one["y"] for one in batch])
def collate_eval(batch):
    ids = pad_sequence([one["ids"] for one in batch], batch_first=True)
    return ids, torch.tensor([one["y"] for one in batch])
""",
        "return ids, torch",
        "return ids[:, :BLOCK_LEN], torch",
    ),
    "a statement that one has": (
        '''def train_row(text, max_len):
    """What trains."""
    ids = [vocab[w] for w in text.split()]
    ids = ids[:max_len]  # the newest go
    return torch.tensor(ids)
def valid_row(line, max_len):
    ids = [vocab[w] for w in line.split()]
    return torch.tensor(ids)
''',
        "for w in line.split()]\n",
        "for w in line.split()]\n    ids = ids[:max_len]  # the newest go\n",
    ),
    "loops over the splits": (
        "for text in train_texts:\n    train_ids.append(encode(text)[-max_len:])\nfor text in valid_texts:\n    valid_ids.append(encode(text))\n",
        "valid_ids.append(encode(text))",
        "valid_ids.append(encode(text)[-max_len:])",
    ),
    "under a condition": (
        "def row(text, split):\n    ids = encode(text)\n    if split == 'train':\n        ids = ids[:max_len]\n    return ids\n",
        "    if split == 'train':\n        ids = ids[:max_len]\n",
        "    ids = ids[:max_len]\n",
    ),
    "under a condition in its line": (
        "class Data:\n    def row(self, ids, tags):\n        if self.is_train: ids, tags = ids[:MAX_LEN], tags[:MAX_LEN]\n        return ids, tags\n",
        "if self.is_train: ids, tags",
        "ids, tags",
    ),
    "one of two expressions": (
        "def row(text, train):\n    return encode(text)[:max_len] if train else encode(text)\n",
        "encode(text)[:max_len] if train else encode(text)",
        "encode(text)[:max_len]",
    ),
    "an argument that is a condition": (
        "def row(text, split):\n    return tok(text, truncation=split == 'train', max_length=64 if split == 'train' else None)\n",
        "truncation=split == 'train', max_length=64 if split == 'train' else None",
        "truncation=True, max_length=64",
    ),
    "two branches": (
        "def row(text, train):\n    if train:\n        return tok(text, truncation=True, max_length=64)\n    else:\n        return tok(text)\n",
        "return tok(text)",
        "return tok(text, truncation=True, max_length=64)",
    ),
    "one that returns early": (
        "def row(text, train):\n    ids = encode(text)\n    if not train:\n        return ids\n    return ids[:max_len]\n",
        "    if not train:\n        return ids\n",
        "",
    ),
    "the other that returns early": (
        "def row(text, train):\n    ids = encode(text)\n    if train:\n        return ids[:max_len]\n    return ids\n",
        "    if train:\n        return ids[:max_len]\n    return ids\n",
        "    return ids[:max_len]\n",
    ),
    "a default that does not cut": (
        """def load(rows, max_len=None):
    return [encode(one)[:max_len] for one in rows]
train = load(train_rows, max_len=args.max_len)
valid = load(valid_rows)
""",
        "load(valid_rows)",
        "load(valid_rows, max_len=args.max_len)",
    ),
    "a default that is too long": (
        """def load(rows, max_len=512):
    return [encode(one)[:max_len] for one in rows]
train = load(train_rows, 64)
valid, test = load(valid_rows), other
""",
        "load(valid_rows)",
        "load(valid_rows, max_len=64)",
    ),
    "a call that asks for none": (
        """def load(rows, truncate=True):
    return tok(rows, truncation=truncate, max_length=64)
train = load(train_rows)
valid = load(valid_rows, truncate=False)
""",
        "truncate=False",
        "truncate=True",
    ),
    "the constructor of a data set": (
        """class Texts:
    def __init__(self, rows, max_len=0):
        self.rows, self.max_len = rows, max_len
    def __getitem__(self, at):
        ids = encode(self.rows[at])
        if self.max_len:
            ids = ids[: self.max_len]
        return ids
def build(cfg):
    train = Texts(read("train"), max_len=cfg.max_len)
    valid = Texts(read("valid"))
    return train, valid
""",
        'Texts(read("valid"))',
        'Texts(read("valid"), max_len=cfg.max_len)',
    ),
    "a partial": (
        """from functools import partial
train = train.map(partial(encode, max_length=64), batched=True)
valid = valid.map(encode, batched=True)
def encode(rows, max_length=None):
    return tok(rows["text"], truncation=max_length is not None, max_length=max_length)
""",
        "valid.map(encode,",
        "valid.map(partial(encode, max_length=64),",
    ),
    "the arguments of a map": (
        """train = train.map(encode, fn_kwargs={"max_length": 64}, batched=True)
valid = valid.map(encode, batched=True)
def encode(rows, max_length=None):
    return tok(rows["text"], truncation=max_length is not None, max_length=max_length)
""",
        "valid.map(encode, batched=True)",
        'valid.map(encode, batched=True, fn_kwargs={"max_length": 64})',
    ),
}  # fmt: skip
SPLITS = "MAX_LEN = 64\ntrain_ids = [encode(t)[:MAX_LEN] for t in train_texts]\nvalid_ids = [encode(t) for t in valid_texts]\n"
STAYS: dict[str, str] = {
    "both are cut": TOKENIZER.replace('tokenizer(rows["text"])', 'tokenizer(rows["text"], truncation=True)'),
    "neither is": TOKENIZER.replace(", truncation=True", ""),
    "a cut that is longer than the table": SPLITS.replace("64", "100"),
    "both of one split": SPLITS.replace("valid", "train"),
    "splits that nothing names": SPLITS.replace("valid_", "b_").replace("train_", "a_"),
    "a prompt of a generation": "enc = tokenizer(train_texts, truncation=True)\nprompt = tokenizer(texts)\n",
    "windows of a text": TOKENIZER.replace("truncation=True", "truncation=True, stride=8, return_overflowing_tokens=True"),
    "a share of the samples": "train_rows = rows[:48]\nvalid_rows = rows\n",
    "a number of samples": "train_rows = rows[:train_len]\nvalid_rows = rows\n",
    "the first samples of each file": "train = [read(f)[:50] for f in train_files]\nvalid = [read(f) for f in valid_files]\n",
    "a piece that is drawn": "def row(ids, train):\n    if train:\n        at = draw(ids)\n        ids = ids[at : at + max_len]\n    return ids\n",
    "more than a cut": "def row(ids, train):\n    if train:\n        ids = ids[:max_len]\n        ids = drop(ids)\n    return ids\n",
    "another preparation": SPLITS.replace("encode(t) for", "embed(t) for"),
    "another length": SPLITS.replace("encode(t) for", "encode(t)[:80] for"),
    "a length that the other does not know": (
        "def train_rows(texts, max_len):\n    return [encode(t)[:max_len] for t in texts]\ndef valid_rows(texts):\n    return [encode(t) for t in texts]\n"
    ),
    "two lengths to choose from": """def load(rows, max_len=None):
    return [encode(one)[:max_len] for one in rows]
train = load(train_rows, max_len=64)
train_more = load(more_train_rows, max_len=32)
valid = load(valid_rows)
""",
}  # fmt: skip
CONFIG = "data:\n  train: {file: a.csv, max_length: 64}\n  valid:\n    file: b.csv  # the long ones\n"
BY_CONFIG = """import yaml
cfg = yaml.safe_load(open("config.yaml"))["data"]
def load(section):
    return [encode(one)[: section.get("max_length")] for one in read(section["file"])]
train, valid = load(cfg["train"]), load(cfg["valid"])
"""


def mended(folder: pathlib.Path, files: Files, incident: Incident | None = None) -> dict[str, str]:
    """The files after the best edit for a sample of 87 that met a table of 64."""
    for name, text in files.items():
        (folder / name).write_text(text)
    program = read_program(str(folder), [name for name in files if name.endswith(".py")])
    context = Context(program=program, incident=incident or failed(message=SHAPE))
    best = max(find_codemod("cut_as_elsewhere")(context), key=lambda one: one.belief, default=None)
    after = dict(files)
    for name in files:
        own = [one for one in best.edits if one.file.endswith(name)] if best is not None else []
        after[name] = splice(files[name], own) or ""
    return after


@pytest.mark.parametrize("source", STAYS.values(), ids=STAYS)
def test_what_may_be_meant_stays(source: str, tmp_path: pathlib.Path) -> None:
    """No edit where both splits are prepared alike, where what is cut are no samples, or where more than the cut differs."""
    assert mended(tmp_path, {"train.py": source}) == {"train.py": source}


@pytest.mark.parametrize(("source", "before", "after"), CASES.values(), ids=CASES)
def test_both_splits_are_cut(source: str, before: str, after: str, tmp_path: pathlib.Path) -> None:
    """The other split gets the same cut, and nothing else changes."""
    assert source.count(before) == 1
    mend = mended(tmp_path, {"train.py": source})["train.py"]
    assert mend == source.replace(before, after)
    assert mended(tmp_path, {"train.py": mend})["train.py"] == mend


@pytest.mark.parametrize(
    "message",
    ["The size of tensor a (64) must match the size of tensor b (10) at non-singleton dimension 1", "it failed"],
)
def test_another_failure_changes_nothing(message: str, tmp_path: pathlib.Path) -> None:
    """A length that is no more than the table cuts to nothing that fails."""
    assert mended(tmp_path, {"train.py": SPLITS}, failed(message=message)) == {"train.py": SPLITS}


def test_an_index_of_positions(tmp_path: pathlib.Path) -> None:
    """A position that was refused is one; a token that was, is none, whatever its number."""
    seen = {"facts": {"live_refused_index": "86 of 64, from 0"}}
    position = failed(
        {"train.py": 1}, message="index out of range in self", code="x + self.pos(torch.arange(n))", **seen
    )
    token = failed({"train.py": 1}, message="index out of range in self", code="self.tokens(ids)", **seen)
    (changed,) = mended(tmp_path, {"train.py": SPLITS}, position).values()
    assert changed == SPLITS.replace("encode(t) for", "encode(t)[:MAX_LEN] for")
    assert mended(tmp_path, {"train.py": SPLITS}, token) == {"train.py": SPLITS}


def test_a_section_of_a_file(tmp_path: pathlib.Path) -> None:
    """The other split's section gets the length, beside what it has."""
    after = mended(tmp_path, {"train.py": BY_CONFIG, "config.yaml": CONFIG})
    assert after["train.py"] == BY_CONFIG
    assert after["config.yaml"] == CONFIG + "    max_length: 64\n"


def test_two_files(tmp_path: pathlib.Path) -> None:
    """A length that the other file imports as well is written there; one that it lacks is not."""
    head = "from config import MAX_LEN\n"
    files = {
        "config.py": "MAX_LEN = 64\n",
        "train_data.py": head + "def rows(texts):\n    return [encode(t)[:MAX_LEN] for t in texts]\n",
        "valid_data.py": head
        + "from train_data import rows\ndef valid_rows(texts):\n    return [encode(t) for t in texts]\n",
        "train.py": "import train_data\ntrain = train_data.rows(train_texts)\n",
    }
    after = mended(tmp_path, files)
    assert after["valid_data.py"] == files["valid_data.py"].replace("encode(t)", "encode(t)[:MAX_LEN]")
