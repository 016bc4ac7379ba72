"""A Lightning module that steps its optimizers by itself says so, where it or its base class is made."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from tests.fix.rewriting import changed_lines, failed, rewritten, write

HEAD = "import lightning as L\nimport torch\n"
STEP = """
    def training_step(self, batch, index):
        first, second = self.optimizers()
        self.manual_backward(self.part(batch).mean())
        first.step()
"""
FLAG = "self.automatic_optimization = False"


def module(inside: str, base: str = "L.LightningModule", name: str = "Pair") -> str:
    return f"{HEAD}\nclass {name}({base}):\n{inside}"


MADE = "    def __init__(self):\n        super().__init__()\n        self.part = torch.nn.Linear(2, 1)\n"
WRONG = {
    "after super": (module(MADE + STEP), [FLAG]),
    "before super": (
        module(MADE.replace("        super()", f"        {FLAG}\n        super()") + STEP),
        [],
    ),
    "without an __init__": (
        module('    """Two networks."""\n' + STEP),
        ["def __init__(self, *args, **kwargs):", "super().__init__(*args, **kwargs)", FLAG],
    ),
    "switched on": (module(MADE + "        self.automatic_optimization = True\n" + STEP), [FLAG]),
    "the older package": (module(MADE + STEP).replace("lightning as L", "pytorch_lightning as L"), [FLAG]),
}
RIGHT = {
    "switched off": module(MADE + f"        {FLAG}\n" + STEP),
    "automatic": module(MADE + "    def training_step(self, batch, index):\n        return self.part(batch).mean()\n"),
    "no Lightning": module(MADE + STEP, base="torch.nn.Module"),
}


@pytest.mark.parametrize(("source", "wanted"), WRONG.values(), ids=WRONG.keys())
def test_faults_are_cured(tmp_path: pathlib.Path, source: str, wanted: list[str]) -> None:
    """The flag is set once, and a program with the flag is left alone."""
    after = rewritten(tmp_path, "manual_optimization", source)
    assert changed_lines(source, after) == wanted
    assert after != source
    assert rewritten(tmp_path, "manual_optimization", after) == after
    compile(after, "train.py", "exec")


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT.keys())
def test_the_rest_stays(tmp_path: pathlib.Path, source: str) -> None:
    """Automatic modules, modules that say it, and other classes."""
    assert rewritten(tmp_path, "manual_optimization", source) == source


def test_the_base_that_steps(tmp_path: pathlib.Path) -> None:
    """The class that calls the optimizers gets the flag, not each of those that derive from it."""
    base = module(MADE + STEP, name="Base")
    files = {
        "base.py": base,
        "train.py": "from base import Base\n\nclass Own(Base):\n    def __init__(self):\n        super().__init__()\n",
    }
    program = write(tmp_path, files)
    (proposal,) = find_codemod("manual_optimization")(Context(program=program, incident=failed()))
    (path,) = {edit.file for edit in proposal.edits}
    assert path.endswith("base.py")
    after = splice(program.files[path].text, proposal.edits)
    assert after is not None
    assert changed_lines(base, after) == [FLAG]


def test_a_setting_that_switches_it_on(tmp_path: pathlib.Path) -> None:
    """A flag that is read from a file is changed there."""
    source = (
        module(
            "    def __init__(self, settings):\n        super().__init__()\n"
            '        self.automatic_optimization = settings["automatic"]\n' + STEP
        )
        + '\nimport json\nPair(json.load(open("run.json")))\n'
    )
    (tmp_path / "run.json").write_text('{"automatic": true}\n')
    program = write(tmp_path, {"train.py": source})
    (proposal,) = find_codemod("manual_optimization")(Context(program=program, incident=failed()))
    (edit,) = proposal.edits
    assert (pathlib.Path(edit.file).name, edit.new) == ("run.json", "false")


@pytest.mark.parametrize(
    ("source", "line"),
    [(module(MADE + STEP), "super().__init__()"), (module(MADE + STEP).replace("self.manual_backward(", "(").replace(".mean())", ".mean()).backward()"), ".backward()")],
    ids=["said by name", "a plain backward"],
)  # fmt: skip
def test_the_line(source: str, line: str, tmp_path: pathlib.Path) -> None:
    """What lacks the flag; of a plain backward that, which the trainer follows by another."""
    program = write(tmp_path, {"train.py": source})
    (proposal,) = find_codemod("manual_optimization")(Context(program=program, incident=failed()))
    assert line in source.splitlines()[(proposal.culprit.line or 1) - 1]


PARTS = (
    MADE
    + "\n    def training_step(self, batch, batch_idx{index}):\n        {loss}\n"
    + "\n    def configure_optimizers(self):\n        {made}\n"
)
BOTH = "return [torch.optim.SGD(self.a.parameters(), lr=1), torch.optim.SGD(self.b.parameters(), lr=1)]"
PLANNED = BOTH + ", [scheduler]"
REFUSED = {
    "message": "Training with multiple optimizers is only supported with manual optimization.",
    "options": {"several": True},
}
SEVERAL = {
    "each in turn": (
        ", optimizer_idx", "return self.part(batch).mean()", BOTH,
        [FLAG, "def training_step(self, batch, batch_idx):", "for optimizer_idx, optimizer in enumerate(self.optimizers()):",
         "self.toggle_optimizer(optimizer)", "loss = self.loss_of_optimizer(batch, batch_idx, optimizer_idx)", "optimizer.zero_grad()",
         "self.manual_backward(loss)", "optimizer.step()", "self.untoggle_optimizer(optimizer)",
         "def loss_of_optimizer(self, batch, batch_idx, optimizer_idx):"],
    ),
    "one loss": (
        "", "return self.part(batch).mean()", BOTH,
        [FLAG, "loss = self.part(batch).mean()", "for optimizer in self.optimizers():", "optimizer.zero_grad()",
         "self.manual_backward(loss)", "for optimizer in self.optimizers():", "optimizer.step()", "return loss"],
    ),
    "schedulers hang on them": ("", "return self.part(batch).mean()", PLANNED, []),
    "a dictionary": (", optimizer_idx", "return {'loss': self.part(batch).mean()}", BOTH, []),
    "a loss of each": ("", "return self.part(batch).mean(), self.part(batch).sum()", BOTH, []),
}  # fmt: skip


@pytest.mark.parametrize(("index", "loss", "made", "wanted"), SEVERAL.values(), ids=SEVERAL)
def test_several_optimizers_step_by_hand(
    index: str, loss: str, made: str, wanted: list[str], tmp_path: pathlib.Path
) -> None:
    """As Lightning 1 stepped them; nothing is written where what hangs on them would be lost."""
    source = module(PARTS.format(index=index, loss=loss, made=made))
    after = rewritten(tmp_path, "manual_optimization", source, **REFUSED)
    assert changed_lines(source, after) == wanted
    assert rewritten(tmp_path, "manual_optimization", after, **REFUSED) == after
