"""The callbacks, in real trainings of transformers, TRL and Lightning: a crash, a silent fault, and nothing at all."""

from __future__ import annotations

import copy
import os
import pathlib
import pickle
import subprocess
import sys

import pytest

from explainer.errors import SilentFailure
from tests import forked
from tests.conftest import PATH
from tests.live.running import LIBRARIES

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def _here(monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def trainer(callback, *, cut: bool = False, spoilt: bool = False, **options):
    """A tiny transformers Trainer; with its loss cut off from the model, or with weights that overflow."""
    transformers = pytest.importorskip("transformers")

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.head = torch.nn.Embedding(8, 4), torch.nn.Linear(4, 8)

        def forward(self, input_ids, labels):
            hidden = self.embed(input_ids)
            hidden = hidden.log() if spoilt else hidden
            loss = torch.nn.functional.cross_entropy(self.head(hidden).transpose(1, 2), labels)
            return {"loss": loss.detach() if cut else loss}

    transformers.set_seed(0)
    data = [{"input_ids": torch.arange(6), "labels": torch.arange(6)} for _ in range(32)]
    given = {
        "report_to": [],
        "use_cpu": True,
        "max_steps": 12,
        "save_steps": 6,
        "logging_steps": 2,
        "disable_tqdm": True,
    }
    arguments = transformers.TrainingArguments("out", **{**given, **options})
    return transformers.Trainer(model=Net(), args=arguments, train_dataset=data, callbacks=[callback])


def test_a_healthy_trainer_goes_without_a_word(capsys) -> None:
    """Checkpoints are written and resumed from as without the callback; a copy of it starts afresh."""
    from gradfix import GradfixCallback

    callback = GradfixCallback(on_silent="stop")
    trainer(callback).train()
    assert "gradfix" not in capsys.readouterr().err
    assert callback.seen.summary.startswith("12 steps of the 1st optimizer (AdamW), 3 of 3 parameters trained")
    assert sorted(one.name for one in pathlib.Path("out").iterdir()) == ["checkpoint-12", "checkpoint-6"]
    assert "radfix" not in pathlib.Path("out/checkpoint-12/trainer_state.json").read_text()
    again = pickle.loads(pickle.dumps(callback))
    assert copy.deepcopy(callback).seen.summary == again.seen.summary == ""
    trainer(again, max_steps=14).train(resume_from_checkpoint="out/checkpoint-12")
    assert again.seen.summary.startswith("2 steps")


def test_a_trainer_that_trains_nan_is_stopped() -> None:
    """At the first step, before the weights are spoilt; the report reads what the Trainer logged."""
    from gradfix import GradfixCallback

    job = trainer(GradfixCallback(on_silent="stop"), spoilt=True)
    with pytest.raises(SilentFailure, match="step 1 of the 1st optimizer .AdamW. has gradients that are not finite"):
        job.train()
    assert all(one.isfinite().all() for one in job.model.parameters())


def test_a_trainer_that_trains_nan_is_warned_of(capsys) -> None:
    """Once, and it trains on; the rows that the Trainer logs stand in the report at its end."""
    from gradfix import GradfixCallback

    callback = GradfixCallback()
    trainer(callback, spoilt=True).train()
    told = capsys.readouterr().err
    assert told.count("has gradients that are not finite") == 2  # the warning and the summary
    assert told.count("more: gradfix rules show nan/") == 1


@pytest.mark.slow
def test_a_trainer_that_begins_again(capsys) -> None:
    """As with `auto_find_batch_size`: the callback is begun anew, and only the last attempt counts."""
    from gradfix import GradfixCallback

    callback = GradfixCallback()
    job, tries = trainer(callback, auto_find_batch_size=True), []
    step = job.training_step

    def once_too_large(*arguments, **keywords):
        tries.append(job._train_batch_size)
        if len(tries) == 3:
            raise RuntimeError("CUDA out of memory.")
        return step(*arguments, **keywords)

    job.training_step = once_too_large
    job.train()
    assert tries[0] != tries[-1]
    assert callback.seen.summary.startswith("12 steps of the 1st optimizer (AdamW)")


CRASH = """
import torch, transformers
from gradfix import GradfixCallback
config = transformers.LlamaConfig(vocab_size=32, hidden_size=16, intermediate_size=16, num_hidden_layers=1,
                                  num_attention_heads=2, num_key_value_heads=2)
model = transformers.LlamaForCausalLM(config).requires_grad_(False)
data = [{"input_ids": torch.arange(8), "labels": torch.arange(8)} for _ in range(8)]
arguments = transformers.TrainingArguments("out", report_to=[], use_cpu=True, max_steps=2, disable_tqdm=True)
transformers.Trainer(model=model, args=arguments, train_dataset=data, callbacks=[GradfixCallback()]).train()
"""


def test_a_crash_of_a_trainer_is_explained(tmp_path: pathlib.Path) -> None:
    """Below the traceback, with what the live model says, though no event of the Trainer tells of it."""
    pytest.importorskip("transformers")
    (tmp_path / "train.py").write_text(CRASH)
    done = subprocess.run(
        [forked.python(*LIBRARIES), "train.py"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": PATH},
    )
    assert done.returncode == 1
    assert done.stderr.index("Traceback") < done.stderr.index("no-graph/all-parameters-frozen")
    assert "[live]" in done.stderr


def test_a_trl_run_is_watched(capsys) -> None:
    """SFTTrainer takes the same callback; its parameters are named as the model names them."""
    trl = pytest.importorskip("trl")
    from gradfix import GradfixCallback

    callback = GradfixCallback(summary=True)
    sft(trl, callback, spoilt=False).train()
    assert "nothing went wrong in silence" in capsys.readouterr().err
    sft(trl, callback, spoilt=True).train()
    assert callback.seen.faults[0].startswith("step 1 of the 1st optimizer (AdamW) has gradients that are not finite: ")
    assert "LlamaForCausalLM.model." in callback.seen.faults[0]


def sft(trl, callback, *, spoilt: bool):
    """A tiny SFT run; its weights may be spoilt, as by a broken state dict."""
    from datasets import Dataset
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({"<pad>": 0, "<eos>": 1, "a": 2, "b": 3, "<unk>": 4}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>")
    model = LlamaForCausalLM(
        LlamaConfig(vocab_size=8, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2)
    )
    if spoilt:
        torch.nn.init.constant_(model.model.layers[0].mlp.down_proj.weight, float("nan"))
    given = {
        "report_to": [],
        "use_cpu": True,
        "max_steps": 3,
        "save_strategy": "no",
        "disable_tqdm": True,
        "bf16": False,
    }
    data = Dataset.from_dict({"text": ["a b a b", "b a a"] * 4})
    return trl.SFTTrainer(
        model=model,
        args=trl.SFTConfig("out", **given),
        train_dataset=data,
        processing_class=tokenizer,
        callbacks=[callback],
    )


def lightning_module(lightning, *, cut: bool = False, spoilt: bool = False):
    class Net(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.fc = torch.nn.Linear(2, 1)

        def training_step(self, batch, index):
            out = self.fc(batch)
            out = (out - out).sqrt() if spoilt else out
            loss = out.square().mean() if not spoilt else out.sum()
            self.log("train_loss", loss)
            return loss.detach() if cut else loss

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    return Net()


def fit(callback, **faults) -> None:
    lightning = pytest.importorskip("lightning")
    lightning.seed_everything(0, verbose=False)
    trainer = lightning.Trainer(
        max_steps=12, accelerator="cpu", logger=False, default_root_dir="out", callbacks=[callback],
        enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(lightning_module(lightning, **faults), torch.utils.data.DataLoader(torch.ones(16, 2), num_workers=0))


def test_a_healthy_lightning_run_goes_without_a_word(capsys) -> None:
    """Its checkpoints hold nothing of the callback."""
    pytest.importorskip("lightning")
    from gradfix import LightningCallback

    callback = LightningCallback(on_silent="stop")
    fit(callback)
    assert "gradfix: " not in capsys.readouterr().err
    assert callback.seen.summary.startswith("12 steps of the 1st optimizer (SGD), 2 of 2 parameters trained")
    (saved,) = pathlib.Path("out").rglob("*.ckpt")
    assert not any("radfix" in name or "Hooks" in name for name in torch.load(saved, weights_only=False)["callbacks"])
    assert pickle.loads(pickle.dumps(callback)).seen.summary == ""


def test_a_lightning_run_that_trains_nan(capsys) -> None:
    """Told at the first step."""
    pytest.importorskip("lightning")
    from gradfix import LightningCallback

    callback = LightningCallback()
    fit(callback, spoilt=True)
    assert callback.seen.faults[0].startswith(
        "step 1 of the 1st optimizer (SGD) has gradients that are not finite: Net.fc."
    )
    assert "more: gradfix rules show nan/" in capsys.readouterr().err


def test_a_crash_of_a_lightning_run(capsys) -> None:
    """The exception comes through as it is; printed, it has the card below it."""
    pytest.importorskip("lightning")
    from explainer.integrations import excepthook
    from gradfix import LightningCallback

    with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad") as failed:
        fit(LightningCallback(), cut=True)
    sys.excepthook(type(failed.value), failed.value, failed.value.__traceback__)
    excepthook.uninstall()
    told = capsys.readouterr().err
    assert told.index("Traceback") < told.index("\nno-graph/")
    assert "[live]" in told
