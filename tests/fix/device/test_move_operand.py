"""What was left on another device moves where the rest is; what may stay on the CPU stays."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.codemod import Context, find_codemod
from tests.fix.rewriting import changed_lines, failed, rewritten, write

HEAD = "import torch\nfrom torch import nn\n\n"
MODEL = HEAD + 'device = torch.device("cuda")\nmodel = nn.Linear(8, 3).to(device)\n'
LOOP = "for step in range(8):\n    x, y = torch.randn(4, 8), torch.randn(4, 3)\n"
BOTH = {"x": "[4, 8] float32", "y": "[4, 3] float32"}
MIXED = "Expected all tensors to be on the same device, but got mat1 is on cpu, different from other tensors on cuda:0"
NO_GENERATOR = "Expected a 'cuda' device type for generator but found 'cpu'"
WEIGHT = MIXED.replace("mat1", "weight")
GPU = "[4, 8] float32 on cuda"
MOVED = {
    "a copy that nobody takes": (
        MODEL + LOOP + "    x.to(device)\n    y.to(device)\n    loss = (model(x) - y).sum()\n",
        "loss =", {"tensors": BOTH}, ["x = x.to(device)", "y = y.to(device)"],
    ),
    "operands of the loop": (
        MODEL + LOOP + "    loss = (model(x) - y).sum()\n",
        "loss =", {"tensors": BOTH}, ["x = x.to(device)", "y = y.to(device)"],
    ),
    "where another operand is": (
        HEAD + "def loss_of(scores, labels):\n    weight = torch.ones(3)\n    return nn.functional.cross_entropy(scores, labels, weight=weight)\n",
        "return nn", {"tensors": {"scores": "[4, 3] float32 on cuda", "labels": "[4] int64 on cuda", "weight": "[3] float32"}, "message": WEIGHT},
        ["weight = weight.to(scores.device)"],
    ),
    "a tensor of the module around": (
        MODEL + "offset = torch.ones(3)\n\ndef step(x):\n    return model(x) + offset\n",
        "return model", {"tensors": {"x": GPU, "offset": "[3] float32"}}, ["return model(x) + offset.to(x.device)"],
    ),
    "a criterion with weights": (
        MODEL + "criterion = nn.CrossEntropyLoss(weight=torch.ones(3))\nx = torch.randn(4, 8).to(device)\nloss = criterion(model(x), x.argmax(1))\n",
        "loss =", {"tensors": {"x": GPU, "criterion.weight": "[3] float32"}, "message": WEIGHT},
        ["criterion = nn.CrossEntropyLoss(weight=torch.ones(3)).to(device)"],
    ),
    "a second module": (
        HEAD + "teacher = nn.Linear(8, 3).eval()\nmodel = nn.Linear(8, 3).cuda()\nx = torch.randn(4, 8).cuda()\nout = teacher(x)\n",
        "out =", {"tensors": {"x": GPU}, "modules": {"teacher": "cpu", "model": "cuda"}}, ['teacher = nn.Linear(8, 3).eval().to("cuda")'],
    ),
    "a module of an object": (
        HEAD + "class Runner:\n    def __init__(self, device):\n        self.net = nn.Linear(8, 3)\n\n    def step(self, x):\n        return self.net(x)\n\n"
        'Runner("cuda").step(torch.randn(4, 8, device="cuda"))\n',
        "return self.net", {"tensors": {"x": GPU}, "modules": {"self.net": "cpu"}}, ["self.net = nn.Linear(8, 3).to(device)"],
    ),
    "an index": (
        MODEL + "rows = torch.randperm(9, device=device)\ndata, labels = torch.randn(9, 8), torch.arange(9)\nx, y = data[rows], labels[rows]\n",
        "x, y =", {"tensors": {"rows": "[9] int64 on cuda", "data": "[9, 8] float32", "labels": "[9] int64"},
                   "message": "indices should be either on cpu or on the same device as the indexed tensor (cpu)"},
        ["x, y = data[rows.cpu()], labels[rows.cpu()]"],
    ),
    "lengths of a padded batch": (
        MODEL + "packed = nn.utils.rnn.pack_padded_sequence(x, (x != 0).sum(1), batch_first=True)\n",
        "packed =", {"tensors": {"x": GPU}, "message": "'lengths' argument should be a 1D CPU int64 tensor, but got 1D cuda:0 Long tensor"},
        ["packed = nn.utils.rnn.pack_padded_sequence(x, (x != 0).sum(1).cpu(), batch_first=True)"],
    ),
    "a batch that no prepared loader gave": (
        "import torch\nfrom accelerate import Accelerator\nfrom torch import nn\n\naccelerator = Accelerator()\nnet = accelerator.prepare(nn.Linear(8, 3))\n"
        "for a, b in valid:\n    hits = (net(a).argmax(1) == b).sum()\n",
        "hits =", {"tensors": {"a": "[4, 8] float32", "b": "[4] int64"}, "modules": {"net": "cuda"}},
        ["a = a.to(accelerator.device)", "b = b.to(accelerator.device)"],
    ),
    "into what is written in place": (
        HEAD + "@torch.no_grad()\ndef update(average, model):\n    for mine, theirs in zip(average.parameters(), model.parameters()):\n"
        "        mine.mul_(0.9).add_(theirs, alpha=0.1)\n",
        "mine.mul_", {"tensors": {"mine": "[4, 8] float32", "theirs": GPU}}, ["mine.mul_(0.9).add_(theirs.to(mine.device), alpha=0.1)"],
    ),
    "what is only asked for its gradient": (
        MODEL + "x = torch.randn(4, 8)\nscore = model(x.requires_grad_())\n",
        "score =", {"tensors": {"x": "[4, 8] float32"}, "modules": {"model": "cuda"}}, ["x = x.to(device)"],
    ),
    "into a sum": (
        MODEL + "total = torch.zeros(4)\nx = torch.randn(4, 8).to(device)\nscore = model(x).sum(1)\ntotal += score\n",
        "total +=", {"tensors": {"total": "[4] float32", "score": "[4] float32 on cuda", "x": GPU}}, ["total += score.to(total.device)"],
    ),
    "an array beside a tensor": (
        HEAD + "import numpy as np\n\nclass Fn(torch.autograd.Function):\n    @staticmethod\n    def backward(ctx, grad):\n"
        "        return torch.from_numpy(ctx.slope).float() * grad.flip(0), None\n",
        "return torch", {"tensors": {"grad": GPU}}, ["return torch.from_numpy(ctx.slope).to(grad.device).float() * grad.flip(0), None"],
    ),
    "a generator of the sampler": (
        MODEL + "draws = torch.Generator(device=device)\nloader = torch.utils.data.DataLoader(list(range(9)), shuffle=True, generator=draws)\nfor x in loader:\n    pass\n",
        "for x", {"message": "Expected a 'cpu' device type for generator but found 'cuda'"}, ["draws = torch.Generator()"],
    ),
    "a generator of the GPU": (
        MODEL + "draws = torch.Generator()\nx = torch.randn(4, 8, device=device, generator=draws)\n",
        "x =", {"message": "Expected a 'cuda' device type for generator but found 'cpu'"}, ["draws = torch.Generator(device=device)"],
    ),
    "a generator under a default device": (
        HEAD + 'torch.set_default_device("cuda")\ndraws = torch.Generator()\nfor x in torch.utils.data.DataLoader(data, shuffle=True, generator=draws):\n    pass\n',
        "for x", {"message": NO_GENERATOR}, ["draws = torch.Generator(device=torch.get_default_device())"],
    ),
    "a loader's own order under a default device": (
        HEAD + 'torch.set_default_device("cuda")\nfor x in torch.utils.data.DataLoader(data, shuffle=True):\n    pass\n',
        "for x", {"message": NO_GENERATOR},
        ["for x in torch.utils.data.DataLoader(data, shuffle=True, generator=torch.Generator(device=torch.get_default_device())):"],
    ),
    "a window of a table": (
        HEAD + "class Spectral:\n    def __init__(self):\n        self.windows = {n: torch.hann_window(n) for n in (64, 128)}\n"
        "    def __call__(self, wave, n):\n        return torch.stft(wave, n, window=self.windows[n], return_complex=True)\n",
        "return torch", {"message": "stft input and window must be on the same device but got self on cuda:0 and window on cpu"},
        ["return torch.stft(wave, n, window=self.windows[n].to(wave.device), return_complex=True)"],
    ),
}  # fmt: skip
LEFT = {
    "a loader with an order of its own": (
        HEAD + 'torch.set_default_device("cuda")\nfor x in torch.utils.data.DataLoader(data, sampler=order):\n    pass\n',
        "for x", {"message": NO_GENERATOR},
    ),
    "a module moves in place": (
        MODEL + LOOP + "    model.to(device)\n    loss = (model(x) - y).sum()\n",
        "loss =", {"tensors": {"x": GPU, "y": "[4, 3] float32 on cuda"}, "modules": {"model": "cuda"}},
    ),
    "a number on the CPU": (MODEL + "scale = torch.tensor(2.0)\nloss = model(x) * scale\n", "loss =", {"tensors": {"x": GPU, "scale": "[] float32"}}),
    "an array that is moved": (
        HEAD + "out = torch.from_numpy(rows).float().to(x.device) * x\n", "out =", {"tensors": {"x": GPU}},
    ),
    "lengths": (
        MODEL + "packed = nn.utils.rnn.pack_padded_sequence(x, lengths)\n",
        "packed =", {"tensors": {"x": GPU, "lengths": "[4] int64"}},
    ),
    "no device is named": (HEAD + "model = nn.Linear(8, 3)\nloss = model(x) + y\n", "loss =", {"tensors": BOTH}),
    "a device that is set later": (
        HEAD + 'teacher = nn.Linear(8, 3)\ndevice = torch.device("cuda")\nx = torch.randn(4, 8).to(device)\nout = teacher(x)\n',
        "out =", {"tensors": {"x": GPU}, "modules": {"teacher": "cpu"}},
    ),
    "nothing was seen": (MODEL + LOOP + "    loss = (model(x) - y).sum()\n", "loss =", {}),
}  # fmt: skip


@pytest.mark.parametrize(("source", "at", "context", "lines"), MOVED.values(), ids=MOVED)
def test_moved(source, at, context, lines, tmp_path: pathlib.Path) -> None:
    after = rewritten(tmp_path, "move_operand", source, at, **{"message": MIXED, **context})
    assert changed_lines(source, after) == lines


@pytest.mark.parametrize(("source", "at", "context"), LEFT.values(), ids=LEFT)
def test_left_alone(source, at, context, tmp_path: pathlib.Path) -> None:
    assert rewritten(tmp_path, "move_operand", source, at, **{"message": MIXED, **context}) == source


def test_a_generator_of_another_file(tmp_path: pathlib.Path) -> None:
    """It is made for the device, as that file can name it."""
    loop = HEAD + 'from points import loader\n\ntorch.set_default_device("cuda")\nfor x in loader():\n    pass\n'
    made = "import torch\n\ndef loader():\n    draws = torch.Generator()\n    return torch.utils.data.DataLoader([], shuffle=True, generator=draws)\n"
    program = write(tmp_path, {"train.py": loop, "points.py": made})
    found = list(find_codemod("move_operand")(Context(program=program, incident=failed({"train.py": 7}, NO_GENERATOR))))
    assert [one.culprit.line for one in found] == [4]
    assert found[0].edits[0].new == "device=torch.get_default_device()"


def test_else_what_is_indexed_moves(tmp_path: pathlib.Path) -> None:
    """Behind an index on the CPU the rest may fail; then a copy of the table is indexed."""
    source = HEAD + "class Table:\n    def look(self, t):\n        return self.kept[t].sqrt()\n"
    program = write(tmp_path, {"train.py": source})
    tensors = {"self.kept": "[9] float32", "t": "[4] int64 on cuda"}
    incident = failed({"train.py": 6}, "indices should be either on cpu or on the same device", tensors=tensors)
    found = list(find_codemod("move_operand")(Context(program=program, incident=incident)))
    assert [[edit.new for edit in one.edits] for one in found] == [[".cpu()"], [".to(t.device)"]]
    assert found[0].belief > found[1].belief
