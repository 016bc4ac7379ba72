"""A model whose state lacks one of its tensors is built with memory."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from tests.fix.mending import mended, run
from tests.fix.rewriting import best, changed_lines, failed, line_of, rewritten, write

NET = """import contextlib
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self, device=None):
        super().__init__()
        self.layer = nn.Linear(3, 3, device=device)
        self.register_buffer("table", torch.arange(3.0, device=device), persistent=False)
    def forward(self, x):
        return self.layer(x) + self.table
inputs, state = torch.ones(2, 3), Net().state_dict()
"""
BUILT = 'with torch.device("meta"):\n    net = Net()\n'
LOADED = "net.load_state_dict(state, assign=True)\n"
USED = "net(inputs).sum().backward()\n"
AT = "return self.layer(x) + self.table"
RIGHT = {
    "nothing is loaded": NET + BUILT + USED,
    "values are copied into nothing": NET + BUILT + "net.load_state_dict(state)\n" + USED,
    "built with memory": NET + "net = Net()\n" + LOADED + USED,
    "the state holds the buffer": NET.replace(", persistent=False", "") + BUILT + LOADED + USED,
    "memory and own values afterwards": NET + BUILT + 'net.to_empty(device="cpu")\nnet.table = fill()\n' + LOADED + USED,
    "filled from outside": NET + BUILT + LOADED + "net.table = torch.arange(3.0)\n" + USED,
    "filled by name": NET + BUILT + LOADED + 'setattr(net, "table", torch.arange(3.0))\n' + USED,
    "filled by a method": NET.replace(
        "    def forward", "    def fill(self):\n        self.table = torch.arange(3.0)\n    def forward"
    )
    + BUILT + LOADED + "net.fill()\n" + USED,
    "all buffers are looked at": NET + BUILT + LOADED + "for name, one in net.named_buffers():\n    fill(net, name, one)\n" + USED,
    "another model is loaded": NET + BUILT + "other = Net()\nother.load_state_dict(state, assign=True)\n" + USED,
    "a buffer of the host": NET.replace("torch.arange(3.0, device=device)", "torch.from_numpy(array)") + BUILT + LOADED + USED,
}  # fmt: skip
NO_EDIT = {
    "a state may lack weights": NET + BUILT + LOADED.replace("state,", "state, strict=False,") + USED,
    "random values": NET.replace("torch.arange(3.0", "torch.randn(3") + BUILT + LOADED + USED,
    "a second model that nothing is loaded into": NET + BUILT + "    head = nn.Linear(3, 2)\n" + LOADED + USED,
}
CPU = ['with torch.device("cpu"):']
PUT_BACK = ["with torch.random.fork_rng(devices=[]):"]
WRONG = {
    "a context": (NET + BUILT + LOADED + USED, CPU),
    "numbers drawn later": (NET + BUILT + LOADED + "net(torch.randn(2, 3)).sum().backward()\n", PUT_BACK),
    "a plain attribute": (
        NET.replace('self.register_buffer("table", torch.arange(3.0, device=device), persistent=False)', "self.table = torch.arange(3.0)")
        + BUILT + LOADED + USED,
        CPU,
    ),
    "a cache that grows": (
        NET.replace("        return self.layer", "        if len(x) > 9:\n            self.table = torch.arange(9.0)\n        return self.layer")
        + BUILT + LOADED + USED,
        CPU,
    ),
    "a name of the device": (
        NET + 'EMPTY = torch.device("meta")\nwith EMPTY:\n    net = Net()\n' + LOADED + USED,
        CPU,
    ),
    "a choice": (
        NET + 'weights = 1\nwith torch.device("meta") if weights else contextlib.nullcontext():\n    net = Net()\n' + LOADED + USED,
        ['with torch.device("cpu") if weights else contextlib.nullcontext():'],
    ),
    "a choice, and numbers drawn later": (
        NET + 'weights = 1\nwith torch.device("meta") if weights else contextlib.nullcontext():\n    net = Net()\n' + LOADED + USED
        + "torch.rand(1)\n",
        ["with torch.random.fork_rng(devices=[]) if weights else contextlib.nullcontext():"],
    ),
    "a context manager": (
        NET + '@contextlib.contextmanager\ndef empty():\n    with torch.device("meta"):\n        yield\nwith empty():\n    net = Net()\n'
        + LOADED + USED,
        CPU,
    ),
    "a function that builds, another that loads": (
        NET + 'def make():\n    with torch.device("meta"):\n        return Net()\ndef fill(model):\n'
        "    model.load_state_dict(state, assign=True)\n    return model\nnet = fill(make())\n" + USED,
        CPU,
    ),
    "a constructor's device": (NET + 'net = Net(device="meta")\n' + LOADED + USED, ['net = Net(device="cpu")']),
    "the default device": (
        NET + 'torch.set_default_device("meta")\nnet = Net()\ntorch.set_default_device(None)\n' + LOADED + USED,
        ['torch.set_default_device("cpu")'],
    ),
}  # fmt: skip


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str) -> None:
    """Models that no state is loaded into, and tensors that the state or the program gives values, are left alone."""
    assert rewritten(tmp_path, "build_with_memory", source, AT) == source


@pytest.mark.parametrize("source", NO_EDIT.values(), ids=NO_EDIT)
def test_the_line_alone(tmp_path, source: str) -> None:
    """Where a state may lack weights, or the missing values are random, the line is named and nothing is edited."""
    program = write(tmp_path, {"train.py": source})
    proposal = best("build_with_memory", program, incident=failed({"train.py": line_of(source, AT)}))
    assert proposal is not None
    assert (proposal.edits, proposal.culprit.code) == ((), 'with torch.device("meta"):')


@pytest.mark.parametrize(("source", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, wanted: list[str]) -> None:
    """What fails with a tensor on meta runs, by the one line that builds without memory; a second time nothing is left."""
    after = mended("build_with_memory", source, tmp_path)
    assert changed_lines(source, after) == wanted
    run(after, tmp_path / "train.py")
    assert rewritten(tmp_path, "build_with_memory", after, AT) == after


def test_gradients_and_later_draws_stay(tmp_path) -> None:
    """The model is the one that was saved, and what is drawn behind it is what an empty model leaves to be drawn."""
    source = (
        NET
        + "torch.manual_seed(3)\n"
        + BUILT
        + LOADED
        + "drawn = torch.randn(2, 3)\nnet(drawn).square().sum().backward()\n"
    )
    got = run(mended("build_with_memory", source, tmp_path), tmp_path / "after.py")
    whole = (
        NET
        + "torch.manual_seed(3)\ndrawn = torch.randn(2, 3)\nnet = Net()\nnet.load_state_dict(got)\nnet(drawn).square().sum().backward()\n"
    )
    (tmp_path / "whole.py").write_text(whole)
    wanted = {"got": got["state"]}
    exec(compile(whole, "whole.py", "exec"), wanted)  # noqa: S102 - the program of a test
    assert got["drawn"].equal(wanted["drawn"])
    assert got["net"].layer.weight.grad.equal(wanted["net"].layer.weight.grad)


def test_buffers_of_accelerate(tmp_path) -> None:
    """accelerate leaves buffers their memory unless it is asked not to; weights stay empty, so nothing is drawn."""
    pytest.importorskip("accelerate")
    source = "from accelerate import init_empty_weights\n" + NET + BUILT.replace(
        'torch.device("meta")', "init_empty_weights(include_buffers=True)"
    ) + LOADED.replace("state,", "state, strict=False,") + "net(torch.randn(2, 3)).sum().backward()\n"  # fmt: skip
    after = mended("build_with_memory", source, tmp_path)
    assert changed_lines(source, after) == ["with init_empty_weights():"]
    run(after, tmp_path / "train.py")


def test_what_the_frame_held_leads(tmp_path) -> None:
    """A tensor that was seen on meta is named though the program writes buffers by name."""
    source = NET + BUILT + LOADED + "for name, one in net.named_buffers():\n    print(name)\n" + USED
    tensors = {"self.table": "[3] float32 on meta", "x": "[2, 3] float32 on cpu"}
    after = rewritten(tmp_path, "build_with_memory", source, AT, tensors=tensors)
    assert changed_lines(source, after) == CPU


FACTORY = (
    NET
    + """import json
cfg = json.load(open("run.json"))
def create(weights=None, lazy=False):
    with torch.device("meta") if lazy and weights else contextlib.nullcontext():
        model = Net()
    if weights:
        model.load_state_dict(weights, assign=True)
    return model
net = create(state, cfg["lazy"])
"""
)
CONFIG = '{"steps": 3, "lazy": true}\n'


def _proposed(folder: pathlib.Path, source: str, config: str = CONFIG) -> list[tuple[str, int | None, str]]:
    """The edited files after each proposal, best first, with the guilty line."""
    (folder / "run.json").write_text(config)
    program = write(folder, {"train.py": source})
    incident = failed({"train.py": line_of(source, AT)})
    found = sorted(
        find_codemod("build_with_memory")(Context(program=program, incident=incident)), key=lambda one: -one.belief
    )
    texts = {**program.files, **{text.path: text for text in program.texts}}
    return [
        (pathlib.Path(one.edits[0].file).name, one.culprit.line, splice(texts[one.edits[0].file].text, one.edits) or "")
        for one in found
        if one.edits
    ]


def test_a_setting_that_asks_for_it(tmp_path) -> None:
    """The setting that chooses the empty context goes first, the context itself second."""
    first, second = _proposed(tmp_path, FACTORY + USED)
    assert first == ("run.json", 1, '{"steps": 3, "lazy": false}\n')
    wanted = ['with torch.device("cpu") if lazy and weights else contextlib.nullcontext():']
    assert (second[0], changed_lines(FACTORY + USED, second[2])) == ("train.py", wanted)


OTHERWISE = {
    "it says how state is loaded": FACTORY.replace("assign=True", "assign=lazy") + USED,
    "it chooses more": FACTORY + 'if cfg["lazy"]:\n    net.eval()\n' + USED,
    "the other way has no memory either": FACTORY.replace("contextlib.nullcontext()", "empty()") + USED,
}


@pytest.mark.parametrize("source", OTHERWISE.values(), ids=OTHERWISE)
def test_settings_that_say_more(tmp_path, source: str) -> None:
    """A setting that decides something else too is left as it is; the context is edited."""
    assert {name for name, _, _ in _proposed(tmp_path, source)} == {"train.py"}


def test_draws_behind_a_setting(tmp_path) -> None:
    """Where later numbers would be others, the context that puts the generator back goes first."""
    first, second = _proposed(tmp_path, FACTORY + USED + "torch.rand(1)\n")
    assert first[0] == "train.py"
    assert "fork_rng(devices=[]) if lazy and weights else" in first[2]
    assert second[0] == "run.json"


def test_a_setting_of_the_device(tmp_path) -> None:
    """A setting that names the device of the weights says another one."""
    source = (
        NET
        + 'import json\ncfg = json.load(open("run.json"))\nwith torch.device(cfg["on"]):\n    net = Net()\n'
        + LOADED
        + USED
    )
    assert _proposed(tmp_path, source, '{"on": "meta"}\n') == [("run.json", 1, '{"on": "cpu"}\n')]
