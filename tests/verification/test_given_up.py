"""A handler that was meant for memory that runs out leaves batches out for a fault: the run is suspect, with that fault's cause."""

from __future__ import annotations

import json
import pathlib

import pytest

from explainer.model.incident import CAUGHT
from explainer.model.verification import Failure, ProcessReport
from explainer.verification.given_up import done_otherwise, dropped, given_up, left_out_of_loss
from tests import forked
from tests.fix.rewriting import line_of
from tests.verification.programs import gradfix

HEAD = """import torch
net = torch.nn.Linear(3, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
def step(x):
    opt.zero_grad()
    net(x).square().mean().backward()
    opt.step()
"""
SKIPS = {
    "a manager that suppresses": "from contextlib import suppress\nfor x in batches:\n    with suppress(ValueError, RuntimeError):\n        step(x)  # fails\n",
    "a loop": "for x in batches:\n    try:\n        step(x)  # fails\n    except RuntimeError:\n        continue\n",
    "a loop that tells": "for x in batches:\n    try:\n        loss = step(x)  # fails\n    except Exception as error:\n        print(error)\n    else:\n        print(loss)\n",
    "a method": "class Run:\n    def one(self, x):\n        try:\n            step(x)  # fails\n            return True\n"
    "        except (ValueError, RuntimeError):\n            opt.zero_grad()\n            return False\n",
    "a backward in the loop": "for x in batches:\n    try:\n        loss = net(x).mean()  # fails\n        loss.backward()\n        opt.step()\n    except:\n        pass\n",
}  # fmt: skip
GOES_ON = {
    "a manager that suppresses something else": "import contextlib\nfor x in batches:\n    with contextlib.suppress(KeyError):\n        step(x)  # fails\n",
    "another manager": "for x in batches:\n    with torch.autocast('cpu'):\n        step(x)  # fails\n",
    "a fallback": "for x in batches:\n    try:\n        step(x)  # fails\n    except RuntimeError:\n        step(x.float())\n",
    "a fallback of the forward": "for x in batches:\n    try:\n        out = net(x)  # fails\n    except RuntimeError:\n        out = net(x.float())\n    out.mean().backward()\n",
    "some attempts": "for x in batches:\n    for attempt in range(3):\n        try:\n            step(x)  # fails\n            break\n        except RuntimeError:\n            pass\n",
    "an evaluation": "for x in batches:\n    step(x)\n    try:\n        net(x).argmax(1)  # fails\n    except RuntimeError:\n        pass\n",
    "another exception": "for x in batches:\n    try:\n        step(x)  # fails\n    except KeyError:\n        pass\n",
    "what a library catches": "for x in batches:\n    step(x)  # fails\n",
}  # fmt: skip
SAID = "mat1 and mat2 must have the same dtype, but got Double and Float"


def failed(
    folder: pathlib.Path, body: str, count: int, message: str = SAID, kind: str = "RuntimeError"
) -> ProcessReport:
    """A process that raised at the line that fails, so many times in four steps."""
    path = folder / "train.py"
    path.write_text(HEAD + body)
    at = line_of(HEAD + body, "# fails")
    code = (HEAD + body).splitlines()[at - 1].strip()
    text = (
        f'Traceback (most recent call last):\n  File "{path}", line {at}, in <module>\n    {code}\n{kind}: {message}\n'
    )
    failure = Failure(type=kind, message=message, where="raised", text=text)
    return ProcessReport(pid=1, steps=(("0 SGD", 4),), failures=(failure,) * count)


def told(folder: pathlib.Path, body: str, count: int = 3, message: str = SAID, kind: str = "RuntimeError") -> list[str]:
    """What is said of such a process."""
    return [one.says for one in given_up([failed(folder, body, count, message, kind)], str(folder))]


BESIDE = {
    "a listener": "for x in batches:\n    step(x)\n    try:\n        average.update(net)  # fails\n    except Exception as error:\n        log.debug('%s', error)\n",
    "all of them": "def fire(handlers):\n    for one in handlers:\n        try:\n            one()  # fails\n        except:\n            failures += 1\n            continue\n",
}
IN_ITS_PLACE = {
    "another way": "for x in batches:\n    step(x)\n    try:\n        average.update(net)  # fails\n    except Exception:\n        average = copy(net)\n",
    "a value": "def score(x):\n    try:\n        return metric(x)  # fails\n    except Exception:\n        return 0.0\n",
    "one kind of error": "for x in batches:\n    step(x)\n    try:\n        average.update(net)  # fails\n    except RuntimeError:\n        pass\n",
    "nobody": "for x in batches:\n    average.update(net)  # fails\n",
}


@pytest.mark.parametrize("body", BESIDE.values(), ids=BESIDE)
def test_what_is_dropped_beside_the_steps(tmp_path: pathlib.Path, body: str) -> None:
    """A handler for everything that tells of it at most; at every step where the program has ended well."""
    (one,) = dropped([failed(tmp_path, body, 3)], str(tmp_path), is_always=True)
    assert one.says == f"it caught RuntimeError 3 times in 4 steps, and did nothing in its place: {SAID}"
    assert not list(dropped([failed(tmp_path, body, 2)], str(tmp_path), is_always=True))
    assert list(dropped([failed(tmp_path, body, 2)], str(tmp_path)))


@pytest.mark.parametrize("body", IN_ITS_PLACE.values(), ids=IN_ITS_PLACE)
def test_what_something_stands_in_for(tmp_path: pathlib.Path, body: str) -> None:
    """Another way, a value, and an error that was expected by its name are the program's to choose."""
    assert not list(dropped([failed(tmp_path, body, 3)], str(tmp_path)))


@pytest.mark.parametrize("name", ["a value", "one kind of error"])
def test_what_an_unknown_failure_may_come_of(tmp_path: pathlib.Path, name: str) -> None:
    """Where a later exception has no known cause, an error that was expected by its name tells too; what only probes does not."""
    body = IN_ITS_PLACE[name]
    assert list(dropped([failed(tmp_path, body, 3)], str(tmp_path), of_all=False))
    probe = failed(
        tmp_path, body.replace("RuntimeError", "Exception"), 3, "No module named 'apex'", "ModuleNotFoundError"
    )
    assert not list(dropped([probe], str(tmp_path), of_all=False))


@pytest.mark.parametrize("body", GOES_ON.values(), ids=GOES_ON)
def test_what_goes_on_with_the_batch(tmp_path: pathlib.Path, body: str) -> None:
    """Nothing is left out: another way is tried, or no step was at stake."""
    assert told(tmp_path, body) == []


@pytest.mark.parametrize("body", SKIPS.values(), ids=SKIPS)
def test_what_leaves_batches_out(tmp_path: pathlib.Path, body: str) -> None:
    assert told(tmp_path, body) == [f"it caught RuntimeError 3 times in 4 steps, and left these batches out: {SAID}"]


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("CUDA out of memory. Tried to allocate 2.00 GiB", "torch.OutOfMemoryError"),
        ("[enforce fail at alloc_cpu.cpp:121] . DefaultCPUAllocator: can't allocate memory", "RuntimeError"),
        ("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", "RuntimeError"),
    ],
)
def test_memory_that_runs_out(tmp_path: pathlib.Path, message: str, kind: str) -> None:
    """What the handler is for."""
    assert told(tmp_path, SKIPS["a loop"], message=message, kind=kind) == []


def test_a_batch_that_fails_once(tmp_path: pathlib.Path) -> None:
    assert told(tmp_path, SKIPS["a loop"], count=1) == []


PROGRAM = """import torch
from torch import nn

torch.manual_seed(0)


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 6))
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        if self.calls % 3:
            x = x + torch.zeros(6, dtype=torch.float64)
        return self.layers(x)


model = Denoiser()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for x in torch.randn(24, 8, 6):
    try:
        loss = (model(x) - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    except RuntimeError:
        torch.cuda.empty_cache()
"""


@pytest.mark.torch
def test_it_is_suspect_and_mended(tmp_path: pathlib.Path) -> None:
    """With the cause of the exception; proved by a run that leaves nothing out."""
    pytest.importorskip("torch")
    (tmp_path / "train.py").write_text(PROGRAM)
    done = gradfix(tmp_path, "run", "--fix", "--unsafe-fixes", "--format", "json", "--no-probe", "--", forked.python(), "train.py")  # fmt: skip
    told = json.loads(done.stdout)
    assert (told["status"], told["report"]["findings"][0]["cause"]) == ("verified", "precision/dtype-mismatch")
    assert (tmp_path / "train.py").read_text() != PROGRAM


ALL_SKIPPED = """import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(6, 3)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
losses = []
for x in torch.randn(8, 5, 6):
    try:
        tags = torch.zeros(5, 3, dtype=torch.long)
        tags[0] = 1
        loss = nn.functional.binary_cross_entropy_with_logits(model(x), tags)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    except RuntimeError:
        continue
print(sum(losses) / len(losses))
"""


@pytest.mark.torch
def test_what_came_of_it_is_not_the_cause(tmp_path: pathlib.Path) -> None:
    """A run in which every batch was left out fails elsewhere, of a count that is 0: the exception that was caught is explained."""
    pytest.importorskip("torch")
    (tmp_path / "train.py").write_text(ALL_SKIPPED)
    done = gradfix(tmp_path, "run", "--fix", "--format", "json", "--no-probe", "--", forked.python(), "train.py")
    told = json.loads(done.stdout)
    finding = told["report"]["findings"][0]
    line = line_of(ALL_SKIPPED, "dtype=torch.long")
    assert (told["status"], finding["cause"], finding["culprits"][0]["line"]) == ("verified", "precision/target-dtype", line)  # fmt: skip
    caught = [one["value"] for one in told["report"]["incident"]["facts"] if one["name"] == CAUGHT]
    assert caught == ["the program caught this at least 7 times in 0 steps, and left these batches out"]
    assert "dtype=torch.float32" in (tmp_path / "train.py").read_text()


TRIES = """import torch
from torch import nn

model = nn.Linear(6, 3)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for x in torch.randn(4, 5, 6):
    try:
        model(x.double())
    except RuntimeError:
        model(x)
settings = {"lr": 1e-3}
print(settings["epochs"])
"""


@pytest.mark.torch
def test_what_is_only_tried_explains_nothing(tmp_path: pathlib.Path) -> None:
    """No training step was left out for it: a failure without a known cause stays one."""
    pytest.importorskip("torch")
    (tmp_path / "train.py").write_text(TRIES)
    done = gradfix(tmp_path, "run", "--fix", "--format", "json", "--no-probe", "--", forked.python(), "train.py")
    told = json.loads(done.stdout)
    assert told["report"]["incident"]["exceptions"][-1]["type"] == "KeyError"
    assert told["report"]["findings"] == []


TERMS = {
    "zeros": ("try:\n    value = term(x)  # fails\nexcept (RuntimeError, IndexError) as error:\n    if first:\n        log.warning('%s', error)\n    value = torch.zeros(())\n", True),
    "nothing": ("def part(x):\n    try:\n        return term(x)  # fails\n    except RuntimeError:\n        return None\n", True),
    "another way": ("try:\n    value = term(x)  # fails\nexcept RuntimeError:\n    value = other(x)\n", False),
    "nobody catches": ("value = term(x)  # fails\n", False),
}  # fmt: skip


@pytest.mark.parametrize(("body", "is_missing"), TERMS.values(), ids=TERMS)
def test_what_is_missing_from_a_loss(tmp_path: pathlib.Path, body: str, is_missing: bool) -> None:
    """A zero, or nothing, in the place of a term; what another way computes is a term."""
    assert bool(list(left_out_of_loss(failed(tmp_path, body, 1), str(tmp_path)))) is is_missing
    probe = failed(tmp_path, body, 1, "Torch not compiled with CUDA enabled", "AssertionError")
    assert not list(left_out_of_loss(probe, str(tmp_path)))


REFUSED = "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
OTHERWISE = {
    "another way": ("for x in batches:\n    try:\n        path = align(x.numpy())  # fails\n    except RuntimeError as why:\n        path = straight(x)\n", 6, True),
    "once a while": ("for x in batches:\n    try:\n        path = align(x.numpy())  # fails\n    except RuntimeError as why:\n        path = straight(x)\n", 2, False),
    "what expects it": ("for x in batches:\n    try:\n        path = align(x.numpy())  # fails\n    except RuntimeError:\n        path = align(x.detach().numpy())\n", 6, False),
    "what hands it on": ("for x in batches:\n    try:\n        path = align(x.numpy())  # fails\n    except RuntimeError as why:\n        raise ValueError(x) from why\n", 6, False),
    "another error": ("for x in batches:\n    try:\n        path = align(x.numpy())  # fails\n    except ValueError as why:\n        path = straight(x)\n", 6, False),
}  # fmt: skip


@pytest.mark.parametrize(("body", "count", "expected"), OTHERWISE.values(), ids=OTHERWISE)
def test_what_is_done_another_way_in_each_step(tmp_path: pathlib.Path, body: str, count: int, expected: bool) -> None:
    """What no data brings about is a fault of the program, whatever its handler does instead; another exception may be met by data."""
    found = [one.says for one in done_otherwise([failed(tmp_path, body, count, REFUSED)], str(tmp_path))]
    assert [("did something else in its place" in one) for one in found] == [True] * expected
    assert not list(done_otherwise([failed(tmp_path, body, count)], str(tmp_path)))


NO_WAY = "One of the differentiated Tensors does not require grad"
WALKS = {
    "another sample": ("for x in batches:\n    try:\n        x = walk(x)  # fails\n    except RuntimeError as why:\n        x = x.detach()\n", True),
    "no slope": ("for x in batches:\n    try:\n        slope = walk(x)  # fails\n    except RuntimeError:\n        slope = torch.zeros_like(x)\n", False),
    "what sets the flag": ("for x in batches:\n    try:\n        x = walk(x)  # fails\n    except RuntimeError:\n        x = walk(x.detach().requires_grad_())\n", False),
}  # fmt: skip


@pytest.mark.parametrize(("body", "expected"), WALKS.values(), ids=WALKS)
def test_a_gradient_to_which_there_is_no_way(tmp_path: pathlib.Path, body: str, expected: bool) -> None:
    """A sampler that falls back in each step never samples."""
    assert bool(list(done_otherwise([failed(tmp_path, body, 4, NO_WAY)], str(tmp_path)))) is expected


ENDS = """import sys
import torch
from torch import nn

model = nn.Linear(6, 3)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)


def stage(labels):
    for x in torch.randn(2, 5, 6):
        loss = nn.functional.cross_entropy(model(x), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


failed = False
for labels in (torch.zeros(5, dtype=torch.long), torch.zeros(5)):
    try:
        stage(labels)
    except Exception as error:
        print("stopped:", type(error).__name__)
        failed = True
sys.exit(1 if failed else 0)
"""


@pytest.mark.torch
def test_what_a_program_caught_before_it_ended(tmp_path: pathlib.Path) -> None:
    """Steps were made, one exception was caught, and only its type was printed."""
    pytest.importorskip("torch")
    (tmp_path / "train.py").write_text(ENDS)
    done = gradfix(tmp_path, "run", "--trace", "--format", "json", "--no-probe", "--", forked.python(), "train.py")
    told = json.loads(done.stdout)
    report = told.get("report", told)
    assert report["findings"][0]["cause"] == "precision/target-dtype"
    assert any(
        one["name"] == "live_caught" or "caught this" in str(one["value"]) for one in report["incident"]["facts"]
    )
