"""The five failures that started the project: the right cause first from the printed log, its evidence named, its
folklore refuted, and the environment changing the answer as the facts demand."""

from __future__ import annotations

import pytest

from explainer.catalog.prose import read_prose
from explainer.model.environment import Environment, Gpu, Package
from tests.conftest import ROOT

SEEDS = {
    "mistral-mask": (
        "inplace/shared-mask-under-checkpointing",
        ("attention mask", "two writes ahead", "number of layers"),
        ("use_reentrant=False", "SFTTrainer"),
    ),
    "unsloth-eval": (
        "inplace/patched-model-outside-its-trainer",
        ("Unsloth", "decode-time norm"),
        ("get_peft_model", "Triton"),
    ),
    "llama-factory": (
        "no-graph/checkpoint-inputs-need-grad",
        ("none of a segment's inputs requires grad",),
        ("requires_grad_", "to(torch.float32)"),
    ),
    "mini-omni-cache": (
        "inplace/cache-updated-in-training",
        ("IndexCopy", "position counter"),
        ("detach", "retain_graph"),
    ),
    "gemma-float16": (
        "nan/low-precision-overflow",
        ("float16", "CompiledFunctionBackward"),
        ("learning rate", "clipped"),
    ),
}


@pytest.mark.parametrize(("name", "expected"), SEEDS.items(), ids=SEEDS.keys())
def test_seed(explain_log, name: str, expected: tuple) -> None:
    """The cause is first and likely, the seed's own evidence is in the answer, its folklore is refuted."""
    cause, evidence, folklore = expected
    finding = explain_log((ROOT / "examples" / name / "train.log").read_text()).findings[0]
    assert (finding.cause, finding.confidence) == (cause, "likely")
    said = " ".join(one.says for one in finding.evidence)
    assert [words for words in evidence if words not in said] == []
    refuted = (read_prose(cause) or "") + " ".join(f"{myth.remedy} {myth.why}" for myth in finding.myths)
    assert [words for words in folklore if words not in refuted] == []


COLAB = """RuntimeError                              Traceback (most recent call last)
[<ipython-input-14-1fafa68fd139>](https://localhost:8080/#) in <cell line: 0>()
      1 with torch.autograd.detect_anomaly():
----> 2   trainer.train()

10 frames
[/usr/local/lib/python3.11/dist-packages/torch/autograd/graph.py](https://localhost:8080/#) in _engine_run_backward(t_outputs, *args, **kwargs)
    822     try:
--> 823         return Variable._execution_engine.run_backward(  # Calls into the C++ engine to run the backward pass
    824             t_outputs, *args, **kwargs

RuntimeError: Function 'CompiledFunctionBackward' returned nan values in its 0th output.
"""
T4 = Environment(
    gpus=(Gpu(name="Tesla T4", capability="7.5", bf16=False, fp16=True, tf32=False, fp8=False, source="NVML"),)
)
A100 = Environment(
    gpus=(
        Gpu(name="NVIDIA A100-SXM4-80GB", capability="8.0", bf16=True, fp16=True, tf32=True, fp8=False, source="NVML"),
    )
)


def test_compiled_nan_without_a_sign_of_float16(explain_log) -> None:
    """The node alone supports only the compiled backward, and the answer is to run eagerly."""
    finding = explain_log(COLAB).findings[0]
    assert finding.cause == "nan/compiled-backward"
    assert "TORCH_COMPILE_DISABLE" in finding.fixes[0].title


def test_compiled_nan_on_a_t4(explain_log) -> None:
    """A GPU without bfloat16 makes float16's range the likeliest cause, and float32 the first fix."""
    finding = explain_log(COLAB, T4).findings[0]
    assert (finding.cause, finding.fixes[0].id) == ("nan/low-precision-overflow", "float32")
    assert "Tesla T4" in " ".join(one.says for one in finding.evidence)


def test_compiled_nan_on_an_a100(explain_log) -> None:
    """A GPU with bfloat16 speaks against float16, and bfloat16 would be its first fix."""
    findings = explain_log(COLAB, A100).findings
    assert findings[0].cause == "nan/compiled-backward"
    (float16,) = [
        one
        for one in explain_log("loading in torch.float16\n" + COLAB, A100).findings
        if one.cause == "nan/low-precision-overflow"
    ]
    assert float16.fixes[0].id == "bfloat16"


NO_GRAPH = "trainable params: 4194304 || all params: 7000000000 || trainable%: 0.06\nRuntimeError: element 0 of tensors does not require grad and does not have a grad_fn\n"


def transformers(version: str) -> Environment:
    return Environment(packages=(Package(name="transformers", version=version, source="site-packages"),))


def belief(report) -> float:
    return next(one.score for one in report.findings if one.cause == "no-graph/checkpoint-inputs-need-grad")


def test_a_release_that_cured_it(explain_log) -> None:
    """transformers 5 sets checkpointed inputs right by itself: the cause loses belief, and its first fix is to change nothing."""
    old, new = explain_log(NO_GRAPH, transformers("4.46.1")), explain_log(NO_GRAPH, transformers("5.23.0"))
    assert belief(new) < belief(old)
    (finding,) = [one for one in new.findings if one.cause == "no-graph/checkpoint-inputs-need-grad"]
    assert "5" in finding.fixes[0].title
    (finding,) = [one for one in old.findings if one.cause == "no-graph/checkpoint-inputs-need-grad"]
    assert "use_reentrant=False" in finding.fixes[0].title
