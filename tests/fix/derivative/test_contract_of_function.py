"""A custom Function returns one gradient an argument and saves tensors alone."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

RIGHT = {
    "one for each": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.scale = scale
        return x * scale
    @staticmethod
    def backward(ctx, grad):
        pass
        return grad * ctx.scale, None
y = Fn.apply(x, 0.5)
""",
        None,
    ),
    "a tuple by name": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.scale = scale
        return x * scale
    @staticmethod
    def backward(ctx, grad):
        grads = (grad, None)
        return grads
y = Fn.apply(x, 0.5)
""",
        None,
    ),
    "no Function": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
class A:
    def forward(ctx, x, y):
        return x
    def backward(ctx, g):
        return g
""",
        None,
    ),
}
WRONG = {
    "a missing None": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.scale = scale
        return x * scale
    @staticmethod
    def backward(ctx, grad):
        pass
        return grad * ctx.scale
y = Fn.apply(x, 0.5)
""",
        None,
        ["-        return grad * ctx.scale", "+        return grad * ctx.scale, None"],
    ),
    "a class that type makes": (
        """import torch

def make(name, rule):
    def forward(ctx, x, step, levels):
        return rule(x, step, levels)

    def backward(ctx, grad):
        return grad

    return type(name, (torch.autograd.Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})

rounds = {"near": make("Near", lambda x, step, levels: (x / step).round() * step)}
x = torch.ones(2, requires_grad=True)
rounds["near"].apply(x, 0.5, 3).sum().backward()
""",
        None,
        ["-        return grad", "+        return grad, None, None"],
    ),
    "a tuple in parentheses": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.scale = scale
        return x * scale
    @staticmethod
    def backward(ctx, grad):
        pass
        return (grad * ctx.scale)
y = Fn.apply(x, 0.5)
""",
        None,
        ["-        return (grad * ctx.scale)", "+        return (grad * ctx.scale, None)"],
    ),
    "a number saved": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x, scale)
        return x * scale
    @staticmethod
    def backward(ctx, grad):
        x, scale = ctx.saved_tensors
        return grad * scale, None
y = Fn.apply(x, 0.5)
""",
        None,
        [
            "-        ctx.save_for_backward(x, scale)",
            "+        ctx.save_for_backward(x)",
            "+        ctx.scale = scale",
            "-        x, scale = ctx.saved_tensors",
            "-        return grad * scale, None",
            "+        (x,) = ctx.saved_tensors",
            "+        return grad * ctx.scale, None",
        ],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(source: str, at: str | None, tmp_path: pathlib.Path) -> None:
    """Nothing is proposed where the fault is not."""
    assert rewritten(tmp_path, "contract_of_function", source, at) == source


@pytest.mark.parametrize(("source", "at", "changes"), WRONG.values(), ids=WRONG)
def test_wrong_programs_are_mended(source: str, at: str | None, changes: list[str], tmp_path: pathlib.Path) -> None:
    """The best edit changes these lines; a second time nothing is left to do."""
    after = rewritten(tmp_path, "contract_of_function", source, at)
    assert diff_lines(source, after) == changes
    still = at if at and at in after else None
    assert rewritten(tmp_path, "contract_of_function", after, still) == after


TRAINED = """import torch
from torch import nn
class Spike(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, threshold, sharpness):
        ctx.save_for_backward(x - threshold)
        ctx.sharpness = sharpness
        return (x > threshold).float()
    @staticmethod
    def backward(ctx, grad):
        (over,) = ctx.saved_tensors
        return grad / (ctx.sharpness * over.abs() + 1) ** 2, None
class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(4, 4)
        self.threshold = {threshold}
    def forward(self, x):
        return Spike.apply(self.inp(x), self.threshold, 5.0)
Layer()(torch.randn(2, 4)).sum().backward()
"""


@pytest.mark.parametrize(
    ("threshold", "changes"),
    [
        ("nn.Parameter(torch.ones(4))", []),
        ("nn.Linear(4, 4).weight.mean(0)", []),
        ("1.0", ["-        return grad / (ctx.sharpness * over.abs() + 1) ** 2, None",
                 "+        return grad / (ctx.sharpness * over.abs() + 1) ** 2, None, None"]),
    ],
)  # fmt: skip
def test_no_none_where_an_argument_is_trained(tmp_path: pathlib.Path, threshold: str, changes: list[str]) -> None:
    """`None` would starve it in silence; what its gradient is, is the author's to say."""
    source = TRAINED.format(threshold=threshold)
    assert diff_lines(source, rewritten(tmp_path, "contract_of_function", source)) == changes


BETWEEN = """import torch
from torch import nn
class Quantize(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bits, step):
        high = 2 ** (bits - 1) - 1
        ctx.save_for_backward(x, step)
        return (x / step).round().clamp(-high, high) * step
    @staticmethod
    def backward(ctx, grad):
        x, step = ctx.saved_tensors
        return grad, (grad * (x / step)).sum()
class Layer(nn.Linear):
    def __init__(self, bits):
        super().__init__(4, 4)
        self.bits = {bits}
        self.step = nn.Parameter(torch.ones(()))
    def forward(self, x):
        return nn.functional.linear(x, Quantize.apply(self.weight, self.bits, self.step))
Layer(int(input()))(torch.randn(2, 4)).sum().backward()
"""


@pytest.mark.parametrize(
    ("bits", "changes"),
    [
        ("bits", ["-        return grad, (grad * (x / step)).sum()", "+        return grad, None, (grad * (x / step)).sum()"]),
        ("4", ["-        return grad, (grad * (x / step)).sum()", "+        return grad, None, (grad * (x / step)).sum()"]),
        ("nn.Parameter(torch.tensor(4.0))", []),
    ],
)  # fmt: skip
def test_none_between_gradients(tmp_path: pathlib.Path, bits: str, changes: list[str]) -> None:
    """It stands where the number does that has no gradient; not where all arguments are trained."""
    source = BETWEEN.format(bits=bits)
    assert diff_lines(source, rewritten(tmp_path, "contract_of_function", source)) == changes


NAMED = """import torch
from torch import nn
class Nearest(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z, handicap, codes):
        return codes[(torch.cdist(z, codes) + handicap).argmin(1)]
    @staticmethod
    def backward(ctx, grad):
        grad_codes = grad.sum()
        return GIVEN
class Book(nn.Module):
    def __init__(self):
        super().__init__()
        self.codes = nn.Parameter(torch.rand(4, 2))
        self.register_buffer("usage", torch.ones(4))
        self.bias = nn.Parameter(torch.ones(4))
    def forward(self, z):
        return Nearest.apply(z, HANDICAP, self.codes)
encoder, book = nn.Linear(2, 2), Book()
book(encoder(torch.rand(3, 2))).sum().backward()
"""


@pytest.mark.parametrize(
    ("given", "handicap", "wanted"),
    [
        ("grad, grad_codes", "0.5 * self.usage", ["return grad, None, grad_codes"]),
        ("grad, grad_codes", "self.bias", []),
        ("grad, grad.sum()", "self.usage", []),
    ],
)
def test_a_gradient_that_is_named_after_its_argument(
    tmp_path: pathlib.Path, given: str, handicap: str, wanted: list[str]
) -> None:
    """What has no gradient stands between; not where it is trained, nor where no name tells."""
    source = NAMED.replace("GIVEN", given).replace("HANDICAP", handicap)
    after = rewritten(tmp_path, "contract_of_function", source)
    assert [one.removeprefix("+").strip() for one in diff_lines(source, after) if one.startswith("+")] == wanted


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("return (grad * 2), grad.sum()", "return None, (grad * 2), None, None, grad.sum(), None"),
        ("return (grad * 2, grad.sum())", "return (None, grad * 2, None, None, grad.sum(), None)"),
    ],
)
def test_several_numbers(tmp_path: pathlib.Path, before: str, after: str) -> None:
    """Each has its None, in front of a gradient in parentheses and behind the last one too."""
    source = BETWEEN.format(bits="nn.Parameter(torch.ones(()))").replace(
        "return grad, (grad * (x / step)).sum()", before
    )
    source = source.replace("x, bits, step):\n        high = 2 ** (bits - 1) - 1", "kind, x, low, high, step, end):")
    source = source.replace(
        "apply(self.weight, self.bits, self.step)", 'apply("a", self.weight, 1, 2, self.step, True)'
    )
    assert diff_lines(source, rewritten(tmp_path, "contract_of_function", source)) == [
        f"-        {before}", f"+        {after}"
    ]  # fmt: skip


SWAPPED = """import torch


class Quantize(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bits, step):
        return x / step

    @staticmethod
    def backward(ctx, grad):
        return grad, grad.sum(), None


loss.backward()
"""


def test_a_gradient_in_the_place_of_a_number(tmp_path: pathlib.Path) -> None:
    """It changes places with the one None; with several of them it is not known where it belongs."""
    fields = {"function": "Quantize", "position": "2"}
    after = rewritten(tmp_path, "contract_of_function", SWAPPED, "loss.backward()", fields=fields)
    assert diff_lines(SWAPPED, after) == [
        "-        return grad, grad.sum(), None",
        "+        return grad, None, grad.sum()",
    ]
    assert rewritten(tmp_path, "contract_of_function", after, "loss.backward()", fields=fields) == after
    open_end = SWAPPED.replace("bits, step", "bits, step, mode").replace("None\n", "None, None\n")
    assert rewritten(tmp_path, "contract_of_function", open_end, "loss.backward()", fields=fields) == open_end


SUMMED = """import torch


class Step(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, low, step):
        ctx.save_for_backward(x)
        ctx.low = low
        return x * step

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        of_step = (grad * x).sum() * 0.5
        return grad, None, of_step


step = torch.ones(3, 1, requires_grad=True)
Step.apply(torch.ones(3, 4, requires_grad=True), 0, step).sum().backward()
"""


@pytest.mark.torch
def test_a_gradient_that_is_summed_too_far(tmp_path: pathlib.Path) -> None:
    """Autograd sums to the tensor's shape; it counts tensors only, so that the number between them is left out."""
    torch = pytest.importorskip("torch")
    with pytest.raises(RuntimeError, match=r"at index 1 - got \[\] but expected shape compatible with \[3, 1\]"):
        exec(compile(SUMMED, "summed", "exec"), {})  # noqa: S102
    fields = {"node": "StepBackward", "index": "1", "got_shape": "[]", "expected_shape": "[3, 1]"}
    after = rewritten(tmp_path, "contract_of_function", SUMMED, None, fields=fields)
    assert diff_lines(SUMMED, after) == [
        "-        of_step = (grad * x).sum() * 0.5",
        "+        of_step = (grad * x) * 0.5",
    ]
    space: dict[str, torch.Tensor] = {}
    exec(compile(after, "after", "exec"), space)  # noqa: S102
    assert space["step"].grad.tolist() == [[2.0]] * 3
    of_another = {**fields, "node": "OtherBackward"}
    assert rewritten(tmp_path, "contract_of_function", SUMMED, None, fields=of_another) == SUMMED


FLAT = """import torch


class Overlap(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, mask):
        p, m = torch.sigmoid(logits).flatten(1), mask.flatten(1)
        ctx.save_for_backward(p, m)
        return (p * m).sum(1)

    @staticmethod
    def backward(ctx, grad):
        p, m = ctx.saved_tensors
        return grad[:, None] * m * p * (1 - p), None


logits = torch.linspace(-1, 1, 24).reshape(2, 3, 4).requires_grad_()
mask = torch.arange(24).reshape(2, 3, 4).remainder(2).float()
Overlap.apply(logits, mask).sum().backward()
"""


@pytest.mark.torch
def test_a_gradient_in_the_flattened_shape(tmp_path: pathlib.Path) -> None:
    """It gets the shape of its tensor; where forward moves axes too the order of the values is not known."""
    torch = pytest.importorskip("torch")
    with pytest.raises(
        RuntimeError, match=r"at index 0 - got \[2, 12\] but expected shape compatible with \[2, 3, 4\]"
    ):
        exec(compile(FLAT, "flat", "exec"), {})  # noqa: S102
    fields = {"node": "OverlapBackward", "index": "0", "got_shape": "[2, 12]", "expected_shape": "[2, 3, 4]"}
    after = rewritten(tmp_path, "contract_of_function", FLAT, None, fields=fields)
    assert diff_lines(FLAT, after) == [
        "+        ctx.logits_shape = logits.shape",
        "-        return grad[:, None] * m * p * (1 - p), None",
        "+        return (grad[:, None] * m * p * (1 - p)).reshape(ctx.logits_shape), None",
    ]
    space: dict[str, torch.Tensor] = {}
    exec(compile(after, "after", "exec"), space)  # noqa: S102
    p = torch.sigmoid(space["logits"].detach())
    assert torch.allclose(space["logits"].grad, space["mask"] * p * (1 - p))
    turned = FLAT.replace("sigmoid(logits)", "sigmoid(logits).transpose(1, 2)")
    assert rewritten(tmp_path, "contract_of_function", turned, None, fields=fields) == turned


@pytest.mark.parametrize("shaped", ["step.view(3, 1)", "step[:, None]", "torch.reshape(step, (3, 1))"])
def test_a_gradient_of_a_tensor_that_is_reshaped_first(tmp_path: pathlib.Path, shaped: str) -> None:
    """Autograd sums from the last dimension on: where the argument stands along another, its sum would be a wrong gradient."""
    source = SUMMED.replace("x * step", f"x * {shaped}").replace("ones(3, 1,", "ones(3,")
    fields = {"node": "StepBackward", "index": "1", "got_shape": "[]", "expected_shape": "[3]"}
    assert rewritten(tmp_path, "contract_of_function", source, None, fields=fields) == source
