"""The network runs on the tensor whose gradient is asked for."""

from __future__ import annotations

import dataclasses

import pytest

from explainer.fix.splice import splice
from explainer.model.incident import Frame, Incident
from tests.fix.rewriting import best, changed_lines, failed, line_of, rewritten, write

HEAD = """import torch
from torch import nn
from torch.nn import functional as F
net = nn.Linear(4, 3)
x, y = torch.randn(2, 4), torch.tensor([0, 1])
"""
RIGHT = {
    "the same object": (
        HEAD
        + """x = x.requires_grad_(True)
out = net(x).sum()
(g,) = torch.autograd.grad(out, x)
""",
        "autograd.grad",
    ),
    "the pieces, joined": (
        HEAD
        + """p = torch.rand(5, 4, requires_grad=True)
a, b = p[:, :2], p[:, 2:]
u = net(torch.cat([a, b], dim=1))
(g,) = torch.autograd.grad(u.sum(), a)
""",
        "autograd.grad",
    ),
    "pieces that leave a gap": (
        HEAD
        + """p = torch.rand(5, 4, requires_grad=True)
a, b = p[:, :1], p[:, 2:]
u = net(p)
(g,) = torch.autograd.grad(u.sum(), a)
""",
        "autograd.grad",
    ),
    "a gradient by a parameter": (
        HEAD
        + """out = net(x).sum()
(g,) = torch.autograd.grad(out, net.weight)
""",
        "autograd.grad",
    ),
}
WRONG = {
    "parts of a split": (
        HEAD
        + """state = torch.rand(5, 4, requires_grad=True)
q, p = state.split(2, dim=-1)
h = net(state).sum()
dq, dp = torch.autograd.grad(h, (q, p), create_graph=True)
""",
        "torch.autograd.grad(h",
        ["h = net(torch.cat([q, p], dim=-1)).sum()"],
    ),
    "two columns": (
        HEAD
        + """p = torch.rand(5, 4, requires_grad=True)
a, b = p[:, 0:2], p[:, 2:4]
u = net(p)
(g,) = torch.autograd.grad(u.sum(), b)
""",
        "autograd.grad",
        ["u = net(torch.cat([a, b], dim=1))"],
    ),
    "a scaled input": (
        HEAD
        + """p = torch.rand(5, 4, requires_grad=True)
scaled = p / 2
u = net(p)
(g,) = torch.autograd.grad(u.sum(), scaled)
""",
        "autograd.grad",
        ["u = net(scaled)"],
    ),
    "a clone": (
        HEAD
        + """p = torch.rand(5, 4)
q = p.clone().requires_grad_(True)
loss = F.cross_entropy(net(p), torch.zeros(5).long())
(g,) = torch.autograd.grad(loss, q)
""",
        "autograd.grad",
        ["loss = F.cross_entropy(net(q), torch.zeros(5).long())"],
    ),
}


HELPER = """import torch
def d(f, v):
    return torch.autograd.grad(f, v, grad_outputs=torch.ones_like(f), create_graph=True)[0]
"""
RESIDUAL = (
    HEAD
    + """from calculus import d
def residual(xt):
    u = net(xt)
    CUT
    return d(d(u, a), a) + d(u, b)
"""
)
CUTS = {
    "a, b = xt[:, :1], xt[:, 1:]": "torch.cat([a, b], dim=1)",
    "a, b = xt[:, 0], xt[:, 1]": "torch.stack([a, b], dim=1)",
    "a, b = xt.unbind(1)": "torch.stack([a, b], dim=1)",
    "b, a = xt.split(1, dim=1)": "torch.cat([b, a], dim=1)",
    "a, b = torch.chunk(xt, 2, dim=1)": "torch.cat([a, b], dim=1)",
}


@pytest.mark.parametrize(("cut", "joined"), CUTS.items(), ids=CUTS)
def test_a_helper_asks_for_columns_that_are_cut_after_the_forward(tmp_path, cut: str, joined: str) -> None:
    """The forward moves behind the cut, and runs on the columns."""
    source = RESIDUAL.replace("CUT", cut)
    program = write(tmp_path, {"train.py": source, "calculus.py": HELPER})
    frames = {"train.py": line_of(source, "return d("), "calculus.py": line_of(HELPER, "return torch")}
    proposal = best("pass_what_is_differentiated", program, incident=failed(frames, "not have been used in the graph"))
    assert proposal is not None
    after = splice(source, proposal.edits)
    assert after is not None
    assert changed_lines(source, after) == [f"u = net({joined})"]
    assert after.index(cut) < after.index("u = net(")


def test_a_column_that_is_cut_in_the_call(tmp_path) -> None:
    """The gradient by the whole is cut in its place."""
    source = (
        HEAD
        + """p = torch.rand(5, 4, requires_grad=True)
u = net(p)
g = torch.autograd.grad(u.sum(), p[:, :1])[0]
"""
    )
    after = rewritten(tmp_path, "pass_what_is_differentiated", source, "g =")
    assert changed_lines(source, after) == ["g = torch.autograd.grad(u.sum(), p)[0][:, :1]"]


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str) -> None:
    """Forwards on the tensor itself, and pieces that do not cover it, are left alone."""
    assert rewritten(tmp_path, "pass_what_is_differentiated", source, at or None) == source


@pytest.mark.parametrize(("source", "at", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, wanted: list[str]) -> None:
    """The forward reads the tensor; a second time nothing is left to do."""
    after = rewritten(tmp_path, "pass_what_is_differentiated", source, at or None)
    assert changed_lines(source, after) == wanted
    again = at if at and at in after else None
    assert rewritten(tmp_path, "pass_what_is_differentiated", after, again) == after


EMBEDDED = """import torch
from transformers import BertConfig, BertForSequenceClassification

torch.manual_seed(0)
model = BertForSequenceClassification(
    BertConfig(vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8)
).eval()
batch = {"input_ids": torch.randint(0, 20, (2, 5)), "attention_mask": torch.ones(2, 5)}
ids = batch["input_ids"]
embeds = model.get_input_embeddings()(LOOKED)
logits = RUN.logits
(grads,) = torch.autograd.grad(logits.sum(), embeds)
"""
EMBEDS = {
    "a batch": ('batch["input_ids"]', "model(**batch)", 'model(inputs_embeds=embeds, **{key: value for key, value in batch.items() if key != "input_ids"})'),
    "an argument": ("ids", 'model(input_ids=ids, attention_mask=batch["attention_mask"])', 'model(inputs_embeds=embeds, attention_mask=batch["attention_mask"])'),
    "by place": ("ids", "model(ids)", "model(inputs_embeds=embeds)"),
    "other ids": ("ids + 0", "model(ids)", None),
    "another batch": ('batch["input_ids"]', "model(**other)", None),
}  # fmt: skip


@pytest.mark.torch
@pytest.mark.parametrize(("looked", "run", "after"), EMBEDS.values(), ids=EMBEDS)
def test_embeddings_of_the_same_ids(tmp_path, looked: str, run: str, after: str | None) -> None:
    """The model runs on them, its logits are what they were, and they get a gradient; other ids are left alone."""
    pytest.importorskip("transformers")
    source = EMBEDDED.replace("LOOKED", looked).replace("RUN", run)
    changed = rewritten(tmp_path, "pass_what_is_differentiated", source, "autograd.grad")
    if after is None:
        assert changed == source
        return
    assert changed_lines(source, changed) == [f"logits = {after}.logits"]
    was: dict = {}
    with pytest.raises(RuntimeError, match="not have been used"):
        exec(source, was)  # noqa: S102 - the program of a test
    space: dict = {}
    exec(changed, space)  # noqa: S102
    assert space["torch"].allclose(was["logits"], space["logits"], atol=1e-6)
    assert float(space["grads"].abs().sum()) > 0


ANEW = """import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(9, 4), nn.Linear(4, 2)
    def classify(self, e):
        return self.head(e.mean(1))
    def forward(self, ids):
        return self.classify(self.embed(ids))

class Adversary:
    def direction(self, loss, embedded):
        grad, = torch.autograd.grad(loss, embedded, retain_graph=True)
        return grad
    def __call__(self, net, embedded, loss):
        return net.classify(embedded + self.direction(loss, embedded)).mean()

torch.manual_seed(0)
model, adversary = Model(), Adversary()
ids = torch.arange(8).view(2, 4)
embedded = model.embed(ids)
clean = model(ids).square().mean()
loss = clean + adversary(model, embedded, clean)
loss.backward()
"""
MADE_ANEW = {
    "a forward of one line": (ANEW, "clean = model.classify(embedded).square().mean()"),
    "a method": (
        ANEW.replace("def forward(", "def score(").replace("model(ids)", "model.score(ids)"),
        "clean = model.classify(embedded).square().mean()",
    ),
    "other ids": (ANEW.replace("model.embed(ids)\n", "model.embed(ids + 1)\n"), None),
    "a forward of several lines": (ANEW.replace("return self.classify(self.embed(ids))", "e = self.embed(ids)\n        return self.classify(e)"), None),
    "made after it": (ANEW.replace("embedded = model.embed(ids)\nclean = model(ids).square().mean()", "clean = model(ids).square().mean()\nembedded = model.embed(ids)"), None),
}  # fmt: skip


@pytest.mark.parametrize(("source", "line"), MADE_ANEW.values(), ids=MADE_ANEW)
def test_what_the_forward_makes_anew(tmp_path, source: str, line: str | None) -> None:
    """The forward of one line goes on from the tensor whose gradient is asked for, two calls further in."""
    frames = {"train.py": line_of(source, "loss = clean")}
    program = write(tmp_path, {"train.py": source})
    record = failed(frames).exceptions[0]
    inner = [Frame(file="train.py", line=line_of(source, words)) for words in ("return net.classify", "grad, = ")]
    incident = Incident(exceptions=(dataclasses.replace(record, frames=(*record.frames, *inner)),))
    proposal = best("pass_what_is_differentiated", program, incident=incident)
    after = splice(source, proposal.edits) if proposal is not None else source
    assert changed_lines(source, after or "") == ([line] if line else [])
