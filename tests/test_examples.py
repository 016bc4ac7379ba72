"""The five failures that started the project, end to end: each example fails as its report says, is explained, repaired and
verified, and then first steps with the gradients of a reference that is written here without the fault."""

from __future__ import annotations

import importlib.util
import json
import math
import pathlib
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.knowledge.repaired import difference, environment, first_gradients, run_gradfix

pytestmark = pytest.mark.torch


def mistral_mask(train: Any) -> list[Any]:
    """No checkpointing, and one mask that nobody writes: causal, with the padding open to every row."""
    import torch
    from torch.nn import functional as F

    torch.manual_seed(0)
    model = train.Decoder()
    ids = torch.randint(0, train.VOCAB, (1, train.LENGTH))
    where = torch.arange(train.LENGTH)
    is_open = (where[:, None] >= where[None, :]) | (where[None, :] < 4)
    x = model.embed_tokens.weight[ids[0]]
    for layer in model.layers:
        norm = F.layer_norm(x, (train.DIM,), layer.norm.weight, layer.norm.bias)
        q, k, v = torch.split(norm @ layer.qkv.weight.T + layer.qkv.bias, train.DIM, dim=-1)
        scores = (q @ k.T / math.sqrt(train.DIM)).masked_fill(~is_open, -math.inf)
        x = x + torch.softmax(scores, dim=-1) @ v @ layer.out.weight.T + layer.out.bias
    logits = x @ model.lm_head.weight.T + model.lm_head.bias
    chosen = torch.log_softmax(logits[:-1], dim=-1)[torch.arange(train.LENGTH - 1), ids[0, 1:]]
    (-chosen.mean()).backward()
    return [one.grad for one in model.parameters()]


def unsloth_eval(train: Any) -> list[Any]:
    """The library's own model with the same weights, unpatched and in train mode."""
    import torch
    from transformers import Qwen2ForCausalLM

    torch.manual_seed(0)
    folder = pathlib.Path(train.__file__).parent / "tiny"
    train.save_tiny_qwen2(folder)
    model = Qwen2ForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).train()
    shutil.rmtree(folder)
    ids = torch.randint(0, 64, (1, 24))
    model(input_ids=ids, labels=ids).loss.backward()
    return [one.grad for one in model.parameters()]


def llama_factory(train: Any) -> list[Any]:
    """The base model without checkpointing and without peft, its weights with the product of the factors added."""
    import torch

    torch.manual_seed(0)
    args = {"lora_rank": 4, "lora_target": ["q_proj", "v_proj"], "disable_gradient_checkpointing": True}
    return merged(train.load_model(args))


def gemma_float16(train: Any) -> list[Any]:
    """Float32 from the weights as bfloat16 holds them; eager, without scaler and without peft."""
    import torch

    torch.manual_seed(0)
    return merged(train.load_gemma(torch.bfloat16).float())


def merged(model: Any) -> list[Any]:
    """The gradients of the factors of a low-rank adaptation, from the plain model that it stands for."""
    import torch
    from torch.func import functional_call

    ids = torch.randint(0, 64, (2, 16))
    base, factors, weights = model.base_model.model, [], {}
    for name, module in base.named_modules():
        if hasattr(module, "lora_A"):
            a, b = (one["default"].weight.detach().clone().requires_grad_() for one in (module.lora_A, module.lora_B))
            factors += [a, b]
            weights[f"{name}.weight"] = module.base_layer.weight.detach() + module.scaling["default"] * b @ a
    plain = type(base)(base.config).train()
    frozen = {
        name.replace(".base_layer", ""): one.detach() for name, one in base.named_parameters() if "lora" not in name
    }
    given = {"input_ids": ids, "use_cache": False}
    logits = functional_call(plain, {**frozen, **weights}, kwargs=given).logits
    torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten()).backward()
    return [one.grad for one in factors]


def mini_omni_cache(train: Any) -> list[Any]:
    """One token attends to itself alone: attention is the value projection, and query and key do not matter."""
    import torch
    from torch.nn import functional as F

    torch.manual_seed(0)
    model = train.GPT(train.Config())
    token, target = torch.randint(0, 64, (1, 1)), torch.randint(0, 64, (1,))
    x = model.transformer.wte.weight[token[0]]
    for block in model.transformer.h:
        norm = F.layer_norm(x, (32,), block.norm_1.weight, block.norm_1.bias)
        value = norm @ block.attn.attn.weight[64:].T + block.attn.attn.bias[64:]
        x = x + value @ block.attn.proj.weight.T + block.attn.proj.bias
        norm = F.layer_norm(x, (32,), block.norm_2.weight, block.norm_2.bias)
        wide = F.gelu(norm @ block.mlp[0].weight.T + block.mlp[0].bias)
        x = x + wide @ block.mlp[2].weight.T + block.mlp[2].bias
    logits = F.layer_norm(x, (32,), model.transformer.ln_f.weight, model.transformer.ln_f.bias) @ model.lm_head.weight.T
    (torch.logsumexp(logits[0], 0) - logits[0, target[0]]).backward()
    return [one.grad for one in model.parameters()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seed:
    """What is known of an example. `line` is the guilty one; `tolerance` is wide where the fix is a coarser dtype."""

    message: str
    cause: str
    file: str
    line: str
    fix: str
    applicability: str
    reference: Callable[[Any], list[Any]]
    needs: tuple[str, ...] = ()
    tolerance: float = 1e-4


SEEDS = {
    "mistral-mask": Seed(
        message=r"\[torch.FloatTensor \[1, 1, 512, 512\]\] is at version 34; expected version 32",
        cause="inplace/shared-mask-under-checkpointing",
        file="train.py",
        line="attention_mask[:, :, :, 0] = 0.0",
        fix="mask-out-of-place",
        applicability="safe",
        reference=mistral_mask,
    ),
    "unsloth-eval": Seed(
        message=r"\[torch.FloatTensor \[1, 24, 32\]\].* is at version 1; expected version 0",
        cause="inplace/patched-model-outside-its-trainer",
        file="train.py",
        line="model = FastLanguageModel.from_pretrained(",
        fix="train-mode",
        applicability="safe",
        reference=unsloth_eval,
        needs=("transformers", "safetensors"),
    ),
    "llama-factory": Seed(
        message=r"element 0 of tensors does not require grad and does not have a grad_fn",
        cause="no-graph/checkpoint-inputs-need-grad",
        file="train.py",
        line='use_reentrant=args["use_reentrant_gc"]',
        fix="non-reentrant",
        applicability="safe",
        reference=llama_factory,
        needs=("transformers", "peft"),
    ),
    "mini-omni-cache": Seed(
        message=r"\[torch.LongTensor \[1\]\] is at version 1; expected version 0",
        cause="inplace/cache-updated-in-training",
        file="train.py",
        line="logits = model(token, input_pos)",
        fix="no-cache-in-training",
        applicability="safe",
        reference=mini_omni_cache,
    ),
    "gemma-float16": Seed(
        message=r"Function 'CompiledFunctionBackward' returned nan values in its \dth output",
        cause="nan/low-precision-overflow",
        file="train.py",
        line="load_gemma(torch.float16)",
        fix="bfloat16",
        applicability="unsafe",
        reference=gemma_float16,
        needs=("transformers", "peft"),
        tolerance=0.1,
    ),
}


SLOW = (
    "gemma-float16",
    "llama-factory",
    "mistral-mask",
    "unsloth-eval",
)  # several trainings each that import transformers


@pytest.fixture(params=[pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in SEEDS])
def example(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> tuple[Seed, pathlib.Path]:
    """A seed, and a copy of its example without the log."""
    seed = SEEDS[request.param]
    for name in ("torch", *seed.needs):
        pytest.importorskip(name)
    shutil.copytree(
        ROOT / "examples" / request.param, tmp_path / "project", ignore=shutil.ignore_patterns("*.log", "__pycache__")
    )
    return seed, tmp_path / "project"


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch):
    """Loads `train.py` of a folder as a program that was started there; its modules and modes go afterwards."""
    before = set(sys.modules)

    def load_one(folder: pathlib.Path) -> Any:
        monkeypatch.chdir(folder)
        monkeypatch.setattr(sys, "argv", ["train.py"])
        monkeypatch.syspath_prepend(str(folder))
        spec = importlib.util.spec_from_file_location("example_train", folder / "train.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    yield load_one
    for name in {"fast_qwen2", "model"} - before:
        sys.modules.pop(name, None)


def test_repair(example: tuple[Seed, pathlib.Path], load) -> None:
    """It fails as reported; the right cause and line come first; repaired and verified it trains as the reference does."""
    seed, folder = example
    unsafe = ["--unsafe-fixes"] if seed.applicability == "unsafe" else []
    answer = run_gradfix(folder, "--fix", *unsafe)
    report = answer["report"]
    assert re.search(seed.message, report["incident"]["exceptions"][-1]["message"])
    assert_named(report["findings"][0]["cause"], report["findings"][0]["culprits"][0], seed)
    assert answer["status"] == "verified", answer["rounds"]
    assert [one["fix"] for one in answer["applied"]] == [seed.fix]
    wanted = seed.reference(load(folder))
    got = first_gradients(folder / "train.py")
    assert not isinstance(got, str), got
    names = [f"optimizer 1 group 0 parameter {at}" for at in range(len(wanted))]
    expected = {name: one.double().numpy() for name, one in zip(names, wanted, strict=True)}
    assert difference(got, expected, seed.tolerance) == ""


CALLER = """
import json, sys
sys.path.insert(0, ".")
from gradfix import explain
import train
try:
    train.main()
except RuntimeError as error:
    finding = explain(error).findings[0]
    culprit, fix = finding.culprits[0], finding.fixes[0]
    found = {"message": str(error), "cause": finding.cause, "file": culprit.file, "code": culprit.code, "fix": fix.id}
    print("found " + json.dumps(found))
"""


@pytest.mark.slow
def test_explain_in_an_except(example: tuple[Seed, pathlib.Path]) -> None:
    """`explain(error)` round the program's own main names the same cause, line and fix, without the log that it printed."""
    seed, folder = example
    done = subprocess.run(
        [sys.executable, "-c", CALLER], cwd=folder, env=environment(folder), capture_output=True, text=True
    )
    line = next((one for one in done.stdout.splitlines() if one.startswith("found ")), done.stderr)
    found = json.loads(line.partition(" ")[2])
    assert re.search(seed.message, found["message"])
    assert_named(found["cause"], found, seed)
    assert found["fix"] == seed.fix


def assert_named(cause: str, culprit: dict[str, Any], seed: Seed) -> None:
    assert cause == seed.cause
    assert culprit["file"] == seed.file
    assert seed.line in culprit["code"]
