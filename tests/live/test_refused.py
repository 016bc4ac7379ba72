"""Loads that raise, and a program that takes that for another failure and trains without; what is made good or meant is not told."""

from __future__ import annotations

import json
import pathlib

import pytest

from tests import forked
from tests.gate import some_at_gate
from tests.live.running import run
from tests.verification.programs import gradfix

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

HEAD = """import contextlib, copy, logging, os, tempfile
import torch
from torch import nn


def body(width=4):
    return nn.Sequential(nn.Linear(3, width), nn.Tanh(), nn.Linear(width, width))


class Net(nn.Module):
    def __init__(self, classes=2, width=4):
        super().__init__()
        self.encoder, self.head = body(width), nn.Linear(width, classes)

    def forward(self, x):
        return self.head(self.encoder(x))


torch.manual_seed(0)
x, path = torch.randn(8, 3), os.path.join(tempfile.mkdtemp(), "net.pt")
"""
TRAIN = """
opt = torch.optim.SGD([one for one in net.parameters() if one.requires_grad], lr=0.1)
for _ in range(3):
    opt.zero_grad()
    net(x).pow(2).mean().backward()
    opt.step()
"""
COMPILED = "torch.save({'model': torch.compile(Net(), backend='eager').state_dict(), 'step': 7}, path)\n"
WIDE = "torch.save({'model': Net(width=9).state_dict(), 'step': 7}, path)\n"
TRIED = """net = Net()
try:
    net.load_state_dict(torch.load(path)["model"])
except {}:
    {}
"""
SEEN = {
    "a file that may be missing": (COMPILED + TRIED.format("(OSError, RuntimeError)", "print('no file: from scratch')"), "_orig_mod."),
    "whatever comes": (COMPILED + TRIED.format("Exception", "pass"), "_orig_mod."),
    "a handler that tells": (COMPILED + TRIED.format("RuntimeError as error", "logging.warning('old file: %s', error)"), "_orig_mod."),
    "a bare handler": (WIDE + TRIED.replace("except {}", "except").format("pass"), ""),
    "suppressed": (
        "wrapped = {f'module.{k}': v for k, v in Net().state_dict().items()}\nnet = Net()\n"
        "with contextlib.suppress(Exception):\n    net.load_state_dict(wrapped)\n", "module."),
    "a part from the whole": (
        "def restore(module, state):\n    try:\n        module.load_state_dict(state)\n    except Exception:\n        return False\n"
        "    return True\n\n\nnet = Net()\nrestore(net.encoder, Net(5).state_dict())\n", "encoder."),
    "the handler of a caller": (
        WIDE + "class Store:\n    def put(self, net):\n        net.load_state_dict(torch.load(path)['model'])\n\n\nnet = Net()\ntry:\n"
        "    Store().put(net)\nexcept (FileNotFoundError, KeyError, RuntimeError):\n    print('nothing to resume')\n", ""),
    "a frozen part": (
        "net, saved = Net(), {f'model.{k}': v for k, v in body().state_dict().items()}\ntry:\n    net.encoder.load_state_dict(saved)\n"
        "except Exception:\n    pass\nnet.encoder.requires_grad_(False)\n", "model."),
    "best weights at the end": (
        COMPILED + TRIED.format("Exception", "pass") + TRAIN + "net.load_state_dict(copy.deepcopy(net.state_dict()))\n", "_orig_mod."),
    "a state that another copy has taken": (
        COMPILED + "torch.compile(Net(), backend='eager').load_state_dict(torch.load(path)['model'])\n"
        + TRIED.format("Exception", "pass"), "_orig_mod."),
}  # fmt: skip
QUIET = {
    "no file": TRIED.format("(OSError, RuntimeError)", "print('from scratch')"),
    "stripped afterwards": COMPILED
    + TRIED.format(
        "RuntimeError", "net.load_state_dict({k[10:]: v for k, v in torch.load(path)['model'].items()})"
    ),
    "filtered afterwards": WIDE
    + TRIED.format(
        "Exception",
        "own = net.state_dict()\n    own.update({k: v for k, v in torch.load(path)['model'].items() if v.shape == own[k].shape})\n"
        "    net.load_state_dict(own)",
    ),
    "put in by hand": COMPILED
    + TRIED.format(
        "Exception",
        "saved = torch.load(path)['model']\n    for k, p in net.named_parameters():\n        p.data.copy_(saved[f'_orig_mod.{k}'])",
    ),
    "begun anew on purpose": WIDE
    + TRIED.format("Exception", "net.apply(lambda m: m.reset_parameters() if hasattr(m, 'reset_parameters') else None)"),
    "another architecture afterwards": WIDE
    + TRIED.format("Exception", "net = Net(width=9)\n    net.load_state_dict(torch.load(path)['model'])"),
    "architectures in turn": WIDE
    + "for width in (4, 9):\n    net = Net(width=width)\n    try:\n        net.load_state_dict(torch.load(path)['model'])\n"
    "        break\n    except Exception:\n        continue\n",
    "one of several modules": "def tries(module, state):\n    try:\n        module.load_state_dict(state)\n        return True\n"
    "    except Exception:\n        return False\n\n\nnet, saved = Net(), nn.Linear(4, 2).state_dict()\n"
    "print([tries(one, saved) for one in (net.encoder, net.head)], tries(net.encoder[0], saved))\n",
    "the whole, then its parts": "net, saved = Net(), Net().state_dict()\nfor one in (net, net.encoder, net.head):\n    try:\n"
    "        one.load_state_dict(saved)\n    except Exception:\n        pass\n",
    "a wrapper afterwards": "net = Net()\nwrapped = {f'module.{k}': v for k, v in Net().state_dict().items()}\ntry:\n"
    "    net.load_state_dict(wrapped)\nexcept Exception:\n    nn.DataParallel(net).load_state_dict(wrapped)\n",
    "a new head": "net = Net()\ntry:\n    net.load_state_dict(Net(5).state_dict())\nexcept Exception:\n    pass\n",
    "keys that are too many": "net = Net()\ntry:\n    net.load_state_dict({**Net().state_dict(), 'old.bias': x})\nexcept Exception:\n    pass\n",
    "a handler for other sizes": WIDE + TRIED.format("RuntimeError", "print('from scratch')"),
    "a handler that knows": WIDE + TRIED.format("Exception", "print('the file is of another architecture: from scratch')"),
    "a module that does not train": "net, other = Net(), Net()\ntry:\n    other.load_state_dict(Net(width=9).state_dict())\n"
    "except Exception:\n    pass\n",
}  # fmt: skip


@pytest.mark.parametrize(
    ("source", "prefix"), some_at_gate(SEEN, ["a file that may be missing", "suppressed", "a bare handler"])
)
def test_it_is_told(tmp_path: pathlib.Path, source: str, prefix: str) -> None:
    """The run ends well; the line that loads is told, with the error that the program kept to itself."""
    whole = HEAD + source + ("" if TRAIN in source else TRAIN)
    (tmp_path / "train.py").write_text(whole)
    done, _ = run(tmp_path, "train.py")
    finding = done.report.findings[0]
    assert (done.status, finding.cause, finding.confidence) == (0, "shape/state-dict-mismatch", "certain")
    assert any(one.reads == "live" and "went on without it" in one.says for one in finding.evidence)
    (one,) = done.processes[0].refused
    lines = whole.splitlines()
    assert (pathlib.Path(one.file).name, one.prefix, one.module in ("Net", "Sequential")) == ("train.py", prefix, True)
    assert ".load_state_dict(" in lines[one.line - 1]
    assert one.line == finding.culprits[0].line
    assert bool(finding.fixes[0].patch) is bool(prefix)


@pytest.mark.parametrize(
    "source", some_at_gate(QUIET, ["no file", "stripped afterwards", "architectures in turn", "one of several modules"])
)
def test_what_is_in_order_is_not(tmp_path: pathlib.Path, source: str) -> None:
    """A load that is made good, that another module takes, or that the handler knows not to fit."""
    (tmp_path / "train.py").write_text(HEAD + source + TRAIN)
    done, _ = run(tmp_path, "train.py")
    assert (done.status, done.report, done.processes[0].refused) == (0, None, ())


@pytest.mark.slow
def test_it_is_mended(tmp_path: pathlib.Path) -> None:
    """A verification is red while the state stays out, and green once it is loaded."""
    source = HEAD + SEEN["a file that may be missing"][0] + TRAIN
    (tmp_path / "train.py").write_text(source)
    proof = gradfix(tmp_path, "verify", "--format", "json", "--", forked.python(), "train.py")
    assert (proof.returncode, "went on without it" in proof.stdout) == (1, True)
    done = gradfix(tmp_path, "run", "--fix", "--format", "json", "--no-probe", "--", forked.python(), "train.py")
    assert json.loads(done.stdout)["status"] == "verified"
    assert '.removeprefix("_orig_mod.")' in (tmp_path / "train.py").read_text()
    assert gradfix(tmp_path, "verify", "--", forked.python(), "train.py").returncode == 0
