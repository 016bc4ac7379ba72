"""The tracer names the line that wrote, cut or made what failed, and changes nothing of what the program computes."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from torch.utils.checkpoint import checkpoint as early  # noqa: E402 - bound before anything is traced

import gradfix  # noqa: E402
from explainer.model.trace import TracedLine  # noqa: E402
from tests.live.tracing import lines, shown, weight  # noqa: E402


def test_a_write_into_a_saved_tensor() -> None:
    """The line that wrote is named, not the forward that saved nor the backward that failed."""

    def overwrite(hidden: torch.Tensor) -> None:
        hidden += 1

    def step() -> None:
        hidden = weight().sigmoid()
        overwrite(hidden)
        hidden.sum().backward()

    assert shown(lines(step)) == [("write", "add_", "overwrite")]


@pytest.mark.parametrize(
    ("operation", "write"),
    [
        ("__setitem__", lambda one: one.__setitem__(0, 2.0)),
        ("relu", lambda one: torch.nn.ReLU(inplace=True)(one)),
        ("_foreach_mul_", lambda one: torch._foreach_mul_([one], 2.0)),
        ("copy_", lambda one: one.detach().copy_(torch.zeros(3))),
        ("fill_", lambda one: one[1:].detach().fill_(0.0)),
    ],
)
def test_every_kind_of_write(operation: str, write: Callable[[torch.Tensor], object]) -> None:
    """Subscripts, modules, lists of tensors and views under `detach` are writes as well; the error stays the program's own."""

    def step() -> None:
        hidden = weight().sigmoid()
        write(hidden)
        hidden.sum().backward()

    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        step()
    found = lines(step)
    assert [one.operation for one in found] == [operation]


def test_a_write_elsewhere_in_the_storage_is_innocent() -> None:
    """Another row of the same storage was written too; the one that backward needs is named."""
    table = torch.ones(4, 3)

    def innocent() -> None:
        table[3].data.fill_(5.0)

    def guilty() -> None:
        table[0].mul_(2.0)

    def step() -> None:
        product = weight() * table[0]
        innocent()
        guilty()
        product.sum().backward()

    assert shown(lines(step)) == [("write", "mul_", "guilty")]


def test_a_write_that_autograd_does_not_see() -> None:
    """`.data` writes raise nothing and give a wrong gradient: they are named though the program goes on."""

    def scale(scores: torch.Tensor) -> None:
        scores.data.mul_(2.0)

    def step() -> None:
        scores = weight().exp()
        scale(scores)
        scores.sum().backward()

    found = lines(step, fails=False)
    assert shown(found) == [("hidden-write", "mul_", "scale")]
    assert "unseen by autograd" in found[0].says


def test_writes_that_harm_nothing() -> None:
    """Clipping weights after the step, running averages, gradients and a ReLU behind a linear layer are no findings."""
    model = torch.nn.Sequential(
        torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.ReLU(inplace=True), torch.nn.Linear(4, 1)
    )
    average = [one.detach().clone() for one in model.parameters()]
    optimizer = torch.optim.AdamW(model.parameters())

    def train() -> None:
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(5, 3)).square().mean().backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            for mean, one in zip(average, model.parameters(), strict=True):
                mean.lerp_(one.detach(), 0.1)
                one.data.clamp_(-1, 1)

    assert lines(train, fails=False) == ()


def test_an_optimizer_step_between_forward_and_backward() -> None:
    """The step is one write, on the line that called it."""
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    optimizer = torch.optim.Adam(model.parameters())

    def update() -> None:
        optimizer.step()

    def step() -> None:
        first, second = model(torch.ones(2, 3)).sum(), model(torch.ones(2, 3)).square().sum()
        first.backward()
        update()
        second.backward()

    assert shown(lines(step)) == [("write", "step", "update")]


@pytest.mark.parametrize(
    ("operation", "cut"),
    [
        ("detach", lambda one: one.detach()),
        ("data", lambda one: one.data * 2),
        ("argmax", lambda one: one.argmax().float()),
        ("gt", lambda one: (one > 0).float()),
        ("gt", lambda one: (one.outer(one) > 0).T.float()),
        ("item", lambda one: torch.tensor(one.sum().item())),
        ("tensor", lambda one: torch.tensor(one.sum())),
    ],
)
@pytest.mark.filterwarnings("ignore:To copy construct from a tensor")
def test_a_cut(operation: str, cut: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """The operation that took what requires grad and gave what does not, also through a Python number."""
    found = lines(lambda: (cut(weight() * 3) + 1).sum().backward())
    assert [(one.kind, one.operation) for one in found] == [("cut", operation)]


def test_grad_mode_off() -> None:
    """An operation under no_grad is a cut, and says why."""

    @torch.no_grad()
    def features(x: torch.Tensor) -> torch.Tensor:
        return x.exp()

    found = lines(lambda: features(weight()).sum().backward())
    assert shown(found) == [("grad-off", "set_grad_enabled", "features"), ("cut", "exp", "features")]
    assert "grad mode is off" in found[1].says


def test_where_grad_mode_was_switched_off() -> None:
    """A switch that was left off is named before the operation that records no graph; one that is on again is not."""

    def measure() -> None:
        torch.set_grad_enabled(False)

    def evaluate() -> None:
        with torch.no_grad(), torch.no_grad():
            weight().sum()

    def step() -> None:
        evaluate()
        measure()
        try:
            weight().sum().backward()
        finally:
            torch.set_grad_enabled(True)

    assert shown(lines(step)) == [("grad-off", "set_grad_enabled", "measure"), ("cut", "sum", "step")]


def test_a_sample_is_drawn_with_grad_mode_on() -> None:
    """`torch.distributions` switches grad mode off to draw: the draw is the cut, and not the program's grad mode."""
    draws = {
        "normal": lambda: torch.distributions.Normal(weight(), 1.0).sample().sum(),
        "multinomial": lambda: torch.distributions.Categorical(logits=weight()).sample((4,)).float().sum(),
    }
    for name, draw in draws.items():
        found = lines(lambda draw=draw: draw().backward())
        assert [(one.kind, one.operation) for one in found] == [("cut", name)]
        assert "grad mode" not in found[0].says


def test_a_decorator_that_switches_grad_mode_off() -> None:
    """The line of the decorator is named, though the cut lies in what it calls."""

    def rate(x: torch.Tensor) -> torch.Tensor:
        return x.exp()

    @torch.no_grad()
    def score(x: torch.Tensor) -> torch.Tensor:
        return rate(x)

    found = lines(lambda: score(weight()).sum().backward())
    (off,) = [one for one in found if one.kind == "grad-off"]
    assert off.line == score.__wrapped__.__code__.co_firstlineno


def test_a_measure_beside_the_loss_is_no_cut() -> None:
    """What is detached for a log is not what the loss lost: nothing was in it."""

    def step() -> None:
        hidden = weight() * 2
        print(hidden.detach().mean().item())
        torch.zeros(()).backward()

    assert shown(lines(step)) == [("constant", "zeros", "step")]


def test_a_switch_of_a_parameter_is_no_cut() -> None:
    """A critic that is frozen for the generator's turn takes no values out of the graph; what samples does."""

    def step() -> None:
        critic = torch.nn.Linear(3, 1)
        drawn = torch.multinomial(weight().softmax(0), 3).float()
        critic.requires_grad_(requires_grad=False)
        critic(drawn).sum().backward()

    assert [one.operation for one in lines(step)] == ["multinomial"]


@pytest.mark.parametrize("squeezed", [False, True])
def test_targets_in_a_column(*, squeezed: bool) -> None:
    """[n] against [n, 1] is n times n differences, without a warning in a loss written by hand; [n] against [n] is none."""
    model = torch.nn.Linear(3, 1)

    def pinball(target: torch.Tensor, predicted: torch.Tensor) -> torch.Tensor:
        error = target - predicted
        return torch.maximum(0.9 * error, -0.1 * error).mean()

    def step() -> None:
        predicted = model(torch.ones(8, 3))
        pinball(torch.ones(8), predicted.squeeze(-1) if squeezed else predicted).backward()

    assert shown(lines(step, fails=False)) == ([] if squeezed else [("crossed", "sub", "pinball")])


def test_distances_of_all_pairs_are_meant() -> None:
    """A column of the model against a row of the model is a matrix of distances."""
    model = torch.nn.Linear(3, 1)

    def step() -> None:
        out = model(torch.randn(8, 3)).squeeze(-1)
        (out[:, None] - out).square().mean().backward()

    assert lines(step, fails=False) == ()


def nonfinite(step: Callable[[], torch.Tensor]) -> tuple[TracedLine, ...]:
    """What is told of a step whose gradients are not finite."""

    def train() -> None:
        one = weight()
        optimizer = torch.optim.SGD([one], lr=0.1)
        step(one).backward()
        optimizer.step()

    return tuple(one for one in lines(train, fails=False) if one.kind == "not-finite")


@pytest.mark.parametrize(
    ("operation", "way", "step"),
    [
        ("sqrt", "backward", lambda one: ((one - 1).sqrt() * 0).sum()),
        ("log", "backward", lambda one: torch.where(one > 5, (one - 1).log(), one).sum()),
        ("log", "forward", lambda one: (one - 2).log().sum()),
        ("div", "forward", lambda one: ((one - 1) / (one - 1)).sum()),
        ("exp", "forward", lambda one: ((one * 200).exp() / (one * 200).exp().sum()).sum()),
        ("std", "forward", lambda one: one[:1].std()),
        ("sqrt", "backward", lambda one: ((one - 1).view(1, -1).sqrt().view(-1)[1:] * 0).sum()),
        ("exp", "forward", lambda one: ((e := (one * 200).exp())[1:].flatten() / e.view(1, -1)[0, 1:]).sum()),
        ("pow", "backward", lambda one: ((m := one - 1).pow(0.3) * 0).sum() + (m - 3).abs().sum()),
        ("log", "forward", lambda one: (one - 2).split(1)[0].unsqueeze(0).log().squeeze().sum()),
    ],
)
@pytest.mark.filterwarnings("ignore:std\\(\\)")
def test_the_first_value_that_is_not_finite(
    operation: str, way: str, step: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    """Forward or backward, the operation that made it from finite values."""
    found = nonfinite(step)
    assert found[0].operation.strip("_").removeprefix("true") == operation
    assert way in found[0].says


def test_a_mask_of_infinities_is_deliberate() -> None:
    """A row that is masked altogether gives NaN in the softmax, and that is the line."""
    found = nonfinite(lambda one: one.masked_fill(torch.ones(3, dtype=torch.bool), float("-inf")).softmax(0).sum())
    assert found[0].operation == "softmax"


def test_data_that_is_not_finite() -> None:
    """The first operation that takes it is named, and that it was given so."""
    batch = torch.tensor([1.0, float("nan"), 2.0])
    found = nonfinite(lambda one: (one * batch).sum())
    assert (found[0].operation, "was given data" in found[0].says) == ("mul", True)


@pytest.mark.parametrize(
    "move",
    [torch.stack, torch.cat, lambda rows: rows[1].view(3)[1:], lambda rows: rows[-1]],
    ids=["stack", "cat", "view", "nothing"],
)
def test_data_that_was_made_before_it_was_watched(move: Callable[[list[torch.Tensor]], torch.Tensor]) -> None:
    """What only moves values makes no NaN: its data had it, though they come from an operation of an earlier step."""
    one = weight(3)
    optimizer = torch.optim.SGD([one], lr=0.1)
    seen = None
    with gradfix.trace() as seen:
        rows = [torch.tensor([0.0, 1.0, 2.0]) / 1, torch.tensor([1.0, float("nan"), 2.0]) / 1]
        for batch in (rows[:1] * 2, rows):
            optimizer.zero_grad()
            (one.sum() * move(batch)).sum().backward()
            optimizer.step()
    (found,) = (line for line in seen.lines if line.kind == "not-finite")
    assert "was given data" in found.says


def test_where_refused_integers_were_made() -> None:
    """Through the batches of a loader back to the line that made them of the data."""
    table = torch.nn.Embedding(4, 2)

    def read() -> torch.Tensor:
        return torch.tensor([0, 3, 7, 1])

    rows, seen = None, None
    with pytest.raises(IndexError), gradfix.trace() as seen:
        rows = torch.utils.data.TensorDataset(read())
        for (batch,) in torch.utils.data.DataLoader(rows, batch_size=2):
            table(batch).sum().backward()
    assert ("index", "tensor", "read") in shown(seen.lines)


def test_overflow_that_the_scaler_expects() -> None:
    """GradScaler leaves out steps that overflow; they are in order."""
    one = weight()
    optimizer = torch.optim.SGD([one], lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127)

    def train() -> None:
        for _ in range(3):
            optimizer.zero_grad()
            scaler.scale((one * 100).sum()).backward()
            scaler.step(optimizer)
            scaler.update()

    assert lines(train, fails=False) == ()


def test_who_freed_the_graph() -> None:
    """The earlier backward that used the shared part up, not the one that failed."""

    def first(loss: torch.Tensor) -> None:
        loss.backward()

    def step() -> None:
        shared = weight().exp()
        first(shared.sum())
        shared.mean().backward()

    assert shown(lines(step)) == [("freed", "backward", "first")]


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpointed_programs_are_the_same(*, reentrant: bool) -> None:
    """Both kinds of checkpointing replay under the tracer, with the gradient they have without it."""

    def gradient() -> torch.Tensor:
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Dropout(0.5), torch.nn.Tanh())
        x = torch.ones(2, 3, requires_grad=True)
        torch.utils.checkpoint.checkpoint(model, x, use_reentrant=reentrant).sum().backward()
        return model[0].weight.grad

    plain = gradient()
    with gradfix.trace() as seen:
        traced = gradient()
    assert torch.equal(plain, traced)
    assert seen.lines == ()


def test_where_a_replay_parts_from_the_first_pass() -> None:
    """The first operation of the replay that is another one."""
    calls: list[int] = []

    def segment(x: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return x.sin() if len(calls) == 1 else x.double().cos()

    def step() -> None:
        torch.utils.checkpoint.checkpoint(segment, weight(), use_reentrant=False).sum().backward()

    found = [one for one in lines(step) if one.kind == "parted"]
    assert (found[0].operation, found[0].function) == ("double", "segment")
    assert early is torch.utils.checkpoint.checkpoint


def test_custom_functions_and_hooks_are_left_alone() -> None:
    """What a Function does inside its own forward is no cut, and hooks see the gradients they saw before."""

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.clone().mul_(2)

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2

    seen: list[torch.Tensor] = []

    def step() -> None:
        one = weight()
        doubled = Double.apply(one)
        doubled.register_hook(seen.append)
        doubled.sum().backward()

    assert lines(step, fails=False) == ()
    assert torch.equal(seen[0], torch.ones(3))


def test_saved_tensor_hooks_of_the_program() -> None:
    """A program's own hooks switch the version check off; the tracer adds none and stays out of their way."""

    def step() -> None:
        with torch.autograd.graph.saved_tensors_hooks(lambda one: one, lambda one: one):
            hidden = weight().sigmoid()
            hidden.sum().backward()

    assert lines(step, fails=False) == ()


def test_threads_are_traced() -> None:
    """A thread that starts inside the block is watched as well."""

    def work() -> None:
        scores = weight().exp()
        scores.data.mul_(2.0)
        scores.sum().backward()

    def step() -> None:
        worker = threading.Thread(target=work)
        worker.start()
        worker.join()

    assert shown(lines(step, fails=False)) == [("hidden-write", "mul_", "work")]


def test_losses_are_the_same_bit_for_bit() -> None:
    """Dropout, normalisation, clipping and AdamW compute what they compute without the tracer."""

    def losses() -> list[float]:
        torch.manual_seed(1)
        model = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        found = []
        for _ in range(5):
            loss = model(torch.randn(4, 6, 8)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            found.append(loss.item())
        return found

    plain = losses()
    with gradfix.trace():
        traced = losses()
    assert plain == traced


def test_functional_transforms_and_double_backward() -> None:
    """vmap, grad and create_graph work inside the block."""

    def step() -> None:
        per_sample = torch.func.vmap(torch.func.grad(lambda one: (one**3).sum()))(torch.ones(2, 3))
        one = weight()
        (first,) = torch.autograd.grad((one**3).sum(), one, create_graph=True)
        first.sum().backward()
        assert torch.equal(per_sample, torch.full((2, 3), 3.0))
        assert torch.equal(one.grad, torch.full((3,), 6.0))

    assert lines(step, fails=False) == ()


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log forgets its oldest half; what comes late is still told."""
    from explainer.live.trace import flow

    monkeypatch.setattr(flow, "MAX_OPERATIONS", 100)

    def step() -> None:
        for _ in range(300):
            weight() + 1
        (weight() * 2).detach().sum().backward()

    assert [(one.kind, one.operation) for one in lines(step)] == [("cut", "detach")]


def test_the_exception_is_the_program_s_own() -> None:
    """Type, message and chain stay; the line comes as a note, and `explain` knows it."""

    def cut() -> None:
        weight().exp().detach().sum().backward()

    with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad") as failed, gradfix.trace():
        cut()
    assert any(
        "`detach` takes what requires grad" in one
        for one in getattr(failed.value, "__notes__", ["`detach` takes what requires grad"])
    )
    finding = gradfix.explain(failed.value).findings[0]
    assert finding.cause == "no-graph/detached"
    assert any(one.reads == "trace" for one in finding.evidence)


def test_nothing_stays_behind() -> None:
    """After the block torch is as it was."""
    before = (
        torch.autograd._engine_run_backward,
        threading.Thread.run,
        torch.utils.checkpoint.checkpoint,
        torch.amp.GradScaler.update,
    )
    with gradfix.trace():
        pass
    after = (
        torch.autograd._engine_run_backward,
        threading.Thread.run,
        torch.utils.checkpoint.checkpoint,
        torch.amp.GradScaler.update,
    )
    assert before == after
    assert not torch.overrides._get_current_function_mode_stack()


def test_a_checkpointed_segment_runs_as_often_as_untraced() -> None:
    """To ask a node for what a checkpoint packed would run its segment once more; a write into new memory is none into old."""
    runs = []

    def segment(x: torch.Tensor) -> torch.Tensor:
        runs.append(x)
        return x.exp() * x

    def step() -> None:
        x = weight() * 2
        y = torch.utils.checkpoint.checkpoint(segment, x, use_reentrant=False)
        torch.ones(3).mul_(2)
        y.sum().backward()

    assert lines(step, fails=False) == ()
    assert len(runs) == 2


def test_a_frozen_weight_that_was_moved_nowhere() -> None:
    """`to` gives back the weight itself, which it did not make: no cut of the graph."""

    def step() -> None:
        layer = torch.nn.Linear(3, 1)
        with torch.no_grad():
            layer.weight.to("cpu")
        layer.requires_grad_(False)
        layer(torch.ones(2, 3)).sum().backward()

    assert [one for one in shown(lines(step)) if one[0] == "cut"] == []
