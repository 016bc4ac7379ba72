"""A momentum encoder or target network runs without grad."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.fix.splice import splice
from tests.fix.rewriting import best, changed_lines, failed, write

HEAD = """import copy
import torch
torch.manual_seed(0)
"""
OWN = """
class Moco(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.query = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
        self.key = copy.deepcopy(self.query)
    @torch.no_grad()
    def follow(self):
        for slow, fast in zip(self.key.parameters(), self.query.parameters()):
            WRITE
    def forward(self, x):
        q = self.query(x)
        k = self.key(x)
        self.follow()
        return (q * k).sum()
model = Moco()
opt = torch.optim.SGD(model.query.parameters(), lr=0.1)
model(torch.randn(4, 3)).backward()
"""
HELPER = """
def update(target, source):
    for one, other in zip(target.parameters(), source.parameters()):
        one.data.mul_(0.9).add_(other.data, alpha=0.1)
net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
slow = copy.deepcopy(net)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(4, 3)
loss = (net(x) - slow(x)).pow(2).mean()
update(slow, net)
loss.backward()
"""
TEACHER = """
class Student(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2)), torch.nn.Linear(2, 2)
    def forward(self, x):
        return self.head(self.body(x))
class Teacher(torch.nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body = copy.deepcopy(body)
    @torch.no_grad()
    def follow(self, body):
        for mine, theirs in zip(self.body.parameters(), body.parameters()):
            mine.lerp_(theirs, 0.1)
    def forward(self, x, body):
        self.follow(body)
        return self.body(x)
student = Student()
teacher = Teacher(student.body)
opt = torch.optim.SGD(student.parameters(), lr=0.1)
x = torch.randn(4, 3)
loss = (student(x) - teacher(x, student.body) - teacher(-x, student.body)).pow(2).mean()
loss.backward()
"""
FORMS = {
    "a network that another class calls alike": (TEACHER, ["return self.body(x).detach()"]),
    "an average in the forward": (
        OWN.replace("WRITE", "slow.mul_(0.9).add_(fast, alpha=0.1)"),
        ["with torch.no_grad():", "k = self.key(x)"],
    ),
    "a copy": (OWN.replace("WRITE", "slow.copy_(fast)"), ["with torch.no_grad():", "k = self.key(x)"]),
    "a helper that hides it": (HELPER, ["loss = (net(x) - slow(x).detach()).pow(2).mean()"]),
}


@pytest.mark.torch
@pytest.mark.parametrize(("text", "wanted"), FORMS.values(), ids=FORMS)
def test_the_slow_copy_has_no_graph(tmp_path: pathlib.Path, text: str, wanted: list[str]) -> None:
    """Its statement goes under `no_grad`; where that runs the network that trains as well, its output is detached."""
    pytest.importorskip("torch")
    import gradfix

    source, path = HEAD + text, tmp_path / "train.py"
    path.write_text(source)
    seen = None
    try:
        with gradfix.trace() as seen:
            exec(compile(source, str(path), "exec"), {})  # noqa: S102
    except RuntimeError as error:
        assert "modified by an inplace operation" in str(error)
    assert seen is not None
    incident = replace(failed(), traced=seen.lines)
    proposal = best("average_without_grad", write(tmp_path, {"train.py": source}), incident=incident)
    assert proposal is not None
    after = splice(source, proposal.edits)
    assert changed_lines(source, after) == wanted
    exec(compile(after, "after", "exec"), {})  # noqa: S102


THROUGH = ("self.key(x)", "self.key(self.query[0](x) @ torch.ones(4, 3))")
NAMED = ("self.key(x)", "self.key(input=self.query[0](x) @ torch.ones(4, 3))")
SHARED = ("self.key(x)", "self.query(self.key(x) @ torch.ones(2, 3))")
OWNED = ("model.query.parameters()", "[*model.query.parameters(), *model.key.parameters()]")


@pytest.mark.torch
@pytest.mark.parametrize(
    "change",
    [THROUGH, NAMED, SHARED, OWNED],
    ids=["gradients go through it", "gradients go through a named argument", "a head takes it", "an optimizer owns it"],
)
def test_a_network_that_trains_keeps_its_graph(tmp_path: pathlib.Path, change: tuple[str, str]) -> None:
    """It is given what the other network computes, or is trained by itself and synchronised besides."""
    pytest.importorskip("torch")
    import gradfix

    source = HEAD + OWN.replace("WRITE", "slow.copy_(fast)").replace(*change)
    path = tmp_path / "train.py"
    path.write_text(source)
    with pytest.raises(RuntimeError, match="inplace"), gradfix.trace() as seen:
        exec(compile(source, str(path), "exec"), {})  # noqa: S102
    incident = replace(failed(), traced=seen.lines)
    assert best("average_without_grad", write(tmp_path, {"train.py": source}), incident=incident) is None
