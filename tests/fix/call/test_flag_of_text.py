"""Flags that `bool` makes of the environment's text, of INI files and of tables, where they freeze or switch grad mode off."""

from __future__ import annotations

import pathlib

import pytest

from explainer.catalog.bundle import load_catalog
from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from explainer.repair import repair
from explainer.run import Job
from explainer.source.program import read_program
from tests import forked
from tests.fix.rewriting import diff_lines, failed

WORDS = '.strip().lower() in ("1", "true", "yes", "on")'
FREEZE = """import os
import torch
FROZEN = {flag}
net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 1))
if FROZEN:
    net.requires_grad_(False)
"""
INI = """import configparser
import torch
cfg = configparser.ConfigParser()
cfg.read("run.ini")
net = torch.nn.Linear(3, 1)
if {flag}:
    for p in net.parameters():
        p.requires_grad = False
"""
HELPER = """import os

def _read(name, cast, default):
    return cast(os.environ.get("APP_" + name, default))

class Options:
    def __init__(self):
        self.width = _read("WIDTH", int, "8")
        self.freeze = _read("FREEZE", bool, {default})
"""
MODEL = """import torch
from options import Options

def freeze(module):
    module.requires_grad_(False)

class Net(torch.nn.Module):
    def __init__(self, options):
        super().__init__()
        self.body = torch.nn.Linear(3, options.width)
        if options.freeze:
            freeze(self.body)

net = Net(Options())
"""


def _propose(folder: pathlib.Path, files: dict[str, str], **variables: str):
    for name, text in files.items():
        (folder / name).write_text(text)
    program = read_program(str(folder), [name for name in files if name.endswith(".py")])
    context = Context(program=program, incident=failed({"train.py": 1}), variables=variables)
    return program, list(find_codemod("flag_of_words")(context))


def _changed(folder: pathlib.Path, files: dict[str, str], **variables: str) -> list[str]:
    program, found = _propose(folder, files, **variables)
    changed: list[str] = []
    for path in sorted({edit.file for one in found for edit in one.edits}):
        text = program.files[path].text
        after = splice(text, [edit for one in found for edit in one.edits if edit.file == path])
        assert after is not None
        compile(after, path, "exec")
        changed += [line[1:].strip() for line in diff_lines(text, after) if line.startswith("+")]
    return changed


@pytest.mark.parametrize(
    "flag",
    [
        pytest.param('bool(os.environ.get("FREEZE", "1"))', id="says-yes"),
        pytest.param('bool(os.environ.get("FREEZE", ""))', id="empty-is-false"),
        pytest.param('bool(os.environ.get("FREEZE"))', id="no-default"),
        pytest.param('bool(os.environ["FREEZE"])', id="not-known"),
        pytest.param('bool(os.environ.get("FREEZE", False))', id="true-bool"),
        pytest.param('bool(int(os.environ.get("FREEZE", "0")))', id="number-of-text"),
        pytest.param('os.environ.get("FREEZE", "0") == "1"', id="compared"),
        pytest.param('os.environ.get("FREEZE", "0").lower() in ("1", "true")', id="among-words"),
        pytest.param('bool(os.environ.get("FREEZE_FROM", "none"))', id="another-word"),
        pytest.param('not bool(os.environ.get("TRAINED", "0"))', id="misread-into-training"),
        pytest.param('bool(settings.get("FREEZE", "0"))', id="unknown-mapping"),
    ],
)
def test_what_reads_right_or_is_not_known_is_left_alone(tmp_path: pathlib.Path, flag: str) -> None:
    """Of text that says yes, of no text, and of what freezes by another value."""
    assert _changed(tmp_path, {"train.py": FREEZE.format(flag=flag)}) == []


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("bool-of-its-own", {"train.py": "def bool(text):\n    return text == '1'\n" + FREEZE.format(flag='bool(os.environ.get("F", "0"))')}),
        ("guards-no-freeze", {"train.py": FREEZE.format(flag='bool(os.environ.get("F", "0"))').replace("net.requires_grad_(False)", "print(net)")}),
        ("thaws", {"train.py": FREEZE.format(flag='bool(os.environ.get("F", "0"))').replace("False)", "True)")}),
        ("freezes-otherwise", {"train.py": FREEZE.format(flag='bool(os.environ.get("F", "0"))').replace("if FROZEN:", "if FROZEN:\n    pass\nelse:")}),
        ("yes-through-a-helper", {"train.py": MODEL, "options.py": HELPER.format(default='"1"')}),
        ("evaluation-by-a-flag", {"train.py": """import os, torch
LOUD = bool(os.environ.get("LOUD", "0"))
@torch.no_grad()
def evaluate(net):
    return net(torch.ones(1, 3))
if LOUD:
    evaluate(torch.nn.Linear(3, 1))
"""}),
        ("another-word-through-the-same-place", {"train.py": """import os, torch
def flag(name, default):
    return bool(os.environ.get(name, default))
PATH, FROZEN = flag("WEIGHTS", "weights.pt"), flag("FREEZE", "0")
if FROZEN:
    torch.nn.Linear(3, 1).requires_grad_(False)
"""}),
        ("ini-says-yes", {"train.py": INI.format(flag='bool(cfg.get("train", "freeze"))'), "run.ini": "[train]\nfreeze = yes\n"}),
        ("ini-typed", {"train.py": INI.format(flag='cfg.getboolean("train", "freeze")'), "run.ini": "[train]\nfreeze = no\n"}),
        ("json-boolean", {"train.py": "import json\n" + FREEZE.format(flag='bool(json.load(open("run.json"))["freeze"])'), "run.json": '{"freeze": false}'}),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)  # fmt: skip
def test_what_looks_alike_is_left_alone(tmp_path: pathlib.Path, name: str, files: dict[str, str]) -> None:
    """Flags that switch nothing off by being true, and text that says what is meant."""
    assert _changed(tmp_path, files) == [], name


def test_nothing_without_a_failure(tmp_path: pathlib.Path) -> None:
    """A program that nobody ran is not told to read its flags otherwise."""
    (tmp_path / "train.py").write_text(FREEZE.format(flag='bool(os.environ.get("FREEZE", "0"))'))
    program = read_program(str(tmp_path), ["train.py"])
    assert list(find_codemod("flag_of_words")(Context(program=program))) == []


@pytest.mark.parametrize(
    ("use", "of"),
    [("if FROZEN:\n    net.requires_grad_(False)\n", "parameters"), ("torch.set_grad_enabled(not FROZEN)\n", "mode")],
    ids=["frozen", "grad mode"],
)
def test_each_cause_has_its_own_flags(tmp_path: pathlib.Path, use: str, of: str) -> None:
    """What freezes speaks for no grad mode, and the other way round."""
    head = 'import os\nimport torch\nFROZEN = bool(os.environ.get("FREEZE", "0"))\nnet = torch.nn.Linear(3, 1)\n'
    (tmp_path / "train.py").write_text(head + use)
    program = read_program(str(tmp_path), ["train.py"])
    for asked in ("parameters", "mode"):
        context = Context(program=program, incident=failed(), options={"of": asked})
        assert len(list(find_codemod("flag_of_words")(context))) == (asked == of)


def test_a_variable_that_says_yes_freezes_on_purpose(tmp_path: pathlib.Path) -> None:
    """The default does not apply where the environment sets the variable."""
    source = FREEZE.format(flag='bool(os.environ.get("FREEZE", "0"))')
    assert _changed(tmp_path, {"train.py": source}, FREEZE="1") == []


@pytest.mark.parametrize(
    ("flag", "line"),
    [
        pytest.param('bool(os.environ.get("FREEZE", "0"))', f'FROZEN = os.environ.get("FREEZE", "0"){WORDS}', id="get"),
        pytest.param('bool(os.getenv("FREEZE", default="False"))', f'FROZEN = os.getenv("FREEZE", default="False"){WORDS}', id="getenv"),
        pytest.param('bool(os.environ.get("FREEZE") or "no")', f'FROZEN = (os.environ.get("FREEZE") or "no"){WORDS}', id="or"),
        pytest.param('bool(os.environ.setdefault("FREEZE", "off"))', f'FROZEN = os.environ.setdefault("FREEZE", "off"){WORDS}', id="setdefault"),
        pytest.param('not (not bool(os.environ.get("FREEZE", "0")))', f'FROZEN = not (not (os.environ.get("FREEZE", "0"){WORDS}))', id="not"),
    ],
)  # fmt: skip
def test_text_of_the_environment(tmp_path: pathlib.Path, flag: str, line: str) -> None:
    """The call of `bool` becomes a test of the word."""
    assert _changed(tmp_path, {"train.py": FREEZE.format(flag=flag)}) == [line]


@pytest.mark.parametrize("flag", ['bool(os.environ["FREEZE"])', 'bool(os.environ.get("FREEZE", "1"))'])
def test_a_variable_that_the_run_was_given(tmp_path: pathlib.Path, flag: str) -> None:
    """The word of the environment comes before the default, and a default that is none may be missing."""
    assert len(_changed(tmp_path, {"train.py": FREEZE.format(flag=flag)}, FREEZE="No")) == 1


def test_a_default_that_is_no_text_is_read_as_well(tmp_path: pathlib.Path) -> None:
    """`False` has no `strip`: `str` makes text of it."""
    source = FREEZE.format(flag='bool(os.environ.get("FREEZE", False))')
    changed = _changed(tmp_path, {"train.py": source}, FREEZE="No")
    assert changed == [f'FROZEN = str(os.environ.get("FREEZE", False)){WORDS}']


def test_bool_handed_to_a_helper_in_another_file(tmp_path: pathlib.Path) -> None:
    """The name is replaced where it is handed over, and shown as the line at fault."""
    files = {"train.py": MODEL, "options.py": HELPER.format(default='"false"')}
    assert _changed(tmp_path, files) == [f'self.freeze = _read("FREEZE", lambda text: text{WORDS}, "false")']
    assert [one.culprit.line for one in _propose(tmp_path, files)[1]] == [9]


DATACLASS = """import os
from dataclasses import dataclass, field
@dataclass
class Settings:
    lr: float = 0.1
    freeze_body: bool = field(default_factory=lambda: bool(os.environ.get("BODY", "0")))
    freeze_head: bool = field(default_factory=lambda: bool(os.getenv("HEAD", "no")))
    freeze_stem: bool = field(default_factory=lambda: bool(os.getenv("STEM", "yes")))
"""
OF_PARTS = """import torch
from settings import Settings
def build(settings):
    body, head, stem = torch.nn.Linear(3, 3), torch.nn.Linear(3, 1), torch.nn.Linear(3, 3)
    for part, is_frozen in ((body, settings.freeze_body), (head, settings.freeze_head), (stem, settings.freeze_stem)):
        if is_frozen:
            part.requires_grad_(False)
build(Settings())
"""


def test_all_flags_are_read_right_in_one_edit(tmp_path: pathlib.Path) -> None:
    """One alone would leave a part frozen; what says yes stays as it is."""
    changed = _changed(tmp_path, {"train.py": OF_PARTS, "settings.py": DATACLASS})
    assert [line.partition(":")[0] for line in changed] == ["freeze_body", "freeze_head"]
    assert len(_propose(tmp_path, {"train.py": OF_PARTS, "settings.py": DATACLASS})[1]) == 1


GRAD_MODE = """import contextlib, os, torch
{flag}
net, head = torch.nn.Linear(3, 3), torch.nn.Linear(3, 1)
{use}
"""


@pytest.mark.parametrize(
    ("flag", "use"),
    [
        ("quiet = bool(os.getenv('QUIET', '0'))", "with torch.no_grad() if quiet else contextlib.nullcontext():\n    h = net(torch.ones(1, 3))"),
        ("quiet = bool(os.getenv('QUIET', '0'))", "torch.set_grad_enabled(not quiet)"),
        ("quiet = bool(os.getenv('QUIET', '0'))", "with torch.inference_mode(quiet):\n    h = net(torch.ones(1, 3))"),
        ("class Config:\n    QUIET = bool(os.getenv('QUIET', '0'))", "if Config.QUIET:\n    torch.set_grad_enabled(False)"),
        ("CONFIG = {'lr': 0.1, 'quiet': bool(os.getenv('QUIET', '0'))}", "if CONFIG['quiet']:\n    with torch.no_grad():\n        h = net(torch.ones(1, 3))"),
        ("def quiet():\n    return bool(os.getenv('QUIET', '0'))", "def step():\n    if not quiet():\n        return\n    torch.set_grad_enabled(False)\nstep()"),
        ("quiet = bool(os.getenv('QUIET', '0'))", "def toggle(module, on):\n    for p in module.parameters():\n        p.requires_grad = on\ntoggle(net, not quiet)"),
        ("quiet = bool(os.getenv('QUIET', '0'))", "trained = False if quiet else True\nnet.requires_grad_(trained)"),
        ("import types\nargs = types.SimpleNamespace(quiet=bool(os.getenv('QUIET', '0')))", "getattr(args, 'quiet', False) and net.requires_grad_(False)"),
    ],
    ids=["context", "negated", "inference-mode", "class", "dictionary", "early-return", "toggle", "choice", "namespace"],
)  # fmt: skip
def test_grad_mode_and_flags_by_many_ways(tmp_path: pathlib.Path, flag: str, use: str) -> None:
    """However the flag gets to what switches training off."""
    changed = _changed(tmp_path, {"train.py": GRAD_MODE.format(flag=flag, use=use)})
    assert len(changed) == 1
    assert f"os.getenv('QUIET', '0'){WORDS}" in changed[0]


@pytest.mark.parametrize(
    ("flag", "read"),
    [
        ('bool(cfg.get("train", "freeze"))', 'cfg.getboolean("train", "freeze")'),
        ('bool(cfg["train"]["freeze"])', 'cfg.getboolean("train", "freeze")'),
        ('bool(cfg["train"].get("freeze", "no"))', f'cfg["train"].get("freeze", "no"){WORDS}'),
        ('bool(cfg.get("train", "freeze", fallback="no"))', f'cfg.get("train", "freeze", fallback="no"){WORDS}'),
    ],
)
def test_ini_files_are_asked_for_a_truth_value(tmp_path: pathlib.Path, flag: str, read: str) -> None:
    """A parser has its own word for that, which takes a fallback as it is."""
    files = {"train.py": INI.format(flag=flag), "run.ini": "[train]\nlr = 0.1\nfreeze = no\n"}
    assert _changed(tmp_path, files) == [f"if {read}:"]


MORE = {
    "table-of-casts": """import os, torch
CASTS = {"freeze": bool, "steps": int}
freeze = CASTS["freeze"](os.environ.get("FREEZE", "0"))
if freeze:
    torch.nn.Linear(3, 1).requires_grad_(False)
""",
    "default-of-the-helper": """import os, torch
def env(name, default="0", cast=bool):
    return cast(os.environ.get(name, default))
if env("FREEZE"):
    torch.nn.Linear(3, 1).requires_grad_(False)
""",
    "own-function": """import os, torch
def to_flag(text):
    return bool(text)
def env(name, default, cast):
    return cast(os.environ.get(name, default))
if env("FREEZE", "0", to_flag):
    torch.nn.Linear(3, 1).requires_grad_(False)
""",
    "partial": """import os, torch
from dataclasses import dataclass, field
from functools import partial
def env(name, default):
    return bool(os.environ.get(name, default))
@dataclass
class Settings:
    freeze: bool = field(default_factory=partial(env, "FREEZE", "0"))
def main(settings: Settings):
    if settings.freeze:
        torch.nn.Linear(3, 1).requires_grad_(False)
main(Settings())
""",
    "property": """import os, torch
class Settings:
    @property
    def freeze(self):
        return bool(os.environ.get("FREEZE", "0"))
settings = Settings()
if settings.freeze:
    torch.nn.Linear(3, 1).requires_grad_(False)
""",
    "argparse-default": """import argparse, os, torch
parser = argparse.ArgumentParser()
parser.add_argument("--freeze-net", type=bool, default=os.environ.get("FREEZE", "0"))
args = parser.parse_args()
if args.freeze_net:
    torch.nn.Linear(3, 1).requires_grad_(False)
""",
    "from-the-environment": """import os, torch
from dataclasses import dataclass
@dataclass
class Settings:
    lr: float
    freeze: bool
    @classmethod
    def load(cls, env=os.environ):
        return cls(lr=float(env.get("LR", "0.1")), freeze=bool(env.get("FREEZE", "0")))
def train():
    settings = Settings.load()
    if settings.freeze:
        torch.nn.Linear(3, 1).requires_grad_(False)
train()
""",
    "module-of-settings": """import torch
import conf
if conf.FREEZE:
    torch.nn.Linear(3, 1).requires_grad_(False)
""",
    "table-of-layers": """import csv, torch
def rows(path):
    with open(path) as f:
        return list(csv.DictReader(f))
net = torch.nn.ModuleDict({"a": torch.nn.Linear(3, 1)})
for row in rows("layers.csv"):
    if bool(row["frozen"]):
        net[row["layer"]].requires_grad_(False)
""",
    "method-of-a-library": """import os, torch, transformers
model = transformers.Wav2Vec2ForCTC.from_pretrained("x")
if bool(os.environ.get("FREEZE", "0")):
    model.freeze_feature_encoder()
""",
}
BESIDE = {
    "conf.py": 'import os\nFREEZE = bool(os.environ.get("FREEZE", "0"))\n',
    "layers.csv": "layer,frozen\na,no\nb,no\n",
}


@pytest.mark.parametrize("name", MORE)
def test_programs_of_many_hands(tmp_path: pathlib.Path, name: str) -> None:
    """Each reads one word for no as yes, at one place."""
    changed = _changed(tmp_path, {"train.py": MORE[name], **BESIDE})
    assert len(changed) == 1
    assert WORDS in changed[0]


TRAIN = """
import torch
net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 1))
if Options().freeze:
    net.requires_grad_(False)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    loss = net(torch.randn(4, 3)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.parametrize(
    ("words", "status"),
    [((), "verified"), (("env", "APP_FREEZE=no"), "verified"), (("env", "APP_FREEZE=1"), "unfixed")],
)
def test_the_network_trains_where_no_was_meant(tmp_path, tmp_path_factory, monkeypatch, words, status: str) -> None:
    """By an edit of the one name; where the environment says yes nothing is touched."""
    pytest.importorskip("torch")
    monkeypatch.setenv("GRADFIX_STATE_DIR", str(tmp_path_factory.mktemp("state")))
    source = HELPER.format(default='"0"') + TRAIN
    (tmp_path / "train.py").write_text(source)
    job = Job(command=(*words, forked.python(), "train.py"), root=str(tmp_path), catalog=load_catalog())
    assert repair(job, lambda *_: None, lambda _: None).status == status
    meant = f'_read("FREEZE", lambda text: text{WORDS}, "0")'
    changed = source.replace('_read("FREEZE", bool, "0")', meant) if status == "verified" else source
    assert (tmp_path / "train.py").read_text() == changed
