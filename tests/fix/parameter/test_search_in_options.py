"""DistributedDataParallel searches for layers that a step drops, also where its options say that it does not."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.splice import splice
from tests.fix.rewriting import best, changed_lines, failed, write

HEAD = """import json
import random
import tomllib
import torch
import yaml
from pathlib import Path
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
"""
NET = """class Net(nn.Module):
    def __init__(self, rate=0.3, depth=4):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(2, 2) for _ in range(depth))
        self.head = nn.Linear(2, 2)
        self.rate, self.coin = rate, random.Random(3)

    def forward(self, x, until=None):
LOOP
        return self.head(x)


"""
DROP = """        for layer in self.layers:
            if self.training and self.coin.random() < self.rate:
                continue
            x = x + layer(x)"""
TOML = 'cfg = tomllib.loads(Path("run.toml").read_text())\nmodel = DDP(Net(), **cfg["ddp"])\n'
RUN = "lr = 0.1\n\n[ddp]\nbucket_cap_mb = 1\nfind_unused_parameters = false\n"


def program(wrap: str, loop: str = DROP, **files: str) -> dict[str, str]:
    """A network with some loop over its layers, a line that wraps it, and files beside it."""
    return {"train.py": HEAD + NET.replace("LOOP", loop) + wrap} | {
        name.replace("_", "."): text for name, text in files.items()
    }


def cured(tmp_path, files: dict[str, str], facts: dict[str, str] | None = None) -> tuple[str, list[str], int] | None:
    """The file that changes, its new lines, and the line that leads."""
    read = write(tmp_path, files)
    found = best("reach_every_parameter", read, incident=failed(facts=facts))
    if found is None:
        return None
    (edit,) = found.edits
    name = pathlib.Path(edit.file).name
    text = (tmp_path / name).read_text()
    after = splice(text, found.edits)
    assert after is not None
    return name, changed_lines(text, after), found.culprit.line if found.culprit.file == edit.file else 0


WRITTEN = {
    "a table of TOML": (program(TOML, run_toml=RUN), "run.toml", "find_unused_parameters = true", 5),
    "a mapping of YAML": (
        program(
            'cfg = yaml.safe_load(open("run.yaml"))\nmodel = DDP(Net(), **cfg["ddp"])\n',
            run_yaml="ddp:\n  find_unused_parameters: no\n  bucket_cap_mb: 1\n",
        ),
        "run.yaml", "find_unused_parameters: yes", 2,
    ),
    "an object of JSON, through a function": (
        program(
            'def wrap(net, options):\n    return DDP(net, **options)\n\n\nconf = json.load(open("run.json"))\nmodel = wrap(Net(), conf["ddp"])\n',
            run_json='{"ddp": {"bucket_cap_mb": 1,\n"find_unused_parameters": false}}\n',
        ),
        "run.json", '"find_unused_parameters": true}}', 2,
    ),
    "a keyword": (program("model = DDP(Net(), find_unused_parameters=False)\n"), "train.py", "model = DDP(Net(), find_unused_parameters=True)", 24),
    "a keyword that a file gives": (
        program('cfg = tomllib.loads(Path("run.toml").read_text())\nmodel = DDP(Net(), find_unused_parameters=cfg["ddp"]["find_unused_parameters"])\n', run_toml=RUN),
        "run.toml", "find_unused_parameters = true", 5,
    ),
    "a dictionary": (
        program('OPTIONS = {\n    "bucket_cap_mb": 1,\n    "find_unused_parameters": False,\n}\nmodel = DDP(Net(), **OPTIONS)\n'),
        "train.py", '"find_unused_parameters": True,', 26,
    ),
    "arguments of dict": (
        program("options = dict(bucket_cap_mb=1, find_unused_parameters=False)\nmodel = DDP(Net(), **options)\n"),
        "train.py", "options = dict(bucket_cap_mb=1, find_unused_parameters=True)", 24,
    ),
    "options without it": (program(TOML, run_toml="[ddp]\nbucket_cap_mb = 1\n"), "run.toml", "find_unused_parameters = true", 0),
    "what processes are handed": (
        program(
            'def worker(rank, port, cfg):\n    model = DDP(Net(), **cfg["ddp"])\n\n\ncfg = tomllib.loads(Path("run.toml").read_text())\n'
            "torch.multiprocessing.spawn(worker, args=(29500, cfg), nprocs=2)\n",
            run_toml=RUN,
        ),
        "run.toml", "find_unused_parameters = true", 5,
    ),
    "what one process is handed by name": (
        program(
            'def worker(rank, cfg):\n    model = DDP(Net(), **cfg["ddp"])\n\n\ncfg = tomllib.loads(Path("run.toml").read_text())\n'
            "for at in range(2):\n    torch.multiprocessing.Process(target=worker, args=(at,), kwargs={'cfg': cfg}).start()\n",
            run_toml=RUN,
        ),
        "run.toml", "find_unused_parameters = true", 5,
    ),
    "options that are not known": (
        program("import sys\nmodel = DDP(Net(), **json.loads(sys.argv[1]))\n"),
        "train.py", 'model = DDP(Net(), **{**json.loads(sys.argv[1]), "find_unused_parameters": True})', 25,
    ),
    "nothing written": (program("model = DDP(Net())\n"), "train.py", "model = DDP(Net(), find_unused_parameters=True)", 24),
}  # fmt: skip
RIGHT = {
    "a search that is on": program(TOML, run_toml=RUN.replace("false", "true")),
    "a graph that is said to be static": program(TOML, run_toml=RUN + "static_graph = true\n"),
    "a switch that may switch more": program(
        'cfg = tomllib.loads(Path("run.toml").read_text())\nmodel = DDP(Net(), find_unused_parameters=cfg["debug"])\n',
        run_toml="debug = false\n",
    ),
    "a switch that is not known": program("import sys\nmodel = DDP(Net(), find_unused_parameters=len(sys.argv) > 1)\n"),
    "a network without DDP": program(
        'cfg = tomllib.loads(Path("run.toml").read_text())\nmodel = Net()\n', run_toml=RUN
    ),
}
DROPS = {
    "a draw by name": """        for at, layer in enumerate(self.layers):
            coin = torch.rand(1).item()
            if self.training and coin < self.rate:
                continue
            x = layer(x)""",
    "what is kept": """        for layer in self.layers:
            if not self.training or random.uniform(0, 1) > self.rate:
                x = layer(x)""",
    "an expression": """        keep = torch.bernoulli(torch.full((4,), 0.5)).tolist()
        for one, kept in zip(self.layers, keep):
            x = one(x) if kept else x""",
    "a depth that is given": """        for at, layer in enumerate(self.layers):
            if until is not None and at >= until:
                break
            x = layer(x)""",
    "a method that draws": """        for layer in self.layers:
            if self.skips():
                continue
            x = layer(x)
        return self.head(x)

    def skips(self):
        return self.training and self.coin.random() < self.rate

    def other(self, x):""",
    "a method that loops": """        return self.head(self.encode(x))

    def encode(self, x):
        for layer in self.layers:
            if self.coin.random() < self.rate:
                continue
            x = layer(x)
        return x

    def other(self, x):""",
}
STEADY = {
    "every layer": "        for layer in self.layers:\n            x = layer(x)",
    "a place": "        for at, layer in enumerate(self.layers):\n            if at == 0:\n                continue\n            x = layer(x)",
    "a setting": "        for layer in self.layers:\n            if self.rate > 1:\n                continue\n            x = layer(x)",
    "noise": "        for layer in self.layers:\n            if self.training and self.coin.random() < self.rate:\n                x = x + 1\n            x = layer(x)",
    "a skip behind the layer": (
        "        for layer in self.layers:\n            x = layer(x)\n            if self.coin.random() < self.rate:\n                continue\n            x = x * 2"
    ),
    "what may be left out": "        if until is None:\n            x = x + 1\n        for layer in self.layers:\n            x = layer(x)",
}  # fmt: skip
BLOCK = """class Block(nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.body, self.rate = nn.Linear(2, 2), rate

    def forward(self, x):
        if self.training and torch.rand(()) < self.rate:
            return x
        return x + self.body(x)


class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block(0.1 * at) for at in range(3))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


model = DDP(Deep())
"""


@pytest.mark.parametrize(("files", "name", "line", "leads"), WRITTEN.values(), ids=WRITTEN)
def test_the_search_is_switched_on_where_it_is_written(tmp_path, files, name: str, line: str, leads: int) -> None:
    """The `False` leads, or the call where none is written; a second time nothing is left to do."""
    assert cured(tmp_path, files) == (name, [line], leads)
    after = files[name].splitlines()
    old = [at for at, one in enumerate(after) if "find_unused_parameters" in one or "DDP(Net())" in one]
    if leads and old:
        after[leads - 1] = after[leads - 1][: -len(after[leads - 1].lstrip())] + line
        assert cured(tmp_path, files | {name: "\n".join(after) + "\n"}) is None


@pytest.mark.parametrize("files", RIGHT.values(), ids=RIGHT)
def test_options_that_are_right_or_not_known_stay(tmp_path, files: dict[str, str]) -> None:
    """A search that is on, a graph that is static, a switch of another name."""
    assert cured(tmp_path, files) is None


@pytest.mark.parametrize("loop", DROPS.values(), ids=DROPS)
def test_layers_that_a_step_drops(tmp_path, loop: str) -> None:
    """They are dropped by a draw or by what the caller gives, in the loop or in a method of the same class."""
    found = cured(tmp_path, program(TOML, loop, run_toml=RUN))
    assert found == ("run.toml", ["find_unused_parameters = true"], 5)


@pytest.mark.parametrize("loop", STEADY.values(), ids=STEADY)
def test_layers_that_every_step_runs(tmp_path, loop: str) -> None:
    """The place of a layer or a setting decides once and for all; what runs beside a layer leaves none out."""
    assert cured(tmp_path, program(TOML, loop, run_toml=RUN)) is None


def test_a_block_that_returns_early(tmp_path) -> None:
    """The module that drops itself is found in the one that is wrapped; what else got no gradient has another cause."""
    files = {"train.py": HEAD + BLOCK}
    wanted = ["model = DDP(Deep(), find_unused_parameters=True)"]
    found = cured(tmp_path, files, {"live_unreduced": "blocks.1.body.weight blocks.1.body.bias"})
    assert found is not None
    assert found[1] == wanted
    assert cured(tmp_path, files, {"live_unreduced": "blocks.1.body.weight head.weight"}) is None
