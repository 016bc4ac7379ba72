"""Options that do not go together are named where they are set, and nothing is edited."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.source.program import read_program
from tests.fix.rewriting import failed

FORMATTER = (
    "A formatting function was provided while `completion_only_loss=True`, which is incompatible. To resolve this, apply your "
    "formatting function before passing the dataset, or disable `completion_only_loss` in `SFTConfig`."
)
ITERABLE = (
    "`precompute_ref_log_probs=True` is not supported with IterableDataset. Please use a map-style Dataset or set "
    "`precompute_ref_log_probs=False`."
)
TWO = "'generation_batch_size' and 'steps_per_generation' can not be both configured at the same time"
HEAD = "import json\nimport yaml\nfrom dataclasses import dataclass, field\nfrom trl import DPOConfig, SFTConfig, SFTTrainer\n"
TRAINER = "trainer = SFTTrainer(model=m, args=args, formatting_func=as_text)\n"
OTHER = {
    "an option that is off": ({"train.py": HEAD + "args = SFTConfig(completion_only_loss=False)\n" + TRAINER}, FORMATTER),
    "an option that is left alone": ({"train.py": HEAD + "args = SFTConfig(seed=1)\n" + TRAINER}, FORMATTER),
    "a bare variable": ({"train.py": HEAD + "completion_only_loss = True\nargs = SFTConfig(seed=1)\n" + TRAINER}, FORMATTER),
    "an option that is missing": (
        {"train.py": HEAD + 'args = SFTConfig(eval_strategy="no")\ntrainer = SFTTrainer(model=m, args=args)\n'},
        "Trainer: training requires a train_dataset.",
    ),
    "another option of a file": ({"args.json": '{"packing": true}\n', "train.py": HEAD + 'args = SFTConfig(**json.load(open("args.json")))\n'}, FORMATTER),
    "a metric that is logged": (
        {"train.py": HEAD + 'class Net(LightningModule):\n    def validation_step(self, batch):\n        self.log_dict({"val_loss": self.loss(batch)})\n'},
        "Early stopping conditioned on metric `valid_loss` which is not available. Pass in any of the following: `val_loss`",
    ),
    "a message that names none": ({"train.py": HEAD + "args = SFTConfig(packing=True)\n"}, "Cannot specify both"),
}  # fmt: skip
SET = {
    "a file that reaches the configuration by **": (
        {"sft.json": '{\n  "seed": 1,\n  "completion_only_loss": true\n}\n',
         "train.py": HEAD + 'settings = json.loads(open("sft.json").read())\nargs = SFTConfig(output_dir="o", **settings)\n' + TRAINER},
        FORMATTER,
        ['"completion_only_loss": true'],
    ),
    "a section of a file, of which another program's is left alone": (
        {"old.json": '{"completion_only_loss": true}\n', "run.yaml": "trainer:\n  completion_only_loss: true\n  seed: 1\n",
         "train.py": HEAD + 'cfg = yaml.safe_load(open("run.yaml"))\nargs = SFTConfig(**cfg["trainer"])\n' + TRAINER},
        FORMATTER,
        ["completion_only_loss: true"],
    ),
    "an entry of a file that a keyword passes on": (
        {"run.yaml": "only_answers: true\n",
         "train.py": HEAD + 'cfg = yaml.safe_load(open("run.yaml"))\nargs = SFTConfig(completion_only_loss=cfg["only_answers"])\n' + TRAINER},
        FORMATTER,
        ["only_answers: true"],
    ),
    "a keyword": ({"train.py": HEAD + "args = SFTConfig(\n    seed=1,\n    completion_only_loss=True,\n)\n" + TRAINER}, FORMATTER,
                  ["completion_only_loss=True"]),
    "a dictionary": (
        {"train.py": HEAD + 'SETTINGS = {\n    "completion_only_loss": True,\n}\nargs = SFTConfig(**SETTINGS)\n' + TRAINER}, FORMATTER,
        ['"completion_only_loss": True'],
    ),
    "a field of a dataclass that a parser fills": (
        {"train.py": HEAD + "@dataclass\nclass Options(SFTConfig):\n    completion_only_loss: bool = field(default=True)\n\n"
         "args = Parser(Options).parse()\n" + TRAINER},
        FORMATTER,
        ["completion_only_loss: bool"],
    ),
    "a configuration file that the launcher is given": (
        {"sft_config.yaml": "seed: 1\ncompletion_only_loss: yes\n", "train.py": HEAD + "args = TrlParser(SFTConfig).parse()\n" + TRAINER},
        FORMATTER,
        ["completion_only_loss: yes"],
    ),
    "a value that the message says, and the other that it advises": (
        {"train.py": HEAD + "args = DPOConfig(precompute_ref_log_probs=True)\n"}, ITERABLE, ["precompute_ref_log_probs=True"],
    ),
    "both of two": (
        {"train.py": HEAD + "args = GRPOConfig(\n    generation_batch_size=8,\n    steps_per_generation=2,\n)\n"}, TWO,
        ["generation_batch_size=8", "steps_per_generation=2"],
    ),
    "a value in quotes": (
        {"train.py": HEAD + 'trainer = L.Trainer(\n    max_epochs=1,\n    strategy="ddp",\n)\n'},
        "`Trainer(strategy='ddp')` is not compatible with an interactive environment.",
        ['strategy="ddp"'],
    ),
}  # fmt: skip


def lines(files: Mapping[str, str], message: str, folder: pathlib.Path) -> list[str]:
    for name, text in files.items():
        (folder / name).write_text(text)
    program = read_program(str(folder), ["train.py"])
    incident = failed({"train.py": len(files["train.py"].splitlines())}, message)
    found = list(find_codemod("options_that_conflict")(Context(program=program, incident=incident)))
    assert not any(one.edits for one in found)
    return [one.culprit.code or "" for one in found]


@pytest.mark.parametrize(("files", "message"), OTHER.values(), ids=OTHER)
def test_options_that_are_not_set(files: Mapping[str, str], message: str, tmp_path: pathlib.Path) -> None:
    """What is off, missing or only has the name is not what the library speaks of."""
    assert lines(files, message, tmp_path) == []


@pytest.mark.parametrize(("files", "message", "wanted"), SET.values(), ids=SET)
def test_where_options_are_set(
    files: Mapping[str, str], message: str, wanted: list[str], tmp_path: pathlib.Path
) -> None:
    """The line of the program or of the file whose value reaches the library, in the order of the message."""
    found = lines(files, message, tmp_path)
    assert len(found) == len(wanted)
    assert all(words in line for words, line in zip(wanted, found, strict=True))
