"""A model is in train mode for the forward that backward goes through."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

RIGHT = {
    "train after eval": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
net.eval()
with torch.no_grad():
    v = net(x)
net.train()
loss = net(x).sum()
loss.backward()
""",
        "loss.backward",
    ),
    "a frozen teacher in eval": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
teacher = nn.Linear(3, 2).eval()
with torch.no_grad():
    t = teacher(x)
loss = (net(x) - t).sum()
loss.backward()
""",
        "loss.backward",
    ),
    "never in eval": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
loss = net(x).sum()
loss.backward()
""",
        "loss.backward",
    ),
    "loaded, then put into train mode": (
        """from torch import optim
from transformers import AutoModelForCausalLM
model = AutoModelForCausalLM.from_pretrained('m')
model.train()
opt = optim.SGD(model.parameters(), 0.1)
loss = model(x, labels=x).loss
loss.backward()
""",
        "loss.backward",
    ),
    "loaded and put into train mode at once": (
        """from torch import optim
from transformers import AutoModelForCausalLM
model = AutoModelForCausalLM.from_pretrained('m').train()
opt = optim.SGD(model.parameters(), 0.1)
loss = model(x, labels=x).loss
loss.backward()
""",
        "loss.backward",
    ),
    "a loaded tokenizer, whose train means another thing": (
        """from torch import nn, optim
from transformers import AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained('m')
net = nn.Embedding(9, 2)
opt = optim.SGD(net.parameters(), 0.1)
ids = tokenizer('a').input_ids
loss = net(ids).sum()
loss.backward()
""",
        "loss.backward",
    ),
    "a loaded model that is not trained": (
        """from torch import nn, optim
from transformers import AutoModel
encoder = AutoModel.from_pretrained('m')
net = nn.Linear(9, 2)
opt = optim.SGD(net.parameters(), 0.1)
loss = net(encoder(x).pooler_output).sum()
loss.backward()
""",
        "loss.backward",
    ),
}
WRONG = {
    "loaded and never put into train mode": (
        """from torch import optim
from transformers import AutoModelForCausalLM
model = AutoModelForCausalLM.from_pretrained('m').to('cuda')
opt = optim.SGD(model.parameters(), 0.1)
for x in data:
    loss = model(x, labels=x).loss
    loss.backward()
""",
        "loss.backward",
        ["+model.train()"],
    ),
    "loaded with its tokenizer": (
        """from torch import optim
from unsloth import FastLanguageModel
model, tokenizer = FastLanguageModel.from_pretrained('m')
opt = optim.SGD(model.parameters(), 0.1)
loss = model(x, labels=x).loss
loss.backward()
""",
        "loss.backward",
        ["+model.train()"],
    ),
    "validation before training": (
        """import torch
from torch import nn

torch.manual_seed(0)
model = nn.LSTM(4, 8, batch_first=True).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
inputs = torch.rand(2, 5, 4, device="cuda")
model.eval()
with torch.no_grad():
    validation = model(inputs)[0]
output, _ = model(inputs)
loss = output.pow(2).mean()
optimizer.zero_grad()
loss.backward()
optimizer.step()
""",
        "loss.backward()",
        ["+model.train()"],
    ),
    "eval at once": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.LSTM(3, 2).eval()
out, _ = net(x)
loss = out.sum()
loss.backward()
""",
        "loss.backward",
        ["+net.train()"],
    ),
    "the forward in the call": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
net.eval()
net(x).sum().backward()
""",
        ".backward",
        ["+net.train()"],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(source: str, at: str | None, tmp_path: pathlib.Path) -> None:
    """Nothing is proposed where the fault is not."""
    assert rewritten(tmp_path, "train_mode", source, at) == source


@pytest.mark.parametrize(("source", "at", "changes"), WRONG.values(), ids=WRONG)
def test_wrong_programs_are_mended(source: str, at: str | None, changes: list[str], tmp_path: pathlib.Path) -> None:
    """The best edit changes these lines; a second time nothing is left to do."""
    after = rewritten(tmp_path, "train_mode", source, at)
    assert diff_lines(source, after) == changes
    still = at if at and at in after else None
    assert rewritten(tmp_path, "train_mode", after, still) == after
