"""A column of a layer with one output that meets a row gives n times n results, and torch says nothing of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402, N812

from tests.live.tracing import lines  # noqa: E402

DATA = torch.randn(20, 1)
LEVELS = torch.linspace(0.1, 0.9, 8)[:, None]
PICKED = LEVELS[torch.arange(8)]
SAMPLES, FEATURES = 8, 3
Loss = Callable[["Net", torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


class Net(nn.Module):
    """Parts of models, of which a loss takes some."""

    def __init__(self) -> None:
        super().__init__()
        self.head, self.gate, self.two = nn.Linear(FEATURES, 1), nn.Linear(FEATURES, 1), nn.Linear(FEATURES, 2)
        self.body = nn.Sequential(nn.Linear(FEATURES, 4), nn.Tanh())
        self.user, self.item = nn.Embedding(20, 4), nn.Embedding(20, 4)
        self.user_bias, self.item_bias, self.bias = nn.Embedding(20, 1), nn.Embedding(20, 1), nn.Embedding(20, 1)
        self.table = nn.Parameter(torch.randn(20, 1))
        self.weight = nn.Parameter(torch.randn(FEATURES))
        self.steps = nn.Parameter(torch.randn(SAMPLES))
        self.conv = nn.Conv1d(1, 1, FEATURES)
        self.register_buffer("mean", torch.randn(9).mean())
        self.register_buffer("levels", torch.linspace(0.1, 0.9, SAMPLES))

    def affinity(self, ids: torch.Tensor) -> torch.Tensor:
        return (self.user(ids) * self.item(ids)).sum(-1)

    def row(self, x: torch.Tensor) -> torch.Tensor:
        return (x * self.weight).sum(-1)


def trained(loss_of: Loss, batches: tuple[int, ...] = (SAMPLES,) * 3) -> Callable[[], None]:
    """A program that trains what a loss takes."""
    torch.manual_seed(0)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)

    def train() -> None:
        for n in batches:
            loss = loss_of(net, torch.randn(n, FEATURES), torch.randint(0, 20, (n,)), torch.randn(n))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    return train


def squared(prediction: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return ((prediction - y) ** 2).mean()


def weighed(net: Net, x: torch.Tensor, ids: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    weight = 1 + ids.float().log1p()
    prediction = net.mean + (net.user_bias(ids) + net.item_bias(ids)) + net.affinity(ids)
    return (weight * (prediction - y) ** 2).mean() / weight.mean()


def normal(net: Net, x: torch.Tensor, ids: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    log_variance = net.two(x)[:, 1:]
    return 0.5 * (log_variance + (y - net.row(x)) ** 2 / log_variance.exp()).mean()


def two_columns(net: Net, x: torch.Tensor, ids: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return squared(net.affinity(ids) + net.user_bias(ids) + net.item_bias(ids), y)


def mixed(net: Net, x: torch.Tensor, ids: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    gate = torch.sigmoid(net.gate(x))
    return squared(gate * net.row(x) + net.affinity(ids) * (1 - gate), y)


def persistent(net: Net, x: torch.Tensor, ids: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return F.smooth_l1_loss(x[:, -1] + net.head(x), y)


def by_two_parts(net: Net, x: torch.Tensor, ids: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    gate, _ = net.two(x).chunk(2, dim=-1)
    return squared(gate.sigmoid() * net.row(x), y)


def by_hand(net: Net, x: torch.Tensor, ids: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Labels of a data set that has them in a column."""
    label, out = (DATA[ids] > 0).float(), net.row(x)
    return -(label * F.logsigmoid(out) + (1 - label) * F.logsigmoid(-out)).mean()


def weights_in_a_column(net: Net, x: torch.Tensor, ids: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    weight = torch.stack([one.exp() for one in DATA[ids]])
    return (F.cross_entropy(net.body(x), ids % 4, reduction="none") * weight).mean()


def from_a_worker(net: Net, x: torch.Tensor, ids: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """A batch of which the tracer saw nothing being made."""
    with torch._C.DisableTorchFunction():  # noqa: SLF001
        weight = torch.rand(len(ids), 1)
    return (net.row(x).square() * weight).mean()


# With the operations that are told, and the form which the results should have had.
SICK: dict[str, tuple[Loss, list[str], str]] = {
    "biases of tables beside a product": (weighed, ["add"], "row"),
    "a gate": (lambda net, x, ids, y: squared(torch.sigmoid(net.gate(x)) * net.row(x), y), ["mul"], "row"),
    "half of a layer's outputs": (by_two_parts, ["mul"], "row"),
    "a variance": (normal, ["div", "add"], "row"),
    "a mixture": (mixed, ["mul", "mul"], "row"),
    "two columns": (two_columns, ["add", "add"], "row"),
    "a head on the last value": (persistent, ["add"], "row"),
    "rows of a parameter": (lambda net, x, ids, y: squared(net.table[ids] + net.row(x), y), ["add"], "row"),
    "a convolution of one length": (
        lambda net, x, ids, y: squared(net.conv(x[:, None]).flatten(1) - net.affinity(ids), y), ["sub"], "row"
    ),
    "one squeezed, one not": (
        lambda net, x, ids, y: squared(net.user_bias(ids).squeeze(-1) + net.item_bias(ids), y), ["add"], "row"
    ),
    "by its own loss of logarithms": (
        lambda net, x, ids, y: -(y * F.logsigmoid(net.head(x) + net.affinity(ids))).mean(), ["add"], "row"
    ),
    "labels in a column": (by_hand, ["mul", "mul"], "row"),
    "weights in a column": (weights_in_a_column, ["mul"], "row"),
    "weights of a worker": (from_a_worker, ["mul"], "row"),
    "beside labels in a column": (
        lambda net, x, ids, y: squared(net.row(x) + net.head(x), torch.from_numpy(y[:, None].numpy().copy()).float()),
        ["add"], "column",
    ),
}  # fmt: skip


def kernel(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.exp(-((a - b) ** 2)).mean()


def discrepancy(net: Net, x: torch.Tensor, ids: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    a, b = net.head(x), net.head(x.flip(0) + 1)
    return kernel(a, a.view(-1)) + kernel(b, b.squeeze(-1)) - 2 * kernel(a, b.squeeze(-1))


def ranking(net: Net, x: torch.Tensor, ids: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    score = net.row(x)
    return F.softplus(-(score[:, None] - score) * (y[:, None] - y).sign()).mean()


def ranking_of_column(net: Net, x: torch.Tensor, ids: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    score = net.head(x)
    return F.softplus(score - score.squeeze(-1)).mean()


def in_batch(net: Net, x: torch.Tensor, ids: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Each user against each item of the batch."""
    scores = net.user_bias(ids) + net.item_bias(ids).squeeze(-1) + net.user(ids) @ net.item(ids).T
    return F.cross_entropy(scores, torch.arange(len(ids)))


def in_batch_without_softmax(net: Net, x: torch.Tensor, ids: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    scores = net.user_bias(ids) + net.affinity(ids)
    return F.softplus(scores * (1 - 2 * torch.eye(len(ids)))).mean()


def contrastive(net: Net, x: torch.Tensor, ids: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    z = F.normalize(net.body(x), dim=1)
    return F.cross_entropy((z @ z.T) / 0.1 + net.head(x), torch.arange(len(x)))


def positions(net: Net, x: torch.Tensor, ids: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """A table of relative positions, and its own regulariser."""
    at = torch.arange(len(x))
    bias = net.bias(at) + net.item_bias(at).squeeze(-1)
    return (x.T @ bias.softmax(-1)).mean() + (bias**2).mean()


def attention(net: Net, x: torch.Tensor, ids: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Additive scores of each for each, as in graphs."""
    scores = F.leaky_relu(net.head(x) + net.row(x))
    return squared(scores.softmax(-1) @ y, y)


def centred(net: Net, x: torch.Tensor, ids: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    z = net.body(x).pow(2)
    return (z / z.sum(1, keepdim=True)).mean() + (z.mean(1, keepdim=True) + net.row(x)).square().mean()


def thresholds(net: Net, x: torch.Tensor, ids: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """As many ordinal levels as samples, by chance."""
    return F.softplus(net.head(x) + net.steps.exp().cumsum(0)).mean()


def growth(net: Net, x: torch.Tensor, ids: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """A curve for each sample, at as many times as there are samples."""
    times = net.levels * net.weight.exp().sum()
    return ((net.head(x) * times - torch.randn(len(x), len(net.levels))) ** 2).mean()


def quantiles(net: Net, x: torch.Tensor, ids: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    error = y[:, None] - (net.head(x) + net.levels * net.weight.sum())
    return torch.maximum(net.levels * error, (net.levels - 1) * error).mean()


def diagonal(net: Net, x: torch.Tensor, ids: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return squared((net.user_bias(ids) + net.affinity(ids)).diagonal(), y)


def picked(net: Net, x: torch.Tensor, ids: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    pairs = net.user_bias(ids) + net.affinity(ids)
    return pairs[~torch.eye(len(x), dtype=torch.bool)].mean()


def advantages(net: Net, x: torch.Tensor, ids: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Returns of each sample against a critic's values, in columns all."""
    value = net.head(x)
    gain = y[:, None] - value.detach()
    return -(gain * net.gate(x)).mean() + squared(value, y[:, None])


def reduced_by_rows(net: Net, x: torch.Tensor, ids: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (net.head(x) * net.affinity(ids)).logsumexp(1).mean()


def only_logged(net: Net, x: torch.Tensor, ids: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    spread = (net.user_bias(ids) + net.affinity(ids)).mean()
    spread.item()
    return squared(net.row(x), y)


HEALTHY: dict[str, Loss] = {
    "a kernel's discrepancy": discrepancy,
    "a ranking of pairs": ranking,
    "a ranking of pairs of a column": ranking_of_column,
    "scores of pairs in the batch": in_batch,
    "scores of pairs with a table of labels": in_batch_without_softmax,
    "contrastive similarity": contrastive,
    "a table of positions": positions,
    "scores of attention": attention,
    "sums that keep their axis": centred,
    "levels": thresholds,
    "times": growth,
    "quantiles": quantiles,
    "a diagonal": diagonal,
    "pairs that are picked": picked,
    "advantages": advantages,
    "rows that are reduced": reduced_by_rows,
    "a mean for a log": only_logged,
    "levels that are kept": lambda net, x, ids, y: F.softplus(LEVELS * net.row(x)).mean(),
    "levels that were picked": lambda net, x, ids, y: F.softplus(PICKED * net.row(x)).mean(),
    "levels that are drawn": lambda net, x, ids, y: F.softplus(torch.rand(len(x), 1) * net.row(x)).mean(),
    "frequencies of times": lambda net, x, ids, y: torch.sin(DATA[ids] * net.steps.exp()).mean(),
    "pairwise distances": lambda net, x, ids, y: torch.cdist(net.body(x), net.body(x)).mean(),
    "a new axis": lambda net, x, ids, y: (net.row(x)[:, None] + net.affinity(ids)).mean(),
    "a view": lambda net, x, ids, y: (net.row(x).view(-1, 1) * net.affinity(ids)).abs().mean(),
    "an outer product": lambda net, x, ids, y: torch.outer(net.row(x), net.affinity(ids)).square().mean(),
    "an outer product by hand": lambda net, x, ids, y: (net.head(x) * net.gate(x).view(-1)).square().mean(),
    "squeezed": lambda net, x, ids, y: squared(net.user_bias(ids).squeeze(-1) + net.affinity(ids), y),
    "columns": lambda net, x, ids, y: squared(net.head(x) + net.affinity(ids).unsqueeze(-1), y.unsqueeze(-1)),
}


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize(("loss_of", "operations", "form"), SICK.values(), ids=SICK)
def test_a_column_that_meets_a_row(loss_of: Loss, operations: list[str], form: str) -> None:
    """The operations are told, with the form that is meant."""
    found = lines(trained(loss_of), fails=False)
    assert [(one.kind, one.operation) for one in found] == [("combined", one) for one in operations]
    assert all(one.says.endswith(f"a {form} is meant") for one in found)


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize("loss_of", HEALTHY.values(), ids=HEALTHY)
def test_what_is_meant_is_silent(loss_of: Loss) -> None:
    assert lines(trained(loss_of), fails=False) == ()


@pytest.mark.parametrize("batches", [(1, 1), (8, 8)], ids=["one sample", "as many as there are times"])
def test_sizes_that_agree_by_chance(batches: tuple[int, ...]) -> None:
    """A batch of one; and a row of 8 times beside batches of 8, once of 5."""

    def loss_of(net: Net, x: torch.Tensor, ids: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        times = torch.randn(8 if len(batches) == 3 else len(x), FEATURES)
        return (net.head(x) + net.row(times)).square().mean()

    batches = batches if batches[0] == 1 else (*batches, 5)
    assert lines(trained(loss_of, batches), fails=False) == ()
