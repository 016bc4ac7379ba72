"""What a trace saw saving, or the live graph found moved, is read as a copy: the program trains with the gradients that were meant."""

from __future__ import annotations

import importlib.util
import pathlib
import sys
from dataclasses import replace

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from explainer.model.incident import Fact, Incident
from explainer.model.trace import READ, TracedLine
from tests.fix.rewriting import best, diff_lines, failed, line_of, write

TOP = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\ntorch.manual_seed(0)\nnet = nn.Linear(4, 4)\nx = torch.randn(6, 4)\n"
END = "loss.pow(2).sum().backward()\n"
SAVED = {
    "an argument of a module": (
        "kept = torch.empty(6, 4)\ndef fill(v):\n    kept.copy_(v)\n    return kept\na = net(fill(x))\nb = net(fill(x * 2))\nloss = a + b\n",
        ["-a = net(fill(x))", "+a = net(fill(x).clone())"],
        "loss = net(x) + net(x * 2)\n",
    ),
    "the right side of a product": (
        "table = torch.ones(4, 4)\nloss = net(x) @ table\ntable.mul_(0.5)\n",
        ["-loss = net(x) @ table", "+loss = net(x) @ table.clone()"],
        "loss = net(x) @ torch.ones(4, 4)\n",
    ),
    "the left side of a product": (
        "gate = torch.ones(6, 4)\nloss = gate * net(x)\ngate.zero_()\n",
        ["-loss = gate * net(x)", "+loss = gate.clone() * net(x)"],
        "loss = net(x) * torch.ones(6, 4)\n",
    ),
    "a result": (
        "h = torch.sigmoid(net(x))\nparts = [h]\nfor one in parts:\n    one.data.shape\n    one.mul_(2)\nloss = parts[0]\n",
        ["-h = torch.sigmoid(net(x))", "+h = torch.sigmoid(net(x)).clone()"],
        "loss = torch.sigmoid(net(x)) * 2\n",
    ),
    "a method's own tensor": (
        "h = net(x)\nloss = h.pow(3)\nh.add_(1)\n",
        ["-loss = h.pow(3)", "+loss = h.clone().pow(3)"],
        "h = net(x)\nloss = h * h * h\n",
    ),
    "a view that is kept as well": (
        "line = torch.ones(2, 4)\nkept = []\nloss = 0.0\nfor t in range(3):\n    echo = line[t % 2]\n    loss = loss + net(x) * echo\n    line[t % 2] = t\n    kept.append(echo)\nloss = loss + net(x) * kept[2]\n",
        ["-    echo = line[t % 2]", "+    echo = line[t % 2].clone()"],
        "loss = net(x) + net(x) + net(x) * 0.0 + net(x) * 0.0\n",
    ),
    "keys and values of attention": (
        "keys, values = torch.zeros(1, 6, 4), torch.zeros(1, 6, 4)\nkeys[0], values[0] = x, 2 * x\n"
        "loss = F.scaled_dot_product_attention(net(x)[None], keys, values)[0]\nkeys[0], values[0] = x * 3, x\n",
        [
            "-loss = F.scaled_dot_product_attention(net(x)[None], keys, values)[0]",
            "+loss = F.scaled_dot_product_attention(net(x)[None], keys.clone(), values.clone())[0]",
        ],
        "loss = F.scaled_dot_product_attention(net(x)[None], x[None], 2 * x[None])[0]\n",
    ),
    "an attribute that two equations read": (
        "class Box:\n    cells = torch.ones(4, 4)\ndef ask(v):\n    first = torch.einsum('bi,ij->bj', v, Box.cells)\n"
        "    return torch.einsum('bi,ij->bj', first, Box.cells)\nloss = ask(net(x))\nBox.cells.mul_(2)\n",
        [
            "-    first = torch.einsum('bi,ij->bj', v, Box.cells)",
            "-    return torch.einsum('bi,ij->bj', first, Box.cells)",
            "+    first = torch.einsum('bi,ij->bj', v, Box.cells.clone())",
            "+    return torch.einsum('bi,ij->bj', first, Box.cells.clone())",
        ],
        "loss = net(x) @ torch.ones(4, 4) @ torch.ones(4, 4)\n",
    ),
    "an expression in parentheses": (
        "w = torch.ones(6, 4)\nwide = w.view(6, 4)\nloss = (wide) * net(x)\nw.fill_(3)\n",
        ["-loss = (wide) * net(x)", "+loss = (wide).clone() * net(x)"],
        "loss = net(x) * torch.ones(6, 4)\n",
    ),
}  # fmt: skip


def run(folder: pathlib.Path, name: str, text: str):
    """The gradients of `net` after a program has run."""
    (folder / f"{name}.py").write_text(text)
    spec = importlib.util.spec_from_file_location(f"{folder.name.replace('-', '_')}_{name}", folder / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.dont_write_bytecode = True
    spec.loader.exec_module(module)
    return [one.grad for one in module.net.parameters()]


@pytest.mark.torch
@pytest.mark.parametrize(("body", "changes", "right"), SAVED.values(), ids=SAVED)
def test_what_was_saved_is_copied(body: str, changes: list[str], right: str, tmp_path: pathlib.Path) -> None:
    """The traced program fails; with the edit it has the gradients of one that writes nothing in place."""
    torch = pytest.importorskip("torch")
    import gradfix

    text = TOP + body + END
    with pytest.raises(RuntimeError, match="inplace operation"), gradfix.trace() as seen:
        run(tmp_path, "train", text)
    incident = replace(failed(), traced=seen.lines)
    program = write(tmp_path, {"train.py": text})
    (proposal,) = find_codemod("copy_what_is_saved")(Context(program=program, incident=incident))
    assert proposal.culprit.line == next(one.line for one in seen.lines if one.kind == "write")
    after = splice(text, proposal.edits)
    assert diff_lines(text, after) == changes
    expected = run(tmp_path, "right", TOP + right + END)
    assert all(map(torch.allclose, run(tmp_path, "fixed", after), expected))
    again = write(tmp_path, {"train.py": after})
    assert not list(find_codemod("copy_what_is_saved")(Context(program=again, incident=incident)))


MODULE = """import torch
from torch import nn

class Codes(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("codebook", torch.randn(8, 4))

    def forward(self, z):
        scores = z @ self.codebook.t()
        out = scores.softmax(-1) @ self.codebook
        self.track("codebook", z.detach())
        print(self.codebook.shape)
        return out

    def track(self, name, value):
        getattr(self, name).mul_(0.9).add_(value.mean(0), alpha=0.1)
"""


def moved(name: str) -> Incident:
    return replace(failed(), facts=(Fact(name="live_moved_buffer", value=name),))


def test_a_buffer_that_moved_is_read_as_a_copy(tmp_path: pathlib.Path) -> None:
    """The live graph names the buffer; what reads its shape or writes it stays."""
    program = write(tmp_path, {"train.py": MODULE})
    proposal = best("copy_what_is_saved", program, incident=moved("vq.codebook"))
    assert proposal is not None
    assert diff_lines(MODULE, splice(MODULE, proposal.edits)) == [
        "-        scores = z @ self.codebook.t()",
        "-        out = scores.softmax(-1) @ self.codebook",
        "+        scores = z @ self.codebook.clone().t()",
        "+        out = scores.softmax(-1) @ self.codebook.clone()",
    ]


QUEUE = """
import torch
from torch import nn


class Queue(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("bank", torch.randn(8, 4))

    @property
    def negatives(self):
        return self.bank.detach().t()

    @torch.no_grad()
    def enqueue(self, keys):
        self.bank[:2] = keys
"""


def test_a_method_that_hands_out_a_buffer_hands_out_a_copy(tmp_path: pathlib.Path) -> None:
    """Who multiplies by it stands elsewhere, and a detached tensor has the memory of the buffer."""
    program = write(tmp_path, {"train.py": QUEUE})
    proposal = best("copy_what_is_saved", program, incident=moved("queue.bank"))
    assert proposal is not None
    assert diff_lines(QUEUE, splice(QUEUE, proposal.edits)) == [
        "-        return self.bank.detach().t()",
        "+        return self.bank.detach().t().clone()",
    ]


@pytest.mark.parametrize("incident", [failed(), moved("vq.other"), Incident()], ids=["untold", "another", "no failure"])
def test_nothing_without_a_fact(incident: Incident, tmp_path: pathlib.Path) -> None:
    """The source alone does not say what autograd saved."""
    assert best("copy_what_is_saved", write(tmp_path, {"train.py": MODULE}), incident=incident) is None


@pytest.mark.parametrize(
    "line", ["optimizer = torch.optim.SGD(net.parameters(), 0.1)", "loss = h.clone().pow(2)", "print(h.shape)"]
)
def test_a_line_that_saves_nothing_stays(line: str, tmp_path: pathlib.Path) -> None:
    """A trace that speaks of a line which has changed since, or of what cannot be copied, leads to no edit."""
    text = TOP + "h = net(x)\n" + line + "\n"
    read = TracedLine(
        kind=READ,
        operation="pow",
        file=str(tmp_path / "train.py"),
        line=line_of(text, line),
        node="PowBackward0",
        saved="self",
    )
    program = write(tmp_path, {"train.py": text})
    assert best("copy_what_is_saved", program, incident=replace(failed(), traced=(read,))) is None
