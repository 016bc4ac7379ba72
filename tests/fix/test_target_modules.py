"""`target_modules` names layers that the model has."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import best, changed_lines, rewritten, write

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
def test_the_table_is_peft_s_own() -> None:
    """The projections that are written for an architecture are those that PEFT takes for it."""
    constants = pytest.importorskip("peft.utils.constants")
    from explainer.fix.codemods.target_modules import _PROJECTIONS

    own = {
        name.replace("_", "").replace("-", ""): value
        for name, value in constants.TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING.items()
    }
    assert {name: own.get(name.lower()) for name in _PROJECTIONS} == _PROJECTIONS


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
