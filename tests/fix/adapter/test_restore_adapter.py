"""The adapter that trains is the active one again behind a reference's pass."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from explainer.model.incident import Incident, LogLine
from explainer.model.verification import SWITCHED
from tests.fix.rewriting import diff_lines, line_of, write

HEAD = "import torch\nfrom contextlib import contextmanager\n"
STEP = """def step(model, batch):
    model.set_adapter("policy")
    out = model(batch)
    model.set_adapter('reference')
    REST
    loss = (out - ref).mean()
    loss.backward()
"""
CLASS = """class Objective:
    def policy_pass(self, x):
        self.model.set_adapter(self.policy)
        return self.model(x)

    @torch.no_grad()
    def reference_pass(self, x):
        self.model.set_adapter(self.reference)
        return self.model(x).sum()
"""
DECORATED = """@torch.no_grad()
def reference(model, x):
    model.set_adapter("reference", inference_mode=True)
    if x is None:
        return None
    out = model(x)
    return out
"""
MANAGER = """@contextmanager
def reference(model):
    model.set_adapter("reference")
    yield model
"""
CONSTANT = 'POLICY, TEACHER = "policy", "reference"\n' + STEP.replace("'reference'", "TEACHER")
HELPER = """def use(model, name):
    model.set_adapter(name)

def step(model, x):
    use(model, "policy")
    out = model(x)
    use(model, "reference")
    with torch.no_grad():
        ref = model(x)
    (out - ref).mean().backward()
"""
TOO_LATE = """class Objective:
    @contextmanager
    def reference(self):
        self.model.set_adapter(self.reference_name)
        yield
        self.model.set_adapter(self.model.active_adapter)
"""
BLOCK = "with torch.no_grad():\n        ref = model(batch)"
RIGHT = {
    "the backward follows": HEAD + STEP.replace("    REST\n    loss = (out - ref).mean()\n    loss.backward()\n", "    out.mean().backward()\n"),
    "nothing follows": HEAD + 'def switch(model):\n    model.set_adapter("reference")\n',
    "a line that was not seen": HEAD + STEP.replace("REST", BLOCK).replace("model.set_adapter('reference')", "model.set_adapter('other')"),
}  # fmt: skip
WRONG = {
    "a block without gradients": (HEAD + STEP.replace("REST", BLOCK), ["model.set_adapter('policy')"]),
    "one statement": (HEAD + STEP.replace("REST", "ref = model(batch).detach()"), ["model.set_adapter('policy')"]),
    "a constant of the module": (HEAD + CONSTANT.replace("REST", BLOCK), ["model.set_adapter(POLICY)"]),
    "a block that returns": (
        HEAD + 'def reference(model, x):\n    model.set_adapter("reference")\n    with torch.no_grad():\n        return model(x).sum()\n',
        ["result = model(x).sum()", 'model.set_adapter("policy")', "return result"],
    ),
    "inside the block": (
        HEAD + 'def reference(model, x):\n    with torch.no_grad():\n        model.set_adapter("reference")\n        ref = model(x)\n    return ref\n',
        ['model.set_adapter("policy")'],
    ),
    "a method": (HEAD + CLASS, ["result = self.model(x).sum()", "self.model.set_adapter(self.policy)", "return result"]),
    "several ends": (HEAD + DECORATED, ['model.set_adapter("policy")', 'model.set_adapter("policy")']),
    "a context": (HEAD + MANAGER, ['model.set_adapter("policy")']),
    "what is active is read too late": (
        HEAD + TOO_LATE, ["trained = self.model.active_adapter", "self.model.set_adapter(trained)"],
    ),
    "a helper that is told which": (HEAD + HELPER, ['use(model, "policy")']),
}  # fmt: skip


def mended(source: str, folder: pathlib.Path) -> str:
    """The program after the best edit for the last line that makes a reference the active adapter."""
    lines = [
        number for number, line in enumerate(source.splitlines(), 1) if "set_adapter(" in line and "policy" not in line
    ]
    seen = LogLine(
        text=f"seen in the live program: train.py:{lines[-1]} {SWITCHED}: `policy`, since `reference` is active"
    )
    if "'other'" in source:
        seen = LogLine(text=seen.text.replace(f":{lines[-1]} ", ":1 "))
    context = Context(program=write(folder, {"train.py": source}), incident=Incident(log=(seen,)))
    best = max(find_codemod("restore_adapter")(context), key=lambda one: one.belief, default=None)
    return splice(source, best.edits) or "" if best is not None else source


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_the_rest_stays(source: str, tmp_path: pathlib.Path) -> None:
    """Nothing is written where no pass of the reference follows, or another line is meant."""
    assert mended(source, tmp_path) == source


@pytest.mark.parametrize(("source", "lines"), WRONG.values(), ids=WRONG)
def test_it_is_active_again(source: str, lines: list[str], tmp_path: pathlib.Path) -> None:
    """Behind what the reference is run by, under a name that the program has for the adapter."""
    after = mended(source, tmp_path)
    compile(after, "train.py", "exec")
    added = [line[1:].strip() for line in diff_lines(source, after) if line.startswith("+")]
    assert added == lines


def test_it_stands_behind_the_pass(tmp_path: pathlib.Path) -> None:
    """Between the reference's pass and the loss."""
    after = mended(HEAD + STEP.replace("REST", BLOCK), tmp_path)
    assert (
        line_of(after, "ref = model")
        < after.splitlines().index("    model.set_adapter('policy')") + 1
        < line_of(after, "loss =")
    )
