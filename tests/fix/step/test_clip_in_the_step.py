"""Under manual optimization the module clips before each of its steps, and the Trainer no more."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.splice import make_patch
from tests.fix.rewriting import best, failed, write

MESSAGE = (
    "Automatic gradient clipping is not supported for manual optimization. "
    "Remove `Trainer(gradient_clip_val=0.5)` or switch to automatic optimization."
)
HEAD = """import lightning as L
import torch
from torch import nn


class Pair(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.net = nn.Linear(2, 1)

    def configure_optimizers(self):
        return torch.optim.SGD(self.net.weight, 0.1), torch.optim.Adam(self.net.bias)
"""
LOOP = """
    def training_step(self, batch, index):
        optimizers = self.optimizers()
        self.manual_backward(self.net(batch).mean())
        for opt in optimizers:
            opt.step()
        self.lr_schedulers().step()
"""
FIT = "\ntrainer = L.Trainer(max_steps=1, gradient_clip_val=0.5)\ntrainer.fit(Pair(), data)\n"
CLIP = 'self.clip_gradients(opt, gradient_clip_val=0.5, gradient_clip_algorithm="norm")'
PLAIN = "self.clip_gradients(opt, gradient_clip_val=0.5)"
UNSURE = {
    "a closure": LOOP.replace("opt.step()", "opt.step(closure=self.closure)") + FIT,
    "steps in a comprehension": LOOP.replace("for opt in optimizers:\n            opt.step()", "[opt.step() for opt in optimizers]")
    + FIT,
    "a step beside its condition": LOOP.replace("            opt.step()", "            if index % 2: opt.step()") + FIT,
    "an optimizer that is not known": LOOP.replace("self.optimizers()", "self.engine.parts()") + FIT,
    "a module that clips already": LOOP.replace("            opt.step()", "            self.clip_gradients(opt)\n            opt.step()")
    + FIT,
    "a module that says how it is clipped": LOOP + "\n    def configure_gradient_clipping(self, *given):\n        pass\n" + FIT,
    "gradients that are scaled": LOOP + FIT.replace("max_steps=1", 'max_steps=1, precision="16-mixed"'),
    "an algorithm that is not written": LOOP
    + FIT.replace("gradient_clip_val=0.5", "gradient_clip_val=0.5, gradient_clip_algorithm=args.how"),
    "a Trainer that another module shares": LOOP
    + """

class Alone(L.LightningModule):
    def training_step(self, batch, index):
        return batch.mean()


trainer = L.Trainer(max_steps=1, gradient_clip_val=0.5)
trainer.fit(Alone(), data)
trainer.fit(Pair(), data)
""",
}  # fmt: skip
OTHER = {
    "another message": (LOOP + FIT, "it failed"),
    "a value that is no number": (LOOP + FIT, MESSAGE.replace("0.5", "clip")),
    "an option that is nowhere": (LOOP + "\nL.Trainer(max_steps=1).fit(Pair(), data)\n", MESSAGE),
}
# The program below the module, the lines that go, the lines that come.
CURED = {
    "a keyword": (LOOP + FIT, ["trainer = L.Trainer(max_steps=1, gradient_clip_val=0.5)"],
                  [PLAIN, "trainer = L.Trainer(max_steps=1)"]),
    "both keywords, first": (
        LOOP + '\nL.Trainer(gradient_clip_val=0.5, gradient_clip_algorithm="norm", max_steps=1).fit(Pair(), data)\n',
        ['L.Trainer(gradient_clip_val=0.5, gradient_clip_algorithm="norm", max_steps=1).fit(Pair(), data)'],
        [CLIP, "L.Trainer(max_steps=1).fit(Pair(), data)"],
    ),
    "both keywords, last": (
        LOOP + '\nL.Trainer(max_steps=1, gradient_clip_val=0.5, gradient_clip_algorithm="norm").fit(Pair(), data)\n',
        ['L.Trainer(max_steps=1, gradient_clip_val=0.5, gradient_clip_algorithm="norm").fit(Pair(), data)'],
        [CLIP, "L.Trainer(max_steps=1).fit(Pair(), data)"],
    ),
    "keywords on lines of their own": (
        LOOP + '\nL.Trainer(\n    max_steps=1,  # one\n    gradient_clip_val=0.5,\n    gradient_clip_algorithm="value",\n).fit(Pair(), data)\n',
        ["gradient_clip_val=0.5,", 'gradient_clip_algorithm="value",'],
        ['self.clip_gradients(opt, gradient_clip_val=0.5, gradient_clip_algorithm="value")'],
    ),
    "a dictionary": (
        LOOP + '\noptions = {"max_steps": 1, "gradient_clip_val": 0.5, "gradient_clip_algorithm": "norm"}\nL.Trainer(**options).fit(Pair(), data)\n',
        ['options = {"max_steps": 1, "gradient_clip_val": 0.5, "gradient_clip_algorithm": "norm"}'],
        [CLIP, 'options = {"max_steps": 1}'],
    ),
    "keywords of dict": (
        LOOP + "\noptions = dict(gradient_clip_val=0.5, max_steps=1)\nL.Trainer(**options).fit(Pair(), data)\n",
        ["options = dict(gradient_clip_val=0.5, max_steps=1)"],
        [PLAIN, "options = dict(max_steps=1)"],
    ),
    "an entry that is set": (
        LOOP + '\noptions = {"max_steps": 1}\noptions["gradient_clip_val"] = 0.5\nL.Trainer(**options).fit(Pair(), data)\n',
        ['options["gradient_clip_val"] = 0.5'],
        [PLAIN],
    ),
    "a value from elsewhere": (
        LOOP + "\nL.Trainer(max_steps=1, gradient_clip_val=args.clip).fit(Pair(), data)\n",
        ["L.Trainer(max_steps=1, gradient_clip_val=args.clip).fit(Pair(), data)"],
        [PLAIN, "L.Trainer(max_steps=1).fit(Pair(), data)"],
    ),
    "two optimizers by name": (
        """
    def training_step(self, batch, index):
        first, second = self.optimizers()
        self.manual_backward(self.net(batch).mean())
        first.step()
        self.manual_backward(self.net(batch).mean())
        if index % 2 == 0:
            second.step()
""" + FIT,
        ["trainer = L.Trainer(max_steps=1, gradient_clip_val=0.5)"],
        ["self.clip_gradients(first, gradient_clip_val=0.5)", "self.clip_gradients(second, gradient_clip_val=0.5)",
         "trainer = L.Trainer(max_steps=1)"],
    ),
    "a helper that steps": (
        """
    def training_step(self, batch, index):
        opts = self.optimizers()
        self.manual_backward(self.net(batch).mean())
        self.advance(opts[0])
        self.advance(opts[1])

    def advance(self, opt):
        opt.step()
        opt.zero_grad()
""" + FIT,
        ["trainer = L.Trainer(max_steps=1, gradient_clip_val=0.5)"],
        [PLAIN, "trainer = L.Trainer(max_steps=1)"],
    ),
    "a scheduler with a name": (
        LOOP.replace("self.lr_schedulers().step()", "ramp = self.lr_schedulers()\n        ramp.step()") + FIT,
        ["trainer = L.Trainer(max_steps=1, gradient_clip_val=0.5)"],
        [PLAIN, "trainer = L.Trainer(max_steps=1)"],
    ),
    "the older package": (
        LOOP + FIT.replace("L.Trainer", "pl.Trainer").replace("\ntrainer", "\nimport pytorch_lightning as pl\ntrainer", 1),
        ["trainer = pl.Trainer(max_steps=1, gradient_clip_val=0.5)"],
        [PLAIN, "trainer = pl.Trainer(max_steps=1)"],
    ),
}  # fmt: skip
# Files, what loads them, the lines that go and come in them.
FILES = {
    "YAML": (
        "run.yaml", "seed: 1\ntrainer:\n  max_steps: 1\n  gradient_clip_val: 0.5  # small\n  gradient_clip_algorithm: norm\n",
        'yaml.safe_load(open("run.yaml"))["trainer"]', "seed: 1\ntrainer:\n  max_steps: 1\n", CLIP,
    ),
    "YAML with nothing else": (
        "run.yaml", "trainer:\n  gradient_clip_val: 0.5\n", 'yaml.safe_load(open("run.yaml"))["trainer"]',
        "trainer:\n  gradient_clip_val: null\n", PLAIN,
    ),
    "YAML in braces": (
        "run.yaml", "trainer: {max_steps: 1, gradient_clip_val: 0.5, gradient_clip_algorithm: norm}\n",
        'yaml.safe_load(open("run.yaml"))["trainer"]', "trainer: {max_steps: 1}\n", CLIP,
    ),
    "JSON": (
        "run.json", '{\n  "trainer": {\n    "max_steps": 1,\n    "gradient_clip_val": 0.5,\n    "gradient_clip_algorithm": "norm"\n  }\n}\n',
        'json.load(open("run.json"))["trainer"]', '{\n  "trainer": {\n    "max_steps": 1\n  }\n}\n', CLIP,
    ),
    "JSON on one line": (
        "run.json", '{"gradient_clip_val": 0.5, "gradient_clip_algorithm": "norm", "max_steps": 1}',
        'json.load(open("run.json"))', '{"max_steps": 1}', CLIP,
    ),
}  # fmt: skip


def cured(folder: pathlib.Path, source: str, message: str = MESSAGE) -> tuple[str, dict[str, str]] | None:
    """The difference that the edit makes, and the files after it; None where there is no edit."""
    program = write(folder, {"train.py": source})
    value = message.rpartition("gradient_clip_val=")[2].partition(")")[0]
    proposal = best("clip_in_the_step", program, incident=failed(message=message), fields={"value": value})
    if proposal is None or not proposal.edits:
        return None
    patch = make_patch(proposal.edits, program.editable([one.file for one in proposal.edits]), str(folder))
    assert not isinstance(patch, str), patch
    return patch.diff, {pathlib.Path(one.file).name: one.after.decode() for one in patch.files}


BEHIND = {
    "what is logged between": ("", "self.log('norm', self.net.weight.grad.norm())"),
    "an optimizer that is taken between": ("opt = None", "opt = self.optimizers()"),
}


@pytest.mark.parametrize(("first", "between"), BEHIND.values(), ids=BEHIND)
def test_clipping_follows_the_backward(first: str, between: str, tmp_path: pathlib.Path) -> None:
    """What is read of the gradients before the step is what steps; an optimizer that is not there yet has to be waited for."""
    body = [first or "opt = self.optimizers()", "self.manual_backward(self.net(batch).mean())", between, "opt.step()"]
    step = "\n    def training_step(self, batch, index):\n" + "".join(f"        {one}\n" for one in body)
    found = cured(tmp_path, HEAD + step + FIT)
    assert found is not None
    lines = [line.strip() for line in found[1]["train.py"].splitlines()]
    assert lines[lines.index(PLAIN) - 1] == (between if first else body[1])


@pytest.mark.parametrize("below", UNSURE.values(), ids=UNSURE)
def test_unsure_steps_get_the_line_only(below: str, tmp_path: pathlib.Path) -> None:
    """Where a step is not plain, or clipping is not this module's alone, only the option is named."""
    program = write(tmp_path, {"train.py": HEAD + below})
    proposal = best("clip_in_the_step", program, incident=failed(message=MESSAGE), fields={"value": "0.5"})
    assert proposal is not None
    assert not proposal.edits
    assert "gradient_clip_val=0.5" in (proposal.culprit.code or "")


@pytest.mark.parametrize(("below", "message"), OTHER.values(), ids=OTHER)
def test_the_rest_stays(below: str, message: str, tmp_path: pathlib.Path) -> None:
    """Other failures, and options that are not found."""
    assert cured(tmp_path, HEAD + below, message) is None


@pytest.mark.parametrize(("below", "gone", "come"), CURED.values(), ids=CURED)
def test_the_module_clips(below: str, gone: list[str], come: list[str], tmp_path: pathlib.Path) -> None:
    """Each step is preceded by its clip, and the Trainer's options are gone."""
    found = cured(tmp_path, HEAD + below)
    assert found is not None
    lines = [one for one in found[0].splitlines() if one[:1] in "+-" and one[:3] not in ("+++", "---")]
    assert [one[1:].strip() for one in lines if one[0] == "-"] == gone
    assert [one[1:].strip() for one in lines if one[0] == "+"] == come


@pytest.mark.parametrize(("name", "before", "load", "after", "clip"), FILES.values(), ids=FILES)
def test_options_of_a_file_go(name: str, before: str, load: str, after: str, clip: str, tmp_path: pathlib.Path) -> None:
    """An option that is read from a configuration file goes there; the rest of the file stays as it was."""
    (tmp_path / name).write_text(before)
    source = HEAD + LOOP + f"\nimport json, yaml\nL.Trainer(**{load}).fit(Pair(), data)\n"
    found = cured(tmp_path, source)
    assert found is not None
    assert found[1][name] == after
    assert clip in found[1]["train.py"]
