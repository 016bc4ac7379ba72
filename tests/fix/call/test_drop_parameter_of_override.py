"""A parameter that Lightning no longer passes leaves the overriding method; what is not known to be lost stays."""

from __future__ import annotations

import pathlib

import pytest

from explainer.catalog.bundle import load_catalog
from explainer.catalog.interface import came, gone
from explainer.fix.codemod import Context, Proposal, find_codemod
from explainer.fix.splice import splice
from explainer.model.incident import ExceptionRecord, Frame, Incident
from explainer.source.program import Program
from tests.fix.rewriting import write

HEAD = "import lightning as L\n\nclass Net(L.LightningModule):\n"
CALLBACK = "import lightning as L\n\nclass Watch(L.Callback):\n"
CLOSURE = "The closure hasn't been executed. HINT: did you call `optimizer_closure()` in your `optimizer_step` hook?"
LIBRARY = Frame(file="lightning/pytorch/trainer/call.py", line=177, code="output = fn(*args)", library="lightning")

# The method, the argument that the message misses, and the method after the edit.
CURED = {
    "the index of the optimizer": (
        "    def optimizer_step(self, epoch, batch_idx, optimizer, optimizer_idx, optimizer_closure):\n        optimizer.step(closure=optimizer_closure)\n",
        "optimizer_closure",
        "    def optimizer_step(self, epoch, batch_idx, optimizer, optimizer_closure):\n        optimizer.step(closure=optimizer_closure)\n",
    ),
    "other names for the same": (
        "    def optimizer_step(self, current_epoch, batch_nb, optimizer, optimizer_i, closure):\n        optimizer.step(closure)\n",
        "closure",
        "    def optimizer_step(self, current_epoch, batch_nb, optimizer, closure):\n        optimizer.step(closure)\n",
    ),
    "annotations, defaults and lines of their own": (
        "    def optimizer_step(\n        self,\n        epoch: int,\n        batch_idx: int,\n        optimizer,\n        optimizer_idx: int,\n        optimizer_closure,\n        on_tpu: bool = False,\n        using_native_amp=False,\n        using_lbfgs: bool = False,\n    ):\n        optimizer.step(closure=optimizer_closure)\n",
        "optimizer_closure",
        "    def optimizer_step(\n        self,\n        epoch: int,\n        batch_idx: int,\n        optimizer,\n        optimizer_closure,\n    ):\n        optimizer.step(closure=optimizer_closure)\n",
    ),
    "an index that the body reads": (
        '    def optimizer_step(self, epoch, batch_idx, optimizer, optimizer_idx, optimizer_closure):\n        """Every second."""\n        if optimizer_idx == 0:\n            optimizer.step(closure=optimizer_closure)\n',
        "optimizer_closure",
        '    def optimizer_step(self, epoch, batch_idx, optimizer, optimizer_closure):\n        """Every second."""\n        optimizer_idx = 0\n        if optimizer_idx == 0:\n            optimizer.step(closure=optimizer_closure)\n',
    ),
    "a call of the base": (
        "    def optimizer_step(self, epoch, batch_idx, optimizer, optimizer_idx, optimizer_closure, on_tpu=False):\n        super().optimizer_step(epoch, batch_idx, optimizer, optimizer_idx, optimizer_closure, on_tpu=on_tpu)\n",
        "optimizer_closure",
        "    def optimizer_step(self, epoch, batch_idx, optimizer, optimizer_closure):\n        super().optimizer_step(epoch, batch_idx, optimizer, optimizer_closure)\n",
    ),
    "an old parameter with a default that the body reads": (
        "    def optimizer_step(self, epoch, batch_idx, optimizer, optimizer_idx, closure, on_tpu=False, using_lbfgs=False):\n        if not using_lbfgs:\n            optimizer.step(closure)\n",
        "closure",
        "    def optimizer_step(self, epoch, batch_idx, optimizer, closure, using_lbfgs=False):\n        if not using_lbfgs:\n            optimizer.step(closure)\n",
    ),
    "a schedule": (
        "    def lr_scheduler_step(self, scheduler, optimizer_idx, metric):\n        scheduler.step(self.current_epoch)\n",
        "metric",
        "    def lr_scheduler_step(self, scheduler, metric):\n        scheduler.step(self.current_epoch)\n",
    ),
    "a backward with two": (
        "    def backward(self, loss, optimizer, optimizer_idx):\n        loss.backward()\n",
        "optimizer",
        "    def backward(self, loss):\n        loss.backward()\n",
    ),
    "the loader's index after a batch": (
        "    def on_train_batch_end(self, outputs, batch, batch_idx, dataloader_idx):\n        self.seen += 1\n",
        "dataloader_idx",
        "    def on_train_batch_end(self, outputs, batch, batch_idx):\n        self.seen += 1\n",
    ),
    "outputs that nobody reads": (
        "    def on_train_epoch_end(self, outputs) -> None:\n        self.seen = 0\n",
        "outputs",
        "    def on_train_epoch_end(self) -> None:\n        self.seen = 0\n",
    ),
}  # fmt: skip
# The method, the missing argument, and the name of what the line is shown for; nothing is changed.
ONLY_SHOWN = {
    "outputs that the body reads": ("    def on_train_epoch_end(self, outputs):\n        self.mean = sum(outputs)\n", "outputs"),
    "an index where several optimizers may come": ("    def on_before_optimizer_step(self, optimizer, optimizer_idx):\n        self.seen[optimizer_idx] += 1\n", "optimizer_idx"),
    "a value of its own for the base": ("    def lr_scheduler_step(self, scheduler, optimizer_idx, metric):\n        super().lr_scheduler_step(scheduler, self.index(), metric)\n", "metric"),
    "a call of the base with what it does not show": ("    def optimizer_step(self, epoch, batch_idx, optimizer, optimizer_idx, closure):\n        super().optimizer_step(*self.given, closure)\n", "closure"),
}  # fmt: skip
STAYS = {
    "a parameter that is the program's own": ("    def optimizer_step(self, epoch, batch_idx, optimizer, scale, optimizer_closure):\n        pass\n", "optimizer_closure"),
    "the parameters of this release": ("    def optimizer_step(self, epoch, batch_idx, optimizer, optimizer_closure):\n        pass\n", "optimizer_closure"),
    "a method that the table does not know": ("    def after_step(self, optimizer_idx):\n        pass\n", "optimizer_idx"),
    "more that is missing than was lost": ("    def on_train_batch_end(self, outputs, batch, batch_idx, dataloader_idx, extra):\n        pass\n", "extra", "2"),
    "an index that validation still has": ("    def on_validation_batch_end(self, outputs, batch, batch_idx, dataloader_idx):\n        pass\n", "dataloader_idx"),
}  # fmt: skip


def proposals(program: Program, message: str, fields: dict[str, str], **given: object) -> list[Proposal]:
    """What is proposed where the frames end in `last`, in a release."""
    frames = (Frame(file="train.py", line=1, code="fit()"), given.get("last", LIBRARY))
    incident = Incident(exceptions=(ExceptionRecord(type="TypeError", message=message, frames=frames),))  # type: ignore[arg-type]
    catalog = load_catalog()
    context = Context(
        program=program,
        incident=incident,
        fields=fields,
        changes=lambda of, name: [*gone(catalog, of, name), *came(catalog, of, name)],
        version={"lightning": str(given.get("release", "2.6.6"))}.get,
    )
    return list(find_codemod("drop_parameter_of_override")(context))


def missing(code: str, argument: str, count: str = "1") -> tuple[str, dict[str, str]]:
    """The message for a method of a class, and what it names."""
    owner = "Watch" if code.startswith(CALLBACK) else "Net"
    callee = f"{owner}.{code.split('def ')[1].split('(')[0]}"
    text = f"{callee}() missing {count} required positional argument: '{argument}'"
    return text, {"callee": callee, "argument": argument, "count": count}


@pytest.mark.parametrize(("method", "argument", "wanted"), CURED.values(), ids=CURED)
def test_cured(method: str, argument: str, wanted: str, tmp_path: pathlib.Path) -> None:
    """The override takes what the installed release passes."""
    program = write(tmp_path, {"train.py": HEAD + method})
    (one,) = proposals(program, *missing(HEAD + method, argument))
    assert splice(next(program.parsed()).text, one.edits) == HEAD + wanted
    assert one.applicability == ("unsafe" if "optimizer_idx ==" in method else None)


@pytest.mark.parametrize(("method", "argument"), ONLY_SHOWN.values(), ids=ONLY_SHOWN)
def test_only_shown(method: str, argument: str, tmp_path: pathlib.Path) -> None:
    """Where the body needs what is no longer passed, the line is named and the author decides."""
    (one,) = proposals(write(tmp_path, {"train.py": HEAD + method}), *missing(HEAD + method, argument))
    assert (one.edits, one.culprit.line) == ((), 4)


@pytest.mark.parametrize("given", STAYS.values(), ids=STAYS)
def test_stays(given: tuple[str, ...], tmp_path: pathlib.Path) -> None:
    """What no release took away is none of this."""
    assert proposals(write(tmp_path, {"train.py": HEAD + given[0]}), *missing(HEAD + given[0], *given[1:])) == []


def test_callback_in_another_file(tmp_path: pathlib.Path) -> None:
    """A callback's hook is found where it is defined."""
    code = CALLBACK + "    def on_before_optimizer_step(self, trainer, pl_module, optimizer, opt_idx):\n        pass\n"
    program = write(tmp_path, {"train.py": "from watch import Watch\n", "watch.py": code})
    (one,) = proposals(program, *missing(code, "opt_idx"))
    assert (pathlib.Path(one.culprit.file).name, one.culprit.line) == ("watch.py", 4)
    assert splice(code, one.edits) == code.replace(", opt_idx", "")


def test_release_that_still_passes_it(tmp_path: pathlib.Path) -> None:
    """Lightning 1.9 passes the index: something else does not fit there."""
    method = CURED["the index of the optimizer"][0]
    program = write(tmp_path, {"train.py": HEAD + method})
    assert proposals(program, *missing(HEAD + method, "optimizer_closure"), release="1.9.5") == []


def test_call_that_the_program_makes(tmp_path: pathlib.Path) -> None:
    """The base's own method refuses what an override hands on: the override is round the failing line."""
    method = "    def optimizer_step(self, epoch, batch_idx, optimizer, optimizer_idx=0, closure=None, using_lbfgs=False):\n        super().optimizer_step(epoch, batch_idx, optimizer, optimizer_idx, closure, using_lbfgs)\n"
    fields = {"callee": "LightningModule.optimizer_step", "taken": "5", "given": "7"}
    program = write(tmp_path, {"train.py": HEAD + method})
    last = Frame(file="train.py", line=5, function="optimizer_step", code="super().optimizer_step(...)")
    (one,) = proposals(
        program, "LightningModule.optimizer_step() takes from 4 to 5 positional arguments", fields, last=last
    )
    assert "optimizer, closure=None):" in str(splice(HEAD + method, one.edits))
    assert "(epoch, batch_idx, optimizer, closure)" in str(splice(HEAD + method, one.edits))


def test_closure_in_the_place_of_the_index(tmp_path: pathlib.Path) -> None:
    """With defaults nothing is missing: the closure comes as the index, and is never run."""
    method = "    def optimizer_step(self, epoch=None, batch_idx=None, optimizer=None, optimizer_idx=None, optimizer_closure=None):\n        optimizer.step(closure=optimizer_closure)\n"
    program = write(tmp_path, {"train.py": HEAD + method})
    (one,) = proposals(program, CLOSURE, {})
    assert "optimizer=None, optimizer_closure=None):" in str(splice(HEAD + method, one.edits))
