"""A generator that works under `no_grad` hands out what it found behind the block."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from explainer.model.trace import GRAD_OFF, TracedLine
from tests.fix.rewriting import failed, line_of, write

HEAD = """import torch
from contextlib import contextmanager
from torch import nn

net = nn.Linear(4, 3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)


def score(rows):
    return net(rows).logsumexp(1)


"""
SAMPLER = """class Hardest:
    def __iter__(self):
        if self.passes < 1:
            yield from self.plain
            return
        with torch.no_grad():
            for _ in range(len(self)):
                # a pool of candidates
                pool = torch.randperm(self.size)[:12]
                hardest = self.score(pool).topk(4).indices

                yield pool[hardest].tolist()
"""
SPREAD = {
    "a loop in the block": (
        SAMPLER,
        """class Hardest:
    def __iter__(self):
        if self.passes < 1:
            yield from self.plain
            return
        for _ in range(len(self)):
            with torch.no_grad():
                # a pool of candidates
                pool = torch.randperm(self.size)[:12]
                hardest = self.score(pool).topk(4).indices

            yield pool[hardest].tolist()
""",
    ),
    "a block in the loop": (
        """def batches(rows, size):
    for part in rows.split(size):
        with torch.no_grad():
            order = score(part).argsort()
            yield part[order]
""",
        """def batches(rows, size):
    for part in rows.split(size):
        with torch.no_grad():
            order = score(part).argsort()
        yield part[order]
""",
    ),
    "what is prepared before the loop": (
        """def mined(rows, count):
    with torch.no_grad():
        scores = score(rows)
        seen = []
        for at in range(count):
            order = scores.sort().indices
            if at % 2:
                yield rows[order[:4]]
            else:
                text = '''of
                two lines'''
                yield rows[order[4:]], text
""",
        """def mined(rows, count):
    with torch.no_grad():
        scores = score(rows)
        seen = []
    for at in range(count):
        with torch.no_grad():
            order = scores.sort().indices
        if at % 2:
            yield rows[order[:4]]
        else:
            text = '''of
                two lines'''
            yield rows[order[4:]], text
""",
    ),
    "what is computed as it is yielded": (
        """def labelled(batches, teacher=nn.Linear(4, 3)):
    with torch.inference_mode():
        for batch in batches:
            yield batch, teacher(batch).argmax(1)
""",
        """def labelled(batches, teacher=nn.Linear(4, 3)):
    for batch in batches:
        with torch.inference_mode():
            result = batch, teacher(batch).argmax(1)
        yield result
""",
    ),
    "one of several ways": (
        """def chosen(rows, k):
    with torch.no_grad():
        for part in rows:
            keep = score(part) > k
            if keep.any():
                yield part[keep]
            elif k > 2:
                part = part.flip(0)
                yield part
""",
        None,
    ),
    "a condition at hand": (
        """def chosen(rows, k):
    with torch.no_grad():
        for part in rows:
            found = score(part).max().item()
            if found > k:
                yield part
            elif k > 2:
                part = part.flip(0)
                yield part
            k = found
""",
        """def chosen(rows, k):
    for part in rows:
        with torch.no_grad():
            found = score(part).max().item()
        if found > k:
            yield part
        elif k > 2:
            with torch.no_grad():
                part = part.flip(0)
            yield part
        k = found
""",
    ),
}
STAYS = {
    "a context manager": "@contextmanager\ndef still():\n    with torch.no_grad():\n        yield net\n",
    "a bare yield": "def still():\n    with torch.no_grad():\n        yield\n",
    "nothing is yielded": "def still(x):\n    with torch.no_grad():\n        return net(x)\n",
    "what a trained network computes": "def encoded(rows):\n    with torch.no_grad():\n        for row in rows:\n            yield net(row)\n",
    "within a try": "def tried(rows):\n    with torch.no_grad():\n        try:\n            yield score(rows).argmax()\n        finally:\n            rows.close()\n",
    "another generator": "def more(rows):\n    with torch.no_grad():\n        yield from scored(rows)\n\n\ndef scored(rows):\n    yield score(rows).argmax()\n",
    "a test that runs the network": "def until(rows):\n    with torch.no_grad():\n        while score(rows).max() > 1:\n            yield rows\n",
    "a function within": "def make(rows):\n    with torch.no_grad():\n        def walk():\n            yield rows\n        return walk\n",
}


def proposed(source: str, folder: pathlib.Path) -> list[str | None]:
    program = write(folder, {"train.py": source})
    line = next(
        one for one in (line_of(source, words) for words in ("with torch.no_grad", "with torch.inf") if words in source)
    )
    traced = TracedLine(kind=GRAD_OFF, operation="no_grad", file=str(folder / "train.py"), line=line)
    context = Context(program=program, incident=replace(failed(), traced=(traced,)))
    return [splice(source, one.edits) for one in find_codemod("yield_outside_block")(context)]


@pytest.mark.parametrize("body", STAYS.values(), ids=STAYS)
def test_others_stay(tmp_path: pathlib.Path, body: str) -> None:
    """What is to run in the block of its user, and what cannot be closed around a `yield`, is left to the other fixes."""
    assert proposed(HEAD + body, tmp_path) == []


@pytest.mark.parametrize(("body", "wanted"), SPREAD.values(), ids=SPREAD)
def test_blocks_close_before_a_yield(tmp_path: pathlib.Path, body: str, wanted: str | None) -> None:
    """Everything else stays under the block's mode."""
    found = proposed(HEAD + body, tmp_path)
    assert found == ([HEAD + wanted] if wanted is not None else [])
    assert all(compile(one or "", "train.py", "exec") for one in found)


def test_others_of_a_network_that_nothing_trains(tmp_path: pathlib.Path) -> None:
    """Its output is data, whatever is computed of it."""
    source = (
        HEAD.replace("optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\n", "")
        + STAYS["what a trained network computes"]
    )
    (after,) = proposed(source, tmp_path)
    assert after is not None
    assert after.endswith(
        "    for row in rows:\n        with torch.no_grad():\n            result = net(row)\n        yield result\n"
    )


NO_GRAPH = "element 0 of tensors does not require grad and does not have a grad_fn"
FED = (
    HEAD
    + """class Hardest:
    def __iter__(self):
        with torch.no_grad():
            for part in rows.split(4):
                best = score(part).topk(2).indices
                yield part[best].tolist()


def hardest(rows):
    with torch.no_grad():
        for part in rows.split(4):
            best = score(part).topk(2).indices
            yield part[best].tolist()


def train(rows):
    for batch in LOOP:
        net(batch).sum().backward()


def judge(rows):
    for batch in hardest(rows):
        print(batch)
"""
)
LOOPS = {
    "a generator": ("hardest(rows)", 1),
    "wrapped": ("enumerate(hardest(rows))", 1),
    "a sampler of a loader": ("torch.utils.data.DataLoader(rows, batch_sampler=Hardest())", 1),
    "a name": ("loader", 1),
    "plain rows": ("rows.split(4)", 0),
    "a loader without it": ("torch.utils.data.DataLoader(rows, batch_size=4)", 0),
}


@pytest.mark.parametrize(("loop", "count"), LOOPS.values(), ids=LOOPS)
def test_what_feeds_the_loop_that_failed(tmp_path: pathlib.Path, loop: str, count: int) -> None:
    """Where nothing was traced; a generator that another loop takes from is no fault of this one."""
    source = FED.replace("LOOP", loop) + "\n\nloader = torch.utils.data.DataLoader(rows, batch_sampler=Hardest())\n"
    program = write(tmp_path, {"train.py": source})
    for message, wanted in ((NO_GRAPH, count), ("another", 0)):
        incident = failed({"train.py": line_of(source, ".backward()")}, message)
        assert len(list(find_codemod("yield_outside_block")(Context(program=program, incident=incident)))) == wanted


GUESSED = (
    HEAD
    + """def guessed(model, rows):
    with torch.no_grad():
        for part in rows.split(4):
            yield part, model(part).softmax(1)


for part, guess in guessed(net, torch.randn(8, 4)):
    FORWARD
    loss = (out - guess).square().sum()
    loss.backward()
"""
)


@pytest.mark.parametrize(("forward", "is_data"), [("out = net(part)", True), ("out = guess * head(part)", False)])
def test_guesses_of_the_network_that_the_loss_runs(tmp_path: pathlib.Path, forward: str, *, is_data: bool) -> None:
    """What the trained network said of a batch is a target where the step runs it again, and its forward where it does not."""
    source = GUESSED.replace("FORWARD", forward).replace("\n\ndef score", "\nhead = nn.Linear(4, 3)\n\ndef score")
    program = write(tmp_path, {"train.py": source})
    incident = failed({"train.py": line_of(source, ".backward()")}, NO_GRAPH)
    found = list(find_codemod("yield_outside_block")(Context(program=program, incident=incident)))
    assert len(found) == is_data
