"""What NumPy and its like read of a GPU is copied to the CPU, where it is read or where it is collected."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from tests.fix.rewriting import changed_lines, failed, rewritten, write

SAID = "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
HEAD = """import numpy as np
import torch
from sklearn.metrics import roc_auc_score
net = torch.nn.Linear(8, 3).cuda()
"""
GPU, HALF = "[4, 8] float32 on cuda", "[4, 8] bfloat16 on cuda"
READ = {
    "an array of a tensor": ("kept = out.numpy()\n", {"out": GPU}, "kept = out.cpu().numpy()"),
    "an array of bfloat16": ("kept = out.numpy()\n", {"out": HALF}, "kept = out.float().cpu().numpy()"),
    "a function of NumPy": ("kept = np.mean(out)\n", {"out": GPU}, "kept = np.mean(out.cpu())"),
    "what is computed for NumPy": (
        "kept = np.mean(out > labels)\n", {"out": GPU, "labels": GPU}, "kept = np.mean((out > labels).cpu())",
    ),
    "what a method gives": (
        "kept = roc_auc_score(labels, out.softmax(1))\n", {"out": GPU, "labels": "[4] int64"},
        "kept = roc_auc_score(labels, out.softmax(1).cpu())",
    ),
    "both of a metric": (
        "kept = roc_auc_score(labels, out)\n", {"out": GPU, "labels": "[4] int64 on cuda"}, "kept = roc_auc_score(labels.cpu(), out.cpu())",
    ),
}  # fmt: skip
EVALUATE = """@torch.no_grad()
def evaluate(batches):
    outs, labels = [], []
    for x, y in batches:
        outs.append(net(x.cuda()).argmax(1))
        labels.append(y)
    return score(outs, labels)
"""
SCORE = """def score(guesses, labels):
    guesses = np.concatenate(guesses)
    return (guesses == np.concatenate(labels)).mean()
"""
LISTS = {"guesses[0]": "[4] int64 on cuda", "guesses[1]": "[4] int64 on cuda", "labels[0]": "[4] int64"}
COLLECTED = {
    "in another function": (HEAD + SCORE + EVALUATE, "np.concatenate(guesses)", LISTS, ["outs.append(net(x.cuda()).argmax(1).cpu())"]),
    "in bfloat16": (
        HEAD + SCORE + EVALUATE, "np.concatenate(guesses)", {**LISTS, "guesses[0]": HALF, "guesses[1]": HALF},
        ["outs.append(net(x.cuda()).argmax(1).float().cpu())"],
    ),
    "in the same one": (
        HEAD + "errors = []\nfor x in data:\n    errors.append((net(x) - x.sum()).square().mean().detach())\nprint(np.mean(errors))\n",
        "np.mean", {"errors[0]": "[] float32 on cuda"}, ["errors.append((net(x) - x.sum()).square().mean().detach().cpu())"],
    ),
    "in a comprehension": (
        HEAD + "outs = [net(x) for x in data]\nkept = np.stack(outs)\n", "np.stack", {"outs[0]": GPU}, ["outs = [net(x).cpu() for x in data]"],
    ),
    "by an addition": (
        HEAD + "outs = []\nfor x in data:\n    outs += [net(x)]\nkept = np.stack(outs)\n", "np.stack", {"outs[0]": GPU}, ["outs += [net(x).cpu()]"],
    ),
    "by an object": (
        HEAD + "class Meter:\n    def __init__(self):\n        self.seen = []\n    def add(self, out):\n        self.seen.append(out.detach())\n"
        "    def value(self):\n        return np.concatenate(self.seen).mean()\n",
        "np.concatenate", {}, ["self.seen.append(out.detach().cpu())"],
    ),
    "in a dictionary": (
        HEAD + 'kept = {"out": [], "y": []}\nfor x, y in data:\n    kept["out"].append(net(x))\n    kept["y"].append(y.numpy())\n'
        'auc = roc_auc_score(np.concatenate(kept["y"]), np.concatenate(kept["out"]))\n',
        "auc =", {}, ['kept["out"].append(net(x).cpu())'],
    ),
    "in pairs": (
        HEAD + "pairs = []\nfor x, y in data:\n    pairs.append((net(x), y.tolist()))\nouts = np.concatenate([out for out, _ in pairs])\n",
        "outs =", {}, ["pairs.append((net(x).cpu(), y.tolist()))"],
    ),
}  # fmt: skip
KEPT = {
    "tensors of the CPU": (HEAD + SCORE + EVALUATE, "np.concatenate(guesses)", {"guesses[0]": "[4] int64", "labels[0]": "[4] int64"}),
    "numbers": (
        HEAD + "class Meter:\n    def __init__(self):\n        self.seen = []\n    def add(self, out):\n        self.seen.append(out.item())\n"
        "    def value(self):\n        return np.mean(self.seen)\n",
        "np.mean", {},
    ),
    "what is on the CPU by then": (HEAD + "kept = np.mean(out.cpu())\n", "kept =", {"out": GPU}),
    "what a function of the program is given": (
        HEAD + "def heard(x):\n    return x.tolist()\nkept = heard(out)\n", "kept =", {"out": GPU},
    ),
    "what NumPy made": (HEAD + "kept = np.mean(np.abs(rows) * 2)\n", "kept =", {"rows": "[4] float32"}),
}  # fmt: skip


@pytest.mark.parametrize(("line", "tensors", "wanted"), READ.values(), ids=READ)
def test_what_is_read_is_copied(tmp_path: pathlib.Path, line: str, tensors: dict, wanted: str) -> None:
    """At the call that reads it."""
    after = rewritten(tmp_path, "copy_for_numpy", HEAD + line, "kept =", message=SAID, tensors=tensors)
    assert changed_lines(HEAD + line, after) == [wanted]


@pytest.mark.parametrize(("source", "at", "tensors", "wanted"), COLLECTED.values(), ids=COLLECTED)
def test_what_is_collected_is_copied(
    tmp_path: pathlib.Path, source: str, at: str, tensors: dict, wanted: list[str]
) -> None:
    """Where it is put into the list, so that the list holds no memory of the GPU."""
    after = rewritten(tmp_path, "copy_for_numpy", source, at, message=SAID, tensors=tensors)
    assert changed_lines(source, after) == wanted


@pytest.mark.parametrize(("source", "at", "tensors"), KEPT.values(), ids=KEPT)
def test_what_numpy_can_read_stays(tmp_path: pathlib.Path, source: str, at: str, tensors: dict) -> None:
    assert rewritten(tmp_path, "copy_for_numpy", source, at, message=SAID, tensors=tensors) == source


def test_what_a_module_gives(tmp_path: pathlib.Path) -> None:
    """Its result is copied, and not what it computes with."""
    source = HEAD + "kept = np.mean(net(x))\n"
    seen = {"tensors": {"x": GPU}, "modules": {"net": "cuda"}}
    after = rewritten(tmp_path, "copy_for_numpy", source, "kept =", message=SAID, **seen)
    assert changed_lines(source, after) == ["kept = np.mean(net(x).cpu())"]


def test_another_message(tmp_path: pathlib.Path) -> None:
    """A tensor with a graph is not moved for it."""
    said = "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
    source = HEAD + "kept = out.numpy()\n"
    assert rewritten(tmp_path, "copy_for_numpy", source, "kept =", message=said, tensors={"out": GPU}) == source


def test_else_the_list_is_copied_where_it_is_read(tmp_path: pathlib.Path) -> None:
    """Where its tensors are needed on the GPU as well, or nothing tells who fills it."""
    program = write(tmp_path, {"train.py": HEAD + SCORE})
    incident = failed({"train.py": 6}, SAID, tensors=LISTS)
    (found,) = find_codemod("copy_for_numpy")(Context(program=program, incident=incident))
    after = splice(program.order[0].text, found.edits)
    assert changed_lines(program.order[0].text, after or "") == [
        "guesses = np.concatenate([each.cpu() for each in guesses])"
    ]
