"""A parameter that is not finite before any step: weights that were loaded so, or never initialised."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from explainer.live.trace import arm as tracing  # noqa: E402

pytestmark = pytest.mark.torch


def told(*, begins: bool, steps: int = 0, loads: bool = True, has_closure: bool = False) -> str | None:
    """What the trace says of the input of the operation that gave the first NaN."""
    torch.manual_seed(0)
    tracer, undo = tracing.arm(torch)
    if begins:
        tracer.begins()
    with undo:
        net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

        def closure():
            optimizer.zero_grad()
            loss = net(torch.randn(2, 4)).sum()
            loss.backward()
            return loss

        for _ in range(steps):
            if has_closure:
                optimizer.step(closure)
            else:
                closure()
                optimizer.step()
        if loads:
            state = {name: value.clone() for name, value in net.state_dict().items()}
            state["2.weight"][0, 1] = float("nan")
            net.load_state_dict(state)
        tracer.forget()  # so long ago that what was loaded is no longer watched
        x = torch.randn(2, 4)
        if not loads:
            x[0, 0] = float("nan")
        net(x).sum().backward()
        bad = tracer.explain(None, "")["not_finite"]
    return bad.get("input") if bad is not None else None


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"begins": True}, "untouched"),
        ({"begins": True, "steps": 1}, "parameter"),
        ({"begins": True, "steps": 1, "has_closure": True}, "parameter"),
        ({"begins": False}, "parameter"),
    ],
    ids=["no step yet", "a step before", "a step with a closure, as Lightning makes it", "a trace that began later"],
)
def test_whose_values_they_are(given: dict, wanted: str) -> None:
    """Only where all of the program was seen is it known that no optimizer made them."""
    assert told(**given) == wanted


@pytest.mark.parametrize(
    ("begins", "damaged", "wanted"), [(True, True, "untouched"), (False, True, "parameter"), (True, False, "parameter")]
)
def test_a_row_that_no_step_before_has_used(begins: bool, damaged: bool, wanted: str) -> None:  # noqa: FBT001
    """A table that came with a NaN is known by its first step; one that was finite then was broken by training."""
    tracer, undo = tracing.arm(torch)
    if begins:
        tracer.begins()
    with undo:
        table = torch.nn.Embedding(4, 2)
        optimizer = torch.optim.SGD(table.parameters(), lr=0.1)
        if damaged:
            table.weight.data[3, 0] = float("nan")
        table(torch.tensor([0, 1])).square().sum().backward()
        optimizer.step()
        if not damaged:
            table.weight.data[3, 0] = float("nan")
        optimizer.zero_grad()
        tracer.forget()
        table(torch.tensor([2, 3])).square().sum().backward()
        bad = tracer.explain(None, "")["not_finite"]
    assert bad is not None
    assert bad["input"] == wanted


@pytest.mark.parametrize("value", [float("nan"), float("inf")], ids=["NaN", "infinity"])
@pytest.mark.parametrize("begins", [True, False], ids=["as it was made", "a trace that began later"])
def test_a_damaged_row(value: float, begins: bool) -> None:  # noqa: FBT001
    """Which rows are not finite is told; an infinity in weights that training may have made is no damage."""
    tracer, undo = tracing.arm(torch)
    if begins:
        tracer.begins()
    with undo:
        rows = torch.ones(5, 2)
        rows[[1, 3], 1] = value
        table = torch.nn.Embedding.from_pretrained(rows, freeze=False)
        tracer.forget()
        table(torch.tensor([0, 3])).square().sum()
        bad = tracer.explain(None, "loss is inf")["not_finite"]
    assert bad is not None
    if not begins:
        assert bad.get("input") != "untouched"
    else:
        assert (bad["input"], bad["rows"], bad["broken"]) == ("untouched", [1, 3], [2, 5])


def test_weights_that_the_first_step_breaks_between_two_closures() -> None:
    """LBFGS moves the weights and asks for the loss again within one step: they are no longer as they were made."""
    tracer, undo = tracing.arm(torch)
    tracer.begins()
    with undo:
        weight = torch.nn.Parameter(torch.ones(2))
        optimizer = torch.optim.LBFGS([weight], lr=1e30, max_iter=3)

        def closure():
            optimizer.zero_grad()
            loss = (weight * 2 - 1).square().sum()
            loss.backward()
            return loss

        for _ in range(2):
            optimizer.step(closure)
        bad = tracer.explain(None, "")["not_finite"]
    assert not weight.isfinite().all()
    assert bad is None or bad.get("input") != "untouched"


def test_data_are_not_weights() -> None:
    """A NaN in the input is none of the parameters'."""
    assert told(begins=True, loads=False) not in ("untouched", "parameter")


def test_a_frozen_network_that_was_loaded() -> None:
    """Weights that nobody trains are weights all the same: their file is at fault, and no data."""
    state = {"weight": torch.full((4, 4), float("nan")), "bias": torch.zeros(4)}
    tracer, undo = tracing.arm(torch)
    with undo:
        teacher = torch.nn.Linear(4, 4).requires_grad_(False)
        teacher.load_state_dict(state)
        x = torch.randn(2, 4, requires_grad=True)
        (teacher(x) - x).square().sum().backward()
        bad = tracer.explain(None, "")["not_finite"]
    assert bad is not None
    assert (bad["input"], bad["operation"]) == ("loaded", "copy_")


@pytest.mark.parametrize("makes", ["zeros_", "normal_", None])
def test_an_adapter_that_was_initialised_in_sight(makes: str | None) -> None:
    """What the program initialises before it is loaded is a weight too, through views as a file is read."""
    damaged = torch.zeros(16)
    damaged[3] = float("nan")
    tracer, undo = tracing.arm(torch)
    tracer.begins()
    with undo:
        layer = torch.nn.Linear(4, 4).to("cpu")
        if makes is not None:
            getattr(torch.nn.init, makes)(layer.weight)
        layer.load_state_dict({"weight": damaged.view(4, 4).to(torch.float64).reshape(4, 4), "bias": torch.zeros(4)})
        layer = layer.to("cpu")
        layer(torch.randn(2, 4)).sum().backward()
        bad = tracer.explain(None, "")["not_finite"]
    assert bad is not None
    assert (bad["input"], bad["operation"]) == ("loaded", "copy_")


@pytest.mark.parametrize("fills", [False, True])
def test_memory_that_nothing_wrote(fills: bool) -> None:
    """What `to_empty` leaves in a buffer is neither data nor a weight; what was written since is."""
    torch.manual_seed(0)
    with torch.device("meta"):
        norm = torch.nn.BatchNorm1d(4, affine=False, track_running_stats=True)
    was = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)  # fills new memory with NaN
    tracer, undo = tracing.arm(torch)
    tracer.begins()
    try:
        with undo:
            norm.to_empty(device="cpu")
            if fills:
                norm.running_mean.fill_(float("nan"))
            x = torch.randn(3, 4, requires_grad=True)
            (x - norm.running_mean[:4]).sum().backward()
            bad = tracer.explain(None, "")["not_finite"]
    finally:
        torch.use_deterministic_algorithms(was)
    assert bad is not None
    assert (bad.get("input") == "unfilled") is not fills


def test_memory_that_is_filled_part_by_part() -> None:
    """What stands in the parts that are still to be written is nobody's NaN: the first is made by the root, later."""
    was = torch.are_deterministic_algorithms_enabled()
    tracer, undo = tracing.arm(torch)
    with undo:
        torch.use_deterministic_algorithms(True)  # fills new memory with NaN
        try:
            rows = torch.empty(4, 3)
        finally:
            torch.use_deterministic_algorithms(was)
        rows[0] = torch.ones(3)
        for at in range(1, 4):
            rows[at][:] = torch.ones(3)
        start = torch.zeros(3, requires_grad=True)
        (start * rows).square().sqrt().sum().backward()
        bad = tracer.explain(None, "")["not_finite"]
    assert bad is not None
    assert (bad["direction"], bad["operation"]) == ("backward", "sqrt")


def test_parameters_without_values_of_their_own() -> None:
    """On no device, or with rows alone: nothing is asked of them, and the step is made."""
    tracer, undo = tracing.arm(torch)
    tracer.begins()
    with undo:
        empty = torch.nn.Parameter(torch.empty(2, device="meta"))
        optimizer = torch.optim.SGD([empty, torch.nn.Parameter(torch.ones(2))], lr=0.1)
        optimizer.param_groups[0]["params"][1].sum().backward()
        optimizer.step()
    assert float(optimizer.param_groups[0]["params"][1].detach().sum()) == pytest.approx(1.8)


@pytest.mark.parametrize("has_closure", [False, True], ids=["a plain step", "a step with a closure"])
def test_data_that_are_made_before_the_first_step(has_closure: bool) -> None:
    """What made NaN of them is told, also where the step begins before its backward, as each of Lightning's does."""
    tracer, undo = tracing.arm(torch)
    tracer.begins()
    with undo:
        rows = torch.cat([torch.randn(6, 2), torch.ones(6, 1)], 1)
        rows = (rows - rows.mean(0)) / rows.std(0)
        net = torch.nn.Linear(3, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

        def closure():
            net(rows).sum().backward()

        if has_closure:
            optimizer.step(closure)
        else:
            closure()
            optimizer.step()
        bad = tracer.first_bad or tracer.explain(None, "")["not_finite"]
    assert (bad["operation"], bad["kind"]) == ("div", "nan")


def test_memory_that_a_worker_filled() -> None:
    """A batch of a worker is an empty tensor that is given the memory the worker wrote: it is data."""
    rows = torch.tensor([[1.0, float("nan"), 2.0]])
    tracer, undo = tracing.arm(torch)
    tracer.begins()
    with undo:
        x = torch.empty((0,))
        x.set_(rows.untyped_storage(), 0, (1, 3), (3, 1))
        torch.nn.Linear(3, 1)(x).sum().backward()
        bad = tracer.explain(None, "")["not_finite"]
    assert bad is not None
    assert bad["input"] == "data"


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("exp_avg_sq", -1.0, "state"),
        ("exp_avg", float("nan"), "state"),
        ("exp_avg", -1.0, None),
        ("exp_avg_sq", 0.5, None),
    ],
)
def test_an_optimizer_that_begins_with_a_damaged_state(name: str, value: float, wanted: str | None) -> None:
    """A second moment below 0, or what is not finite: the step makes the parameters so; a first moment may be negative."""
    torch.manual_seed(0)
    net = torch.nn.Linear(4, 1)
    before = torch.optim.AdamW(net.parameters(), lr=0.1)
    net(torch.randn(2, 4)).sum().backward()
    before.step()
    before.state[net.weight][name].fill_(value)
    tracer, undo = tracing.arm(torch)
    tracer.begins()
    with undo:
        optimizer = torch.optim.AdamW(net.parameters(), lr=0.1)
        optimizer.load_state_dict(before.state_dict())
        for _ in range(2):
            optimizer.zero_grad()
            net(torch.randn(2, 4)).sum().backward()
            optimizer.step()
        net(torch.randn(2, 4)).sum().backward()
        bad = tracer.explain(None, "")["not_finite"]
    assert (bad.get("input") if bad is not None else None) == wanted
