"""What a worker hands to another process is detached there."""

from __future__ import annotations

import pathlib

import pytest

from explainer.model.incident import ExceptionRecord, Frame, Incident
from tests.fix.rewriting import best, diff_lines, rewritten, write

SAID = "Cowardly refusing to serialize non-leaf tensor which requires_grad"
SOURCE = """import torch
from torch import nn
from torch import multiprocessing as mp
import torch.nn.functional as F


class Answer:
    def __init__(self, *parts):
        self.parts = parts


def work(job):
    model = nn.Linear(3, 1)
    loss = F.mse_loss(model(job.x), job.y)
    loss.backward()
BODY

with mp.Pool(2) as pool:
    found = pool.map(work, jobs)
"""


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("    return loss", ["    return loss.detach()"]),
        ("    return loss.item(), loss", ["    return loss.item(), loss.detach()"]),
        ("    return {'loss': loss, 'x': job.x}", ["    return {'loss': loss.detach(), 'x': job.x}"]),
        ("    return Answer(3, loss)", ["    return Answer(3, loss.detach())"]),
        ("    delta = {n: 2 * p for n, p in model.named_parameters()}\n    return delta", ["    delta = {n: 2 * p.detach() for n, p in model.named_parameters()}"]),
        ("    return [p.sum() for p in model.parameters()]", ["    return [p.detach().sum() for p in model.parameters()]"]),
        ("    return [p.detach() for p in model.parameters()]", []),
        ("    return [p.grad for p in model.parameters()]", []),
        ("    return loss.item()", []),
        ("    return model.state_dict()", []),
    ],
)  # fmt: skip
def test_what_a_pool_returns(tmp_path: pathlib.Path, body: str, wanted: list[str]) -> None:
    source = SOURCE.replace("BODY", body)
    after = rewritten(tmp_path, "detach_for_sending", source, "pool.map", message=SAID)
    assert [one[1:] for one in diff_lines(source, after) if one.startswith("+")] == wanted


PLAYED = """import functools
import torch
from concurrent.futures import ProcessPoolExecutor
from torch import nn
from torch.distributions import Categorical


def play(width, seed):
    model = nn.Linear(4, width)
    rows = BEGIN
    for _ in range(3):
        choice = Categorical(logits=model(torch.randn(4)))
        action = choice.sample()
        FILL
    return RETURN


with ProcessPoolExecutor() as pool:
    found = pool.submit(GIVEN, 3).result()
"""
FILLED = {
    "a list that is stacked": (
        ("[]", "rows.append(choice.log_prob(action))", "action, torch.stack(rows)"),
        ["return action, torch.stack(rows).detach()"],
    ),
    "a list": (("[]", "rows.append(choice.log_prob(action))", "rows"), ["rows.append(choice.log_prob(action).detach())"]),
    "pairs": (("[]", "rows.append((action, choice.log_prob(action)))", "rows"), ["rows.append((action, choice.log_prob(action).detach()))"]),
    "lists by their names": (
        ('{"a": [], "p": []}', 'rows["a"].append(action); rows["p"].append(choice.log_prob(action))', "{name: torch.stack(part) for name, part in rows.items()}"),
        ['rows["a"].append(action); rows["p"].append(choice.log_prob(action).detach())'],
    ),
    "a name that is put away": (
        ("[]", "value = choice.log_prob(action)\n        rows.append(value)", "[one for one in rows]"),
        ["rows.append(value.detach())"],
    ),
    "entries": (("{}", 'rows["p"] = choice.log_prob(action)', "rows"), ['rows["p"] = choice.log_prob(action).detach()']),
    "values": (("[]", "rows.append(choice.log_prob(action).item())", "rows"), []),
    "actions": (("[]", "rows.append(action)", "rows"), []),
    "what the worker trains on": (("[]", "rows.append(choice.log_prob(action))\n        sum(rows).backward()", "rows"), []),
}  # fmt: skip


@pytest.mark.parametrize("given", ["play", "functools.partial(play, 2)"])
@pytest.mark.parametrize(("parts", "wanted"), FILLED.values(), ids=FILLED)
def test_what_fills_a_result(
    tmp_path: pathlib.Path, parts: tuple[str, str, str], wanted: list[str], given: str
) -> None:
    """The line that puts it there is the one to change; the worker itself must not train on it."""
    source = PLAYED.replace("GIVEN", given)
    for word, text in zip(("BEGIN", "FILL", "RETURN"), parts, strict=True):
        source = source.replace(word, text)
    after = rewritten(tmp_path, "detach_for_sending", source, "found =", message=SAID)
    assert [one[1:].strip() for one in diff_lines(source, after) if one.startswith("+")] == wanted


CLINIC = """import torch
from torch import nn

def serve(pipe, queue):
    model = nn.Linear(3, 1)
    while (x := pipe.recv()) is not None:
        loss = model(x).mean()
        loss.backward()
        BODY
"""
SENT = {
    "by a name, in a dictionary": (
        "change = {n: p - 1 for n, p in model.named_parameters()}\n        pipe.send({'rows': 3, 'change': change})",
        ["        change = {n: p.detach() - 1 for n, p in model.named_parameters()}"],
    ),
    "a loss to a queue": ("queue.put((3, loss))", ["        queue.put((3, loss.detach()))"]),
    "values alone": ("pipe.send((3, loss.item()))", []),
    "detached parameters": ("queue.put([p.detach() for p in model.parameters()])", []),
}


@pytest.mark.parametrize(("body", "wanted"), SENT.values(), ids=SENT)
def test_what_is_sent(tmp_path: pathlib.Path, body: str, wanted: list[str]) -> None:
    """A process that is no pool's hands its results over itself."""
    source = CLINIC.replace("BODY", body)
    fails = next(one for one in source.splitlines() if "pipe.send" in one or "queue.put" in one)
    after = rewritten(tmp_path, "detach_for_sending", source, fails.strip(), message=SAID)
    assert [one[1:] for one in diff_lines(source, after) if one.startswith("+")] == wanted


FED = """import torch
from torch import nn

def act(model, x):
    score = model(x).mean()
    return {"x": x, "score": SCORE}

def run(weights, results):
    model = nn.Linear(3, 1)
    while (x := weights.get()) is not None:
        results.put(act(model, x))
"""


@pytest.mark.parametrize(("score", "cut"), [("score", "score.detach()"), ("score.item()", None)])
def test_what_the_thread_of_a_queue_sends(tmp_path: pathlib.Path, score: str, cut: str | None) -> None:
    """Its traceback holds no line of the program: what a function returns for a `put` is detached there."""
    program = write(tmp_path, {"train.py": FED.replace("SCORE", score)})
    frame = Frame(file="/usr/lib/python3.11/multiprocessing/queues.py", line=244, function="_feed")
    incident = Incident(exceptions=(ExceptionRecord(type="RuntimeError", message=SAID, frames=(frame,)),))
    found = best("detach_for_sending", program, incident=incident)
    if cut is None:
        assert found is None
    else:
        assert found is not None
        assert ".detach()" in "".join(one.new for one in found.edits)
        assert found.culprit.line == 6
