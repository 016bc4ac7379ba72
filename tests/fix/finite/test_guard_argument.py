"""Arguments of roots, logarithms, quotients and powers are kept away from where the derivative is infinite."""

from __future__ import annotations

from dataclasses import replace

import pytest

from explainer.fix.splice import splice
from explainer.model.incident import Fact
from explainer.model.trace import NOT_FINITE, TracedLine
from explainer.verification.live_report import TRACED
from explainer.verification.traced import with_trace
from tests.fix.rewriting import best, changed_lines, failed, line_of, rewritten, write

HEAD = """import math
import torch
import torch.nn.functional as F
from torch import nn
EPS = 1e-8
net = nn.Linear(4, 4)
x, y = torch.randn(8, 4), torch.randn(8, 4)
out = net(x)
"""
ALL = {"kinds": ["root", "log", "quotient", "power", "arc"]}

RIGHT = {
    "an epsilon inside the root": "loss = ((out - y) ** 2).sum(-1).add(1e-12).sqrt().mean() + torch.sqrt(out.pow(2) + 1e-6).mean()",
    "a clamped argument": "loss = torch.log(out.sigmoid().clamp(min=1e-7)).mean()",
    "a clamp to a named bound": "loss = torch.log(out.sigmoid().clamp(min=EPS)).mean()",
    "an epsilon by name": "loss = (out / (out.norm() + EPS)).mean()",
    "a square root of a size": "loss = (out @ y.T / math.sqrt(out.shape[-1])).mean() / len(x)",
    "a division by a temperature": "loss = (out / 0.07).logsumexp(-1).mean()",
    "a library norm, differentiated once": "loss = out.norm(dim=-1).mean()",
    "a logarithm of data": "loss = (out * torch.log(y.abs())).mean()",
    "a root under no_grad": "with torch.no_grad():\n    scale = (out - y).pow(2).sum().sqrt()\nloss = out.mean()",
    "a root of a detached value": "loss = out.mean() * out.detach().pow(2).sum().sqrt()",
    "a whole power": "loss = (out ** 3).mean()",
    "a denominator of unknown sign": "loss = (out / (out - y)).mean()",
    "a logarithm of what a mask lets through": "loss = torch.log(out[out > 0]).mean()",
    "a denominator that is an exponential plus one": "loss = (out / (1 + out.exp())).mean()",
    "a number's logarithm": "loss = out.mean() * math.log(10)",
    "normalize, which has its own epsilon": "loss = F.normalize(out, dim=-1).sum()",
}


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_right_arguments_stay(tmp_path, body: str) -> None:
    """What stays away from the bad place, or has no gradient, is left alone."""
    source = f"{HEAD}{body}\nloss.backward()\n"
    assert rewritten(tmp_path, "guard_argument", source, "loss.backward()", options=ALL) == source


WRONG = {
    "a difference by the name of a small number": (
        "delta = out - y\nloss = delta.pow(2).sum(-1).sqrt().mean()",
        "loss = delta.pow(2).sum(-1).clamp_min(1e-12).sqrt().mean()",
    ),
    "a distance": (
        "loss = ((out - y) ** 2).sum(-1).sqrt().mean()",
        "loss = ((out - y) ** 2).sum(-1).clamp_min(1e-12).sqrt().mean()",
    ),
    "a root of a mean squared error": (
        "loss = torch.sqrt(F.mse_loss(out, y))",
        "loss = torch.sqrt(F.mse_loss(out, y).clamp_min(1e-12))",
    ),
    "a root of a sum": ("loss = torch.sqrt(out + y).mean()", "loss = torch.sqrt((out + y).clamp_min(1e-12)).mean()"),
    "a logarithm of a probability": (
        "loss = -torch.log(out.relu()).mean()",
        "loss = -torch.log(out.relu().clamp_min(1e-8)).mean()",
    ),
    "a named argument": (
        "loss = torch.sqrt(input=F.mse_loss(out, y))",
        "loss = torch.sqrt(input=F.mse_loss(out, y).clamp_min(1e-12))",
    ),
    "a count of pairs but those on the diagonal": (
        "others = 1.0 - torch.eye(6)\npairs = (y[:, :1] > 0).float() * others\nloss = ((out.sum(1) * pairs).sum(1) / pairs.sum(1)).mean()",
        "loss = ((out.sum(1) * pairs).sum(1) / pairs.sum(1).clamp_min(1)).mean()",
    ),
    "a method": ("loss = out.relu().log().mean()", "loss = out.relu().clamp_min(1e-8).log().mean()"),
    "a clamp to exactly 0": (
        "loss = torch.log(out.clamp(min=0)).mean()",
        "loss = torch.log(out.clamp(min=0).clamp_min(1e-8)).mean()",
    ),
    "a norm as a denominator": ("loss = (out / out.norm()).sum()", "loss = (out / out.norm().clamp_min(1e-8)).sum()"),
    "a product of norms": (
        "loss = ((out * y).sum(-1) / (out.norm(dim=-1) * y.norm(dim=-1))).sum()",
        "loss = ((out * y).sum(-1) / (out.norm(dim=-1) * y.norm(dim=-1)).clamp_min(1e-8)).sum()",
    ),
    "a count of a mask": (
        "mask = (y > 0).float()\nloss = ((out * mask).sum(1) / mask.sum(1)).mean()",
        "loss = ((out * mask).sum(1) / mask.sum(1).clamp_min(1)).mean()",
    ),
    "an arc cosine": ("loss = torch.acos(out).mean()", "loss = torch.acos(out.clamp(-1 + 1e-6, 1 - 1e-6)).mean()"),
    "an arc cosine clamped to its edges": (
        "loss = torch.acos(out.clamp(-1, 1)).mean()",
        "loss = torch.acos(out.clamp(-1, 1).clamp(-1 + 1e-6, 1 - 1e-6)).mean()",
    ),
    "a fractional power": ("loss = (out.abs() ** 0.5).mean()", "loss = (out.abs().clamp_min(1e-6) ** 0.5).mean()"),
    "a generalised mean": (
        "p = nn.Parameter(torch.tensor(3.0))\nloss = out.pow(p).mean(-1).pow(1.0 / p).sum()",
        "loss = out.clamp_min(1e-6).pow(p).mean(-1).pow(1.0 / p).sum()",
    ),
    "a variance that is divided by too": (
        "var = out.relu()\nloss = (torch.log(var) + (y - out) ** 2 / var).mean()",
        "loss = (torch.log(var.clamp_min(1e-8)) + (y - out) ** 2 / var.clamp_min(1e-8)).mean()",
    ),
}


@pytest.mark.parametrize(("body", "wanted"), WRONG.values(), ids=WRONG)
def test_dangerous_arguments_are_guarded(tmp_path, body: str, wanted: str) -> None:
    """The argument, and nothing else, is guarded; a second time nothing is left to do."""
    source = f"{HEAD}{body}\nloss.backward()\n"
    after = rewritten(tmp_path, "guard_argument", source, "loss.backward()", options=ALL)
    assert wanted in changed_lines(source, after)
    assert rewritten(tmp_path, "guard_argument", after, "loss.backward()", options=ALL) == after


def test_follows_a_helper_of_another_file(tmp_path) -> None:
    """The root in a module's loss is found from the call in the training script; data that only pass through are not."""
    from tests.fix.rewriting import best, failed, write

    losses = "import torch\nfrom torch import nn\n\n\nclass Rmse(nn.Module):\n    def forward(self, a, b):\n        return (a - b).square().mean(-1).sqrt().mean()\n"
    train = "import torch\nfrom torch import nn\nfrom losses import Rmse\n\nmodel = nn.Linear(3, 3)\nrmse = Rmse()\nloss = rmse(model(torch.randn(2, 3)), torch.zeros(2, 3))\nloss.backward()\n"
    program = write(tmp_path, {"train.py": train, "losses.py": losses})
    found = best("guard_argument", program, incident=failed({"train.py": 8}), options=ALL)
    assert found is not None
    assert (found.culprit.file, found.culprit.line) == (str(tmp_path / "losses.py"), 7)


def test_second_derivative_of_a_norm(tmp_path) -> None:
    """A norm is written with an epsilon where the program differentiates twice."""
    body = "(g,) = torch.autograd.grad(out.norm(dim=-1, keepdim=True).sum(), [net.weight], create_graph=True)\nloss = g.pow(2).sum()"
    source = f"{HEAD}{body}\nloss.backward()\n"
    after = rewritten(tmp_path, "guard_argument", source, "loss.backward()", options={"kinds": ["norm"]})
    assert "(out.pow(2).sum(-1, keepdim=True) + 1e-12).sqrt()" in after


DATA = {
    "NumPy": ("import numpy as np\n", "a = np.random.randn(9, 4)", "np.maximum(sd, 1e-8)"),
    "torch": ("", "a = torch.randn(9, 4)", "sd.clamp_min(1e-8)"),
}


@pytest.mark.parametrize(("head", "made", "wanted"), DATA.values(), ids=DATA)
def test_deviation_of_data(tmp_path, head: str, made: str, wanted: str) -> None:
    """Data are divided by a deviation that is kept away from 0, as NumPy or torch writes it."""
    source = f"import torch\n{head}{made}\nmu, sd = a.mean(0), a.std(0)\nx = (a - mu) / sd\n"
    assert f"x = (a - mu) / {wanted}" in rewritten(tmp_path, "guard_argument", source, options={"kinds": ["deviation"]})


AVERAGED = """import torch
import torch.nn.functional as F
def balanced(losses, target, classes):
    member = F.one_hot(target, classes).float()
    per_class = losses @ member / member.sum(0)
    return per_class.mean()
"""


def test_an_empty_group_of_an_average_is_left_to_the_author(tmp_path) -> None:
    """Counted as 0 or left out: the two means differ. A mean that is divided once, or used as it is, has one meaning."""
    assert rewritten(tmp_path, "guard_argument", AVERAGED, options={"kinds": ["quotient"]}) == AVERAGED
    pooled = AVERAGED.replace("return per_class.mean()", "return per_class")
    assert rewritten(tmp_path, "guard_argument", pooled, options={"kinds": ["quotient"]}) != pooled
    masked = AVERAGED.replace("member.sum(0)", "member.sum()").replace("per_class.mean()", "per_class.sum()")
    assert rewritten(tmp_path, "guard_argument", masked, options={"kinds": ["quotient"]}) != masked


DEGREES = """import torch
def scatter_sum(values, index, size):
    return values.new_zeros(size, *values.shape[1:]).index_add(0, index, values)
def mean(x, source, target):
    total = scatter_sum(x[source], target, len(x))
    DEGREE
    return total / degree.unsqueeze(-1)
loss = mean(torch.randn(4, 3, requires_grad=True), torch.tensor([0, 1]), torch.tensor([1, 2])).sum()
loss.backward()
"""
COUNTED = [
    "degree = scatter_sum(x.new_ones(len(target)), target, len(x))",
    "degree = torch.zeros(len(x)).scatter_add(0, target, torch.ones(len(target)))",
    "degree = torch.zeros(len(x)); degree.index_add_(0, target, torch.ones(len(target)))",
]
NOT_COUNTED = [
    "degree = scatter_sum(x[:, 0], target, len(x))",
    "degree = torch.ones(len(x)).index_add(0, target, x[target, 0])",
    "degree = torch.zeros(len(x)); degree.index_add_(0, target, torch.ones(len(target))); degree.sub_(x[:, 0])",
]


@pytest.mark.torch
@pytest.mark.parametrize("degree", COUNTED)
def test_neighbours_that_are_counted(tmp_path, degree: str) -> None:
    """What is summed by index of ones is a count: a node without neighbours is divided by 1, and the gradient is finite."""
    torch = pytest.importorskip("torch")
    source = DEGREES.replace("DEGREE", degree)
    after = rewritten(tmp_path, "guard_argument", source, "loss.backward()", options={"kinds": ["quotient"]})
    assert changed_lines(source, after) == ["return total / degree.unsqueeze(-1).clamp_min(1)"]
    space: dict = {}
    exec(compile(after, "after", "exec"), space)  # noqa: S102
    assert torch.isfinite(space["loss"])


@pytest.mark.parametrize("degree", NOT_COUNTED)
def test_sums_of_unknown_sign_are_left_alone(tmp_path, degree: str) -> None:
    """A clamp would change what is below 0."""
    source = DEGREES.replace("DEGREE", degree)
    assert rewritten(tmp_path, "guard_argument", source, "loss.backward()", options={"kinds": ["quotient"]}) == source


NORMALISED = """import torch
def normalised(a):
    deg = a.sum(dim=1)
    d = POWER
    return d[:, None] * a * d[None, :]
edges = torch.tensor([[0, 1], [1, 0]])
a = torch.zeros(3, 3)
a[edges[0], edges[1]] = 1.0
net = torch.nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
loss = (normalised(a) @ net(torch.randn(3, 2))).pow(2).mean()
loss.backward()
opt.step()
"""


@pytest.mark.torch
@pytest.mark.parametrize(
    ("power", "wanted"),
    [
        ("deg.pow(-0.5)", "deg.pow(-0.5).masked_fill(deg == 0, 0)"),
        ("deg ** -0.5", "(deg ** -0.5).masked_fill(deg == 0, 0)"),
        ("torch.rsqrt(deg)", "torch.rsqrt(deg).masked_fill(deg == 0, 0)"),
        ("a.sum(1).pow(-0.5)", "d.masked_fill(d.isinf(), 0)"),
        ("a.sum(1).pow(-0.5).view(-1)", "a.sum(1).pow(-0.5).masked_fill(a.sum(1) == 0, 0).view(-1)"),
    ],
)
def test_a_degree_of_zero(tmp_path, power: str, wanted: str) -> None:
    """The power of 0 is 0, as the row that it scales; without a trace of it data are left alone."""
    torch = pytest.importorskip("torch")
    import gradfix

    source = NORMALISED.replace("POWER", power)
    (tmp_path / "train.py").write_text(source)
    with gradfix.trace(finite=True) as seen:
        exec(compile(source, str(tmp_path / "train.py"), "exec"), {})  # noqa: S102
    options = {"kinds": ["quotient", "inverse"]}
    incident = replace(failed({"train.py": line_of(source, "loss.backward()")}), traced=seen.lines)
    proposal = best("guard_argument", write(tmp_path, {"train.py": source}), incident=incident, options=options)
    assert proposal is not None
    after = splice(source, proposal.edits)
    assert changed_lines(source, after) == [f"d = {wanted}"]
    space: dict = {}
    exec(compile(after, "after", "exec"), space)  # noqa: S102
    assert torch.isfinite(space["loss"])
    assert rewritten(tmp_path, "guard_argument", source, "loss.backward()", options=options) == source


HIDDEN = """import torch
class Control:
    def norms(self):
        return torch.cat([link.weight.pow(2).sum(dim=1).sqrt() for link in self.links])
    def entropy(self):
        return -(self.probs * self.probs.log()).sum(-1)
"""


@pytest.mark.parametrize(
    ("kind", "words", "after"),
    [
        (
            "root",
            ".sqrt()",
            "return torch.cat([link.weight.pow(2).sum(dim=1).clamp_min(1e-12).sqrt() for link in self.links])",
        ),
        ("log", ".log()", "return -(self.probs * self.probs.clamp_min(1e-8).log()).sum(-1)"),
    ],
)
def test_a_traced_line_had_a_gradient(kind: str, words: str, after: str, tmp_path: pathlib.Path) -> None:
    """Whatever the source shows of it; where no node of autograd was traced it had none."""
    program = write(tmp_path, {"train.py": HIDDEN})
    line = TracedLine(
        kind=NOT_FINITE,
        operation="sqrt",
        file=str(tmp_path / "train.py"),
        line=line_of(HIDDEN, words),
        node="SqrtBackward0",
    )
    options = {"kinds": [kind]}
    found = best("guard_argument", program, incident=replace(failed(), traced=(line,)), options=options)
    assert found is not None
    assert changed_lines(HIDDEN, splice(HIDDEN, found.edits) or "") == [after]
    for traced in ((), (replace(line, node=None),)):
        assert best("guard_argument", program, incident=replace(failed(), traced=traced), options=options) is None


RAIN = """import torch
def lognormal(raw, amount):
    z = (amount.log() - raw[:, 0]) / raw[:, 1].exp()
    return 0.5 * z.square() + amount.log() + raw[:, 2].softmax(0).log()
NLL = {"lognormal": lognormal}
net = torch.nn.Linear(2, 3)
loss = NLL[family](net(x), rain).mean()
"""


@pytest.mark.parametrize("node", [None, "LogBackward0"])
def test_a_logarithm_that_was_seen_to_take_data_gets_no_floor(node: str | None, tmp_path: pathlib.Path) -> None:
    """The floor would decide the loss, everywhere in the function; that of a network's output would not."""
    program = write(tmp_path, {"train.py": RAIN})
    line = TracedLine(
        kind=NOT_FINITE, operation="log", file=str(tmp_path / "train.py"), line=line_of(RAIN, "z ="), function="lognormal",
        says="", node=node,
    )  # fmt: skip
    found = best("guard_argument", program, incident=replace(failed(), traced=(line,)), options={"kinds": ["log"]})
    after = splice(RAIN, found.edits) if found is not None else RAIN
    assert ("amount.clamp_min" in (after or "")) is (node is not None)


WEIGHTED = """import torch
def pooled(x, mask):
    m = CAST
    return (x * m).sum() / TOTAL
net = torch.nn.Linear(2, 2)
loss = pooled(net(torch.randn(3, 2)), torch.zeros(3, 2))
"""
WEIGHTS = {
    "a mask that is cast": ("mask.float()", "m.sum()", ["return (x * m).sum() / m.sum().clamp_min(1)"]),
    "one that is cast otherwise": ("mask.to(x.dtype)", "m.sum(-1)", ["return (x * m).sum() / m.sum(-1).clamp_min(1)"]),
    "weights of data": ("mask * 2", "m.sum()", ["return (x * m).sum() / m.sum().clamp_min(1e-8)"]),
    "the sum of something else": ("mask.float()", "x.sum()", []),
}


@pytest.mark.parametrize(("cast", "total", "after"), WEIGHTS.values(), ids=WEIGHTS)
def test_a_mean_by_weights(cast: str, total: str, after: list[str], tmp_path: pathlib.Path) -> None:
    """A quotient of finite values that a trace saw become NaN: of a mask that was cast it is divided by 1 at least."""
    source = WEIGHTED.replace("CAST", cast).replace("TOTAL", total)
    program = write(tmp_path, {"train.py": source})
    line = TracedLine(
        kind=NOT_FINITE,
        operation="div",
        file=str(tmp_path / "train.py"),
        line=line_of(source, " / "),
        node="DivBackward0",
    )
    fact = Fact(name="traced_nan_of_finite", value="div")
    for facts in ((fact,), ()):
        incident = replace(failed(), traced=(line,), facts=facts)
        found = best("guard_argument", program, incident=incident, options={"kinds": ["quotient"]})
        changes = changed_lines(source, splice(source, found.edits) or "") if found is not None else []
        assert changes == (after if facts else [])


COUNTED_BY_DATA = """import torch
def pooled(x, held):
    return (x * held).sum() / held.sum()
net = torch.nn.Linear(2, 1)
x = torch.randn(3, 2)
loss = pooled(net(x), torch.zeros(3, 1, dtype=torch.KIND))
if not torch.isfinite(loss):
    raise RuntimeError("the loss is not finite")
"""


@pytest.mark.torch
@pytest.mark.parametrize(("kind", "guard"), [("bool", "1"), ("int64", "1"), ("float32", "1e-8")])
def test_a_quotient_by_what_is_counted(kind: str, guard: str, tmp_path) -> None:
    """The trace tells whole numbers from others, which the source does not show."""
    pytest.importorskip("torch")
    import gradfix

    source = COUNTED_BY_DATA.replace("KIND", kind)
    program = write(tmp_path, {"train.py": source})
    with pytest.raises(RuntimeError, match="not finite") as raised, gradfix.trace(finite=True):
        exec(compile(source, str(tmp_path / "train.py"), "exec"), {})  # noqa: S102
    incident = with_trace(failed({"train.py": line_of(source, "raise")}), getattr(raised.value, TRACED))
    proposal = best("guard_argument", program, incident=incident, options={"kinds": ["quotient"]})
    assert proposal is not None
    after = splice(source, proposal.edits)
    assert changed_lines(source, after) == [f"return (x * held).sum() / held.sum().clamp_min({guard})"]
    exec(compile(after or "", "after", "exec"), {})  # noqa: S102


SHARES = """import torch
x = torch.ones(2, 3)
rows = torch.tensor(ROWS)
HEAD
part = QUOTIENT
loss = torch.nn.Linear(3, 1)(x @ torch.eye(3) * part).sum()
if not torch.isfinite(loss):
    raise RuntimeError("the loss is not finite")
"""
NONE, SIGNED = "[[1.0, 2.0, 1.0], [0.0, 0.0, 0.0]]", "[[1.0, -2.0, 0.5], [0.0, 0.0, 0.0]]"
SHARED = {
    "a row": (NONE, "", "rows / rows.sum(-1, keepdim=True)", "part = rows / rows.sum(-1, keepdim=True).clamp_min(1e-8)"),
    "by a name": (NONE, "total = torch.sum(rows, -1, keepdim=True)", "rows / total", "part = rows / total.clamp_min(1e-8)"),
    "some sums are negative": (SIGNED, "", "rows / rows.sum(-1, keepdim=True)", None),
    "the sum of something else": (NONE, "other = rows * 2", "rows / other.sum(-1, keepdim=True)", None),
}  # fmt: skip


@pytest.mark.torch
@pytest.mark.parametrize(("rows", "head", "quotient", "after"), SHARED.values(), ids=SHARED)
def test_the_share_of_each_in_a_row_of_data(rows: str, head: str, quotient: str, after: str | None, tmp_path) -> None:
    """What has nothing has no share; a sum that may be negative would be changed by a clamp."""
    pytest.importorskip("torch")
    import gradfix

    source = SHARES.replace("ROWS", rows).replace("HEAD", head).replace("QUOTIENT", quotient)
    program = write(tmp_path, {"train.py": source})
    with pytest.raises(RuntimeError, match="not finite") as raised, gradfix.trace(finite=True):
        exec(compile(source, str(tmp_path / "train.py"), "exec"), {})  # noqa: S102
    incident = with_trace(failed({"train.py": line_of(source, "raise")}), getattr(raised.value, TRACED))
    proposal = best("guard_argument", program, incident=incident, options={"kinds": ["quotient"]})
    changed = changed_lines(source, splice(source, proposal.edits) or "") if proposal is not None else []
    assert changed == ([after] if after else [])
    if proposal is not None:
        exec(compile(splice(source, proposal.edits) or "", "after", "exec"), {})  # noqa: S102


NORMS = """import torch
torch.manual_seed(0)
gain = torch.nn.Parameter(torch.ones(3))
x = torch.nn.Embedding(4, 3, padding_idx=0)(torch.tensor([[0, 1], [2, 3]]))


def norm(x):
    HEAD
    return OUT


loss = norm(x).sum()
if not torch.isfinite(loss):
    raise RuntimeError("the loss is not finite")
loss.backward()
assert gain.grad.isfinite().all()
"""
ROOTED = {
    "in one": (
        "", "gain * x / x.pow(2).mean(-1, keepdim=True).sqrt()",
        "return gain * x / x.pow(2).mean(-1, keepdim=True).clamp_min(1e-12).sqrt()",
    ),
    "by a name": (
        "rms = torch.sqrt((x * x).mean(-1, keepdim=True))", "gain * x / rms",
        "rms = torch.sqrt((x * x).mean(-1, keepdim=True).clamp_min(1e-12))",
    ),
}  # fmt: skip


@pytest.mark.torch
@pytest.mark.parametrize(("head", "out", "wanted"), ROOTED.values(), ids=ROOTED)
def test_a_quotient_by_a_root(head: str, out: str, wanted: str, tmp_path) -> None:
    """The floor stands below the root, whose slope at 0 is infinite as well."""
    pytest.importorskip("torch")
    source = NORMS.replace("HEAD", head or "pass").replace("OUT", out)
    after = rewritten(tmp_path, "guard_argument", source, options={"kinds": ["quotient"]})
    assert changed_lines(source, after) == [wanted]
    exec(compile(after, "after", "exec"), {})  # noqa: S102


SCORES = """import torch
torch.manual_seed(0)
scores = torch.nn.Linear(3, 4)(torch.randn(8, 3))
HEAD
loss = FUNCTION.square().mean()
if not torch.isfinite(loss):
    raise RuntimeError("the loss is not finite")
"""
OF_NEGATIVE = {
    "a logarithm": ("", "torch.log(scores)", []),
    "a root": ("", "scores.sqrt()", []),
    "a difference": (
        "scores = scores.square()", "(scores.mean(1) - 1.0).sqrt()", ["loss = (scores.mean(1) - 1.0).clamp_min(1e-12).sqrt().square().mean()"],
    ),
}  # fmt: skip


@pytest.mark.torch
@pytest.mark.parametrize(("head", "function", "wanted"), OF_NEGATIVE.values(), ids=OF_NEGATIVE)
def test_what_is_negative_gets_no_floor(head: str, function: str, wanted: list[str], tmp_path) -> None:
    """The trace saw NaN, which only a negative number gives: what was to be positive is not the edit's to say."""
    pytest.importorskip("torch")
    import gradfix

    source = SCORES.replace("HEAD", head).replace("FUNCTION", function)
    program = write(tmp_path, {"train.py": source})
    with pytest.raises(RuntimeError, match="not finite") as raised, gradfix.trace(finite=True):
        exec(compile(source, str(tmp_path / "train.py"), "exec"), {})  # noqa: S102
    incident = with_trace(failed({"train.py": line_of(source, "raise")}), getattr(raised.value, TRACED))
    proposal = best("guard_argument", program, incident=incident, options={"kinds": ["log", "root"]})
    changed = changed_lines(source, splice(source, proposal.edits) or "") if proposal is not None else []
    assert changed == wanted


SCALED = """import torch
net = torch.nn.Linear(3, 1)
rows = torch.tensor([[1.0, 2.0, 4.0], [3.0, 3.0, 3.0]])
unit = (rows[:, 1:] - rows[:, :-1]).abs().mean(1, keepdim=True)
loss = ((net(rows) - WANTED).abs() / unit).mean()
if not torch.isfinite(loss):
    raise RuntimeError("the loss is not finite")
"""


@pytest.mark.torch
def test_something_by_zero_gets_no_floor(tmp_path) -> None:
    """A floor would make it outweigh all the rest; what it weighs is a matter of the objective."""
    pytest.importorskip("torch")
    import gradfix

    for wanted, is_left in (("7.0", True), ("net(rows).detach()", False)):
        source = SCALED.replace("WANTED", wanted)
        program = write(tmp_path, {"train.py": source})
        with pytest.raises(RuntimeError, match="not finite") as raised, gradfix.trace(finite=True):
            exec(compile(source, str(tmp_path / "train.py"), "exec"), {})  # noqa: S102
        incident = with_trace(failed({"train.py": line_of(source, "raise")}), getattr(raised.value, TRACED))
        found = best("guard_argument", program, incident=incident, options={"kinds": ["quotient"]})
        assert found is not None
        assert (not found.edits) == is_left
