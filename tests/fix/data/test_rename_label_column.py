"""The column that holds the labels is renamed where the Trainer gets its data set."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.splice import splice
from explainer.model.incident import LABEL_COLUMN
from tests.fix.rewriting import best, changed_lines, failed, line_of, rewritten, write

IMPORTS = "from transformers import Trainer, TrainingArguments\n"
ROWS = IMPORTS + "rows = [{'input_ids': [1], 'kind': 2, 'level': 0.5}]\n"
EVALUATION = "eval_dataset: kind -> labels"
BOTH = "train_dataset: kind -> labels, eval_dataset: kind -> labels"

# The program, and what its values told: nothing is proposed.
STAYS = {
    "nothing is told": (ROWS + "Trainer(model=net, eval_dataset=held)\n", ""),
    "no Trainer": (ROWS + "fit(net, eval_dataset=held)\n", EVALUATION),
    "a Trainer without the set": (ROWS + "Trainer(model=net, train_dataset=rows)\n", EVALUATION),
    "a set that may be none": (ROWS + "Trainer(model=net, eval_dataset=held if n else None)\n", EVALUATION),
    "sets by name": (ROWS + "Trainer(model=net, eval_dataset={'a': one, 'b': two})\n", EVALUATION),
    "options from elsewhere": (ROWS + "Trainer(model=net, **sets)\n", EVALUATION),
}
RENAMED = {
    "a name": (ROWS + "Trainer(model=net, eval_dataset=held)\n", EVALUATION,
               ["Trainer(model=net, eval_dataset=held.rename_column('kind', 'labels'))"]),
    "a call": (ROWS + "Trainer(model=net, eval_dataset=read(3))\n", EVALUATION,
               ["Trainer(model=net, eval_dataset=read(3).rename_column('kind', 'labels'))"]),
    "a split": (ROWS + "Trainer(model=net, eval_dataset=data['test'])\n", EVALUATION,
                ["Trainer(model=net, eval_dataset=data['test'].rename_column('kind', 'labels'))"]),
    "by its place": (ROWS + "Trainer(net, args, None, train, held)\n", EVALUATION,
                     ["Trainer(net, args, None, train, held.rename_column('kind', 'labels'))"]),
    "a Trainer of the program's": (ROWS + "class Own(Trainer):\n    pass\nOwn(model=net, eval_dataset=held)\n", EVALUATION,
                                   ["Own(model=net, eval_dataset=held.rename_column('kind', 'labels'))"]),
    "both sets": (IMPORTS + "rows = read('rows')\nTrainer(\n    model=net,\n    train_dataset=train,\n    eval_dataset=held,\n)\n", BOTH,
                  ["train_dataset=train.rename_column('kind', 'labels'),", "eval_dataset=held.rename_column('kind', 'labels'),"]),
}  # fmt: skip
SETS = "Trainer(model=net, train_dataset=read(0), eval_dataset=read(1))\n"
# Where a column that lacks its name in all sets is made.
MADE = {
    "a key that is written": (IMPORTS + "def encode(row):\n    row['target_ids'] = ids(row)\n    return row\n" + SETS, "row['labels'] = ids(row)"),
    "a row": (IMPORTS + "def encode(row):\n    return {'input_ids': ids(row), 'target_ids': ids(row)}\n" + SETS,
              "return {'input_ids': ids(row), 'labels': ids(row)}"),
    "another quote": (IMPORTS + 'def encode(row):\n    row["target_ids"] = ids(row)\n' + SETS, 'row["labels"] = ids(row)'),
}  # fmt: skip
# What else names the column, which then gets its name where the Trainer is given the set.
ELSEWHERE = {
    "it is read": "def length(row):\n    return len(row['target_ids'])\n",
    "it is an attribute": "def length(row):\n    return len(row.target_ids)\n",
    "it is in a query": "query = 'select input_ids, target_ids from rows'\n",
    "it is made by a keyword": "other = dict(target_ids=[])\n",
}
IDS = "train_dataset: target_ids -> labels, eval_dataset: target_ids -> labels"
# Where the column is named, or else where it comes in.
NAMED = {
    "a key of rows": (ROWS, "'kind': 2"),
    "beside a dictionary of anything": (
        IMPORTS + "plan = {'kind': 'linear'}\nrows = {'pixel_values': [], 'kind': []}\n",
        "pixel",
    ),
    "a column that gets the name": (IMPORTS + "held = held.rename_column('stars', 'kind')\n", "stars"),
    "a table from elsewhere": (IMPORTS, "eval_dataset"),
}


def facts(told: str) -> dict[str, str]:
    return {LABEL_COLUMN: told} if told else {}


@pytest.mark.parametrize(("source", "told"), STAYS.values(), ids=STAYS)
def test_other_programs_stay(tmp_path: pathlib.Path, source: str, told: str) -> None:
    """Nothing that a Trainer is given lacks labels, or it is not known to be a data set."""
    assert rewritten(tmp_path, "rename_label_column", source, facts=facts(told)) == source


@pytest.mark.parametrize(("source", "told", "wanted"), RENAMED.values(), ids=RENAMED)
def test_it_is_renamed(tmp_path: pathlib.Path, source: str, told: str, wanted: list[str]) -> None:
    """In every set that lacks labels."""
    after = rewritten(tmp_path, "rename_label_column", source, facts=facts(told))
    assert changed_lines(source, after) == wanted


@pytest.mark.parametrize(("source", "wanted"), MADE.values(), ids=MADE)
def test_it_gets_its_name_where_it_is_made(tmp_path: pathlib.Path, source: str, wanted: str) -> None:
    """Where nothing else of the program names it, and no set of the Trainer has labels."""
    assert changed_lines(source, rewritten(tmp_path, "rename_label_column", source, facts=facts(IDS))) == [wanted]


@pytest.mark.parametrize("other", ELSEWHERE.values(), ids=ELSEWHERE)
def test_it_is_made_as_before_where_it_is_read(tmp_path: pathlib.Path, other: str) -> None:
    """So too where one set has labels."""
    source = MADE["a row"][0]
    after = rewritten(tmp_path, "rename_label_column", source + other, facts=facts(IDS))
    assert "'input_ids': ids(row), 'target_ids': ids(row)" in after
    assert "read(0).rename_column('target_ids', 'labels')" in after
    after = rewritten(tmp_path, "rename_label_column", source, facts=facts("eval_dataset: target_ids -> labels"))
    assert "'target_ids': ids(row)" in after


def test_a_column_that_the_failure_asks_for_keeps_its_name(tmp_path: pathlib.Path) -> None:
    """`KeyError: 'target_ids'` in a loss of the program's own."""
    source = MADE["a row"][0]
    given = {"facts": facts(IDS), "fields": {"column": "target_ids"}}
    assert rewritten(tmp_path, "rename_label_column", source, **given) == source


@pytest.mark.parametrize(("source", "words"), NAMED.values(), ids=NAMED)
def test_the_line_is_where_the_column_is_named(tmp_path: pathlib.Path, source: str, words: str) -> None:
    source += "Trainer(model=net, eval_dataset=held)\n"
    program = write(tmp_path, {"train.py": source})
    proposal = best("rename_label_column", program, incident=failed(facts=facts(EVALUATION)))
    assert proposal is not None
    assert proposal.culprit.line == line_of(source, words)
    assert splice(source, proposal.edits) is not None
