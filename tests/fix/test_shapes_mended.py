"""Products, joins, views and tables whose shapes do not fit: each program runs, fails, is mended by its failure and runs."""

from __future__ import annotations

import pathlib

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from tests.fix.mending import is_mended, mended, run  # noqa: E402
from tests.fix.rewriting import changed_lines  # noqa: E402

HEAD = """import torch
from torch import nn
torch.manual_seed(0)
lin, conv, fc = nn.Linear(6, 8), nn.Conv2d(3, 4, 3, padding=1), nn.Linear(4 * 5 * 5, 2)
rows, images = torch.rand(7, 3, 6), torch.rand(7, 3, 5, 5)
"""
WRONG = {
    "a view of a transposition": (
        "reshape_for_view",
        "out = lin(rows).transpose(1, 2).view(7, -1)",
        "out = lin(rows).transpose(1, 2).reshape(7, -1)",
        "lin(rows).transpose(1, 2).contiguous().view(7, -1)",
    ),
    "a batch that is fixed": (
        "batch_of_view",
        "out = images.view(8, 3, -1)",
        "out = images.view(images.size(0), 3, -1)",
        "images.flatten(2)",
    ),
    "features that are counted wrongly": (
        "batch_of_view",
        "h = conv(images)\nout = h.view(-1, 4 * 4 * 4)",
        "out = h.view(h.size(0), -1)",
        "conv(images).flatten(1)",
    ),
    "a fixed batch whose rows a layer refuses": (
        "batch_of_view",
        "size = 14\nh = conv(images)\nh = h.view(size, -1)\nout = fc(h)",
        "h = h.view(h.size(0), -1)",
        "fc(conv(images).flatten(1))",
    ),
    "features beside features": (
        "join_features",
        "out = torch.cat([rows, lin(rows)])",
        "out = torch.cat([rows, lin(rows)], dim=-1)",
        "torch.cat([rows, lin(rows)], 2)",
    ),
    "channels beside channels": (
        "join_features",
        "out = torch.cat((images, conv(images)), 0)",
        "out = torch.cat((images, conv(images)), 1)",
        "torch.cat((images, conv(images)), 1)",
    ),
    "rows with rows": (
        "transpose_second",
        "a, b = lin(rows[:, 0]), lin(rows[:4, 1])\nout = a @ b",
        "out = a @ b.T",
        "torch.einsum('nd,md->nm', lin(rows[:, 0]), lin(rows[:4, 1]))",
    ),
    "queries with keys": (
        "transpose_second",
        "out = torch.bmm(rows, rows) / 6 ** 0.5",
        "out = torch.bmm(rows, rows.transpose(-2, -1)) / 6 ** 0.5",
        "torch.bmm(rows, rows.mT) / 6 ** 0.5",
    ),
    "a weight of a layer": (
        "transpose_second",
        "weight = lin.weight\nout = rows[0].matmul(weight)",
        "out = rows[0].matmul(weight.T)",
        "nn.functional.linear(rows[0], lin.weight)",
    ),
    "rows first": (
        "transpose_second",
        "a, b = rows[:, 0], rows[:, :, 0]\nout = a @ b",
        "out = a.T @ b",
        "rows[:, 0].T @ rows[:, :, 0]",
    ),
}  # fmt: skip
RIGHT = {
    "a view that no order cures": ("reshape_for_view", "out = rows.view(4, -1)"),
    "a batch that divides nothing": ("batch_of_view", "out = images.view(8, 4, -1)"),
    "features of several axes": ("batch_of_view", "out = images.view(-1, 4, 4, 4)"),
    "joined along the features already": ("join_features", "out = torch.cat([rows, images[0]], dim=-1)"),
    "sides that fit in no way": ("transpose_second", "out = rows[0] @ torch.rand(5, 2)"),
}


@pytest.mark.parametrize(("codemod", "body", "line", "equal"), WRONG.values(), ids=WRONG)
def test_what_was_meant_is_computed(tmp_path: pathlib.Path, codemod: str, body: str, line: str, equal: str) -> None:
    """One line changes, and the result is that of the same thing written otherwise."""
    assert is_mended(codemod, HEAD, body, line, equal, tmp_path)


@pytest.mark.parametrize(("codemod", "body"), RIGHT.values(), ids=RIGHT)
def test_nothing_is_guessed(tmp_path: pathlib.Path, codemod: str, body: str) -> None:
    """Where the sizes do not say what was meant."""
    assert mended(codemod, f"{HEAD}{body}\n", tmp_path) == f"{HEAD}{body}\n"


TABLE = """import torch
from torch import nn
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(9, 4), nn.Parameter(torch.rand(SHAPE))
    def forward(self, ids):
        return SUM
net, ids = Net(), torch.randint(0, 9, (2, 5))
out = net(ids)
"""


@pytest.mark.parametrize(
    ("shape", "index"), [("1, 8, 4", ":, : ids.size(1)"), ("8, 4", ": ids.size(1)")], ids=["with a batch", "without"]
)
def test_a_table_of_positions_is_cut(tmp_path: pathlib.Path, shape: str, index: str) -> None:
    """To the length of the text."""
    source = TABLE.replace("SHAPE", shape).replace("SUM", "self.tokens(ids) + self.positions")
    after = mended("cut_position_table", source, tmp_path)
    assert changed_lines(source, after) == [f"return self.tokens(ids) + self.positions[{index}]"]
    space = run(after, tmp_path / "after.py")
    net = space["net"]
    wanted = net.tokens(space["ids"]) + net.positions.reshape(1, 8, 4)[:, :5]
    assert torch.equal(space["out"], wanted)


@pytest.mark.parametrize("shape", ["1, 3, 4", "1, 8, 5"], ids=["a table that is too short", "another width"])
def test_other_tables_stay(tmp_path: pathlib.Path, shape: str) -> None:
    """What is too short has to be made longer, and trained."""
    source = TABLE.replace("SHAPE", shape).replace("SUM", "self.tokens(ids) + self.positions")
    assert mended("cut_position_table", source, tmp_path) == source


SQUEEZE = """import torch
from torch import nn
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 1)
    def forward(self, x):
        return FORWARD
net, x, y = Net(), torch.rand(1, 3), torch.rand(1)
LOSS
"""
CALLS = {
    "in the loss": ("self.fc(x)", "loss = nn.functional.binary_cross_entropy_with_logits(net(x).squeeze(), y)"),
    "behind a name": (
        "self.fc(x)",
        "out = net(x).squeeze()\nloss = nn.functional.binary_cross_entropy_with_logits(out, y)",
    ),
    "in the forward": ("self.fc(x).squeeze()", "loss = nn.BCEWithLogitsLoss()(net(x), y)"),
}


@pytest.mark.parametrize(("forward", "loss"), CALLS.values(), ids=CALLS)
def test_a_batch_of_one_keeps_its_axis(tmp_path: pathlib.Path, forward: str, loss: str) -> None:
    """The axis that is squeezed is named."""
    source = SQUEEZE.replace("FORWARD", forward).replace("LOSS", loss)
    fields = {"input_shape": "[]", "target_shape": "[1]"}
    after = mended("squeeze_one_axis", source, tmp_path, fields=fields)
    assert after == source.replace(".squeeze()", ".squeeze(-1)")
    assert run(after, tmp_path / "after.py")["loss"].isfinite()
    other = {"input_shape": "[4, 1]", "target_shape": "[4]"}
    assert mended("squeeze_one_axis", source, tmp_path, fields=other) == source


LAYERS = """import torch
from torch import nn
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(3, 8, num_layers=2, batch_first=True, bidirectional=BOTH)
    def forward(self, x):
        h0 = torch.zeros(COUNT, x.size(0), 8)
        return self.rnn(x, h0)[0]
net = Net()
out = net(torch.rand(5, 7, 3))
"""


@pytest.mark.parametrize(
    ("both", "count", "wanted"),
    [("False", "1", "self.rnn.num_layers"), ("True", "2", "2 * self.rnn.num_layers")],
    ids=["layers", "directions"],
)
def test_a_state_for_each_layer_and_direction(tmp_path: pathlib.Path, both: str, count: str, wanted: str) -> None:
    """As many as the layer has."""
    source = LAYERS.replace("BOTH", both).replace("COUNT", count)
    after = mended("layers_of_state", source, tmp_path)
    assert changed_lines(source, after) == [f"h0 = torch.zeros({wanted}, x.size(0), 8)"]
    assert run(after, tmp_path / "after.py")["out"].shape[:2] == (5, 7)


NOISE = """import torch
def sample(mean, size):
    noise = torch.randn(SIZE, 4)
    return mean + 0.5 * noise
out = sample(torch.zeros(5, 4), 8)
"""


@pytest.mark.parametrize("size", ["size", "8"])
def test_noise_for_the_batch_that_came(tmp_path: pathlib.Path, size: str) -> None:
    """Not for that of the settings."""
    source = NOISE.replace("SIZE", size)
    after = mended("state_of_batch", source, tmp_path)
    assert changed_lines(source, after) == ["noise = torch.randn(mean.size(0), 4)"]
    assert run(after, tmp_path / "after.py")["out"].shape == (5, 4)


FEATURES = """import torch
from torch import nn
torch.manual_seed(0)
conv, fc = nn.Conv2d(1, 4, 8), nn.Linear(4, 3)
x, y = torch.rand(1, 1, 8, 8), torch.tensor([2])
logits = fc(conv(x).squeeze())
loss = nn.functional.cross_entropy(logits, y)
loss.backward()
"""


def test_features_of_a_batch_of_one(tmp_path: pathlib.Path) -> None:
    """They are flattened behind the batch; it is the backward that refuses them."""
    fields = {"input_shape": "[3]", "target_shape": "[1]"}
    after = mended("squeeze_one_axis", FEATURES, tmp_path, fields=fields)
    assert changed_lines(FEATURES, after) == ["logits = fc(conv(x).flatten(1))"]
    assert run(after, tmp_path / "after.py")["loss"].isfinite()
