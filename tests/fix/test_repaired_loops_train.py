"""Training loops that fail, repaired by their first edit, give the gradients of right programs that are written independently."""

from __future__ import annotations

import pathlib
import runpy
import traceback

import pytest

ROUNDS = 3
HEAD = """import torch
from torch import nn
from torch.nn import functional as F
torch.manual_seed(0)
"""
TAIL = """
def grads():
    return [None if p.grad is None else p.grad.clone() for m in modules for p in m.parameters()]
"""
GAN = """G, D = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)), nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
modules = (G, D)
opt_g, opt_d = torch.optim.SGD(G.parameters(), 0.1), torch.optim.SGD(D.parameters(), 0.1)
real, z = torch.randn(4, 2), torch.randn(4, 3)
"""
TRUNK = """trunk, left, right = nn.Linear(3, 4), nn.Linear(4, 1), nn.Linear(4, 2)
modules = (trunk, left, right)
opt = torch.optim.SGD([p for m in modules for p in m.parameters()], 0.1)
x = torch.randn(5, 3)
"""
RNN = """rnn, head = nn.LSTM(3, 4), nn.Linear(4, 1)
modules = (rnn, head)
opt = torch.optim.SGD([p for m in modules for p in m.parameters()], 0.1)
data = torch.randn(2, 5, 2, 3)
"""
LAYERS = """class Layer(nn.Module):
    def __init__(self, slope):
        super().__init__()
        self.slope, self.fc = slope, nn.Linear(3, 3)
    def forward(self, x, bias):
{forward}
layers = nn.ModuleList(Layer(0.5 * i) for i in range(1, 4))
modules = (layers,)
x, bias = torch.randn(4, 3, requires_grad=True), torch.zeros(4, 3)
"""
# What fails, and what is meant. Each leaves the gradients of its last step in `result`.
PROGRAMS = {
    "an adversary's scores reused after its step": (
        GAN
        + """fake = G(z)
scores = D(fake)
d_loss = F.softplus(scores).mean() + F.softplus(-D(real)).mean()
opt_d.zero_grad()
d_loss.backward(retain_graph=True)
opt_d.step()
g_loss = F.softplus(-scores).mean()
opt_g.zero_grad()
g_loss.backward()
result = grads()[:4]
""",
        GAN
        + """with torch.no_grad():
    fixed = G(z)
(F.softplus(D(fixed)).mean() + F.softplus(-D(real)).mean()).backward()
opt_d.step()
opt_g.zero_grad()
F.softplus(-D(G(z))).mean().backward()
result = grads()[:4]
""",
    ),
    "two heads, two backward calls": (
        TRUNK
        + """code = trunk(x).tanh()
first = left(code).pow(2).mean()
opt.zero_grad()
(0.3 * first).backward()
second = right(code).abs().mean()
second.backward()
result = grads()
""",
        TRUNK
        + """total = 0.3 * left(trunk(x).tanh()).pow(2).mean() + right(trunk(x).tanh()).abs().mean()
total.backward()
result = grads()
""",
    ),
    "a state handed on by an LSTM": (
        RNN
        + """state = None
for chunk in data:
    out, state = rnn(chunk, state)
    loss = head(out).pow(2).mean()
    opt.zero_grad()
    loss.backward()
result = grads()
""",
        RNN
        + """with torch.no_grad():
    _, (h, c) = rnn(data[0])
out, _ = rnn(data[1], (h, c))
head(out).pow(2).mean().backward()
result = grads()
""",
    ),
    "a code computed before the loop": (
        TRUNK
        + """code = trunk(x).tanh()
for _ in range(2):
    loss = left(code).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
result = grads()
""",
        TRUNK
        + """left(trunk(x).tanh()).pow(2).mean().backward()
opt.step()
opt.zero_grad()
left(trunk(x).tanh()).pow(2).mean().backward()
result = grads()
""",
    ),
    "steps written into one tensor": (
        TRUNK
        + """cell = nn.GRUCell(3, 4)
modules = (cell,)
states = torch.zeros(4, 5, 4)
for t in range(3):
    states[t + 1] = cell(x, states[t])
states[1:].pow(2).sum().backward()
result = grads()
""",
        TRUNK
        + """cell = nn.GRUCell(3, 4)
modules = (cell,)
states = [torch.zeros(5, 4)]
for _ in range(3):
    states.append(cell(x, states[-1]))
torch.stack(states[1:]).pow(2).sum().backward()
result = grads()
""",
    ),
    "a bias that the layers of a checkpoint add to": (
        "from torch.utils.checkpoint import checkpoint\n"
        + LAYERS.format(forward="        bias.sub_(self.slope)\n        return torch.sigmoid(self.fc(x) * bias)")
        + """h = x
for layer in layers:
    h = checkpoint(layer, h, bias, use_reentrant=True)
h.pow(2).sum().backward()
result = grads()
""",
        LAYERS.format(forward="        return torch.sigmoid(self.fc(x) * bias)")
        + """h, total = x, 0.0
for layer in layers:
    total += layer.slope
    h = layer(h, bias - total)
h.pow(2).sum().backward()
result = grads()
""",
    ),
}


def run(path: pathlib.Path) -> list | str:
    """The program's gradients, or the traceback of its failure."""
    try:
        return runpy.run_path(str(path))["result"]
    except RuntimeError:
        return traceback.format_exc()


def repair(path: pathlib.Path, catalog, read) -> list | str:
    """Run, explain, take the first edit, until the program runs."""
    from explainer.workflow import explain_incident, plan_report

    done = run(path)
    for _ in range(ROUNDS):
        if not isinstance(done, str):
            return done
        report = plan_report(explain_incident(read(done), None, catalog), catalog, str(path.parent))
        changes = [fix.changes for finding in report.findings for fix in finding.fixes if fix.changes]
        assert changes, done
        for change in changes[0]:
            pathlib.Path(change.file).write_bytes(change.after)
        done = run(path)
    return done


@pytest.mark.torch
@pytest.mark.parametrize(("broken", "meant"), PROGRAMS.values(), ids=PROGRAMS)
def test_repaired_loops_train(broken: str, meant: str, tmp_path: pathlib.Path, catalog, read) -> None:
    """The broken program fails; repaired, its gradients are those of the program as meant."""
    torch = pytest.importorskip("torch")
    (tmp_path / "meant.py").write_text(HEAD + TAIL + meant)
    path = tmp_path / "train.py"
    path.write_text(HEAD + TAIL + broken)
    assert isinstance(run(path), str)
    wanted, got = run(tmp_path / "meant.py"), repair(path, catalog, read)
    assert not isinstance(wanted, str), wanted
    assert not isinstance(got, str), f"{got}\n{path.read_text()}"
    for one, other in zip(wanted, got, strict=True):
        assert (one is None) == (other is None)
        assert one is None or torch.allclose(one, other, rtol=1e-5, atol=1e-7), path.read_text()
