"""A number or None stands where a loss should be: the exception that the program caught for it is told, where the source shows it."""

from __future__ import annotations

import json
import pathlib

import pytest

from explainer.model.incident import ExceptionRecord, Frame, Incident
from explainer.model.verification import Failure, ProcessReport
from explainer.verification.left_over import caught_instead
from tests import forked
from tests.fix.rewriting import line_of
from tests.verification.programs import gradfix

HEAD = """import torch
net = torch.nn.Linear(3, 4)
def adapt(x):
    loss = net(x).mean()
    return torch.autograd.grad(loss, net.parameters(), create_graph=True)
"""
UNSURE = {
    "the caught one has nothing to do with the loss": "loss = net(x).mean().item()\ntry:\n    slope = adapt(x)  # fails\nexcept RuntimeError:\n    slope = None\nloss.backward()\n",
    "the loss was made before what failed": "try:\n    loss = net(x).mean().item()\n    slope = adapt(x)  # fails\nexcept RuntimeError:\n    slope = None\nloss.backward()\n",
    "a number also where nothing fails": "total = 0\nfor x in xs:\n    try:\n        total += sum(adapt(x)).item()  # fails\n    except RuntimeError:\n        continue\ntotal.backward()\n",
    "a number by a name": "total = 0\nfor x in xs:\n    try:\n        g = sum(adapt(x))  # fails\n        value = g.item()\n        total += value\n    except RuntimeError:\n        continue\ntotal.backward()\n",
    "a fallback that trains": "try:\n    loss = sum(adapt(x))  # fails\nexcept RuntimeError:\n    net(x).mean().backward()\n    loss = None\nloss.backward()\n",
    "no handler": "loss = sum(adapt(x))  # fails\nloss.backward()\n",
    "another exception": "try:\n    loss = sum(adapt(x))  # fails\nexcept KeyError:\n    loss = None\nloss.backward()\n",
    "a function that the loss does not come from": "def probe(x):\n    try:\n        return sum(adapt(x))  # fails\n    except RuntimeError:\n        return 0.0\nseen = probe(x)\nloss = float(net(x).mean())\nloss.backward()\n",
    "a handler that raises": "try:\n    loss = sum(adapt(x))  # fails\nexcept RuntimeError as error:\n    raise ValueError('no') from error\nloss.backward()\n",
}  # fmt: skip
SURE = {
    "a list that stays empty": "def step(xs):\n    losses = []\n    for x in xs:\n        try:\n            losses.append(sum(adapt(x)))  # fails\n        except RuntimeError:\n            continue\n    loss = sum(losses) / len(xs)\n    loss.backward()\n",
    "a generator": "def losses(xs):\n    for x in xs:\n        try:\n            loss = sum(adapt(x))  # fails\n            if torch.isfinite(loss):\n                yield loss\n        except RuntimeError:\n            pass\ndef step(xs):\n    found = list(losses(xs))\n    (sum(found) / len(xs)).backward()\n",
    "a total": "total = 0\nfor x in xs:\n    try:\n        total += sum(adapt(x))  # fails\n    except Exception as error:\n        print(error)\ntotal.backward()\n",
    "None": "loss = None\ntry:\n    loss = sum(adapt(x))  # fails\nexcept (RuntimeError, ValueError):\n    pass\nloss.backward()\n",
    "a cast, and a list without None": "def part(x):\n    try:\n        g = sum(adapt(x))  # fails\n        return g.float().mean()\n    except RuntimeError:\n        return None\ndef step(xs):\n    losses = [loss for x in xs if (loss := part(x)) is not None]\n    total = sum(losses) / len(xs)\n    total.backward()\n",
    "a method that returns zero": "class Run:\n    def penalty(self, x):\n        try:\n            g = adapt(x)  # fails\n            return sum(g)\n        except RuntimeError:\n            return 0.0\n    def step(self, x):\n        loss = self.penalty(x)\n        loss.backward()\n",
}  # fmt: skip
CAUGHT = "The differentiated Tensor at index 6 appears to not have been used in the graph"
SAID = "'float' object has no attribute 'backward'"


def told(folder: pathlib.Path, body: str, said: str = SAID, earlier: int = 0) -> list[str]:
    """The messages of what was caught; the program failed at its last `.backward()`, some steps after that."""
    source = HEAD + body
    path = folder / "train.py"
    path.write_text(source)
    at, end = line_of(source, "# fails"), source.count("\n")
    text = f'Traceback (most recent call last):\n  File "{path}", line {at}, in step\n    {source.splitlines()[at - 1].strip()}\nRuntimeError: {CAUGHT}\n'
    caught = Failure(type="RuntimeError", message=CAUGHT, where="raised", text=text, steps=(("0 SGD", 3 - earlier),))
    failed = Failure(type="AttributeError", message=said, where="uncaught", text=said, steps=(("0 SGD", 3),))
    record = ExceptionRecord(type="AttributeError", message=said, frames=(Frame(file=str(path), line=end),))
    process = ProcessReport(pid=1, failures=(caught, failed))
    found = caught_instead(Incident(exceptions=(record,)), [process], str(folder))
    return [one.message for one in found]


@pytest.mark.parametrize("body", UNSURE.values(), ids=UNSURE)
def test_what_may_have_another_cause(tmp_path: pathlib.Path, body: str) -> None:
    """A value that the `try` would not have made, or would have made a number, is told by itself."""
    assert told(tmp_path, body) == []


@pytest.mark.parametrize(
    ("said", "earlier"), [("'Tensor' object has no attribute 'backwards'", 0), (SAID, 1)], ids=["a typo", "a step ago"]
)
def test_another_failure(tmp_path: pathlib.Path, said: str, earlier: int) -> None:
    """What was caught in an earlier step, or before another message, is not told."""
    assert told(tmp_path, SURE["a total"], said, earlier) == []


@pytest.mark.parametrize("body", SURE.values(), ids=SURE)
def test_a_loss_that_was_left_out(tmp_path: pathlib.Path, body: str) -> None:
    """What was caught is why there is no loss."""
    assert told(tmp_path, body) == [CAUGHT]


SECOND = "Trying to backward through the graph a second time (or directly access saved tensors after they have already been freed)."
FIRST = "one of the variables needed for gradient computation has been modified by an inplace operation"


def tried(folder: pathlib.Path, line: int, step: int) -> list[str]:
    """What is told for a second attempt at line 3 in step 3, of a first one at some line and step."""

    def failure(message: str, at: int, count: int) -> Failure:
        text = f'Traceback (most recent call last):\n  File "{folder}/train.py", line {at}, in back\n    loss.backward()\nRuntimeError: {message}\n'
        return Failure(type="RuntimeError", message=message, where="raised", text=text, steps=(("0 SGD", count),))

    process = ProcessReport(pid=1, failures=(failure(FIRST, line, step), failure(SECOND, 3, 3), failure(SECOND, 3, 3)))
    record = ExceptionRecord(type="RuntimeError", message=f"gave up after 3 attempts: {SECOND}")
    return [one.message for one in caught_instead(Incident(exceptions=(record,)), [process], str(folder))]


@pytest.mark.parametrize(
    ("line", "step", "wanted"),
    [(3, 3, [FIRST]), (4, 3, []), (3, 2, [])],
    ids=["tried again", "another line", "a step ago"],
)
def test_a_backward_that_is_tried_again(tmp_path: pathlib.Path, line: int, step: int, wanted: list[str]) -> None:
    """What the first attempt raised is why the graph is used up."""
    assert tried(tmp_path, line, step) == wanted


KEEPER = """import copy
class Keeper:
    def __init__(self):
        self.model = None
    def offer(self, model):
        try:
            BODY
        except RuntimeError as error:
            print(error)
best = Keeper()
best.offer(net)
best.model.eval()
"""
COPIED = "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol"


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("self.model = copy.deepcopy(model)  # fails", [COPIED]),
        ("self.model = model\n            copy.deepcopy(model)  # fails", []),
        ("self.other = copy.deepcopy(model)  # fails", []),
        ("self.model = copy.deepcopy(model).score().item()  # fails", []),
    ],
    ids=["what is missing", "made before", "another attribute", "a number"],
)
def test_an_object_that_was_never_kept(tmp_path: pathlib.Path, body: str, wanted: list[str]) -> None:
    """None stands where the `try` would have kept the copy, however long ago that failed."""
    path, source = tmp_path / "train.py", KEEPER.replace("BODY", body)
    path.write_text(source)
    at, said = line_of(source, "# fails"), "'NoneType' object has no attribute 'eval'"
    text = (
        f'Traceback (most recent call last):\n  File "{path}", line {at}, in offer\n    copy\nRuntimeError: {COPIED}\n'
    )
    caught = Failure(type="RuntimeError", message=COPIED, where="raised", text=text, steps=(("0 SGD", 1),))
    failed = Failure(type="AttributeError", message=said, where="uncaught", text=said, steps=(("0 SGD", 3),))
    last = line_of(source, "best.model.eval()")
    record = ExceptionRecord(type="AttributeError", message=said, frames=(Frame(file=str(path), line=last),))
    process = ProcessReport(pid=1, failures=(caught, failed))
    found = caught_instead(Incident(exceptions=(record,)), [process], str(tmp_path))
    assert [one.message for one in found] == wanted


BELOW = """import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(6, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def part(x):
    try:
        out = torch.zeros(5, 3)
        out[torch.arange(4)] = model(x[:4]).double()
        return out.square().mean()
    except RuntimeError:
        return None


for batch in torch.randn(4, 2, 5, 6):
    losses = [loss for x in batch if (loss := part(x)) is not None]
    total = sum(losses) / 2
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
"""


@pytest.mark.torch
def test_what_torch_raises_below_the_program_is_traced(tmp_path: pathlib.Path) -> None:
    """An operation that fails in C++ raises at no line of Python: a trace notes it, and it is explained and mended."""
    pytest.importorskip("torch")
    (tmp_path / "train.py").write_text(BELOW)
    done = gradfix(tmp_path, "run", "--fix", "--unsafe-fixes", "--format", "json", "--no-probe", "--", forked.python(), "train.py")  # fmt: skip
    told = json.loads(done.stdout)
    assert (told["status"], told["report"]["findings"][0]["cause"]) == ("verified", "precision/dtype-mismatch")


ADAPTED = """import torch
from peft import LoraConfig, get_peft_model
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.value = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        return self.value(self.query(x))


def adapt(net):
    net.requires_grad_(False)
    try:
        return get_peft_model(net, LoraConfig(target_modules=["query_proj", "value_proj"]))
    except ValueError:
        return net


model = adapt(Net())
optimizer = torch.optim.SGD(PARAMETERS, lr=0.1)
for x in torch.randn(3, 5, 4):
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()
"""


@pytest.mark.torch
@pytest.mark.parametrize("given", ["[p for p in model.parameters() if p.requires_grad]", "model.parameters()"])
def test_adapters_that_a_program_goes_on_without(tmp_path: pathlib.Path, given: str) -> None:
    """An empty optimizer, or a loss without a graph, is told by what peft refused; its error is a kind of the ValueError caught."""
    pytest.importorskip("peft")
    (tmp_path / "train.py").write_text(ADAPTED.replace("PARAMETERS", given))
    done = gradfix(tmp_path, "run", "--fix", "--unsafe-fixes", "--format", "json", "--no-probe", "--", forked.python(), "train.py")  # fmt: skip
    told = json.loads(done.stdout)
    assert (told["status"], told["report"]["findings"][0]["cause"]) == ("verified", "peft/target-modules-not-found")
