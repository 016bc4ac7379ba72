"""Failures whose cause stands in a configuration file or a launch script, from the run that fails to the one that trains."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

from explainer.workflow import explain_incident, plan_report

PROGRAM = """\
import torch
import yaml
from transformers import BertConfig, BertForSequenceClassification, HfArgumentParser, Trainer, TrainingArguments

torch.manual_seed(0)
size = BertConfig(vocab_size=32, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
model = BertForSequenceClassification(size)
rows = [{{"input_ids": [1, 2, 3], "labels": 1}}] * 8
{arguments}
Trainer(model=model, args=arguments, train_dataset=rows, eval_dataset=rows).train()
"""
FROM_YAML = 'arguments = TrainingArguments(**yaml.safe_load(open("args.yaml")))'
FROM_FLAGS = "(arguments,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()"
YAML = "output_dir: out  # kept\nmax_steps: 1\nreport_to: none\nuse_cpu: true\n"
SCRIPT = "$PYTHON train.py --output_dir out --max_steps 1 \\\n  --report_to none --use_cpu true \\\n  {} steps\n"
# How the arguments are read, the file that is wrong, and that file as it must become.
CASES = {
    "two precisions": (FROM_YAML, "args.yaml", YAML + "bf16: true\nfp16: true  # T4\n", YAML + "bf16: true\n"),
    "saving without evaluation": (
        FROM_YAML,
        "args.yaml",
        YAML + "load_best_model_at_end: true\nsave_strategy: epoch\n",
        YAML + "load_best_model_at_end: true\nsave_strategy: epoch\neval_strategy: epoch\n",
    ),
    "saving at the steps that are written": (
        FROM_YAML,
        "args.yaml",
        YAML + "load_best_model_at_end: true\neval_strategy: steps\nsave_strategy: epoch\nsave_steps: 1\neval_steps: 1\n",
        YAML + "load_best_model_at_end: true\neval_strategy: steps\nsave_strategy: steps\nsave_steps: 1\neval_steps: 1\n",
    ),
    "a flag of an old release": (FROM_FLAGS, "run.sh", SCRIPT.format("--evaluation_strategy"), SCRIPT.format("--eval_strategy")),
}  # fmt: skip


def run(folder: pathlib.Path) -> subprocess.CompletedProcess:
    command = ["bash", "run.sh"] if (folder / "run.sh").exists() else [sys.executable, "train.py"]
    environment = {**os.environ, "PYTHON": sys.executable, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.parametrize(
    ("arguments", "name", "before", "after"),
    [pytest.param(*one, id=name) for name, one in CASES.items()],
)
def test_settings_train(arguments, name, before, after, tmp_path: pathlib.Path, read, catalog) -> None:
    """The run fails, its first culprit lies in the file of settings, and with the first fix it trains."""
    pytest.importorskip("transformers")
    (tmp_path / "train.py").write_text(PROGRAM.format(arguments=arguments))
    (tmp_path / name).write_text(before)
    failed = run(tmp_path)
    assert failed.returncode
    report = plan_report(explain_incident(read(failed.stderr), None, catalog), catalog, str(tmp_path))
    assert report.findings[0].culprits[0].file.endswith(name)
    (change,) = report.findings[0].fixes[0].changes
    assert change.after.decode() == after
    (tmp_path / name).write_bytes(change.after)
    assert run(tmp_path).returncode == 0
