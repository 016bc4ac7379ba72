"""A call gets a keyword argument that the rule names."""

from __future__ import annotations

import pytest

from explainer.catalog.bundle import load_catalog
from explainer.fix.splice import splice
from tests.fix.rewriting import best, changed_lines, rewritten, write

HEAD = "import torch\nfrom torch import nn\n"
CTC = {"options": {"calls": ["torch.nn.CTCLoss"], "argument": "zero_infinity", "value": "True"}}
LOAD = {"options": {"calls": [".load_state_dict"], "argument": "assign", "value": "True"}}
RIGHT = {
    "set already": (HEAD + "loss = nn.CTCLoss(zero_infinity=True)\n", "", CTC),
    "settings that are not seen": (HEAD + "loss = nn.CTCLoss(**settings)\n", "", CTC),
    "a value that is computed": (HEAD + "loss = nn.CTCLoss(zero_infinity=careful)\n", "", CTC),
    "another class of that name": ("from mine import CTCLoss\nloss = CTCLoss()\n", "", CTC),
    "no options": (HEAD + "loss = nn.CTCLoss()\n", "", {}),
}
CYCLE = {
    "options": {"calls": ["torch.optim.lr_scheduler.OneCycleLR"], "argument": "cycle_momentum", "value": "False", "message": "cycle_momentum"},
    "message": "optimizer must support momentum or beta1 with `cycle_momentum` option enabled",
}  # fmt: skip
ONE_CYCLE = "from torch.optim.lr_scheduler import OneCycleLR\ns = OneCycleLR(opt, 0.1, total_steps=9)\n"
RIGHT["another failure than the option asks for"] = (ONE_CYCLE, "", {**CYCLE, "message": "max_lr must be positive"})
OWN = {"options": {"calls": ["torch.load"], "argument": "weights_only", "value": "False", "written_by": "torch.save"}}
RIGHT["a file that comes from elsewhere"] = (
    HEAD + "torch.save(net, 'mine.pt')\nstate = torch.load('theirs.pt')\n",
    "",
    OWN,
)
LABELS = {
    "options": {"calls": [".from_pretrained"], "argument": "ignore_mismatched_sizes", "value": "True", "beside": ["num_labels"], "message": "ignore_mismatched_sizes"},
    "message": "You set `ignore_mismatched_sizes` to `False`, thus raising an error.",
}  # fmt: skip
RIGHT["no argument that it stands beside"] = ("model = Auto.from_pretrained(base)\n", "", LABELS)
BF16 = {
    "options": {"calls": ["trl.SFTConfig"], "argument": "bf16", "value": "False", "message": "support bf16"},
    "message": "Your setup doesn't support bf16/gpu. You need to assign use_cpu if you want to train the model on CPU.",
}
WRONG = {
    "a default that the machine does not have": (
        "from trl import SFTConfig\nargs = SFTConfig('out', max_steps=2)\n",
        "",
        BF16,
        ["args = SFTConfig('out', max_steps=2, bf16=False)"],
    ),
    "asked for where the default is the same": (
        "import trl\nargs = trl.SFTConfig('out', bf16=True)\n",
        "",
        BF16,
        ["args = trl.SFTConfig('out', bf16=False)"],
    ),
    "a file of its own": (
        HEAD + "torch.save({'net': net}, path)\nstate = torch.load(path)\n",
        "",
        OWN,
        ["state = torch.load(path, weights_only=False)"],
    ),
    "a file that is moved into its place": (
        "import os\n"
        + HEAD
        + "torch.save(net, part)\nos.replace(part, f'{name}.pt')\nstate = torch.load(f'{name}.pt')\n",
        "",
        OWN,
        ["state = torch.load(f'{name}.pt', weights_only=False)"],
    ),
    "a file by two names": (
        HEAD + "path = out / 'net.pt'\ntorch.save(net, path)\nstate = torch.load(out / 'net.pt')\n",
        "",
        OWN,
        ["state = torch.load(out / 'net.pt', weights_only=False)"],
    ),
    "beside the argument that asks for it": (
        "model = Auto.from_pretrained(base, num_labels=5)\n",
        "",
        LABELS,
        ["model = Auto.from_pretrained(base, num_labels=5, ignore_mismatched_sizes=True)"],
    ),
    "a momentum that is not there": (
        ONE_CYCLE,
        "",
        CYCLE,
        ["s = OneCycleLR(opt, 0.1, total_steps=9, cycle_momentum=False)"],
    ),
    "without arguments": (HEAD + "loss = nn.CTCLoss()\n", "", CTC, ["loss = nn.CTCLoss(zero_infinity=True)"]),
    "beside others": (
        HEAD + "loss = nn.CTCLoss(blank=0)\n",
        "",
        CTC,
        ["loss = nn.CTCLoss(blank=0, zero_infinity=True)"],
    ),
    "over several lines": (HEAD + "loss = nn.CTCLoss(\n    blank=0,\n)\n", "", CTC, ["zero_infinity=True,"]),
    "set to False": (
        HEAD + "loss = nn.CTCLoss(zero_infinity=False)\n",
        "",
        CTC,
        ["loss = nn.CTCLoss(zero_infinity=True)"],
    ),
    "a method": (HEAD + "net.load_state_dict((state))\n", "", LOAD, ["net.load_state_dict((state), assign=True)"]),
    "an imported name": (
        "from torch.nn import CTCLoss as C\nloss = C(0)\n",
        "",
        CTC,
        ["loss = C(0, zero_infinity=True)"],
    ),
}


DENSE = {
    "calls": ["torch.nn.Embedding"],
    "argument": "sparse",
    "value": "False",
    "beside": ["sparse"],
    "together": True,
}
WRONG["all calls together, for one of two failures"] = (
    "from torch import nn\n\na, b = nn.Embedding(4, 2, sparse=True), nn.Embedding(4, 2)\nc = nn.Embedding(9, 2, sparse=True)\n",
    "",
    {"options": {**DENSE, "message": ["with sparse", "add(sparse"]}, "message": "add(sparse, dense) is not supported"},
    ["a, b = nn.Embedding(4, 2, sparse=False), nn.Embedding(4, 2)", "c = nn.Embedding(9, 2, sparse=False)"],
)


@pytest.mark.parametrize(("source", "at", "given"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str, given: dict) -> None:
    """Calls that have the argument, or may have it, and other calls are left alone."""
    assert rewritten(tmp_path, "set_argument", source, at or None, **given) == source


@pytest.mark.parametrize(("source", "at", "given", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, given: dict, wanted: list[str]) -> None:
    """The argument is added last, or its value replaced; a second time nothing is left to do."""
    after = rewritten(tmp_path, "set_argument", source, at or None, **given)
    assert changed_lines(source, after) == wanted
    assert rewritten(tmp_path, "set_argument", after, None if at not in after else at or None, **given) == after


@pytest.mark.parametrize(
    ("head", "call"), [("import lightning as L", "L.Trainer"), ("from pytorch_lightning import Trainer", "Trainer"), ("import mine", "mine.Trainer")]
)  # fmt: skip
def test_a_trainer_that_evaluates_in_inference_mode(head: str, call: str, tmp_path) -> None:
    """Lightning's trainers are told to use `no_grad`, by the rule's own options; another class of that name is not."""
    (rule,) = [one for one in load_catalog().cause("inplace/inference-tensor").fixes if "trainer" in one.id]
    source = f"{head}\ntrainer = {call}(max_epochs=2)\n"
    message = "Inference tensors cannot be saved for backward."
    after = rewritten(tmp_path, "set_argument", source, options=rule.options, message=message)
    wanted = [] if "mine" in head else [f"trainer = {call}(max_epochs=2, inference_mode=False)"]
    assert changed_lines(source, after) == wanted


TRAINER = {"calls": ["lightning.Trainer"], "argument": "inference_mode", "value": "False"}
LOADS = "import lightning as L\nimport yaml\ncfg = yaml.safe_load(open('a.yaml'))\n"
SPREAD = {
    "a section of a file": (
        {"a.yaml": "trainer:\n  devices: 1\n  logger: false\nseed: 1\n", "train.py": LOADS + "L.Trainer(callbacks=[], **cfg['trainer'])\n"},
        "a.yaml", ["inference_mode: false"],
    ),
    "a value in that section": (
        {"a.yaml": "trainer: {devices: 1, inference_mode: true}\n", "train.py": LOADS + "L.Trainer(**cfg['trainer'])\n"},
        "a.yaml", ["trainer: {devices: 1, inference_mode: false}"],
    ),
    "a whole file": (
        {"a.json": '{"devices": 1}', "train.py": "import json\nfrom lightning import Trainer\nTrainer(**json.load(open('a.json')))\n"},
        "a.json", ['{"devices": 1, "inference_mode": false}'],
    ),
    "a table of TOML": (
        {"a.toml": "[trainer]\ndevices = 1\n", "train.py": "import tomllib\nfrom lightning import Trainer\ncfg = tomllib.load(open('a.toml', 'rb'))\nTrainer(**cfg['trainer'])\n"},
        "a.toml", ["inference_mode = false"],
    ),
    "a dictionary": (
        {"train.py": "import lightning as L\noptions = {'devices': 1}\nL.Trainer(**options)\n"},
        "train.py", ["options = {'devices': 1, 'inference_mode': False}"],
    ),
    "a dictionary by keywords": (
        {"train.py": "import lightning as L\noptions = dict(devices=1)\nL.Trainer(**options)\n"},
        "train.py", ["options = dict(devices=1, inference_mode=False)"],
    ),
}  # fmt: skip
UNKNOWN = {
    "the file has it": {"a.yaml": "trainer: {inference_mode: false}\n", "train.py": LOADS + "L.Trainer(**cfg['trainer'])\n"},
    "the call has it": {"a.yaml": "trainer: {devices: 1}\n", "train.py": LOADS + "L.Trainer(inference_mode=False, **cfg['trainer'])\n"},
    "two mappings": {"a.yaml": "trainer: {devices: 1}\n", "train.py": LOADS + "L.Trainer(**cfg['trainer'], **more)\n"},
    "a dictionary with another in it": {"train.py": "import lightning as L\noptions = {'devices': 1, **more}\nL.Trainer(**options)\n"},
    "arguments that nobody knows": {"train.py": "import lightning as L\nL.Trainer(**options())\n"},
    "two dictionaries": {"train.py": "import lightning as L\noptions = {'devices': 1} if fast else {'devices': 2}\nL.Trainer(**options)\n"},
}  # fmt: skip


@pytest.mark.parametrize(("files", "changed", "wanted"), SPREAD.values(), ids=SPREAD)
def test_an_argument_that_options_give(tmp_path, files: dict, changed: str, wanted: list[str]) -> None:
    """A call that takes `**options` gets the argument where these are written."""
    proposal = best("set_argument", write(tmp_path, files), options=TRAINER)
    assert proposal is not None
    assert {edit.file for edit in proposal.edits} == {str(tmp_path / changed)}
    after = splice(files[changed], proposal.edits)
    assert after is not None
    assert changed_lines(files[changed], after) == wanted
    assert best("set_argument", write(tmp_path, {**files, changed: after}), options=TRAINER) is None


@pytest.mark.parametrize("files", UNKNOWN.values(), ids=UNKNOWN)
def test_options_that_are_not_known_stay(tmp_path, files: dict) -> None:
    """What has the argument, or may have it, is left alone."""
    assert best("set_argument", write(tmp_path, files), options=TRAINER) is None
