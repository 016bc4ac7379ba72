"""A model gets rows for the tokens that were added to its tokenizer."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = "from transformers import AutoModelForCausalLM, AutoTokenizer\n\n\ndef main(base):\n"
LOAD = "    model = AutoModelForCausalLM.from_pretrained(base)\n"
ADD = '    tokenizer = AutoTokenizer.from_pretrained(base)\n    tokenizer.add_special_tokens({"additional_special_tokens": ["<u>"]})\n'
RESIZED = "model.resize_token_embeddings(len(tokenizer))"
TRAIN = "    train(model, tokenizer)\n"


@pytest.mark.parametrize("body", [ADD + LOAD, LOAD + ADD])
def test_the_model_is_resized_once_both_are_there(tmp_path: pathlib.Path, body: str) -> None:
    """A second time nothing is left to do."""
    source = HEAD + body + TRAIN
    after = rewritten(tmp_path, "resize_for_tokens", source)
    assert changed_lines(source, after) == [RESIZED]
    assert after.endswith(f"    {RESIZED}\n{TRAIN}")
    assert rewritten(tmp_path, "resize_for_tokens", after) == after


def test_a_token_that_is_added_under_a_condition(tmp_path: pathlib.Path) -> None:
    """The model was made before it, by a helper: it is resized where the token is added."""
    source = """from transformers import GPT2Config, GPT2LMHeadModel

def load_model(tokenizer):
    config = GPT2Config(vocab_size=len(tokenizer))
    return GPT2LMHeadModel(config)

def prepare(tokenizer):
    model = load_model(tokenizer)
    if tokenizer.pad_token is None:
        tokenizer.add_special_tokens({"pad_token": "<pad>"})
        model.config.pad_token_id = tokenizer.pad_token_id
    return model
"""
    after = rewritten(tmp_path, "resize_for_tokens", source)
    assert changed_lines(source, after) == [RESIZED]
    assert f'"<pad>"}})\n        {RESIZED}\n' in after
    assert rewritten(tmp_path, "resize_for_tokens", after) == after


def test_what_needs_no_rows_stays(tmp_path: pathlib.Path) -> None:
    """No token is added, two models are loaded, or a helper resizes."""
    none = HEAD + ADD.partition("\n")[0] + "\n" + LOAD + TRAIN
    two = HEAD + ADD + LOAD + LOAD.replace("model =", "teacher =") + TRAIN
    helper = HEAD + ADD + LOAD + TRAIN + "\n\ndef fit(model, n):\n    model.resize_token_embeddings(n)\n"
    for source in (none, two, helper):
        assert rewritten(tmp_path, "resize_for_tokens", source) == source


BUILT = """import torch
from torch import nn
from transformers import BertConfig

tokenizer.add_tokens(["<name>"])
config = BertConfig(vocab_size=tokenizer.vocab_size)
table = nn.Embedding(tokenizer.vocab_size, 8)
noise = torch.randint(0, tokenizer.vocab_size, (4,))
other = BertConfig(vocab_size=config.vocab_size)
"""


def test_a_model_that_is_built_for_the_tokenizer(tmp_path: pathlib.Path) -> None:
    """Its rows are counted with the tokens that were added; what else reads the old count keeps it."""
    after = rewritten(tmp_path, "resize_for_tokens", BUILT)
    assert changed_lines(BUILT, after) == [
        "config = BertConfig(vocab_size=len(tokenizer))", "table = nn.Embedding(len(tokenizer), 8)",
    ]  # fmt: skip
    assert rewritten(tmp_path, "resize_for_tokens", after) == after


APART = """from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM


def load_tokenizer(base):
    tok = AutoTokenizer.from_pretrained(base)
    if tok.pad_token is None:
        tok.add_special_tokens({"pad_token": "<pad>"})
    return tok


def base_model():
    return LlamaForCausalLM(LlamaConfig())


def main(base):
    tokenizer = load_tokenizer(base)
    model = base_model()
    train(model, tokenizer)
"""


@pytest.mark.parametrize(
    "source",
    [APART, APART.replace("    model = base_model()\n", "").replace("    tokenizer = load", "    model = base_model()\n    tokenizer = load")],
    ids=["the model behind", "the model before"],
)  # fmt: skip
def test_a_tokenizer_that_a_helper_loads(tmp_path: pathlib.Path, source: str) -> None:
    """Where both are there, and not in the helper."""
    after = rewritten(tmp_path, "resize_for_tokens", source)
    assert changed_lines(source, after) == [RESIZED]
    assert after.endswith(f"    {RESIZED}\n    train(model, tokenizer)\n")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    train(", "    teacher = base_model()\n    train("),
        ("    train(", "    other = load_tokenizer(base)\n    train("),
        ("return tok\n", "return wrap(tok)\n"),
    ],
    ids=["two models", "two tokenizers", "something else comes back"],
)
def test_a_helper_whose_model_is_not_known(tmp_path: pathlib.Path, old: str, new: str) -> None:
    """Which model lacks the rows is then not told."""
    source = APART.replace(old, new)
    assert rewritten(tmp_path, "resize_for_tokens", source) == source
