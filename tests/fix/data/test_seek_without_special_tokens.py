"""A template's ids are made without special tokens where they are sought in the ids of a longer text."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from tests.fix.rewriting import changed_lines, failed, rewritten, write

NAME = "seek_without_special_tokens"
HEAD = """from transformers import AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("folder")
"""
SEARCH = """
def mask(seq):
    labels = [-100] * len(seq)
    for i in range(len(seq) - len(part) + 1):
        if seq[i:i + len(part)] == part:
            labels[i + len(part):] = seq[i + len(part):]
    return labels
"""

STAY = {
    "said already": HEAD + 'part = tokenizer("A:", add_special_tokens=False)["input_ids"]\n' + SEARCH,
    "options that are not seen": HEAD + 'part = tokenizer("A:", **options)["input_ids"]\n' + SEARCH,
    "the first id is cut off": HEAD + 'part = tokenizer("A:")["input_ids"][1:]\n' + SEARCH,
    "both ends are cut off": HEAD + 'whole = tokenizer.encode("A:")\npart = whole[1:-1]\n' + SEARCH,
    "cut where it is sought": HEAD
    + 'ids = tokenizer.encode("A:")\n'
    + SEARCH.replace("(seq):", "(seq, part=None):\n    part = ids[1:]"),
    "joined to an answer": HEAD
    + 'part = tokenizer("A:")["input_ids"]\n'
    + SEARCH
    + "\ndef prompt(answer):\n    return part + answer\n",
    "given to a model": HEAD
    + 'part = tokenizer("A:", return_tensors="pt")["input_ids"][0]\n'
    + SEARCH
    + "\ndef sample(model):\n    return model.generate(part)\n",
    "the beginning of a text": HEAD
    + """part = tokenizer("Q:")["input_ids"]

def mask(seq):
    if seq[:len(part)] == part:
        return [-100] * len(part) + seq[len(part):]
    return seq
""",
    "the end of a text": HEAD
    + """part = tokenizer("A:")["input_ids"]

def is_over(seq):
    return seq[-len(part):] == part and seq[-1] != -100
""",
    "what a prompt measures": HEAD
    + """
def encode(row):
    prompt = tokenizer(row["prompt"])["input_ids"]
    ids = tokenizer(row["prompt"] + row["answer"])["input_ids"]
    return {"input_ids": ids, "labels": [-100] * len(prompt) + ids[len(prompt):]}
""",
    "texts by the same helper": HEAD
    + """
def ids_of(text):
    return tokenizer(text)["input_ids"]

part = ids_of("A:")

def encode(row):
    return {"input_ids": ids_of(row["text"])}
"""
    + SEARCH,
    "no labels are masked": HEAD
    + 'part = tokenizer("A:")["input_ids"]\n'
    + """
def find(seq):
    for i in range(len(seq)):
        if seq[i:i + len(part)] == part:
            return i
""",
    "a tokenizer of the program": """class Tokenizer:
    def encode(self, text):
        return [ord(one) for one in text]

tokenizer = Tokenizer()
part = tokenizer.encode("A:")
"""
    + SEARCH,
    "tiktoken": 'import tiktoken\n\ntokenizer = tiktoken.get_encoding("gpt2")\npart = tokenizer.encode("A:")\n'
    + SEARCH,
    "sentencepiece": """from sentencepiece import SentencePieceProcessor

tok = SentencePieceProcessor(model_file="m.model")
part = tok.encode("A:")
"""
    + SEARCH,
    "bytes of a text": 'part = "A:".encode("utf-8")\n' + SEARCH,
    "a model that has no special tokens": HEAD.replace("folder", "openai-community/gpt2")
    + 'part = tokenizer("A:")["input_ids"]\n'
    + SEARCH,
    "a tokenizer made without them": """from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

core = Tokenizer(models.WordLevel({"A:": 0}))
tokenizer = PreTrainedTokenizerFast(tokenizer_object=core)
part = tokenizer("A:")["input_ids"]
"""
    + SEARCH,
    "ids of words": HEAD + 'part = tokenizer.convert_tokens_to_ids(["A", ":"])\n' + SEARCH,
    "a pair of texts": HEAD + 'part = tokenizer("A:", "B:")["input_ids"]\n' + SEARCH,
}

COLLATOR = """import torch


def find(sequence, part):
    for i in range(len(sequence) - len(part) + 1):
        if sequence[i:i + len(part)] == part:
            return i
    return -1


class AnswerOnly:
    def __init__(self, tokenizer, template):
        self.pad = tokenizer.pad_token_id
        self.template = tokenizer(template)["input_ids"]

    def __call__(self, rows):
        labels = torch.full((len(rows), 9), -100)
        for i, row in enumerate(rows):
            at = find(row["input_ids"], self.template)
            if at >= 0:
                start = at + len(self.template)
                labels[i, start:] = torch.tensor(row["input_ids"][start:])
        return {"labels": labels}
"""
MAIN = HEAD + "from collate import AnswerOnly\n\ncollate = AnswerOnly(tokenizer, '### Answer:')\n"

CURED = {
    "slices in a loop": (
        HEAD + 'part = tokenizer("A:")["input_ids"]\n' + SEARCH,
        ['part = tokenizer("A:", ADD)["input_ids"]'],
    ),
    "an attribute": (HEAD + 'part = tokenizer("A:").input_ids\n' + SEARCH, ['part = tokenizer("A:", ADD).input_ids']),
    "by encode": (HEAD + 'part = tokenizer.encode("A:")\n' + SEARCH, ['part = tokenizer.encode("A:", ADD)']),
    "an encoding with a name": (
        HEAD + 'made = tokenizer("A:")\npart = made["input_ids"]\n' + SEARCH,
        ['made = tokenizer("A:", ADD)'],
    ),
    "an encoding of tokenizers": (
        """from tokenizers import Tokenizer

words = Tokenizer.from_file("words.json")
part = words.encode("A:").ids
"""
        + SEARCH,
        ['part = words.encode("A:", ADD).ids'],
    ),
    "a collator in a file": (HEAD + COLLATOR, ['self.template = tokenizer(template, ADD)["input_ids"]']),
    "tensors": (
        HEAD
        + """import torch

marker = tokenizer(cfg.marker, return_tensors="pt")["input_ids"][0]

def labels_of(ids):
    labels = torch.full_like(ids, -100)
    n = marker.shape[0]
    for start in range(ids.size(0) - n):
        if (ids[start:start + n] == marker).all():
            labels[start + n:] = ids[start + n:]
    return labels
""",
        ['marker = tokenizer(cfg.marker, return_tensors="pt", ADD)["input_ids"][0]'],
    ),
    "unfolded": (
        HEAD
        + """import torch

def labels_of(ids, tok):
    end = torch.tensor(tok.encode("[/INST]"))
    hits = (ids.unfold(0, len(end), 1) == end).all(-1).nonzero()
    return ids.masked_fill(torch.arange(len(ids)) < hits[0] + len(end), -100)
""",
        ['end = torch.tensor(tok.encode("[/INST]", ADD))'],
    ),
    "sliding windows": (
        HEAD
        + """import numpy as np

IGNORE_INDEX = -100
key = np.array(tokenizer.encode("Answer"))

def preprocess(example):
    ids = np.array(example["input_ids"])
    windows = np.lib.stride_tricks.sliding_window_view(ids, len(key))
    at = np.flatnonzero((windows == key).all(axis=1))
    labels = np.full_like(ids, IGNORE_INDEX)
    for one in at:
        labels[one + len(key):] = ids[one + len(key):]
    return {"labels": labels}
""",
        ['key = np.array(tokenizer.encode("Answer", ADD))'],
    ),
    "a helper in a step of a map": (
        HEAD
        + """
def index_of(haystack, needle):
    n = len(needle)
    return next((k for k in range(len(haystack)) if haystack[k:k + n] == needle), None)

def preprocess(example, response_ids):
    ids = tokenizer(example["text"])["input_ids"]
    at = index_of(ids, response_ids)
    labels = list(ids)
    labels[:at] = [-100] * (len(ids) if at is None else at)
    return {"input_ids": ids, "labels": labels}

rows = rows.map(preprocess, fn_kwargs={"response_ids": tokenizer(RESPONSE)["input_ids"]})
""",
        ['rows = rows.map(preprocess, fn_kwargs={"response_ids": tokenizer(RESPONSE, ADD)["input_ids"]})'],
    ),
    "a partial": (
        HEAD
        + """from functools import partial

def encode(row, marker):
    ids = tokenizer(row["text"]).input_ids
    labels = [-100] * len(ids)
    i = 0
    while i < len(ids):
        if ids[i:i + len(marker)] == marker:
            labels[i + len(marker):] = ids[i + len(marker):]
        i += 1
    return {"labels": labels}

rows = rows.map(partial(encode, marker=tokenizer("A:").input_ids))
""",
        ['rows = rows.map(partial(encode, marker=tokenizer("A:", ADD).input_ids))'],
    ),
    "id by id": (
        HEAD
        + """
class Collator:
    def __init__(self, tok):
        self.response = tok.encode("A:")

    def starts(self, seq, at):
        return all(seq[at + k] == one for k, one in enumerate(self.response))

    def __call__(self, rows):
        return [[-100 if not self.starts(row, k) else row[k] for k in range(len(row))] for row in rows]
""",
        ['self.response = tok.encode("A:", ADD)'],
    ),
    "side by side": (
        HEAD
        + """
part = tokenizer.encode("A:")

def mask(seq):
    at = [i for i in range(len(seq)) if all(a == b for a, b in zip(seq[i:], part))]
    return [-100] * len(seq) if not at else [-100] * at[0] + seq[at[0]:]
""",
        ['part = tokenizer.encode("A:", ADD)'],
    ),
    "two templates": (
        HEAD
        + """
class Collator:
    def __init__(self, tok):
        self.user, self.bot = tok.encode("Q:"), tok.encode("A:")

    def find(self, ids, key):
        return [i for i in range(len(ids)) if ids[i:i + len(key)] == key]

    def __call__(self, ids):
        labels = [-100] * len(ids)
        for a, b in zip(self.find(ids, self.bot), self.find(ids, self.user)):
            labels[a:b] = ids[a:b]
        return labels
""",
        ['self.user, self.bot = tok.encode("Q:", ADD), tok.encode("A:", ADD)'],
    ),
    "a table of templates": (
        HEAD
        + """
marks = {"user": tokenizer.encode("Q:"), "model": tokenizer.encode("A:")}

def at(ids, key):
    return [i for i in range(len(ids)) if ids[i:i + len(key)] == key]

def mask(ids):
    (start,), (end,) = at(ids, marks["model"]), at(ids, marks["user"])
    return [-100] * start + ids[start:end] + [-100] * (len(ids) - end)
""",
        ['marks = {"user": tokenizer.encode("Q:", ADD), "model": tokenizer.encode("A:", ADD)}'],
    ),
    "several templates in a list": (
        HEAD
        + """
marks = [tokenizer.encode(one) for one in ("A:", "Answer:")]

def mask(ids):
    for mark in marks:
        for i in range(len(ids)):
            if ids[i:i + len(mark)] == mark:
                return [-100] * i + ids[i:]
    return [-100] * len(ids)
""",
        ['marks = [tokenizer.encode(one, ADD) for one in ("A:", "Answer:")]'],
    ),
    "a collator of trl": (
        HEAD
        + """from trl import DataCollatorForCompletionOnlyLM

collate = DataCollatorForCompletionOnlyLM(tokenizer.encode("A:"), tokenizer=tokenizer, ignore_index=-100)
""",
        [
            'collate = DataCollatorForCompletionOnlyLM(tokenizer.encode("A:", ADD), tokenizer=tokenizer, ignore_index=-100)'
        ],
    ),
    "as trl looks": (
        HEAD
        + """import numpy as np

class Collator:
    ignore_index = -100

    def __init__(self, template, tokenizer):
        self.response_token_ids = tokenizer.encode(template)

    def __call__(self, labels):
        found = None
        for idx in np.where(labels == self.response_token_ids[0])[0]:
            if self.response_token_ids == labels[idx : idx + len(self.response_token_ids)].tolist():
                found = idx
        labels[: found] = self.ignore_index
        return labels
""",
        ["self.response_token_ids = tokenizer.encode(template, ADD)"],
    ),
    "a property": (
        HEAD
        + """
class Masker:
    @property
    def key(self):
        return tokenizer.encode(self.text)

    def __call__(self, ids):
        spans = [ids[i:i + len(self.key)] for i in range(len(ids))]
        return [-100] * len(ids) if self.key not in spans else ids
""",
        ["return tokenizer.encode(self.text, ADD)"],
    ),
    "a tokenizer of its own making": (
        """from tokenizers import Tokenizer, models, processors
from transformers import PreTrainedTokenizerFast

def make_tokenizer():
    core = Tokenizer(models.WordLevel({"A:": 0}))
    core.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 2)])
    return PreTrainedTokenizerFast(tokenizer_object=core)

words = make_tokenizer()
part = words("A:")["input_ids"]
"""
        + SEARCH,
        ['part = words("A:", ADD)["input_ids"]'],
    ),
}


@pytest.mark.parametrize("source", STAY.values(), ids=STAY)
def test_no_edit(source: str, tmp_path: pathlib.Path) -> None:
    """Where special tokens are meant, are none, or are off already."""
    assert rewritten(tmp_path, NAME, source) == source


@pytest.mark.parametrize(("source", "lines"), CURED.values(), ids=CURED)
def test_edit(source: str, lines: list[str], tmp_path: pathlib.Path) -> None:
    """The call that makes the ids says it, once."""
    after = rewritten(tmp_path, NAME, source)
    assert changed_lines(source, after) == [one.replace("ADD", "add_special_tokens=False") for one in lines]
    assert rewritten(tmp_path, NAME, after) == after


@pytest.mark.parametrize("name", ["said already", "the first id is cut off", "a model that has no special tokens"])
def test_nothing_is_said(name: str, tmp_path: pathlib.Path) -> None:
    """Ids without special tokens are no fault."""
    program = write(tmp_path, {"train.py": STAY[name]})
    assert list(find_codemod(NAME)(Context(program=program, incident=failed()))) == []


def test_joined_ids_are_named(tmp_path: pathlib.Path) -> None:
    """Where the ids are also the beginning of a prompt, the lines are shown."""
    program = write(tmp_path, {"train.py": STAY["joined to an answer"]})
    found = list(find_codemod(NAME)(Context(program=program, incident=failed())))
    assert [(one.edits, one.culprit.code) for one in found] == [
        ((), 'part = tokenizer("A:")["input_ids"]'),
        ((), "if seq[i:i + len(part)] == part:"),
    ]


def test_another_file(tmp_path: pathlib.Path) -> None:
    """The call leads, the search is the second line."""
    program = write(tmp_path, {"train.py": MAIN, "collate.py": COLLATOR})
    first, second = find_codemod(NAME)(Context(program=program, incident=failed()))
    (path,) = {edit.file for edit in first.edits}
    after = splice(program.files[path].text, first.edits)
    assert changed_lines(COLLATOR, after or "") == [
        'self.template = tokenizer(template, add_special_tokens=False)["input_ids"]'
    ]
    assert second.culprit.code == "if sequence[i:i + len(part)] == part:"


@pytest.mark.parametrize(("name", "applicability"), [("by encode", None), ("two templates", "unsafe")])
def test_several_templates_are_asked_for(name: str, applicability: str | None, tmp_path: pathlib.Path) -> None:
    """One of them may be meant to stand at the beginning."""
    program = write(tmp_path, {"train.py": CURED[name][0]})
    first = next(iter(find_codemod(NAME)(Context(program=program, incident=failed()))))
    assert first.applicability == applicability


def test_without_a_failure(tmp_path: pathlib.Path) -> None:
    program = write(tmp_path, {"train.py": HEAD + COLLATOR})
    assert list(find_codemod(NAME)(Context(program=program))) == []
