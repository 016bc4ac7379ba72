"""What is trained is the leaf itself, after scaling, casting and moving."""

from __future__ import annotations

import pytest

from tests.fix.mending import mended, run
from tests.fix.rewriting import best, changed_lines, failed, line_of, rewritten, write

HEAD = """import torch
from torch import nn
device = "cpu"
"""
RIGHT = {
    "an attack of one step": (
        HEAD
        + """def attack(net, x):
    x = x.clone().requires_grad_()
    net(x).sum().backward()
    x = (x + 0.1 * x.grad.sign()).clamp(0, 1)
    return x
""",
        "x = (x",
    ),
    "a leaf that is flagged last": (
        HEAD
        + """w = (torch.randn(3) * 0.01).requires_grad_(True)
opt = torch.optim.SGD([w], lr=0.1)
""",
        "",
    ),
    "a leaf that is made as it is needed": (
        HEAD
        + """w = torch.zeros(3, device=device, requires_grad=True)
opt = torch.optim.SGD([w], lr=0.1)
""",
        "",
    ),
    "fast weights of a module, by their gradients": (
        HEAD
        + """fast = dict(net.named_parameters())
for _ in range(2):
    loss(fast).backward()
    fast = {k: v - 0.1 * v.grad for k, v in fast.items()}
""",
        "fast = {",
    ),
    "a result that nobody trains": (
        HEAD
        + """w = torch.ones(3, requires_grad=True)
scaled = w * 2.0
opt = torch.optim.SGD([w], lr=0.1)
""",
        "",
    ),
    "data that a function flags": (
        HEAD
        + """def start():
    return torch.randn(9, 4).mean(0).requires_grad_(True)
opt = torch.optim.Adam([start()], lr=0.1)
""",
        "opt =",
    ),
    "an update in place": (
        HEAD
        + """w = torch.zeros(3, requires_grad=True)
w.sum().backward()
with torch.no_grad():
    w -= 0.1 * w.grad
""",
        "w -=",
    ),
    "an update of the data": (
        HEAD
        + """w = torch.zeros(3, requires_grad=True)
w.sum().backward()
w.data = w.data - 0.1 * w.grad
""",
        "w.data =",
    ),
    "an adapted weight of an inner loop": (
        HEAD
        + """w = torch.zeros(3, requires_grad=True)
(g,) = torch.autograd.grad(w.sum(), w, create_graph=True)
w = w - 0.1 * g
""",
        "w = w",
    ),
}
WRONG = {
    "a dictionary of own leaves": (
        HEAD
        + """params = {"w": torch.randn(3, requires_grad=True), "b": torch.zeros(1, requires_grad=True)}
for _ in range(3):
    loss = (params["w"].sum() + params["b"]).square().sum()
    loss.backward()
    params = {k: v - 0.1 * v.grad for k, v in params.items()}
""",
        "params = {k",
        ["params = {k: (v - 0.1 * v.grad).detach().requires_grad_(True) for k, v in params.items()}"],
    ),
    "a random start": (
        HEAD
        + """def attack(net, x):
    delta = torch.zeros_like(x, requires_grad=True)
    delta = (x + delta + 0.1 * torch.randn_like(x)).clamp(0, 1) - x
    for _ in range(3):
        net(x + delta).sum().backward()
        with torch.no_grad():
            delta += delta.grad.sign()
""",
        "delta +=",
        ["delta = ((x + delta + 0.1 * torch.randn_like(x)).clamp(0, 1) - x).detach().requires_grad_(True)"],
    ),
    "a projection in the loop": (
        HEAD
        + """z = torch.zeros(3, requires_grad=True)
for _ in range(3):
    loss(z).backward()
    z = torch.clamp(z - 0.1 * z.grad, -1, 1)
""",
        "z = torch.clamp",
        ["z = torch.clamp(z - 0.1 * z.grad, -1, 1).detach().requires_grad_(True)"],
    ),
    "a projection without grad": (
        HEAD
        + """z = torch.zeros(3, requires_grad=True)
for _ in range(3):
    loss(z).backward()
    with torch.no_grad():
        z = torch.clamp(z - 0.1 * z.grad, -1, 1)
""",
        "z = torch.clamp",
        ["z = torch.clamp(z - 0.1 * z.grad, -1, 1).requires_grad_(True)"],
    ),
    "a mean of outputs that is flagged": (
        HEAD
        + """net = nn.Linear(4, 3)
start = net(torch.randn(9, 4)).mean(0, keepdim=True)
w = start.repeat(2, 1)
w.requires_grad_(True)
opt = torch.optim.Adam([w] + [torch.zeros(3, requires_grad=True)], lr=0.1)
""",
        "opt =",
        ["w = start.repeat(2, 1).detach()"],
    ),
    "a mean of outputs that a function flags": (
        HEAD
        + """net = nn.Linear(4, 3)
def start():
    return net(torch.randn(9, 4)).mean(0, keepdim=True).repeat(2, 1).requires_grad_(True), 1.0
w, spread = start()
opt = torch.optim.Adam([{"params": [w]}, {"params": []}], lr=0.1)
""",
        "opt =",
        ["return net(torch.randn(9, 4)).mean(0, keepdim=True).repeat(2, 1).detach().requires_grad_(True), 1.0"],
    ),
    "scaled": (
        HEAD
        + """w = torch.randn(3, requires_grad=True) * 0.01
opt = torch.optim.SGD([w], lr=0.1)
""",
        "opt =",
        ["w = (torch.randn(3) * 0.01).requires_grad_(True)"],
    ),
    "moved": (
        HEAD
        + """w = torch.zeros(3, requires_grad=True).to(device)
opt = torch.optim.Adam([w], lr=0.1)
""",
        "opt =",
        ["w = torch.zeros(3).to(device).requires_grad_(True)"],
    ),
    "a parameter that is moved": (
        HEAD
        + """w = nn.Parameter(torch.zeros(3)).to(device)
opt = torch.optim.Adam([{"params": [w]}], lr=0.1)
""",
        "opt =",
        ["w = nn.Parameter(torch.zeros(3).to(device))"],
    ),
    "a parameter that is scaled": (
        HEAD
        + """w = 0.1 * nn.Parameter(torch.randn(3))
opt = torch.optim.Adam([w], lr=0.1)
""",
        "opt =",
        ["w = nn.Parameter(0.1 * torch.randn(3))"],
    ),
    "flagged, then scaled": (
        HEAD
        + """w = torch.randn(3).requires_grad_() / 3
w.sum().backward()
print(w.grad.norm())
""",
        "w.grad",
        ["w = (torch.randn(3) / 3).requires_grad_(True)"],
    ),
    "elements that a function makes": (
        HEAD
        + """def codes(count, std):
    return [std * torch.randn(4, requires_grad=True) for _ in range(count)]

table = codes(3, 0.1)
opt = torch.optim.Adam([{"params": table, "lr": 0.1}])
""",
        "opt =",
        ["return [(std * torch.randn(4)).requires_grad_(True) for _ in range(count)]"],
    ),
    "what a module keeps of a parameter": (
        HEAD
        + """class Net(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.null = nn.Parameter(0.02 * torch.randn(dim)).unsqueeze(0)
        self.tied = nn.Parameter(torch.zeros(dim))
""",
        "self.null",
        ["self.null = nn.Parameter((0.02 * torch.randn(dim)).unsqueeze(0))"],
    ),
    "bound anew by its update": (
        HEAD
        + """w = torch.zeros(3, requires_grad=True)
for _ in range(2):
    w.sum().backward()
    w = w - 0.1 * w.grad
""",
        "w = w -",
        ["with torch.no_grad():", "w -= 0.1 * w.grad"],
    ),
    "bound anew under no_grad": (
        HEAD
        + """w = torch.zeros(3, requires_grad=True)
for _ in range(2):
    w.sum().backward()
    with torch.no_grad():
        w = w - 0.1 * w.grad
""",
        "w = w -",
        ["w -= 0.1 * w.grad"],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str) -> None:
    """Leaves, results that nobody trains and updates in place are left alone."""
    assert rewritten(tmp_path, "make_leaf_last", source, at or None) == source


@pytest.mark.parametrize(("source", "at", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, wanted: list[str]) -> None:
    """The trained tensor is a leaf; a second time nothing is left to do."""
    after = rewritten(tmp_path, "make_leaf_last", source, at or None)
    assert changed_lines(source, after) == wanted
    again = at if at and at in after else None
    assert rewritten(tmp_path, "make_leaf_last", after, again) == after


HELD = """import torch

class Bank:
    def __init__(self, tasks, std):
        self.vectors = {task: torch.randn(4, requires_grad=True) * std for task in tasks}

    def tensors(self):
        return list(self.vectors.values())

optimizer = torch.optim.Adam(getattr(Bank(["a"], 0.1), "tensors")())
"""


def test_what_nothing_else_holds(tmp_path) -> None:
    """Where an optimizer refused a result, the leaf in the middle of an expression is the one that was meant."""
    refused = "can't optimize a non-leaf Tensor"
    after = rewritten(tmp_path, "make_leaf_last", HELD, "optimizer =", message=refused)
    wanted = "self.vectors = {task: (torch.randn(4) * std).requires_grad_(True) for task in tasks}"
    assert changed_lines(HELD, after) == [wanted]
    assert rewritten(tmp_path, "make_leaf_last", after, "optimizer =", message=refused) == after
    assert rewritten(tmp_path, "make_leaf_last", HELD, "optimizer =") == HELD


REFUSED = "can't optimize a non-leaf Tensor"
NET = (
    HEAD
    + """net = nn.Linear(3, 3)
net.embed = nn.Embedding(5, 3)
def gaps(points):
    return torch.cdist(points, points).sum(1)
"""
)
STEP = """for _ in range(2):
    opt.zero_grad()
    loss().backward()
    opt.step()
"""
POINTS = NET + "points = torch.rand(4, 2).requires_grad_()\n"
OWN_LEAF = {
    "an entry of a dictionary that groups walk": (
        POINTS
        + """class Blobs:
    def __init__(self):
        self.tensors = {"at": points, "size": gaps(points).log(), "fade": torch.zeros(4, requires_grad=True)}
    def groups(self, rates):
        return [{"params": [t], "lr": rates[name]} for name, t in self.tensors.items()]
blobs = Blobs()
loss = lambda: (blobs.tensors["at"].sum(1) * blobs.tensors["size"] + blobs.tensors["fade"]).square().sum()
opt = torch.optim.Adam(blobs.groups({"at": 0.1, "size": 0.2, "fade": 0.1}))
""",
        'self.tensors = {"at": points, "size": gaps(points).log().detach().requires_grad_(True), '
        '"fade": torch.zeros(4, requires_grad=True)}',
    ),
    "values of a dictionary": (
        POINTS
        + """tensors = {"at": points}
tensors["size"] = 1 + gaps(points)
loss = lambda: (tensors["at"].sum(1) * tensors["size"]).sum()
opt = torch.optim.SGD(list(tensors.values()), lr=0.1)
""",
        'tensors["size"] = (1 + gaps(points)).detach().requires_grad_(True)',
    ),
    "an item by its key, in a group of its own": (
        POINTS
        + """def make():
    return {"at": points, "size": gaps(points)}
tensors = make()
loss = lambda: (tensors["at"].sum(1) * tensors["size"]).sum()
KINDS = {"sgd": torch.optim.SGD}
opts = [KINDS["sgd"]([{"params": [tensors[name]], "name": name}], lr=0.1) for name in ("at", "size")]
opt = opts[1]
""",
        'return {"at": points, "size": gaps(points).detach().requires_grad_(True)}',
    ),
    "two results of one optimizer": (
        POINTS
        + """size = gaps(points)
near = size.exp()
loss = lambda: (points.sum(1) * size * near).sum()
opt = torch.optim.SGD([points, size, near], lr=0.01)
""",
        "size = gaps(points).detach().requires_grad_(True)",
        "near = size.exp().detach().requires_grad_(True)",
    ),
    "groups that a loop collects": (
        POINTS
        + """tensors = {"at": points, "size": gaps(points)}
groups = []
for name, tensor in tensors.items():
    groups.append({"params": [tensor], "name": name})
loss = lambda: (tensors["at"].sum(1) * tensors["size"]).sum()
opt = getattr(torch.optim, "SGD")(groups, lr=0.1)
""",
        'tensors = {"at": points, "size": gaps(points).detach().requires_grad_(True)}',
    ),
    "an optimizer of another library": (
        POINTS
        + """class Adapt(torch.optim.SGD):
    pass
size = gaps(points)
loss = lambda: (points.sum(1) * size).sum()
opt = {"adapt": Adapt}.get("adapt")([points, *(one for one in (size,))], lr=0.1)
""",
        "size = gaps(points).detach().requires_grad_(True)",
    ),
    "a leaf that a statement flags": (
        NET
        + """points = torch.rand(4, 2)
points.requires_grad_()
size = gaps(points)
loss = lambda: (points.sum(1) * size).sum()
opt = torch.optim.SGD([points, size], lr=0.1)
""",
        "size = gaps(points).detach().requires_grad_(True)",
    ),
    "a group that is added": (
        POINTS
        + """size = gaps(points)
loss = lambda: (points.sum(1) * size).sum()
opt = torch.optim.SGD([points], lr=0.1)
opt.add_param_group({"params": size})
""",
        "size = gaps(points).detach().requires_grad_(True)",
    ),
    "what a network maps": (
        NET
        + """code = net(torch.randn(9, 3)).mean(0)
loss = lambda: net(code).square().sum()
opt = torch.optim.Adam([code], lr=0.1)
""",
        "code = net(torch.randn(9, 3)).mean(0).detach().requires_grad_(True)",
    ),
    "rows of an embedding": (
        NET
        + """prompt = net.embed(torch.tensor([1, 2]))
loss = lambda: net(prompt).square().sum()
opt = torch.optim.Adam([{"params": [prompt]}], lr=0.1)
""",
        "prompt = net.embed(torch.tensor([1, 2])).detach().requires_grad_(True)",
    ),
    "one of two results": (
        NET
        + """def both(x):
    return net(x), 2.0
code, scale = both(torch.randn(2, 3))
low, high = net(torch.randn(2, 3))
loss = lambda: scale * net(low).square().sum()
opt = torch.optim.Adam([low], lr=0.1)
""",
        "low = low.detach().requires_grad_(True)",
    ),
}
OPEN = {
    "a leaf that no optimizer has": NET + "raw = torch.zeros(3, requires_grad=True)\nw = raw.exp()\nopt = torch.optim.SGD([w], lr=0.1)\n",
    "one more leaf that no optimizer has": POINTS
    + "shift = torch.zeros(4, requires_grad=True)\nsize = gaps(points) + shift\nopt = torch.optim.SGD([points, size], lr=0.1)\n",
    "a result that each step computes": POINTS
    + "size = gaps(points)\nopt = torch.optim.SGD([points, size], lr=0.1)\nfor _ in range(2):\n    size = gaps(points)\n",
    "a name that each step binds anew": NET
    + "out = net(torch.zeros(3))\nopt = torch.optim.SGD([out], lr=0.1)\nfor batch in data:\n    out = net(batch)\n",
    "a result that the optimizer alone has": POINTS + "opt = torch.optim.SGD([points, gaps(points)], lr=0.1)\n",
    "a parameter of a module that does not train": NET
    + "class Mix(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.raw = nn.Parameter(torch.zeros(3))\n"
    + "mix = Mix()\nw = mix.raw.exp()\nopt = torch.optim.SGD([w], lr=0.1)\n",
}  # fmt: skip
NO_RESULT = {
    "what is detached": POINTS + "size = gaps(points).detach().requires_grad_()\nopt = torch.optim.SGD([points, size], lr=0.1)\n",
    "what is computed without a graph": POINTS
    + "with torch.no_grad():\n    size = gaps(points)\nsize.requires_grad_()\nopt = torch.optim.SGD([points, size], lr=0.1)\n",
    "what is computed before the flag": NET
    + "points = torch.rand(4, 2)\nsize = gaps(points)\nfor one in (points, size):\n    one.requires_grad_()\n"
    + "opt = torch.optim.SGD([points, size], lr=0.1)\n",
    "what is computed before a statement flags": NET
    + "points = torch.rand(4, 2)\nsize = gaps(points)\npoints.requires_grad_()\nopt = torch.optim.SGD([points, size], lr=0.1)\n",
    "results that no optimizer has": POINTS + "sizes = {'near': gaps(points)}\nopt = torch.optim.SGD([points], lr=0.1)\n",
    "a module": NET + "opt = torch.optim.SGD([{'params': net.parameters()}], lr=0.1)\n",
}  # fmt: skip


@pytest.mark.parametrize("case", OWN_LEAF.values(), ids=OWN_LEAF)
def test_results_of_what_trains(tmp_path, case: tuple[str, ...]) -> None:
    """What is computed from tensors that train, or by a module, becomes a leaf of its own; the program then trains it."""
    source, *wanted = case
    after = mended("make_leaf_last", source + STEP, tmp_path)
    assert changed_lines(source + STEP, after) == wanted
    space = run(after, tmp_path / "train.py")
    assert all(one.grad is not None and one.grad.abs().sum() > 0 for one in space["opt"].param_groups[-1]["params"])
    assert rewritten(tmp_path, "make_leaf_last", after, message=REFUSED) == after


@pytest.mark.parametrize("source", OPEN.values(), ids=OPEN)
def test_open_questions_are_named(tmp_path, source: str) -> None:
    """Where the leaf that a result is computed from may be what was meant, the line is named and nothing is edited."""
    program = write(tmp_path, {"train.py": source})
    proposal = best("make_leaf_last", program, incident=failed({"train.py": line_of(source, "opt =")}, REFUSED))
    assert proposal is not None
    assert proposal.edits == ()
    assert "computes what is trained with a graph" in (proposal.culprit.why or "")


@pytest.mark.parametrize("source", NO_RESULT.values(), ids=NO_RESULT)
def test_leaves_of_their_own_stay(tmp_path, source: str) -> None:
    """Detached values, values without a graph and modules are no results, whatever the message says."""
    program = write(tmp_path, {"train.py": source})
    assert best("make_leaf_last", program, incident=failed({"train.py": line_of(source, "opt =")}, REFUSED)) is None
