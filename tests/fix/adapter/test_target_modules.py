"""`target_modules` names layers that the model has."""

from __future__ import annotations

from dataclasses import replace

import pytest

from explainer.fix.network.layer_path import picked
from explainer.fix.network.projection import DEFAULTS, names_among, names_for
from explainer.fix.splice import splice
from explainer.model.incident import Fact
from tests.fix.rewriting import best, changed_lines, failed, rewritten, write

HEAD = """from peft import LoraConfig, get_peft_model
"""
RIGHT = {
    "names of the architecture": (
        HEAD
        + """from transformers import LlamaForCausalLM
model = get_peft_model(LlamaForCausalLM.from_pretrained("x"), LoraConfig(target_modules=["q_proj", "v_proj"]))
""",
        "",
    ),
    "all linear layers": (
        HEAD
        + """config = LoraConfig(target_modules="all-linear")
""",
        "",
    ),
    "an open pattern": (
        HEAD
        + """config = LoraConfig(target_modules=r".*layers\\.\\d+\\.q_proj")
""",
        "",
    ),
    "models of two architectures": (
        HEAD
        + """from transformers import BloomModel, GPT2Model
config = LoraConfig(target_modules=["q_proj"])
models = [BloomModel.from_pretrained("x"), GPT2Model.from_pretrained("y")]
""",
        "",
    ),
    "an architecture that is not known": (
        HEAD
        + """from transformers import AutoModel
model = get_peft_model(AutoModel.from_pretrained("x"), LoraConfig(target_modules=["query"]))
""",
        "",
    ),
}
WRONG = {
    "names of another architecture": (
        HEAD
        + """from transformers import BloomForCausalLM
model = get_peft_model(BloomForCausalLM.from_pretrained("x"), LoraConfig(target_modules=["q_proj", "v_proj"]))
""",
        "",
        [
            'model = get_peft_model(BloomForCausalLM.from_pretrained("x"), LoraConfig(target_modules=["query_key_value"]))'
        ],
    ),
    "names in a variable": (
        HEAD
        + """from transformers import GPT2LMHeadModel
TARGETS = ["q_proj"]
model = get_peft_model(GPT2LMHeadModel.from_pretrained("x"), LoraConfig(target_modules=TARGETS))
""",
        "",
        ['TARGETS = ["c_attn"]'],
    ),
    "a field of a dataclass": (
        HEAD
        + """from dataclasses import asdict, dataclass, field
from transformers import AutoModelForCausalLM, GPTNeoXConfig


@dataclass
class Lora:
    r: int = 4
    target_modules: list[str] = field(default_factory=lambda: ['q_proj', 'v_proj'])


base = AutoModelForCausalLM.from_config(GPTNeoXConfig(hidden_size=32))
model = get_peft_model(base, LoraConfig(**asdict(Lora())))
""",
        "",
        ["target_modules: list[str] = field(default_factory=lambda: ['query_key_value'])"],
    ),
    "a field of another name, a tuple": (
        HEAD
        + """from dataclasses import dataclass
from transformers import AutoConfig, AutoModel


@dataclass
class Lora:
    layers: tuple = ("q_proj", "v_proj")


def build(cfg):
    base = AutoModel.from_config(AutoConfig.for_model("falcon", hidden_size=32))
    return get_peft_model(base, LoraConfig(target_modules=list(cfg.layers)))
""",
        "",
        ['layers: tuple = ("query_key_value",)'],
    ),
    "an entry of a dictionary": (
        HEAD
        + """from transformers import BertModel
LORA = {"r": 4, "target_modules": ["q_proj", "k_proj", "v_proj"]}
model = get_peft_model(BertModel.from_pretrained("x"), LoraConfig(**LORA))
""",
        "",
        ['LORA = {"r": 4, "target_modules": ["query", "key", "value"]}'],
    ),
    "an option that is split": (
        HEAD
        + """import argparse
from transformers import AutoModelForCausalLM
parser = argparse.ArgumentParser()
parser.add_argument("--lora-targets", default="q_proj,v_proj")
args = parser.parse_args()
base = AutoModelForCausalLM.from_pretrained("EleutherAI/pythia-70m")
model = get_peft_model(base, LoraConfig(target_modules=args.lora_targets.split(",")))
""",
        "",
        ['parser.add_argument("--lora-targets", default="query_key_value")'],
    ),
    "one string": (
        HEAD
        + """config = LoraConfig(target_modules="q_proj, v_proj")
""",
        "",
        ['config = LoraConfig(target_modules=["q_proj", "v_proj"])'],
    ),
    "one string in a variable": (
        HEAD
        + """wanted = "q_proj,v_proj"
config = LoraConfig(target_modules=wanted)
""",
        "",
        ['config = LoraConfig(target_modules=wanted.split(","))'],
    ),
    "layers of one's own": (
        HEAD
        + """from torch import nn


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.to_q, self.to_v = nn.Linear(4, 4), nn.Linear(4, 4)


model = get_peft_model(Attention(), LoraConfig(target_modules=["query", "value"]))
""",
        "",
        ['model = get_peft_model(Attention(), LoraConfig(target_modules=["to_q", "to_v"]))'],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str) -> None:
    """Names that fit, and architectures that are not known, are left alone."""
    assert rewritten(tmp_path, "target_modules", source, at or None) == source


@pytest.mark.parametrize(("source", "at", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, wanted: list[str]) -> None:
    """The names are those of the model; a second time nothing is left to do."""
    after = rewritten(tmp_path, "target_modules", source, at or None)
    assert changed_lines(source, after) == wanted
    again = at if at and at in after else None
    assert rewritten(tmp_path, "target_modules", after, again) == after


@pytest.mark.torch
def test_the_defaults_are_peft_s_own() -> None:
    """What stands as the default of an architecture is what PEFT takes for it."""
    constants = pytest.importorskip("peft.utils.constants")
    own = constants.TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING
    assert {name: list(value) for name, value in DEFAULTS.items()} == {name: own.get(name) for name in DEFAULTS}


@pytest.mark.torch
@pytest.mark.parametrize("architecture", ["gpt_neox", "gpt2", "t5", "bert", "phi3", "distilbert", "opt", "vit", "mpt"])
def test_names_for_an_architecture_are_its_own(architecture: str) -> None:
    """Every name that is given for an architecture ends the path of a layer that transformers builds for it."""
    transformers, torch = pytest.importorskip("transformers"), pytest.importorskip("torch")
    config = transformers.AutoConfig.for_model(architecture, num_hidden_layers=1, num_layers=1, n_layers=1)
    with torch.device("meta"):
        paths = [name for name, _ in transformers.AutoModel.from_config(config).named_modules()]
    names = ["wq", "wk", "wv"] if architecture != "vit" else ["query", "key", "value"]
    answers = names_for(architecture, names)
    assert answers
    assert all(any(path.endswith(f".{one}") for path in paths) for one in answers[0])


@pytest.mark.parametrize(
    ("architecture", "names", "wanted"),
    [
        ("gpt_neox", ["q_proj", "v_proj"], ["query_key_value"]),
        ("llama", ["query_key_value"], ["q_proj", "v_proj"]),
        ("bert", ["q_proj", "k_proj", "v_proj"], ["query", "key", "value"]),
        ("gpt2", ["q_proj", "v_proj", "o_proj"], ["c_attn", "attn.c_proj"]),
        ("gpt_neox", ["up_proj", "down_proj"], ["dense_h_to_4h", "dense_4h_to_h"]),
        ("bert", ["my_layer", "q_proj"], ["query", "value"]),
        ("vit", ["q_proj", "v_proj"], ["query", "value"]),
        ("vit", ["query", "value"], ["q_proj", "v_proj"]),
    ],
)
def test_names_are_translated(architecture: str, names: list[str], wanted: list[str]) -> None:
    """A default stands for a default, other lists are taken projection by projection."""
    assert names_for(architecture, names)[0] == wanted


def test_another_list_stays(tmp_path) -> None:
    """The message names the list that fits nothing; one for another model of the program is left alone."""
    source = (
        HEAD
        + """from transformers import GPT2LMHeadModel
small = LoraConfig(target_modules=["c_fc"])
model = get_peft_model(GPT2LMHeadModel.from_pretrained("x"), LoraConfig(target_modules=["q_proj"]))
"""
    )
    after = rewritten(
        tmp_path,
        "target_modules",
        source,
        message="Target modules {'q_proj'} not found in the base model. Please check the target modules and try again.",
    )
    assert changed_lines(source, after) == [
        'model = get_peft_model(GPT2LMHeadModel.from_pretrained("x"), LoraConfig(target_modules=["c_attn"]))'
    ]


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("  target_modules: q, v\n", "  target_modules: [q, v]\n"),
        ('  target_modules: "q,v"  # both\n', "  target_modules: [q, v]  # both\n"),
        ("  target_modules: [q_proj, v_proj]\n", "  target_modules: [q, v]\n"),
        ("  target_modules: [q, v]\n", "  target_modules: [q, v]\n"),
        ("  target_modules: all-linear\n", "  target_modules: all-linear\n"),
    ],
)
def test_names_in_a_configuration_file(tmp_path, line: str, wanted: str) -> None:
    """A string of several names becomes a list, names of another architecture those of this one; nothing else changes."""
    from explainer.fix.splice import splice

    text = f"lora:\n{line}  r: 4\n"
    (tmp_path / "lora.yaml").write_text(text)
    program = write(
        tmp_path,
        {
            "train.py": 'import yaml\nfrom transformers import T5ForConditionalGeneration\nfrom peft import LoraConfig\ncfg = yaml.safe_load(open("lora.yaml"))\n'
            'model = T5ForConditionalGeneration.from_pretrained("t5-small")\nconfig = LoraConfig(**cfg["lora"])\n',
        },
    )
    proposal = best("target_modules", program)
    after = text if proposal is None else splice(text, proposal.edits)
    assert after == text.replace(line, wanted)


AST = (
    "encoder.layer.*.attention.q_proj",
    "encoder.layer.*.attention.k_proj",
    "encoder.layer.*.attention.v_proj",
    "classifier.dense",
)
FUSED = ("h.*.attn.c_attn", "h.*.attn.c_proj", "h.*.mlp.c_fc")
AMONG = {
    "projections of other names": (AST, ["query", "value"], ["q_proj", "v_proj"]),
    "fused ones": (FUSED, ["q_proj", "v_proj"], ["c_attn"]),
    "one that is there": (AST, ["q_proj", "value"], None),
    "what has no counterpart": (AST, ["query", "fc1"], None),
    "two that do the same": (("a.q_proj", "b.to_q"), ["query"], None),
    "a word that means nothing": (AST, ["router"], None),
}


@pytest.mark.parametrize(("layers", "names", "wanted"), AMONG.values(), ids=AMONG)
def test_names_of_a_live_model(layers: tuple[str, ...], names: list[str], wanted: list[str] | None) -> None:
    """By what they do, where one answer is left."""
    assert names_among(layers, names) == wanted


def test_the_live_model_comes_first(tmp_path) -> None:
    """What was seen at the failure says more than the table of architectures."""
    source = HEAD + 'config = LoraConfig(target_modules=["query", "value"])\n'
    incident = replace(failed(), facts=(Fact(name="live_layers", value=" ".join(AST)),))
    proposal = best("target_modules", write(tmp_path, {"train.py": source}), incident=incident)
    assert proposal is not None
    assert changed_lines(source, splice(source, proposal.edits)) == [
        'config = LoraConfig(target_modules=["q_proj", "v_proj"])'
    ]


LIVE = (
    Fact(name="live_layers", value="model.language_model.layers.*.q_proj model.vision_tower.layers.*.q_proj out.*.dense attn.out"),
    Fact(name="live_blocks", value="out model"),
)  # fmt: skip
UNFIT, UNSUPPORTED = "Target modules x not found in the base model", "Target module Sequential() is not supported."
PATHS = {
    "a pattern in code": (
        "train.py", HEAD + 'config = LoraConfig(target_modules=r"language_model\\.model\\.layers\\.\\d+\\.q_proj")\n', UNFIT,
        ['config = LoraConfig(target_modules=r"model\\.language_model\\.layers\\.\\d+\\.q_proj")'],
    ),
    "a pattern in a file": (
        "lora.yaml", "target_modules: language_model\\.model\\.layers\\.\\d+\\.q_proj\n", UNFIT,
        ["target_modules: model\\.language_model\\.layers\\.\\d+\\.q_proj"],
    ),
    "a block of that name": (
        "train.py", HEAD + 'config = LoraConfig(target_modules=["q_proj", "out"])\n', UNSUPPORTED,
        ['config = LoraConfig(target_modules=["q_proj", "attn.out"])'],
    ),
    "a block of that name, in a file": ("lora.yaml", "target_modules: [q_proj, out]\n", UNSUPPORTED, ["target_modules: [q_proj, attn.out]"]),
    "layers that fit": ("train.py", HEAD + 'config = LoraConfig(target_modules=["q_proj"])\n', UNSUPPORTED, []),
}  # fmt: skip


@pytest.mark.parametrize(("name", "source", "message", "wanted"), PATHS.values(), ids=PATHS)
def test_paths_of_a_live_model(tmp_path, name: str, source: str, message: str, wanted: list[str]) -> None:
    """A head of another tree gives way to the model's own, and a name that fits a block gets the part before it."""
    files = {"train.py": HEAD, name: source}
    incident = replace(failed({"train.py": 1}, message), facts=LIVE)
    proposal = best("target_modules", write(tmp_path, files), incident=incident)
    assert (changed_lines(source, splice(source, proposal.edits)) if proposal else []) == wanted


def test_a_head_that_chooses_a_tower_is_not_opened(tmp_path) -> None:
    """An open pattern would adapt the other tower as well."""
    source = HEAD + 'config = LoraConfig(target_modules=r"language_model\\.model\\.layers\\.\\d+\\.q_proj")\n'
    assert rewritten(tmp_path, "target_modules", source) == source


@pytest.mark.torch
def test_layers_are_told_where_they_are_sought() -> None:
    """The kinds of layers with weights, of a model in the frame of such a failure alone."""
    torch = pytest.importorskip("torch")
    from explainer.live.crash import look

    def fail(message: str) -> dict:
        model = torch.nn.ModuleDict(
            {"layer": torch.nn.ModuleList(torch.nn.Linear(2, 2) for _ in range(3)), "norm": torch.nn.LayerNorm(2)}
        )
        try:
            raise ValueError(message)
        except ValueError as error:
            return look(error)["modules"]

    told = fail("Target modules {'query'} not found in the base model")
    assert (told["layers"], told["blocks"]) == (["layer.*"], ["layer", "norm"])
    assert "layers" not in fail("something else")


LAYERS = ("layers.*.ff.*", "layers.*.qkv", "score")
NUMBERED = ("layers.*.ff.0", "layers.*.ff.2")
PICKED = {
    r".*layers\.\d+\.ff\.\d+": r".*layers\.\d+\.ff\.[02]",
    r".*\.ff\.[0-9]+$": r".*\.ff\.[02]",
    r".*\.ff\.\w+": r".*\.ff\.[02]",
    r".*\.ff": None,
    r".*layers\..*": None,
    r".*ff\.(\d+": None,
}


@pytest.mark.parametrize(("pattern", "wanted"), PICKED.items())
def test_a_pattern_takes_the_layers_of_a_container(pattern: str, wanted: str | None) -> None:
    """By their numbers, where the container has activations between them; not one that takes layers elsewhere too."""
    assert picked(pattern, LAYERS, NUMBERED) == wanted


def test_numbers_of_more_than_one_digit() -> None:
    assert picked(r"net\.\d+", ["net.*"], ["net.0", "net.10"]) == r"net\.(0|10)"


@pytest.mark.parametrize("quote", ["'", ""])
def test_a_pattern_in_a_file_keeps_its_quotes(tmp_path, quote: str) -> None:
    text = f"adapter:\n  target_modules: {quote}.*layers\\.\\d+\\.ff\\.\\d+{quote}\n"
    (tmp_path / "lora.yaml").write_text(text)
    program = write(tmp_path, {"train.py": HEAD + 'import yaml\ncfg = yaml.safe_load(open("lora.yaml"))\n'})
    facts = {"live_layers": " ".join(LAYERS), "live_numbered": " ".join(NUMBERED)}
    incident = failed(message="Target module GELU(approximate='none') is not supported.", facts=facts)
    proposal = best("target_modules", program, incident=incident)
    assert proposal is not None
    assert splice(text, proposal.edits) == text.replace("ff\\.\\d+", "ff\\.[02]")
