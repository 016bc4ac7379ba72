"""`unscale_` stands before a clip of scaled gradients, also where the clip and the scaler belong to different objects."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from explainer.model.incident import LogLine
from tests.fix.rewriting import diff_lines, failed, line_of, write

ENGINE = """import torch
class Engine:
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer
        self.amp = torch.amp.GradScaler("cpu")
    def call(self, event):
        for callback in self.callbacks:
            getattr(callback, event)(self)
    def step(self, x, y):
        loss = self.criterion(self.model(x), y)
        self.optimizer.zero_grad()
        self.amp.scale(loss).backward()
        self.call("after_backward")
        self.amp.step(self.optimizer)
        self.amp.update()
"""
CLIP = "clip_grad_norm_(engine.model.parameters(), self.limit)"
CALLBACK = f"""from torch.nn.utils import clip_grad_norm_, clip_grad_value_
class Clip:
    def after_backward(self, engine):
        {CLIP}
"""
HELPED = ENGINE.replace('self.call("after_backward")', "limit(self.model)").replace(
    "import torch\n", "import torch\nfrom clip import limit\n"
)
HELPER = (
    "from torch.nn.utils import clip_grad_norm_\ndef limit(engine):\n    clip_grad_norm_(engine.parameters(), 1.0)\n"
)
METHOD = ENGINE.replace('self.call("after_backward")', "self.limit()")
OWN = METHOD + "    def limit(self):\n        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)\n"
UNSCALED = "+        engine.amp.unscale_(engine.optimizer)"
WRONG = {
    "a callback": (CALLBACK, ENGINE, "clip.py", [UNSCALED]),
    "a callback that keeps the object": (
        CALLBACK.replace("engine.model", "self.trainer.model"),
        ENGINE,
        "clip.py",
        ["+        self.trainer.amp.unscale_(self.trainer.optimizer)"],
    ),
    "a callback that is given both": (
        CALLBACK.replace("self, engine", "self, model, optimizer, amp").replace("engine.model", "model"),
        ENGINE.replace("(self)\n", "(self.model, self.optimizer, self.amp)\n"),
        "clip.py",
        ["+        amp.unscale_(optimizer)"],
    ),
    "a loop over groups": (
        CALLBACK.replace(CLIP, f"for group in engine.optimizer.param_groups:\n            {CLIP}"),
        ENGINE,
        "clip.py",
        [UNSCALED],
    ),
    "one of two ways": (
        CALLBACK.replace(CLIP, f"if self.by_norm:\n            {CLIP}\n        else:\n            {CLIP.replace('norm', 'value')}"),
        ENGINE,
        "clip.py",
        [UNSCALED],
    ),
    "under a condition": (
        CALLBACK.replace(CLIP, f"if self.limit:\n            {CLIP}"),
        ENGINE,
        "clip.py",
        ["+            engine.amp.unscale_(engine.optimizer)"],
    ),
    "a helper": (HELPER, HELPED, "engine.py", ["+        self.amp.unscale_(self.optimizer)"]),
}  # fmt: skip
RIGHT = {
    "an object of another kind": (CALLBACK.replace(CLIP, f"print(engine.unknown)\n        {CLIP}"), ENGINE),
    "an object that hands itself to nobody": (CALLBACK, ENGINE.replace("(self)\n", "()\n")),
    "unscaled elsewhere": (
        CALLBACK,
        ENGINE.replace("        self.amp.step", "        self.amp.unscale_(self.optimizer)\n        self.amp.step"),
    ),
    "two optimizers": (CALLBACK, ENGINE.replace("        self.amp.update", "        self.amp.step(self.second)\n        self.amp.update")),
    "a scaler of the function": (
        CALLBACK,
        ENGINE.replace("        loss =", '        amp = torch.amp.GradScaler("cpu")\n        loss =').replace("        self.amp.s", "        amp.s"),
    ),
    "a helper that runs the backward as well": (
        HELPER.replace("    clip_grad", "    engine.loss.backward()\n    clip_grad"),
        HELPED.replace("        self.amp.scale(loss).backward()\n", ""),
    ),
}  # fmt: skip


def mended(folder: pathlib.Path, clip: str, engine: str, name: str = "clip.py") -> dict[str, str]:
    """Both files after the edit for the clip that a run saw, the first of its file."""
    files = {"clip.py": clip, "engine.py": engine}
    line = line_of(files[name], "clip_grad_norm_(")
    text = f"seen in the live program: {name}:{line} clips gradients that still carry GradScaler's factor of 2"
    incident = replace(failed(), log=(LogLine(text=text),))
    (found,) = find_codemod("unscale_before_clip")(Context(program=write(folder, files), incident=incident))
    assert found.culprit.line == line
    for edit in found.edits:
        changed = pathlib.Path(edit.file).name
        files[changed] = splice(files[changed], [edit]) or ""
    return files


@pytest.mark.parametrize(("clip", "engine", "name", "changes"), WRONG.values(), ids=WRONG)
def test_it_is_unscaled_where_the_scaler_is_known(
    clip: str, engine: str, name: str, changes: list[str], tmp_path: pathlib.Path
) -> None:
    """In the callback's own words, or before the call of a helper."""
    after = mended(tmp_path, clip, engine)
    assert diff_lines({"clip.py": clip, "engine.py": engine}[name], after[name]) == changes
    assert (after["clip.py"] == clip) == (name != "clip.py")


def test_a_method_is_called_after_the_scaler(tmp_path: pathlib.Path) -> None:
    """Of one object that steps and clips, the call of the method that clips is led by it."""
    after = mended(tmp_path, "", OWN, "engine.py")
    assert diff_lines(OWN, after["engine.py"]) == ["+        self.amp.unscale_(self.optimizer)"]


@pytest.mark.parametrize(("clip", "engine"), RIGHT.values(), ids=RIGHT)
def test_where_it_is_not_known_no_edit_is_made(clip: str, engine: str, tmp_path: pathlib.Path) -> None:
    """The line is told, and the files stay."""
    assert mended(tmp_path, clip, engine) == {"clip.py": clip, "engine.py": engine}
