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
    "both sets": (ROWS + "Trainer(\n    model=net,\n    train_dataset=train,\n    eval_dataset=held,\n)\n", BOTH,
                  ["train_dataset=train.rename_column('kind', 'labels'),", "eval_dataset=held.rename_column('kind', 'labels'),"]),
}  # fmt: skip
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


@pytest.mark.parametrize(("source", "words"), NAMED.values(), ids=NAMED)
def test_the_line_is_where_the_column_is_named(tmp_path: pathlib.Path, source: str, words: str) -> None:
    source += "Trainer(model=net, eval_dataset=held)\n"
    program = write(tmp_path, {"train.py": source})
    proposal = best("rename_label_column", program, incident=failed(facts=facts(EVALUATION)))
    assert proposal is not None
    assert proposal.culprit.line == line_of(source, words)
    assert splice(source, proposal.edits) is not None
