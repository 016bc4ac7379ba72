"""DistributedDataParallel gets its search for unused parameters through the `Accelerator` that wraps the model."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.splice import splice
from tests.fix.rewriting import best, changed_lines, failed, write

NET = """import json
import torch
import yaml
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.text, self.image = nn.Linear(2, 2), nn.Linear(2, 2)

    def forward(self, x, kind):
        return self.text(x) if kind == "text" else self.image(x)


class Spare(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(2, 2)
        self.extra = nn.Linear(2, 2)

    def forward(self, x):
        return self.body(x)


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(2, 2)

    def forward(self, x):
        return self.body(x)


class Rows(torch.utils.data.Dataset):
    def __init__(self):
        self.mean = nn.Linear(2, 2)

    def __len__(self):
        return 8


"""
HEAD = "from accelerate import Accelerator\n"
OPTIONS = "from accelerate import Accelerator, DistributedDataParallelKwargs\n"
ADDED = "from accelerate import Accelerator, DistributedDataParallelKwargs"
MADE = "accelerator = Accelerator(cpu=True)\n"
PREPARE = (
    "model = Net()\nopt = torch.optim.SGD(model.parameters(), 0.1)\nmodel, opt = accelerator.prepare(model, opt)\n"
)
HANDED = "kwargs_handlers=[DistributedDataParallelKwargs(find_unused_parameters=True)]"
RIGHT = {
    "a search that is on": OPTIONS + f"accelerator = Accelerator({HANDED})\n" + PREPARE,
    "a graph that is said to be static": OPTIONS + MADE.replace("cpu=True", f"{HANDED[:-2]}, static_graph=True)]").replace("find_unused_parameters=True, ", "") + PREPARE,
    "every layer in every step": HEAD + MADE + PREPARE.replace("Net", "Plain"),
    "a model that is not prepared": HEAD + MADE + "model = Net()\nopt = accelerator.prepare(torch.optim.SGD(model.parameters(), 0.1))\n",
    "prepared by something else": MADE.replace("Accelerator", "torch.device") + PREPARE,
    "rows that look like a module": HEAD + MADE + "rows = accelerator.prepare(torch.utils.data.DataLoader(Rows()), Rows())\n",
    "handlers that are not known": HEAD + "import sys\n" + MADE.replace("cpu=True", "kwargs_handlers=sys.argv[1:]") + PREPARE,
    "options that are not known": HEAD + "import sys\nmore = eval(sys.argv[1])\n" + MADE.replace("cpu=True", "**more") + PREPARE,
}  # fmt: skip
WRONG = {
    "no handlers": (HEAD + MADE + PREPARE, [ADDED, f"accelerator = Accelerator(cpu=True, {HANDED})"]),
    "an accelerator that is handed on": (
        HEAD + "def train(acc, model):\n    model = acc.prepare_model(model)\n\n\ntrain(Accelerator(), Net())\n",
        [ADDED, f"train(Accelerator({HANDED}), Net())"],
    ),
    "an accelerator that is kept": (
        HEAD + "class Job:\n    def __init__(self):\n        self.acc = Accelerator()\n        self.net = self.acc.prepare(Net())\n\n\nJob()\n",
        [ADDED, f"self.acc = Accelerator({HANDED})"],
    ),
    "a module's name": (
        "import accelerate\nacc = accelerate.Accelerator()\nmodel = acc.prepare(Net())\n",
        ["acc = accelerate.Accelerator(kwargs_handlers=[accelerate.DistributedDataParallelKwargs(find_unused_parameters=True)])"],
    ),
    "a handler that denies it": (
        OPTIONS + f"accelerator = Accelerator({HANDED.replace('True', 'False')})\n" + PREPARE,
        [f"accelerator = Accelerator({HANDED})"],
    ),
    "a handler of another name": (
        "from accelerate import Accelerator\nfrom accelerate.utils import DistributedDataParallelKwargs as Options\n"
        "options = Options(bucket_cap_mb=5)\naccelerator = Accelerator(kwargs_handlers=[options])\n" + PREPARE,
        ["options = Options(bucket_cap_mb=5, find_unused_parameters=True)"],
    ),
    "a list with other handlers": (
        "from accelerate import Accelerator, InitProcessGroupKwargs\n"
        "handlers = [InitProcessGroupKwargs()]\naccelerator = Accelerator(kwargs_handlers=handlers)\n" + PREPARE,
        [
            "from accelerate import Accelerator, DistributedDataParallelKwargs, InitProcessGroupKwargs",
            "handlers = [InitProcessGroupKwargs(), DistributedDataParallelKwargs(find_unused_parameters=True)]",
        ],
    ),
    "a layer that nothing uses": (HEAD + MADE + PREPARE.replace("Net", "Spare"), ["self.extra = nn.Linear(2, 2).requires_grad_(False)"]),
    "options of a dictionary": (
        HEAD + "acc = Accelerator(**{'cpu': True})\nmodel = acc.prepare(Net())\n", [ADDED, f"acc = Accelerator(**{{'cpu': True}}, {HANDED})"],
    ),
}  # fmt: skip
FILES = {
    "a section of the options": (
        'cfg = yaml.safe_load(open("run.yaml"))\n' + HEAD + "acc = Accelerator(**cfg['accelerator'])\nmodel = acc.prepare(Net())\n",
        "accelerator:\n  cpu: true\n",
        ("train.py", [ADDED, f"acc = Accelerator(**cfg['accelerator'], {HANDED})"]),
    ),
    "a section of the handler": (
        'cfg = yaml.safe_load(open("run.yaml"))\n' + OPTIONS + "options = DistributedDataParallelKwargs(**cfg['ddp'])\n"
        "acc = Accelerator(kwargs_handlers=[options])\nmodel = acc.prepare(Net())\n",
        "ddp:\n  find_unused_parameters: false\n  bucket_cap_mb: 5\n",
        ("run.yaml", ["find_unused_parameters: true"]),
    ),
}  # fmt: skip


def cured(tmp_path, files: dict[str, str]) -> tuple[str, list[str]] | None:
    """The file that changes, with its new lines."""
    found = best("reach_every_parameter", write(tmp_path, files), incident=failed())
    if found is None:
        return None
    name = pathlib.Path(found.edits[0].file).name
    after = splice(files[name], found.edits)
    assert after is not None
    return name, changed_lines(files[name], after)


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str) -> None:
    """A search that is on, another `prepare`, and what is prepared beside the model."""
    assert cured(tmp_path, {"train.py": NET + source}) is None


@pytest.mark.parametrize(("source", "wanted"), WRONG.values(), ids=WRONG)
def test_the_accelerator_gets_the_search(tmp_path, source: str, wanted: list[str]) -> None:
    """By a handler of its own or in the one that it has; a layer that nothing uses is frozen as without Accelerate."""
    assert cured(tmp_path, {"train.py": NET + source}) == ("train.py", wanted)


@pytest.mark.parametrize(("source", "settings", "wanted"), FILES.values(), ids=FILES)
def test_options_of_a_file(tmp_path, source: str, settings: str, wanted: tuple[str, list[str]]) -> None:
    """A file cannot hold a handler, but its options."""
    assert cured(tmp_path, {"train.py": NET + source, "run.yaml": settings}) == wanted
