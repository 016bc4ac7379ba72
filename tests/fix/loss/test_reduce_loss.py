"""A loss with one value a sample becomes one number where it is made."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.codemod import Context, find_codemod
from tests.fix.rewriting import diff_lines, failed, line_of, rewritten, write

RIGHT = {
    "reduced already": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
loss = net(x).mean()
opt.zero_grad()
loss.backward()
opt.step()
""",
        "loss.backward",
    ),
    "reduced by sum": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
loss = F.mse_loss(net(x), x[:, :2], reduction='none').sum()
opt.zero_grad()
loss.backward()
opt.step()
""",
        "loss.backward",
    ),
    "reduced at the call": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
loss = F.mse_loss(net(x), x[:, :2], reduction='none')
loss.mean().backward()
""",
        ".backward",
    ),
    "another line raised": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
loss = net(x)
print(loss)
loss.backward()
""",
        "print",
    ),
}
# Weights multiply these, or a whole sum is added, and nothing tells by what to divide.
UNTOLD = {
    "a mask of tokens": """
def step(model, batch):
    loss = F.cross_entropy(model(batch["x"]).mT, batch["y"], reduction="none") * batch["mask"]
    loss.backward()
""",
    "a mask put on later": """
def step(model, batch, mask):
    loss = F.cross_entropy(model(batch["x"]), batch["y"], reduction="none")
    loss *= mask
    loss.backward()
""",
    "a masked fill": """
def step(model, batch, mask):
    loss = F.mse_loss(model(batch["x"]), batch["y"], reduction="none").masked_fill(mask, 0)
    loss.backward()
""",
    "labels that are left out": """
def step(model, batch):
    loss = F.cross_entropy(model(batch["x"]), batch["y"], reduction="none", ignore_index=0)
    loss.backward()
""",
    "a whole sum that is added": """
class Net(nn.Module):
    def kl(self):
        return 0.5 * (self.mu ** 2 - 1).sum()
def objective(net, x, y):
    return (net(x) - y) ** 2 + net.kl()
def step(batch):
    net = Net()
    loss = objective(net, batch["x"], batch["y"])
    loss.backward()
""",
    "a penalty on weights": """
def penalty(values):
    return 0.5 * values.pow(2)
def step(batch):
    scale = nn.Parameter(torch.ones(3))
    loss = penalty(scale)
    loss.backward()
""",
    "an importance weight in a method": """
class Learner:
    def errors(self, batch, weights):
        return weights * F.smooth_l1_loss(self.online(batch.x), batch.goal, reduction="none"), batch.goal
    def learn(self, batch, weights):
        loss, goal = self.errors(batch, weights)
        loss.backward()
""",
    "weights of a row": """
def step(model, batch, scores):
    loss = torch.softmax(scores, dim=-1) * (model(batch["x"]) - batch["y"]).pow(2)
    loss.backward()
""",
    "a weight of a row spread over its tokens": """
def step(model, batch, w):
    w = w / w.sum()
    loss = w.unsqueeze(1) * (model(batch["x"]) - batch["y"]).pow(2)
    loss.backward()
""",
    "weights over their largest": """
def step(model, batch, w):
    loss = (w / w.max()) * F.mse_loss(model(batch["x"]), batch["y"], reduction="none")
    loss.backward()
""",
    "weights of mean 1 over their largest": """
def step(model, batch, w):
    w = w / w.mean()
    loss = (w / w.max()) * F.mse_loss(model(batch["x"]), batch["y"], reduction="none")
    loss.backward()
""",
    "a mask beside weights that add up to 1": """
def step(model, batch, w):
    w = w / w.sum()
    loss = w * batch["mask"] * F.mse_loss(model(batch["x"]), batch["y"], reduction="none")
    loss.backward()
""",
    "a sum that is added up over batches": """
def masked(model, batch):
    return F.mse_loss(model(batch["x"]), batch["y"], reduction="none") * batch["mask"]
def step(model, batch):
    loss = masked(model, batch)
    loss.backward()
def evaluate(model, loader):
    total = 0.0
    for batch in loader:
        total += masked(model, batch).sum().item()
    return total
""",
    "a sum that its caller divides": """
def masked(model, batch):
    return F.mse_loss(model(batch["x"]), batch["y"], reduction="none") * batch["mask"]
def step(model, batch):
    loss = masked(model, batch)
    loss.backward()
def error(model, batch):
    return masked(model, batch).sum().item()
def evaluate(model, batch):
    return error(model, batch) / len(batch)
""",
    "an evaluation without the weights": """
def step(model, batch):
    loss = F.mse_loss(model(batch["x"]), batch["y"], reduction="none") * batch["weight"]
    loss.backward()
def evaluate(model, batch):
    return F.mse_loss(model(batch["x"]), batch["y"], reduction="none").mean().item()
""",
    "weights and a report that contradict": """
def step(model, batch, w):
    w = w / w.sum()
    loss = w * F.mse_loss(model(batch["x"]), batch["y"], reduction="none")
    loss.backward()
    return loss.mean().item()
""",
    "a report of another loss of the same name": """
def step(model, batch, w):
    loss = F.mse_loss(model(batch["y"]), batch["y"], reduction="none")
    print(loss.mean().item())
    loss = w * F.mse_loss(model(batch["x"]), batch["y"], reduction="none")
    loss.backward()
""",
    "divided by their number once": """
def step(model, batch):
    loss = F.mse_loss(model(batch["x"]), batch["y"], reduction="none") / len(batch["y"])
    loss.backward()
""",
    "a log-likelihood times an advantage": """
def step(policy, batch):
    loss = -policy(batch["x"]).log_prob(batch["a"]) * batch["advantage"]
    loss.backward()
""",
}
# Something tells: the function that is put behind the loss.
TOLD = {
    "weights divided by their sum": (
        """
def step(model, batch, w):
    w = w / w.sum()
    loss = F.mse_loss(model(batch["x"]), batch["y"], reduction="none") * w
    loss.backward()
""",
        ".sum()",
    ),
    "weights divided in place, in a method": (
        """
class Study:
    def weigh(self, p):
        w = 1 / p.clamp(min=0.05)
        w /= w.sum()
        return w.detach()
    def errors(self, batch):
        return F.huber_loss(self.net(batch.x), batch.y, reduction="none") * self.weigh(batch.p)
    def step(self, batch):
        loss = self.errors(batch)
        loss.backward()
""",
        ".sum()",
    ),
    "weights of a callable object": (
        """
class Weights:
    def __call__(self, p):
        total = p.sum() + 1e-8
        return p / total
def step(model, batch, weigh=Weights()):
    loss = weigh(batch["p"]) * (model(batch["x"]) - batch["y"]).abs()
    loss.backward()
step(model, batch, Weights())
""",
        ".sum()",
    ),
    "weights of a softmax over the batch": (
        """
def step(model, batch, scores):
    loss = torch.softmax(scores, dim=0) * (model(batch["x"]) - batch["y"]).pow(2)
    loss.backward()
""",
        ".sum()",
    ),
    "a mask divided by its sum afterwards": (
        """
def step(model, batch, mask):
    loss = F.cross_entropy(model(batch["x"]), batch["y"], reduction="none")
    loss = loss * mask / mask.sum().clamp(min=1)
    loss.backward()
""",
        ".sum()",
    ),
    "weights of mean 1": (
        """
def step(model, batch, w):
    w = w * len(w) / w.sum()
    loss = w * F.mse_loss(model(batch["x"]), batch["y"], reduction="none")
    loss.backward()
""",
        ".mean()",
    ),
    "weights that correct a draw by priority": (
        """
class Replay:
    def sample(self, n, beta):
        w = (self.size * self.p[index]) ** -beta
        return index, torch.as_tensor(w / w.max()), self.rows[index]
def learn(model, replay: Replay):
    index, weights, batch = Replay().sample(32, 0.4)
    loss = weights * F.smooth_l1_loss(model(batch), batch, reduction="none")
    loss.backward()
""",
        ".mean()",
    ),
    "an evaluation of the same function": (
        """
def masked(model, batch):
    return F.mse_loss(model(batch["x"]), batch["y"], reduction="none") * batch["mask"]
def step(model, batch):
    loss = masked(model, batch)
    loss.backward()
def evaluate(model, batch):
    error = masked(model, batch)
    return error.sum().item()
""",
        ".sum()",
    ),
    "an evaluation of the same expression": (
        """
def step(model, batch):
    loss = F.mse_loss(model(batch["x"]), batch["y"], reduction="none") * batch["w"]
    loss.backward()
def evaluate(model, batch):
    return torch.mean(batch["w"] * F.mse_loss(model(batch["x"]), batch["y"], reduction="none")).item()
""",
        ".mean()",
    ),
    "a report of the loss itself": (
        """
def step(model, batch, w):
    loss = w * F.mse_loss(model(batch["x"]), batch["y"], reduction="none")
    loss.backward()
    return loss.detach().mean().item()
""",
        ".mean()",
    ),
    "the first of two passes": (
        """
def step(model, batch, optimizer):
    criterion = nn.CrossEntropyLoss(reduction="none")
    criterion(model(batch["x"]), batch["y"]).sum().backward()
    optimizer.perturb()
    loss = criterion(model(batch["x"]), batch["y"])
    loss.backward()
""",
        ".sum()",
    ),
    "a number for a weight": (
        """
class Trainer:
    def __init__(self, model, alpha=0.5):
        self.model, self.alpha, self.criterion = model, alpha, nn.MSELoss(reduction="none")
    def step(self, batch, cfg):
        loss = self.alpha * self.criterion(self.model(batch.x), batch.y) * cfg["scale"]
        loss.backward()
""",
        ".mean()",
    ),
    "plain losses that are added up over batches": (
        """
class Trainer:
    def step(self, batch):
        loss = F.mse_loss(self.model(batch.x), batch.y, reduction="none")
        loss.backward()
    def evaluate(self, loader):
        total = 0.0
        for batch in loader:
            total += F.mse_loss(self.model(batch.x), batch.y, reduction="none").sum().item()
        return total / len(loader)
""",
        ".mean()",
    ),
}
IMPORTS = """import torch
from torch import nn
from torch.nn import functional as F
"""
WRONG = {
    "a criterion that does not reduce": (
        """import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.CrossEntropyLoss(reduction="none")
inputs, labels = torch.rand(8, 4), torch.randint(3, (8,))
loss = criterion(model(inputs), labels)
optimizer.zero_grad()
loss.backward()
optimizer.step()
""",
        "loss.backward()",
        ["-loss = criterion(model(inputs), labels)", "+loss = criterion(model(inputs), labels).mean()"],
    ),
    "an expression": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
loss = (net(x) - 1) ** 2
opt.zero_grad()
loss.backward()
opt.step()
""",
        "loss.backward",
        ["-loss = (net(x) - 1) ** 2", "+loss = ((net(x) - 1) ** 2).mean()"],
    ),
    "backward on the call itself": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
F.cross_entropy(net(x), y, reduction='none').backward()
""",
        ".backward",
        [
            "-F.cross_entropy(net(x), y, reduction='none').backward()",
            "+F.cross_entropy(net(x), y, reduction='none').mean().backward()",
        ],
    ),
    "values that others read": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
loss = F.cross_entropy(net(x), y, reduction='none')
hardest = loss.max()
loss.backward()
""",
        "loss.backward",
        ["-loss.backward()", "+loss.mean().backward()"],
    ),
    "an accelerator": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
loss = criterion(net(x))
accelerator.backward(loss)
""",
        "accelerator.backward",
        ["-loss = criterion(net(x))", "+loss = criterion(net(x)).mean()"],
    ),
    "torch.func.grad": (
        """import torch
from torch import nn
from torch.func import functional_call, grad

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
inputs, target = torch.rand(8, 4), torch.rand(8, 1)


def loss(parameters):
    return (functional_call(model, parameters, (inputs,)) - target).pow(2)


gradients = grad(loss)(dict(model.named_parameters()))
for name, parameter in model.named_parameters():
    parameter.grad = gradients[name]
optimizer.step()
""",
        "gradients = grad",
        [
            "-    return (functional_call(model, parameters, (inputs,)) - target).pow(2)",
            "+    return (functional_call(model, parameters, (inputs,)) - target).pow(2).mean()",
        ],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(source: str, at: str | None, tmp_path: pathlib.Path) -> None:
    """Nothing is proposed where the fault is not."""
    assert rewritten(tmp_path, "reduce_loss", source, at) == source


@pytest.mark.parametrize(("source", "at", "changes"), WRONG.values(), ids=WRONG)
def test_wrong_programs_are_mended(source: str, at: str | None, changes: list[str], tmp_path: pathlib.Path) -> None:
    """The best edit changes these lines; a second time nothing is left to do."""
    after = rewritten(tmp_path, "reduce_loss", source, at)
    assert diff_lines(source, after) == changes
    still = at if at and at in after else None
    assert rewritten(tmp_path, "reduce_loss", after, still) == after


@pytest.mark.parametrize("source", UNTOLD.values(), ids=UNTOLD)
def test_weights_that_tell_nothing_get_the_line_only(source: str, tmp_path: pathlib.Path) -> None:
    """Where weights multiply the loss and nothing says by what to divide, the line is named and no edit proposed."""
    program = write(tmp_path, {"train.py": IMPORTS + source})
    incident = failed({"train.py": line_of(IMPORTS + source, "loss.backward")})
    found = list(find_codemod("reduce_loss")(Context(program=program, incident=incident)))
    assert [one.edits for one in found] == [()]
    assert "loss" in (found[0].culprit.code or "")


SUM_OF_TERMS = """def step(net, batch, args):
    data = (net(batch.x) - batch.y).pow(2)
    prior = net.prior()
    loss = args.weight * data + prior + 0.1 * net.boundary()
    loss.backward()
    print(data.item())
"""
ITEMS_OF_A_TERM = SUM_OF_TERMS.replace("data.item()", "data[0].item()")
COLUMN, NUMBER = "[40, 1] float32", "[] float32"


def test_the_term_with_several_values_is_reduced(tmp_path: pathlib.Path) -> None:
    """Where the live program shows which term of the sum it is, and what reads it can do with one number."""
    given = {"tensors": {"data": COLUMN, "prior": NUMBER}}
    after = rewritten(tmp_path, "reduce_loss", IMPORTS + SUM_OF_TERMS, "loss.backward()", **given)
    assert diff_lines(IMPORTS + SUM_OF_TERMS, after)[1] == "+    data = (net(batch.x) - batch.y).pow(2).mean()"
    whole = "+    loss = (args.weight * data + prior + 0.1 * net.boundary()).mean()"
    for source, tensors in (
        (ITEMS_OF_A_TERM, given["tensors"]),
        (SUM_OF_TERMS, {"data": COLUMN, "prior": COLUMN}),
        (SUM_OF_TERMS, {}),
    ):
        after = rewritten(tmp_path, "reduce_loss", IMPORTS + source, "loss.backward()", tensors=tensors)
        assert diff_lines(IMPORTS + source, after)[1] == whole


def test_the_term_of_an_unreduced_criterion_is_reduced(tmp_path: pathlib.Path) -> None:
    """The criterion's own words tell without a live program."""
    source = IMPORTS + SUM_OF_TERMS.replace(
        "(net(batch.x) - batch.y).pow(2)", 'F.mse_loss(net(batch.x), batch.y, reduction="none")'
    )
    after = rewritten(tmp_path, "reduce_loss", source, "loss.backward()")
    assert diff_lines(source, after)[1].endswith('reduction="none").mean()')


@pytest.mark.parametrize(("source", "method"), TOLD.values(), ids=TOLD)
def test_the_program_says_how_to_reduce(source: str, method: str, tmp_path: pathlib.Path) -> None:
    """The loss is summed or averaged as its weights, or its other uses, say."""
    after = rewritten(tmp_path, "reduce_loss", IMPORTS + source, "loss.backward()")
    removed, added = diff_lines(IMPORTS + source, after)
    assert added.endswith(method)
    assert added.replace("(", "").replace(")", "")[1:] == (removed + method).replace("(", "").replace(")", "")[1:]


READ_AS_NUMBER = """def step(net, batch, optimizer):
    loss = F.mse_loss(net(batch.x), batch.y, reduction="none")
    print(loss.item())
    loss.backward()
"""
TRAINER = """class Weighted(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False):
        outputs = model(**inputs)
        loss = F.cross_entropy(outputs.logits, inputs["labels"], {weight}reduction="none")
        self.latest = loss.item()
        return (loss, outputs) if return_outputs else loss

    def training_step(self, *args, **kwargs):
        loss = super().training_step(*args, **kwargs)
        return loss
"""


def test_a_loss_that_is_made_a_number_before_its_backward(tmp_path: pathlib.Path) -> None:
    """`loss.item()` fails first; a value that is no loss is another matter."""
    source = IMPORTS + READ_AS_NUMBER
    after = rewritten(tmp_path, "reduce_loss", source, "loss.item()")
    assert diff_lines(source, after)[1].endswith('reduction="none").mean()')
    other = source.replace("print(loss.item())", "print(batch.y.item())")
    assert rewritten(tmp_path, "reduce_loss", other, "batch.y.item()") == other


@pytest.mark.parametrize("at", ["loss.item()", "super().training_step"])
def test_what_a_trainer_is_handed(at: str, tmp_path: pathlib.Path) -> None:
    """The loss of `compute_loss`; with weights of its own the criterion's mean, which divides by them."""
    source = IMPORTS + TRAINER.format(weight="")
    after = rewritten(tmp_path, "reduce_loss", source, at)
    assert diff_lines(source, after)[1].endswith('reduction="none").mean()')
    source = IMPORTS + TRAINER.format(weight="weight=self.weights, ")
    after = rewritten(tmp_path, "reduce_loss", source, at)
    assert diff_lines(source, after)[1].endswith('weight=self.weights, reduction="mean")')


MODEL = """class Regressor(nn.Module):
    def forward(self, x, labels=None):
        loss = (self.line(x) - labels).square()
        return RETURNED


Trainer(model=Regressor(), args=arguments, train_dataset=rows).train()
"""


@pytest.mark.parametrize("returned", ['{"loss": loss, "logits": x}', "Output(loss=loss, logits=x)"])
def test_what_a_model_gives_a_trainer(returned: str, tmp_path: pathlib.Path) -> None:
    """The loss in the answer of its forward; not where several models give one."""
    source = IMPORTS + MODEL.replace("RETURNED", returned)
    after = rewritten(tmp_path, "reduce_loss", source, ".train()")
    assert diff_lines(source, after)[1] == "+        loss = (self.line(x) - labels).square().mean()"
    several = source.replace("Trainer(", source.partition("\n\n\n")[0].replace("Regressor", "Other") + "\n\n\nTrainer(")
    assert rewritten(tmp_path, "reduce_loss", several, ".train()") == several


def test_names_that_are_made_of_each_other_end(tmp_path: pathlib.Path) -> None:
    """`a` of `b` and `b` of `a`: the search for what is differentiated comes to an end."""
    source = IMPORTS + "def step(a, b):\n    a = f(b)\n    b = g(a)\n    return h(a, b)\n"
    assert rewritten(tmp_path, "reduce_loss", source, "return h") == source
