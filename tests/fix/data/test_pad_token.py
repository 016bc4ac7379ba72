"""A tokenizer without a padding token gets the one that it has."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = """from transformers import AutoTokenizer, AutoModelForCausalLM
"""
RIGHT = {
    "a padding token": (
        HEAD
        + """tokenizer = AutoTokenizer.from_pretrained("gpt2")
tokenizer.pad_token = tokenizer.eos_token
batch = tokenizer(["a"], padding=True)
""",
        "batch =",
    ),
    "one that is given": (
        HEAD
        + """tokenizer = AutoTokenizer.from_pretrained("gpt2", pad_token="<pad>")
batch = tokenizer(["a"], padding=True)
""",
        "batch =",
    ),
    "no tokenizer": (
        HEAD
        + """model = AutoModelForCausalLM.from_pretrained("gpt2")
""",
        "",
    ),
}
WRONG = {
    "after its making": (
        HEAD
        + """tokenizer = AutoTokenizer.from_pretrained("gpt2")
batch = tokenizer(["a"], padding=True)
""",
        "batch =",
        ["tokenizer.pad_token = tokenizer.eos_token"],
    ),
    "in a function": (
        HEAD
        + """def load(name):
    tok = AutoTokenizer.from_pretrained(name)
    return tok


batch = load("gpt2")(["a"], padding=True)
""",
        "batch =",
        ["tok.pad_token = tok.eos_token"],
    ),
    "on an object": (
        HEAD
        + """class Data:
    def __init__(self):
        self.tokenizer = AutoTokenizer.from_pretrained("gpt2")
""",
        "",
        ["self.tokenizer.pad_token = self.tokenizer.eos_token"],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str) -> None:
    """Tokenizers with a padding token are left alone."""
    assert rewritten(tmp_path, "pad_token", source, at or None) == source


@pytest.mark.parametrize(("source", "at", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, wanted: list[str]) -> None:
    """The token is set where the tokenizer is made; a second time nothing is left to do."""
    after = rewritten(tmp_path, "pad_token", source, at or None)
    assert changed_lines(source, after) == wanted
    again = at if at and at in after else None
    assert rewritten(tmp_path, "pad_token", after, again) == after


CONFIGURED = """from transformers import GPT2Config, GPT2ForSequenceClassification

def build(tokenizer):
    config = GPT2Config(vocab_size=16PAD)
    return GPT2ForSequenceClassification(config)


def train(model, batch):
    return model(**batch).loss
"""
NO_PAD = "Cannot handle batch sizes > 1 if no padding token is defined."


def test_a_head_is_told_by_its_configuration(tmp_path) -> None:
    """Where the function that makes it knows the tokenizer; once is enough, and another failure is another matter."""
    source = CONFIGURED.replace("PAD", "")
    after = rewritten(tmp_path, "pad_token", source, "return model", message=NO_PAD)
    assert changed_lines(source, after) == ["config = GPT2Config(vocab_size=16, pad_token_id=tokenizer.pad_token_id)"]
    assert rewritten(tmp_path, "pad_token", after, "return model", message=NO_PAD) == after
    other = source.replace("build(tokenizer)", "build()")
    assert rewritten(tmp_path, "pad_token", other, "return model", message=NO_PAD) == other
    assert rewritten(tmp_path, "pad_token", source, "return model", message="index out of range in self") == source


CLASSIFIER = """from transformers import LlamaConfig, LlamaForSequenceClassification


def main(options):
    BEFORE
    model = LlamaForSequenceClassification(LlamaConfig(**options))
    AFTER
    train(model, tokenizer)
"""


def test_a_head_whose_configuration_comes_from_a_file(tmp_path) -> None:
    """The tokenizer of its scope tells it, where that is there by then."""
    source = CLASSIFIER.replace("BEFORE", "tokenizer = build()").replace("AFTER", "pass")
    after = rewritten(tmp_path, "pad_token", source, "train(model", message=NO_PAD)
    assert changed_lines(source, after) == ["model.config.pad_token_id = tokenizer.pad_token_id"]
    assert rewritten(tmp_path, "pad_token", after, "train(model", message=NO_PAD) == after
    late = CLASSIFIER.replace("BEFORE", "pass").replace("AFTER", "tokenizer = build()")
    assert rewritten(tmp_path, "pad_token", late, "train(model", message=NO_PAD) == late


SCORER = """import yaml
from transformers import GPT2Config, GPT2ForSequenceClassification, PreTrainedTokenizerFast


def words():
    tok = PreTrainedTokenizerFast(tokenizer_object=core, eos_token="</s>")
    tok.pad_token = tok.eos_token
    return tok


def build(PARAMETERS):
    config = GPT2Config(vocab_size=SIZE, **options)
    return GPT2ForSequenceClassification(config)


def main():
    options = yaml.safe_load(open("model.yaml"))
    tok = words()
    model = build(ARGUMENTS)
    train(model, tok)
"""


def scorer(parameters: str, arguments: str) -> str:
    return (
        SCORER.replace("PARAMETERS", parameters)
        .replace("ARGUMENTS", arguments)
        .replace("SIZE", "len(tok)" if "tok" in parameters else "16")
    )


@pytest.mark.parametrize(
    ("source", "options", "added"),
    [
        (scorer("tok, options", "tok, options"), "n_layer: 2", "config = GPT2Config(vocab_size=len(tok), **options, pad_token_id=tok.pad_token_id)"),
        (scorer("options", "options"), "n_layer: 2", "model.config.pad_token_id = tok.pad_token_id"),
        (scorer("tok, options", "tok, options"), "n_layer: 2\npad_token_id: 0", "model.config.pad_token_id = tok.pad_token_id"),
    ],
    ids=["known where the configuration is made", "known where the head is made", "named in the file"],
)  # fmt: skip
def test_a_tokenizer_by_what_it_is(tmp_path: pathlib.Path, source: str, options: str, added: str) -> None:
    """Whatever it is called; options of a file that name no padding token leave room for it."""
    (tmp_path / "model.yaml").write_text(options + "\n")
    assert changed_lines(source, rewritten(tmp_path, "pad_token", source, "train(model", message=NO_PAD)) == [added]


def test_a_name_that_holds_no_tokenizer(tmp_path: pathlib.Path) -> None:
    """A padding token is asked of a tokenizer alone."""
    source = (
        scorer("words, options", "words(), options")
        .replace("def words", "def core")
        .replace("tok = words()", "tok = []")
    )
    assert rewritten(tmp_path, "pad_token", source, "train(model", message=NO_PAD) == source


OWN = """from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

SPECIAL = ["[PAD]", "[UNK]"]


def build(words):
    backend = Tokenizer(models.WordLevel({w: i for i, w in enumerate(SPECIAL + words)}, unk_token="[UNK]"))
    return PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="[UNK]")
"""
ASKED = "Asking to pad but the tokenizer does not have a padding token."


def test_a_vocabulary_of_ones_own(tmp_path) -> None:
    """Its padding token is told where the tokenizer is made; not where it has none or two, or is told later."""
    after = rewritten(tmp_path, "pad_token", OWN, "return", message=ASKED)
    assert changed_lines(OWN, after) == [
        'return PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="[UNK]", pad_token="[PAD]")'
    ]
    assert rewritten(tmp_path, "pad_token", after, "return", message=ASKED) == after
    for other in (
        OWN.replace('"[PAD]", ', ""),
        OWN.replace('"[PAD]"', '"[PAD]", "<pad>"'),
        OWN.replace('"[PAD]"', '"[PAD]", "<pad>"').replace('"[UNK]")', '"[UNK]", eos_token="</s>")'),
        OWN + "\n\ntokenizer = build([])\ntokenizer.pad_token = SPECIAL[0]\n",
    ):
        assert rewritten(tmp_path, "pad_token", other, "return", message=ASKED) == other


def test_a_vocabulary_without_padding(tmp_path) -> None:
    """What ends a text pads too, as GPT-2 is padded."""
    source = OWN.replace('"[PAD]", ', "").replace('unk_token="[UNK]")\n', 'unk_token="[UNK]", eos_token="</s>")\n')
    after = rewritten(tmp_path, "pad_token", source, "return", message=ASKED)
    assert changed_lines(source, after)[-1].endswith('eos_token="</s>", pad_token="</s>")')


BESIDE_DATA = """from transformers import GPT2Config, GPT2ForSequenceClassification

from data import BOS

config = GPT2Config(vocab_size=9, bos_token_id=BOS)
model = GPT2ForSequenceClassification(config)
"""
USED = "batch = pad_sequence(rows, padding_value=PAD)\n"
DATA = "PAD, BOS = range(2)\n" + USED
REFUSED = "Cannot handle batch sizes > 1 if no padding token is defined."


def configured(folder: pathlib.Path, source: str, data: str = DATA) -> list[str]:
    """The lines of `train.py` that the edit changes, beside a module with the program's own tokens."""
    (folder / "data.py").write_text(data)
    return changed_lines(source, rewritten(folder, "pad_token", source, message=REFUSED))


def test_a_configuration_gets_the_programs_own_token(tmp_path: pathlib.Path) -> None:
    """The constant by which the batches are padded, imported where it is defined."""
    added = ["from data import PAD", "config = GPT2Config(vocab_size=9, bos_token_id=BOS, pad_token_id=PAD)"]
    assert configured(tmp_path, BESIDE_DATA) == added


@pytest.mark.parametrize(
    ("source", "data"),
    [
        (BESIDE_DATA.replace("bos_token_id=BOS", "pad_token_id=0"), DATA),
        (BESIDE_DATA.replace("bos_token_id=BOS", "**options"), DATA),
        (BESIDE_DATA, "PADDING, BOS = range(2)\n" + USED),
        (BESIDE_DATA, "PAD, BOS, PAD_ID = range(3)\n" + USED),
        (BESIDE_DATA, "PAD, BOS = 4, 1\nimage = pad(image, PAD)\n"),
    ],
    ids=["told already", "options that are not seen", "no such constant", "two of them", "a width of pixels"],
)
def test_a_configuration_that_is_left(tmp_path: pathlib.Path, source: str, data: str) -> None:
    """Nothing is written where the token is told, or not known."""
    assert configured(tmp_path, source, data) == []
