"""A pool of what earlier steps computed keeps values; the step that computes them keeps its graph."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.fix.splice import splice
from tests.fix.rewriting import best, changed_lines, failed, write

TOP = """import torch
from collections import deque
torch.manual_seed(0)
net = torch.nn.Linear(3, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
"""
MEMORY = """
class Memory:
    def __init__(self):
        self.store = deque(maxlen=2)
    def push(self, z, y):
        self.store.append((z, y))
    def with_current(self, z, y):
        return torch.cat([z, *(one for one, _ in self.store)]), torch.cat([y, *(one for _, one in self.store)])
memory = Memory()
def loss_of(x):
    z, y = net(x), torch.ones(len(x))
    pool, marks = memory.with_current(z, y)
    memory.push(z, y)
    return (pool.sum(1) - marks).pow(2).mean()
"""
POOL = """
class Pool:
    def __init__(self):
        self.images = []
    def query(self, batch):
        if len(self.images) < 2:
            self.images.append(batch)
            return batch
        shown = torch.cat([batch, self.images[0]])
        self.images[0] = batch
        return shown
pool = Pool()
def loss_of(x):
    return pool.query(net(x)).pow(2).mean()
"""
BY_NAME = """
class History:
    def __init__(self):
        self.kept = {"loss": []}
    def update(self, loss):
        self.kept["loss"].append(loss)
        self.kept.setdefault("all", []).append(loss)
    def mean(self):
        return torch.stack(self.kept["loss"]).mean()
history = History()
def loss_of(x):
    loss = net(x).pow(2).mean()
    trend = history.mean() if history.kept["loss"] else 0.0
    history.update(loss)
    return loss + (loss - trend).relu()
"""
LOOP = """
def main():
    for _ in range(4):
        loss = loss_of(torch.randn(2, 3))
        opt.zero_grad()
        loss.backward()
        opt.step()
main()
"""
FORMS = {
    "a history by name": (
        BY_NAME,
        ['self.kept["loss"].append(loss.detach())', 'self.kept.setdefault("all", []).append(loss.detach())'],
    ),
    "a memory of pairs": (MEMORY, ["self.store.append((z.detach(), y))"]),
    "a pool that is exchanged": (POOL, ["self.images.append(batch.detach())", "self.images[0] = batch.detach()"]),
}


@pytest.mark.torch
@pytest.mark.parametrize(("text", "wanted"), FORMS.values(), ids=FORMS)
def test_what_goes_in_is_detached(tmp_path: pathlib.Path, text: str, wanted: list[str]) -> None:
    """The program fails in a later step; after the edit it trains, and a second time nothing is left to do."""
    pytest.importorskip("torch")
    import gradfix

    source, path = TOP + text + LOOP, tmp_path / "train.py"
    path.write_text(source)
    with pytest.raises(RuntimeError, match="second time"), gradfix.trace() as seen:
        exec(compile(source, str(path), "exec"), {})  # noqa: S102
    assert "taken" in {one.kind for one in seen.lines}
    incident = replace(failed(), traced=seen.lines)
    proposal = best("detach_what_is_pooled", write(tmp_path, {"train.py": source}), incident=incident)
    assert proposal is not None
    after = splice(source, proposal.edits)
    assert changed_lines(source, after) == wanted
    exec(compile(after, "after", "exec"), {})  # noqa: S102
    assert best("detach_what_is_pooled", write(tmp_path, {"train.py": after}), incident=incident) is None
