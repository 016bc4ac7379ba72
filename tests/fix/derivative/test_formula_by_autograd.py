"""A Function whose backward is wrong leaves its derivative to autograd, where its forward is differentiable operations alone."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from explainer.model.incident import ExceptionRecord, Incident, WarningRecord
from tests.fix.rewriting import best, diff_lines, failed, line_of, rewritten, write

MISMATCH = "Jacobian mismatch for output 0 with respect to input 1,\n"
SINGLE = (
    MISMATCH
    + "numerical:tensor([[0.6028, 0.0000],\n        [0.0000, 0.6079]])\nanalytical:tensor([[0.9, 0.0], [0.0, 0.6]])"
)
SNAKE = """import torch
from torch.autograd import gradcheck


class SnakeFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, a):
        ctx.save_for_backward(x, a)
        return x + torch.sin(a * x) ** 2 / a

    @staticmethod
    def backward(ctx, grad):
        x, a = ctx.saved_tensors
        double = torch.sin(2 * a * x)
        grad_a = grad * (x * double - torch.sin(a * x) ** 2) / a
        return grad * (1 + double), grad_a


x = torch.linspace(0.1, 1, 3, dtype=torch.double).requires_grad_()
a = torch.linspace(1.5, 2, 3, dtype=torch.double).requires_grad_()
gradcheck(SnakeFn.apply, (x, a))
"""
FORWARD = "        return x + torch.sin(a * x) ** 2 / a\n"
DERIVED = """import torch
from torch.autograd import gradcheck


class SnakeFn:
    @staticmethod
    def apply(x, a):
        return x + torch.sin(a * x) ** 2 / a


x = torch.linspace(0.1, 1, 3, dtype=torch.double).requires_grad_()
a = torch.linspace(1.5, 2, 3, dtype=torch.double).requires_grad_()
gradcheck(SnakeFn.apply, (x, a))
"""
SECOND = "class Other(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        return x * 2\n\n    @staticmethod\n    def backward(ctx, grad):\n        return grad * 2\n\n\n"

FORWARDS = {
    "a write into the argument": "        x.add_(a)\n        return x * a\n",
    "an in-place method in an expression": "        return x.mul_(a).sin()\n",
    "an augmented argument": "        x += a\n        return x * a\n",
    "an augmented result that was saved": "        y = torch.exp(x)\n        y += a\n        return y\n",
    "a subscript that is assigned": "        y = x * a\n        y[0] = 0\n        return y\n",
    "out=": "        y = x * a\n        return torch.sin(y, out=y)\n",
    "inplace=True": "        return torch.nn.functional.relu(x * a, inplace=True)\n",
    "a bare True of a functional form": "        return torch.nn.functional.relu(x * a, True)\n",
    "mark_dirty": "        ctx.mark_dirty(x)\n        return x * a\n",
    "mark_non_differentiable": "        y = x * a\n        ctx.mark_non_differentiable(y)\n        return y\n",
    "set_materialize_grads": "        ctx.set_materialize_grads(False)\n        return x * a\n",
    "ctx read in a test": "        if ctx.needs_input_grad[0]:\n            ctx.save_for_backward(x)\n        return x * a\n",
    "ctx read in a value": "        ctx.scale = a\n        return x * ctx.scale\n",
    "numpy": "        return torch.from_numpy(x.numpy()) * a\n",
    "data": "        return x.data * a\n",
    "detach": "        return x + (a * x).detach()\n",
    "no_grad": "        with torch.no_grad():\n            y = x * a\n        return y\n",
    "item": "        return x * a.item()\n",
    "float of a tensor": "        return x * float(a)\n",
    "a tensor copied": "        return x * torch.tensor(a)\n",
    "round": "        return torch.round(x / a) * a\n",
    "sign": "        return torch.sign(x) * a\n",
    "floor": "        return (x / a).floor() * a\n",
    "ceil": "        return torch.ceil(x / a) * a\n",
    "floor division": "        return (x // a) * a\n",
    "argmax": "        return x * torch.argmax(a)\n",
    "a comparison": "        return (x > a).to(x.dtype)\n",
    "a comparison that has a name": "        mask = x > a\n        return mask * 1.0\n",
    "whole numbers": "        return (x * a).to(torch.int64)\n",
    "a draw": "        return x * a + torch.randn_like(x)\n",
    "an extension": "        import kernels\n        return kernels.snake(x, a)\n",
    "a custom operation": "        return torch.ops.lab.snake(x, a)\n",
    "an unknown function": "        return snake_kernel(x, a)\n",
    "autograd inside": "        return torch.autograd.grad(x.sum(), x)[0] * a\n",
    "a tensor of the module": "        return x * a * WEIGHT\n",
    "an argument as it came": "        return x.view_as(x)\n",
    "an argument by another name": "        y = x.clone()\n        return y\n",
    "two statements on a line": "        y = x * a; return y\n",
}
CLASSES = {
    "generate_vmap_rule": ("    @staticmethod\n    def forward", "    generate_vmap_rule = True\n\n    @staticmethod\n    def forward"),
    "another base": ("(torch.autograd.Function)", "(torch.autograd.Function, Named)"),
    "a decorated forward": ("    @staticmethod\n    def forward", "    @staticmethod\n    @custom_fwd\n    def forward"),
    "a method for export": ("    @staticmethod\n    def backward", "    @staticmethod\n    def symbolic(g, x, a):\n        return x\n\n    @staticmethod\n    def backward"),
    "any number of arguments": ("forward(ctx, x, a)", "forward(ctx, x, a, *rest)"),
    "gradients in a list": ("return grad * (1 + double), grad_a", "return tuple(made)"),
}  # fmt: skip
USES = {
    "forward called": "SnakeFn.forward(None, x, a)\n",
    "a subclass": "class Wide(SnakeFn):\n    pass\n",
    "the class handed on": "register(SnakeFn)\n",
    "apply replaced": "SnakeFn.apply = None\n",
    "the same name on another object": "def make():\n    return thing.SnakeFn\n",
}


def test_a_right_program_stays(tmp_path: pathlib.Path) -> None:
    """Without a failure, and after another one, the class keeps its backward."""
    program = write(tmp_path, {"train.py": SNAKE})
    assert list(find_codemod("formula_by_autograd")(Context(program=program))) == []
    assert rewritten(tmp_path, "formula_by_autograd", SNAKE, None, message="it failed") == SNAKE


@pytest.mark.parametrize(
    "message",
    [
        "function SnakeFnBackward returned an incorrect number of gradients (expected 2, got 1)",
        "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives different values",
        SINGLE,
    ],
    ids=["another fault", "a draw", "single precision"],
)
def test_other_messages(tmp_path: pathlib.Path, message: str) -> None:
    """What another derivative would not cure leaves the class alone."""
    assert rewritten(tmp_path, "formula_by_autograd", SNAKE, None, message=message) == SNAKE


def test_a_warning_of_single_precision(tmp_path: pathlib.Path) -> None:
    """The numerical gradient is noise: no formula passes."""
    warned = WarningRecord(category="UserWarning", message="Input #0 requires gradient and is not a double precision floating point")  # fmt: skip
    incident = Incident(
        exceptions=(ExceptionRecord(type="GradcheckError", message=MISMATCH, frames=()),), warnings=(warned,)
    )
    assert best("formula_by_autograd", write(tmp_path, {"train.py": SNAKE}), incident=incident) is None


@pytest.mark.parametrize("forward", FORWARDS.values(), ids=FORWARDS)
def test_forwards_that_stay(tmp_path: pathlib.Path, forward: str) -> None:
    """A forward that autograd derives otherwise, or not at all, keeps its backward."""
    source = SNAKE.replace(FORWARD, forward).replace("x = torch.lin", "WEIGHT = torch.nn.Parameter(x)\nx = torch.lin")
    assert rewritten(tmp_path, "formula_by_autograd", source, None, message=MISMATCH) == source


@pytest.mark.parametrize(("old", "new"), CLASSES.values(), ids=CLASSES)
def test_classes_that_stay(tmp_path: pathlib.Path, old: str, new: str) -> None:
    """A class that is more than its forward and backward is left alone."""
    source = SNAKE.replace(old, new)
    assert source != SNAKE
    assert rewritten(tmp_path, "formula_by_autograd", source, None, message=MISMATCH) == source


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_uses_that_keep_the_class(tmp_path: pathlib.Path, use: str) -> None:
    """Only `SnakeFn.apply` means the same afterwards."""
    source = SNAKE + use
    assert rewritten(tmp_path, "formula_by_autograd", source, None, message=MISMATCH) == source


def test_which_of_two_is_not_known(tmp_path: pathlib.Path) -> None:
    """A loop over the functions does not say which one failed."""
    source = SNAKE.replace("x = torch.lin", SECOND + "x = torch.lin").replace(
        "gradcheck(SnakeFn.apply, (x, a))", "for f in functions():\n    gradcheck(f, (x, a))"
    )
    assert rewritten(tmp_path, "formula_by_autograd", source, "gradcheck(f", message=MISMATCH) == source


CHECKED = {
    "apply": "gradcheck(SnakeFn.apply, (x, a))",
    "a lambda": "gradcheck(lambda x, a: SnakeFn.apply(x, a).sum(), (x, a))",
    "a function": "def snake(x, a):\n    return SnakeFn.apply(x, a)\n\n\ngradcheck(snake, (x, a))",
    "a name of apply": "snake = SnakeFn.apply\ngradcheck(snake, (x, a))",
    "a module": "class Snake(torch.nn.Module):\n    def forward(self, x, a):\n        return SnakeFn.apply(x, a)\n\n\nnet = Snake()\ngradcheck(net, (x, a))",
    "by its keyword": "gradcheck(inputs=(x, a), func=SnakeFn.apply)",
}


@pytest.mark.parametrize("check", CHECKED.values(), ids=CHECKED)
def test_the_one_of_two_that_is_checked(tmp_path: pathlib.Path, check: str) -> None:
    """The first argument of the gradcheck that failed leads to the class; one that is checked elsewhere stays."""
    more = f"{SECOND}gradcheck(Other.apply, x)\n"
    source = (SNAKE + more).replace("gradcheck(SnakeFn.apply, (x, a))", check)
    at = next(line for line in reversed(check.splitlines()) if "gradcheck" in line)
    after = rewritten(tmp_path, "formula_by_autograd", source, at, message=MISMATCH)
    assert after == (DERIVED + more).replace("gradcheck(SnakeFn.apply, (x, a))", check)


def test_the_class_keeps_its_name(tmp_path: pathlib.Path) -> None:
    """Base, `ctx` and backward go, `apply` stays, and a second time nothing is left to do."""
    after = rewritten(tmp_path, "formula_by_autograd", SNAKE, "gradcheck(SnakeFn", message=MISMATCH)
    assert after == DERIVED
    assert rewritten(tmp_path, "formula_by_autograd", after, "gradcheck(SnakeFn", message=MISMATCH) == after


def test_all_that_goes(tmp_path: pathlib.Path) -> None:
    """What is kept for backward goes, with what only that has read; setup_context, vmap and jvp too, and the import."""
    source = """import torch
from torch.autograd import Function, gradcheck


class Soft(Function):
    \"\"\"Softplus.\"\"\"

    @staticmethod
    def forward(x, beta=2.0):
        return torch.log1p(torch.exp(beta * x)) / beta

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.beta = inputs
        ctx.save_for_backward(x)

    @staticmethod
    def backward(ctx, grad):
        return grad * torch.sigmoid(ctx.saved_tensors[0]), None

    @staticmethod
    def vmap(info, in_dims, x, beta):
        return Soft.apply(x, beta), in_dims[0]


gradcheck(Soft.apply, torch.ones(2, dtype=torch.double, requires_grad=True))
"""
    message = MISMATCH.replace("input 1", "input 0")
    after = rewritten(tmp_path, "formula_by_autograd", source, "gradcheck(Soft", message=message)
    head = '''import torch
from torch.autograd import gradcheck


class Soft:
    """Softplus."""

    @staticmethod
    def apply(x, beta=2.0):
        return torch.log1p(torch.exp(beta * x)) / beta


gradcheck('''
    assert after == head + source.partition("gradcheck(")[2]


LINES = {
    "what only backward reads": (
        "        mask = x > 0\n        ctx.save_for_backward(x, a, mask)\n        ctx.shape, ctx.n = x.shape, int(x.shape[0])\n        return x * a\n",
        "        return x * a\n",
    ),
    "a sum that grows from zero": (
        "        total = torch.zeros_like(x)\n        for k in range(3):\n            total += torch.sin(k * x) * a\n        ctx.save_for_backward(x)\n        return total\n",
        "        total = torch.zeros_like(x)\n        for k in range(3):\n            total += torch.sin(k * x) * a\n        return total\n",
    ),
    "a mask inside": ("        return torch.where(x > 0, x * a, x)\n", "        return torch.where(x > 0, x * a, x)\n"),
    "several results": ("        y = x * a\n        return y, y.sin()\n", "        y = x * a\n        return y, y.sin()\n"),
    "a number of the module": ("        return x * a * SCALE\n", "        return x * a * SCALE\n"),
    "a function of the module": ("        return wave(x, a)\n", "        return wave(x, a)\n"),
}  # fmt: skip


@pytest.mark.parametrize(("forward", "wanted"), LINES.values(), ids=LINES)
def test_forwards_that_autograd_derives(tmp_path: pathlib.Path, forward: str, wanted: str) -> None:
    """The body of forward stays as it is written, but for what backward alone needs."""
    more = "import math\nSCALE = 2 * math.pi\ndef wave(x, a):\n    return torch.sin(a * x)\n"
    source = more + SNAKE.replace("        ctx.save_for_backward(x, a)\n", "").replace(FORWARD, forward)
    after = rewritten(tmp_path, "formula_by_autograd", source, None, message=MISMATCH)
    assert after == more + DERIVED.replace(FORWARD, wanted)


def test_arguments_on_lines_of_their_own(tmp_path: pathlib.Path) -> None:
    """`ctx` goes with its line; a forward without a decorator gets one."""
    source = SNAKE.replace("    @staticmethod\n    def forward(ctx, x, a):", "    def forward(\n        ctx: object,\n        x,\n        a,\n    ):")  # fmt: skip
    after = rewritten(tmp_path, "formula_by_autograd", source, None, message=MISMATCH)
    assert after == DERIVED.replace("apply(x, a):", "apply(\n        x,\n        a,\n    ):")


def test_a_target_gets_no_gradient_still(tmp_path: pathlib.Path) -> None:
    """A saved tensor for which backward gives None on purpose is detached; where the zero is the fault it is not."""
    source = SNAKE.replace("return grad * (1 + double), grad_a", "return grad * (1 + double), None")
    first = MISMATCH.replace("input 1", "input 0")
    after = rewritten(tmp_path, "formula_by_autograd", source, None, message=first)
    assert after == DERIVED.replace(FORWARD, "        a = a.detach()\n" + FORWARD)
    zero = MISMATCH + "numerical:tensor([[0.6]], dtype=torch.float64)\nanalytical:tensor([[0.]], dtype=torch.float64)"
    assert rewritten(tmp_path, "formula_by_autograd", source, None, message=zero) == DERIVED


@pytest.mark.parametrize(
    ("message", "words"),
    [(MISMATCH, "grad_a = "), (MISMATCH.replace("input 1", "input 0"), "return grad * "), (MISMATCH.replace("input 1", "input 5"), "return grad * ")],
    ids=["a name", "an expression", "an input that it has not"],
)  # fmt: skip
def test_the_line_of_the_gradient(tmp_path: pathlib.Path, message: str, words: str) -> None:
    """The culprit is what makes the gradient of the input that the message names."""
    program = write(tmp_path, {"train.py": SNAKE})
    found = best("formula_by_autograd", program, incident=failed(message=message))
    assert found is not None
    assert found.culprit.line == line_of(SNAKE, words)


def test_a_class_of_another_file(tmp_path: pathlib.Path) -> None:
    """The class is changed where it stands, also where it is imported by another name."""
    module = SNAKE.partition("\n\nx = torch")[0] + "\n"
    train = "import torch\nfrom act import SnakeFn as Snake\ntorch.autograd.gradcheck(Snake.apply, make())\n"
    program = write(tmp_path, {"train.py": train, "act.py": module})
    found = best("formula_by_autograd", program, incident=failed({"train.py": 3}, MISMATCH))
    assert found is not None
    assert splice(module, found.edits) == DERIVED.partition("\n\nx = torch")[0] + "\n"
    program = write(tmp_path, {"train.py": train + "Snake.forward(None, 1, 2)\n", "act.py": module})
    assert best("formula_by_autograd", program, incident=failed({"train.py": 3}, MISMATCH)) is None


@pytest.mark.torch
def test_the_gradients_are_those_of_a_right_backward(tmp_path: pathlib.Path) -> None:
    """gradcheck fails before and passes after, and both inputs get what the mended formula gives."""
    torch = pytest.importorskip("torch")
    with pytest.raises(RuntimeError, match="with respect to input 1") as raised:
        exec(compile(SNAKE, "before", "exec"), {})  # noqa: S102
    after = rewritten(tmp_path, "formula_by_autograd", SNAKE, None, message=str(raised.value))
    right = SNAKE.replace("torch.sin(a * x) ** 2) / a", "torch.sin(a * x) ** 2 / a) / a")
    assert diff_lines(SNAKE, right)
    found = []
    for source in (after, right):
        space: dict[str, torch.Tensor] = {}
        exec(compile(source + "SnakeFn.apply(x, a).sum().backward()\n", "after", "exec"), space)  # noqa: S102
        found.append((space["x"].grad, space["a"].grad))
    assert all(torch.allclose(one, other) for one, other in zip(*found, strict=True))
