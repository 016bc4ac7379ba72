"""What the table of interfaces tells of a message, and of which messages it says nothing."""

from __future__ import annotations

import pytest

from explainer.model.environment import Environment, Package

SITE = "/usr/lib/python3.11/site-packages"
TOP = 'Traceback (most recent call last):\n  File "/p/train.py", line 3, in <module>\n    {code}\n{frames}{message}\n'
IN_TRAINER = f'  File "{SITE}/transformers/trainer.py", line 3600, in training_step\n    loss = self.compute_loss(model, inputs, num_items_in_batch=count)\n'
IN_LOADING = f'  File "{SITE}/transformers/modeling_utils.py", line 300, in from_pretrained\n    model = cls(config, *model_args, **model_kwargs)\n'
WRONG = "got an unexpected keyword argument"
STRATEGY = f"TypeError: TrainingArguments.__init__() {WRONG} 'evaluation_strategy'"


def log(message: str, code: str = "main()", frames: str = "") -> str:
    return TOP.format(code=code, frames=frames, message=message)


def here(**versions: str) -> Environment:
    return Environment(
        packages=tuple(Package(name=name, version=text, source="here") for name, text in versions.items())
    )


def told(report) -> list[tuple[str, str]]:
    """The evidence that the table gave for the cause, by id and sentence."""
    found = [one for one in report.findings if one.cause == "trainer/api-version"]
    return [(one.id, one.says) for finding in found for one in finding.evidence if one.reads == "interface"]


SILENT = {
    "a class of the program": log(f"TypeError: MyNet.__init__() {WRONG} 'tokenizer'", "net = MyNet(tokenizer=t)"),
    "a function of the program": log(f"TypeError: load() {WRONG} 'weights_only'", "x = load(p, weights_only=True)"),
    "a function called like one of torch's": log(f"TypeError: checkpoint() {WRONG} 'use_reentrant'", "checkpoint(f)"),
    "a misspelt argument": log(f"TypeError: TrainingArguments.__init__() {WRONG} 'evaluation_stratgy'"),
    "an argument that no release had": log(f"TypeError: Trainer.__init__() {WRONG} 'optimiser'"),
    "a bare constructor of the program": log(f"TypeError: __init__() {WRONG} 'tokenizer'", "net = MyNet(tokenizer=t)"),
    "an override that the program calls": log(
        f"TypeError: My.compute_loss() {WRONG} 'num_items_in_batch'", "my.compute_loss(1)"
    ),
    "an attribute of a plain value": log("AttributeError: 'NoneType' object has no attribute 'tokenizer'"),
    "an attribute of a class of the program": log(
        "AttributeError: 'MyCache' object has no attribute 'get_usable_length'"
    ),
    "a module of the program": log("ModuleNotFoundError: No module named 'utils.generation_utils'"),
    "a name of a module of the program": log("ImportError: cannot import name 'AdamW' from 'optim' (/p/optim.py)"),
    "a misspelt import": log(
        "ImportError: cannot import name 'AdamX' from 'transformers' (/site-packages/transformers/__init__.py)"
    ),
    "a model's forward": log(f"TypeError: MyNet.forward() {WRONG} 'num_logits_to_keep'", "net(x)"),
}


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT.keys())
def test_silent(explain_log, text: str) -> None:
    """What is the program's own, or misspelt, is none of the table's."""
    assert told(explain_log(text)) == []


SAID = {
    "renamed argument": (log(STRATEGY), "known-to-be-gone", "`evaluation_strategy` of `TrainingArguments` was removed in transformers 4.51; it is `eval_strategy` since 4.41"),
    "argument of an heir": (log(f"TypeError: Seq2SeqTrainingArguments.__init__() {WRONG} 'evaluation_strategy'"), "known-to-be-gone", "removed in transformers 4.51"),
    "moved argument": (log(f"TypeError: SFTTrainer.__init__() {WRONG} 'dataset_text_field'"), "known-to-be-gone", "it is `SFTConfig.dataset_text_field` since 0.9"),
    "bare constructor named in the calling line": (log(f"TypeError: __init__() {WRONG} 'no_cuda'", "a = TrainingArguments(no_cuda=True)"), "known-to-be-gone", "`use_cpu`"),
    "function named in the calling line": (log(f"TypeError: load() {WRONG} 'weights_only'", "x = torch.load(p, weights_only=True)"), "known-to-be-newer", "from torch 1.13 on"),
    "argument that is too new": (log(f"TypeError: TrainingArguments.__init__() {WRONG} 'eval_strategy'"), "known-to-be-newer", "before it is `evaluation_strategy`"),
    "handed on by from_pretrained": (log(f"TypeError: LlamaForCausalLM.__init__() {WRONG} 'load_in_4bit'", "load()", IN_LOADING), "proved-to-be-gone", "`quantization_config`"),
    "override without an argument": (log(f"TypeError: Mine.compute_loss() {WRONG} 'num_items_in_batch'", "t.train()", IN_TRAINER), "override-known-to-be-older", "`Mine.compute_loss` overrides `Trainer.compute_loss` without it"),
    "attribute": (log("AttributeError: 'DynamicCache' object has no attribute 'get_usable_length'"), "known-to-be-gone", "`get_seq_length`"),
    "import": (log("ImportError: cannot import name 'AdamW' from 'transformers' (/site-packages/transformers/__init__.py)"), "proved-to-be-gone", "`torch.optim.AdamW`"),
    "module": (log("ModuleNotFoundError: No module named 'torch._six'"), "proved-to-be-gone", "removed in torch 2.0"),
    "module below a removed one": (log("ModuleNotFoundError: No module named 'pytorch_lightning.metrics.functional'"), "proved-to-be-gone", "removed in lightning 1.5"),
    "the other name of a package": (log("ImportError: cannot import name 'GPUAccelerator' from 'lightning.pytorch.accelerators' (/site-packages/x.py)"), "proved-to-be-gone", "`CUDAAccelerator`"),
    "attribute of a module": (log("AttributeError: module 'numpy' has no attribute 'float'."), "known-to-be-gone", "removed in numpy 1.24"),
    "name that numpy 2 names itself": (log("AttributeError: `np.float_` was removed in the NumPy 2.0 release. Use `np.float64` instead."), "proved-to-be-gone", "removed in numpy 2.0"),
    "option of the command line": (log("ValueError: Some keys are not used by the HfArgumentParser: ['evaluation_strategy']"), "known-to-be-gone", "`eval_strategy`"),
    "import inside a lazy import": (log("RuntimeError: Failed to import transformers.trainer because of the following error (look up to see its traceback):\nNo module named 'torch._six'"), "proved-to-be-gone", "removed in torch 2.0"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "evidence", "says"), SAID.values(), ids=SAID.keys())
def test_said(explain_log, text: str, evidence: str, says: str) -> None:
    """A name of the table is told with its releases, and the first fix says what to write."""
    report = explain_log(text)
    ((found, sentence),) = told(report)
    assert (found, says in sentence) == (evidence, True), sentence
    assert report.findings[0].cause == "trainer/api-version"
    assert report.findings[0].fixes[0].id == "name-of-this-release"


RELEASES = {
    "a release that lacks it": ("5.23.0", "proved-to-be-gone", "this is transformers 5.23.0 (here)", "certain"),
    "a release that has it yet": (
        "4.40.0",
        "release-contradicts",
        "but this is transformers 4.40.0 (here)",
        "possible",
    ),
}


@pytest.mark.parametrize(("version", "evidence", "says", "confidence"), RELEASES.values(), ids=RELEASES.keys())
def test_the_release_decides(explain_log, version: str, evidence: str, says: str, confidence: str) -> None:
    """The installed release proves the story, or speaks against it."""
    report = explain_log(log(STRATEGY), here(transformers=version))
    assert [(one, says in text) for one, text in told(report)] == [(evidence, True)]
    assert report.findings[0].confidence == confidence


def test_the_log_states_the_release(explain_log) -> None:
    """A version in the log is the one of the run."""
    report = explain_log(
        "transformers==4.36.0\n" + log(f"TypeError: TrainingArguments.__init__() {WRONG} 'eval_strategy'")
    )
    assert told(report)[0][0] == "proved-to-be-newer"
    assert report.findings[0].fixes[0].title.endswith("or write `evaluation_strategy`, the earlier name")


DEPRECATED = {
    "a name of the library that warns": ("`torch.cuda.amp.GradScaler(args...)` is deprecated. Please use `torch.amp.GradScaler('cuda', args...)` instead.", True),
    "a name of no library": ("`my_option` is deprecated and will be removed in v2.0. Use `other` instead.", False),
}  # fmt: skip


@pytest.mark.parametrize(("message", "is_told"), DEPRECATED.values(), ids=DEPRECATED.keys())
def test_deprecation_warning(explain_log, message: str, is_told: bool) -> None:
    """A warning about a name of the table is told as what it is: the name works as yet."""
    report = explain_log(f"{SITE}/torch/x.py:3: FutureWarning: {message}\n")
    assert [one for one, _ in told(report)] == (["deprecated-name"] if is_told else [])
