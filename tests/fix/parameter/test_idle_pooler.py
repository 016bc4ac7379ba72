"""A pooler of transformers whose output nothing reads is frozen; what else a library's model leaves out, DDP searches for."""

from __future__ import annotations

import pytest

from explainer.fix.splice import splice
from tests.fix.rewriting import best, changed_lines, failed, write

HEAD = """import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from accelerate import Accelerator
from transformers import AutoModel, BertConfig, BertModel, ViTModel, Wav2Vec2Model
"""
NET = (
    HEAD
    + """class Net(nn.Module):
    def __init__(self, config):
        super().__init__()
        MAKE
        self.head = nn.Linear(8, 2)

    def forward(self, ids):
        USE
        return self.head(states.mean(1))


net = Net(BertConfig())
WRAP
"""
)
WRAP = "model = DDP(net)"
MAKE = "self.bert = BertModel(config)"
USE = "states = self.bert(ids).last_hidden_state"
FROZEN = "self.bert.pooler.requires_grad_(False)"
POOLER = "bert.pooler.dense.weight bert.pooler.dense.bias"


def program(make: str = MAKE, use: str = USE, wrap: str = WRAP) -> str:
    """A network round an encoder, with the lines that make it, run it and wrap the network."""
    return NET.replace("MAKE", make).replace("USE", use).replace("WRAP", wrap)


def cured(tmp_path, files: dict[str, str], names: str | None) -> dict[str, list[str]]:
    """The new lines of each file; none where nothing is proposed."""
    facts = {"live_unreduced": names} if names else None
    found = best("reach_every_parameter", write(tmp_path, files), incident=failed(facts=facts))
    if found is None:
        return {}
    changed = {}
    for name, text in files.items():
        after = splice(text, [one for one in found.edits if one.file.endswith(f"/{name}")])
        assert after is not None
        changed |= {name: changed_lines(text, after)} if after != text else {}
    return changed


SEARCH = ["model = DDP(net, find_unused_parameters=True)"]
NOT_FROZEN = {
    "its output by name": program(use=USE + "\n        states = states + self.bert(ids).pooler_output[:, None]"),
    "its output by place": program(use="out = self.bert(ids)\n        states = out[0] + out[1][:, None]"),
    "its output, unpacked": program(use="states, pooled = self.bert(ids, return_dict=False)"),
    "a slice of the outputs": program(use="states = self.bert(ids)[:2][0]"),
    "a key of the outputs": program(use='out = self.bert(ids)\n        states = out["pooler_output"][:, None]'),
    "the pooler itself": program(use=USE + "\n        states = self.bert.pooler(states)[:, None]"),
}
FREEZES = {
    "the states by name": (program(), POOLER, [FROZEN]),
    "the states by place": (program(use="states = self.bert(ids)[0]"), POOLER, [FROZEN]),
    "the states, unpacked": (program(use="states, _ = self.bert(ids, return_dict=False)"), POOLER, [FROZEN]),
    "the size of the states": (program(use=USE + "\n        size = states.shape[1]"), POOLER, [FROZEN]),
    "a model that is loaded": (
        program(make='self.bert = AutoModel.from_pretrained("tiny")'), POOLER, [FROZEN],
    ),
    "another model": (
        program(make='self.vit = ViTModel.from_pretrained("tiny")', use="states = self.vit(ids).last_hidden_state"),
        "vit.pooler.dense.weight", ["self.vit.pooler.requires_grad_(False)"],
    ),
    "two names in one line": (
        program(make="self.bert, self.norm = BertModel(config), nn.LayerNorm(8)", use="states = self.norm(self.bert(ids)[0])"),
        POOLER, [FROZEN],
    ),
    "a model that is handed in": (
        program(make="self.bert = config", wrap="model = DDP(Net(BertModel(BertConfig())))"), POOLER, [FROZEN],
    ),
    "prepared by Accelerate": (program(wrap="acc = Accelerator()\nnet = acc.prepare(net)"), POOLER, [FROZEN]),
    "a tower of its own class": (
        program(make="self.tower = Tower(config)", use="states = self.tower(ids)").replace(
            "class Net(", "class Tower(nn.Module):\n    def __init__(self, config):\n        super().__init__()\n        self.bert = BertModel(config)\n\n"
            "    def forward(self, ids):\n        return self.bert(ids).last_hidden_state\n\n\nclass Net("
        ),
        "tower.bert.pooler.dense.weight", [FROZEN],
    ),
    "two towers": (
        program(make="self.left = BertModel(config)\n        self.right = BertModel(config)",
                use="states = self.left(ids)[0] + self.right(ids)[0]"),
        "left.pooler.dense.weight right.pooler.dense.weight",
        ["self.left.pooler.requires_grad_(False)", "self.right.pooler.requires_grad_(False)"],
    ),
    "a model that is wrapped itself": (
        HEAD + 'net = BertModel.from_pretrained("tiny")\nmodel = DDP(net)\nloss = model(torch.ones(1, 2)).last_hidden_state.sum()\n',
        "pooler.dense.weight pooler.dense.bias", ["net.pooler.requires_grad_(False)"],
    ),
    "what the source alone shows": (program(), None, [FROZEN]),
}  # fmt: skip
SEARCHES = {
    "a layer that a step drops": (
        program(make='self.speech = Wav2Vec2Model.from_pretrained("tiny")', use="states = self.speech(ids)[0]"),
        "speech.encoder.layers.3.attention.q_proj.weight",
    ),
    "a pooler and more": (program(), f"{POOLER} bert.encoder.layer.1.output.dense.weight"),
    "towers of a table": (
        program(make='self.towers = nn.ModuleDict({"a": BertModel(config), "b": BertModel(config)})', use='states = self.towers["a"](ids)[0]'),
        "towers.b.pooler.dense.weight towers.b.embeddings.word_embeddings.weight",
    ),
}  # fmt: skip
STAYS = {
    "a model that is built without one": (program(make="self.bert = BertModel(config, add_pooling_layer=False)"), None),
    "options that may leave it out": (program(make="self.bert = BertModel(config, **{})"), None),
    "one that is frozen": (program(make=f"{MAKE}\n        {FROZEN}"), None),
    "a model that is not wrapped": (program(wrap=""), None),
    "a model of which the source tells nothing": (program(make='self.bert = AutoModel.from_pretrained("tiny")'), None),
    "a layer of the program": (program(), f"{POOLER} head.weight"),
    "a pooler of the program": (
        program(make="self.pooler = nn.Linear(8, 8)", use="states = self.pooler(ids)"), "pooler.weight pooler.bias",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("source", "names"), STAYS.values(), ids=STAYS)
def test_right_programs_stay(tmp_path, source: str, names: str | None) -> None:
    """No pooler, a frozen one, and layers of the program's own beside it."""
    assert cured(tmp_path, {"train.py": source}, names) == {}


@pytest.mark.parametrize("source", NOT_FROZEN.values(), ids=NOT_FROZEN)
def test_a_pooler_that_may_be_read_is_not_frozen(tmp_path, source: str) -> None:
    """It may get its gradient in another step: DDP searches."""
    assert cured(tmp_path, {"train.py": source}, POOLER) == {"train.py": SEARCH}
    assert cured(tmp_path, {"train.py": source}, None) == {}


@pytest.mark.parametrize(("source", "names", "wanted"), FREEZES.values(), ids=FREEZES)
def test_an_idle_pooler_is_frozen(tmp_path, source: str, names: str | None, wanted: list[str]) -> None:
    """Behind the line that makes its model, or before the one that wraps this."""
    assert cured(tmp_path, {"train.py": source}, names) == {"train.py": wanted}


@pytest.mark.parametrize(("source", "names"), SEARCHES.values(), ids=SEARCHES)
def test_other_parts_of_a_library(tmp_path, source: str, names: str) -> None:
    """Which part a library's model leaves out may change from step to step."""
    assert cured(tmp_path, {"train.py": source}, names) == {"train.py": SEARCH}


def test_an_encoder_of_another_file(tmp_path) -> None:
    """The edit stands where the model is made."""
    parts = program().partition("net = Net(")
    files = {"net.py": parts[0], "train.py": "from net import *\nfrom net import Net\n" + "".join(parts[1:])}
    files["train.py"] = HEAD + files["train.py"]
    assert cured(tmp_path, files, POOLER) == {"net.py": [FROZEN]}
