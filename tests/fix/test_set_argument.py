"""A call gets a keyword argument that the rule names."""

from __future__ import annotations

import pytest

from explainer.catalog.bundle import load_catalog
from tests.fix.rewriting import changed_lines, rewritten

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
