"""The base model is resized before saved weights with more tokens are loaded."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import changed_lines, rewritten

MISMATCH = """Error(s) in loading state_dict for PeftModelForCausalLM:
	size mismatch for base_model.model.{name}: copying a param with shape torch.Size([{saved}]) from checkpoint, the shape in current model is torch.Size([{own}])."""
GROWN = MISMATCH.format(name="model.embed_tokens.modules_to_save.default.weight", saved="38, 32", own="35, 32")
HEAD = """from peft import LoraConfig, PeftModel, get_peft_model, set_peft_model_state_dict
from transformers import AutoModelForCausalLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("x")
tokenizer.add_tokens(["<a>", "<b>", "<c>"])


def load_base():
    return AutoModelForCausalLM.from_pretrained("x")


def save(folder):
    model = load_base()
    model.resize_token_embeddings(len(tokenizer))
    get_peft_model(model, LoraConfig()).save_pretrained(folder)


"""
LOAD = "base = load_base()\nmodel = PeftModel.from_pretrained(base, 'out')\n"
AT = "PeftModel.from_pretrained("
RIGHT = {
    "resized already": (LOAD.replace("model =", "base.resize_token_embeddings(len(tokenizer))\nmodel ="), GROWN),
    "resized in a helper": (
        "def grow(m):\n    m.resize_token_embeddings(38)\n\n\nbase = load_base()\ngrow(base)\nmodel = PeftModel.from_pretrained(base, 'out')\n",
        GROWN,
    ),
    "resized by its maker": (
        "def made():\n    m = load_base()\n    m.resize_token_embeddings(38)\n    return m\n\n\nmodel = PeftModel.from_pretrained(made(), 'out')\n",
        GROWN,
    ),
    "fewer rows in the file": (
        LOAD,
        MISMATCH.format(name="model.embed_tokens.weight", saved="32, 32", own="35, 32"),
    ),
    "another width": (LOAD, MISMATCH.format(name="model.embed_tokens.weight", saved="38, 64", own="35, 32")),
    "another rank": (LOAD, MISMATCH.format(name="model.q_proj.lora_A.default.weight", saved="8, 32", own="4, 32")),
}
ADDED = "base.resize_token_embeddings(len(tokenizer))"
WRONG = {
    "beside the base": (LOAD, AT, [ADDED]),
    "in a function that is handed the tokenizer": (
        "def load(words, folder):\n    base = load_base()\n    return PeftModel.from_pretrained(base, folder)\n\n\nload(tokenizer, 'out')\n",
        AT,
        [ADDED],
    ),
    "a base that has no name": (
        "model = PeftModel.from_pretrained(load_base(), 'out')\n",
        AT,
        ["base = load_base()", ADDED, "model = PeftModel.from_pretrained(base, 'out')"],
    ),
    "a base that has no name, where others have": (
        "def first():\n    base, base_model = 1, 2\n\n\ndef second():\n    return PeftModel.from_pretrained(load_base(), 'out')\n",
        AT,
        ["base = load_base()", ADDED, "return PeftModel.from_pretrained(base, 'out')"],
    ),
    "weights put into a wrapped model": (
        "base = load_base()\nmodel = get_peft_model(base, LoraConfig())\nset_peft_model_state_dict(model, {})\n",
        "set_peft_model_state_dict(model",
        [ADDED],
    ),
    "resized after the load": (LOAD + "model.resize_token_embeddings(len(tokenizer))\n", AT, [ADDED]),
}


@pytest.mark.parametrize(("source", "message"), RIGHT.values(), ids=RIGHT)
def test_other_mismatches_stay(tmp_path, source: str, message: str) -> None:
    """A model that is resized already, a smaller file and differences of another kind are left alone."""
    program = HEAD + source
    assert rewritten(tmp_path, "resize_before_adapter", program, AT, message=message) == program


@pytest.mark.parametrize(("source", "at", "wanted"), WRONG.values(), ids=WRONG)
def test_the_base_is_resized_first(tmp_path, source: str, at: str, wanted: list[str]) -> None:
    """The statement stands before the load, or the wrapping; a second time nothing is left to do."""
    program = HEAD + source
    after = rewritten(tmp_path, "resize_before_adapter", program, at, message=GROWN)
    assert changed_lines(program, after) == wanted
    assert rewritten(tmp_path, "resize_before_adapter", after, at, message=GROWN) == after


LOCAL = """from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoModelForCausalLM


class Words:
    def __init__(self, extra=()):
        self.all = ["a", "b", *extra]

    def __len__(self):
        return len(self.all)


def first(model, known, folder):
    model.resize_token_embeddings(len(known))
    get_peft_model(model, LoraConfig()).save_pretrained(folder)


def second(base, {parameter}, folder):
    return PeftModel.from_pretrained(base, folder)


def main(folder):
    words = Words(["c"])
    first(AutoModelForCausalLM.from_pretrained("x"), words, folder)
    second(AutoModelForCausalLM.from_pretrained("x"), {argument}, folder)
"""


@pytest.mark.parametrize(
    ("argument", "size"), [("words", "len(vocabulary)"), ("Words()", "38")], ids=["the same", "another"]
)
def test_the_size_means_the_same_at_the_load(tmp_path, argument: str, size: str) -> None:
    """Only an object that the same call made gives the size; else the number of rows in the file does."""
    program = LOCAL.format(parameter="vocabulary", argument=argument)
    after = rewritten(tmp_path, "resize_before_adapter", program, "return PeftModel.", message=GROWN)
    assert changed_lines(program, after) == [f"base.resize_token_embeddings({size})"]
