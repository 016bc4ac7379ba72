"""Where weights that are not finite come from: the line is named, and nothing is edited."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.model.incident import Fact
from tests.fix.rewriting import failed, write

UNTOUCHED = (Fact(name="traced_bad_input", value="untouched"),)
HEAD = "import numpy as np\nimport torch\nfrom torch import nn\n"
LOADER = """def load(path):
    rows = []
    with open(path) as lines:
        for line in lines:
            rows.append([float(one) for one in line.split()[1:]])
    return torch.tensor(rows)

"""
SILENT = {
    "weights that are drawn": HEAD + "table = nn.Parameter(torch.randn(4, 2))\n",
    "a table of zeros": HEAD + "table = nn.Embedding.from_pretrained(torch.zeros(4, 2))\n",
    "data": HEAD + 'x = torch.from_numpy(np.load("x.npy"))\ntable = nn.Embedding(4, 2)\n',
}
TOLD = {
    "an archive": (
        HEAD + 'with np.load("v.npz") as store:\n    table = torch.from_numpy(store["v"])\nemb = nn.Embedding.from_pretrained(table)\n',
        [6, 4],
    ),
    "a function that reads lines": (HEAD + LOADER + 'emb = nn.Embedding(4, 2)\nemb.weight = nn.Parameter(load("v.txt"))\n', [12, 6]),
    "an array": (HEAD + 'scale = nn.Parameter(torch.from_numpy(np.load("v.npy")).float())\n', [4, 4]),
}  # fmt: skip


def lines(source: str, folder: pathlib.Path, *, is_seen: bool = True) -> list[tuple[str, int | None]]:
    incident = replace(failed(), facts=UNTOUCHED if is_seen else ())
    found = list(
        find_codemod("weights_source")(Context(program=write(folder, {"train.py": source}), incident=incident))
    )
    assert not any(one.edits for one in found)
    return [(pathlib.Path(one.culprit.file).name, one.culprit.line) for one in found]


@pytest.mark.parametrize("source", SILENT.values(), ids=SILENT)
def test_weights_of_no_file(source: str, tmp_path: pathlib.Path) -> None:
    """What no file gave, none can restore."""
    assert lines(source, tmp_path) == []


@pytest.mark.parametrize(("source", "wanted"), TOLD.values(), ids=TOLD)
def test_weights_of_a_file(source: str, wanted: list[int], tmp_path: pathlib.Path) -> None:
    """The line that makes weights of it leads, then the one that reads it; nothing where no tracer saw them."""
    assert lines(source, tmp_path) == [("train.py", one) for one in wanted]
    assert lines(source, tmp_path, is_seen=False) == []


def test_the_line_of_the_file_leads(tmp_path: pathlib.Path) -> None:
    """A value in a text that the program names, with its line."""
    rows = [f"w{number} {number}.5 -0.{number}" for number in range(8)]
    (tmp_path / "v.txt").write_text("\n".join([*rows, "w8 nan 0.5", "w9 1 2"]))
    assert lines(TOLD["a function that reads lines"][0], tmp_path)[0] == ("v.txt", 9)


LOADED = {
    "an adapter, not its base": (
        "from transformers import AutoModelForCausalLM, AutoTokenizer\nfrom peft import PeftModel\n"
        'tok = AutoTokenizer.from_pretrained("base")\nbase = AutoModelForCausalLM.from_pretrained("base")\n'
        'model = PeftModel.from_pretrained(base, "adapter", is_trainable=True)\n',
        "PeftModel.base_model.model.q_proj.lora_B.default.weight",
        [5],
    ),
    "a base, and no adapter of it": (
        "from transformers import AutoModelForCausalLM, AutoConfig\nfrom peft import get_peft_model\n"
        'model = AutoModelForCausalLM.from_pretrained("base", config=AutoConfig.from_pretrained("base"))\nmodel = get_peft_model(model, cfg)\n',
        "PeftModel.base_model.model.lm_head.weight",
        [3],
    ),
    "a state of a model beside that of an optimizer": (
        HEAD + 'state = torch.load("a.pt")\nmodel.load_state_dict(state["model"])\nopt.load_state_dict(state["opt"])\n',
        "Net.conv.weight",
        [5],
    ),
    "two models that are loaded": (
        HEAD + 'teacher.load_state_dict(torch.load("a.pt"))\nmodel.load_state_dict(torch.load("b.pt"))\n', "Net.conv.weight", [],
    ),
    "memory that nothing loads": (HEAD + "w = nn.Parameter(torch.empty(3))\n", "w", []),
}  # fmt: skip


@pytest.mark.parametrize(("source", "name", "wanted"), LOADED.values(), ids=LOADED)
def test_weights_that_were_loaded(source: str, name: str, wanted: list[int], tmp_path: pathlib.Path) -> None:
    """What a live exception shows of them, without a trace: the one load that can have brought them."""
    incident = replace(failed(), facts=(Fact(name="live_untouched_parameters", value=name),))
    context = Context(program=write(tmp_path, {"train.py": source}), incident=incident)
    found = list(find_codemod("weights_source")(context))
    assert [one.culprit.line for one in found] == wanted
    assert not any(one.edits for one in found)


STATES = """import torch
def resume(path, model, optimizer):
    state = torch.load(path)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
"""


@pytest.mark.parametrize("name", ["optimizer", "opt", "opt_actor", "self.optim"])
def test_the_state_of_an_optimizer(name: str, tmp_path: pathlib.Path) -> None:
    """The line that loads it, and not the one that loads the weights, which were sound."""
    incident = replace(failed(), facts=(Fact(name="traced_bad_input", value="state"),))
    context = Context(
        program=write(tmp_path, {"train.py": STATES.replace("    optimizer.load", f"    {name}.load")}),
        incident=incident,
    )
    (one,) = find_codemod("weights_source")(context)
    assert (one.edits, one.culprit.line) == ((), 5)
