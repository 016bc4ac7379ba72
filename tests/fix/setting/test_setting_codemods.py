"""Codemods that edit settings: the file in which they are written, not the code that reads them."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import make_patch
from explainer.model.incident import ExceptionRecord, Incident
from explainer.model.interface import Change
from explainer.model.patch import Patch
from explainer.source.program import read_program
from tests.fix.rewriting import rewritten

FAILED = Incident(exceptions=(ExceptionRecord(type="RuntimeError", message="failed"),))
TO_BF16 = {"swap": ["fp16=true -> fp16=false, bf16=true"], "gpu": "bf16"}
NO_REENTRY = {"swap": ["use_reentrant=true -> use_reentrant=false"], "not_in_place": True}
ONE = {"swap": ["bf16=true, fp16=true -> -fp16"]}
NO_CACHE = {
    "swap": ["use_cache=true -> use_cache=false"],
    "add": "-> use_cache=false",
    "owner": ["Auto.from_pretrained"],
}
KEEP = {"add": "-> keep=true", "owner": ["Args", "Conf"], "beside": ["batch"], "only_with": ["collator"]}
BEST = {"swap": ["best=true, save=* -> eval=@save"]}
CHANGES = {
    "evaluation_strategy": Change(library="l", kind="argument", of="Args", old="evaluation_strategy", new="eval_strategy", write="x", checked="run"),
    "tpu": Change(library="l", kind="argument", of="Args", old="tpu", write="nothing: found by itself", checked="run"),
    "packing": Change(library="l", kind="argument", of="Args", old="packing", new="Config.packing", write="x", checked="run"),
    "mode": Change(library="l", kind="argument", of="Args", old="mode", write="call it yourself", checked="run"),
}  # fmt: skip
CODE = "import yaml\nfrom lib import Args\nArgs(**yaml.safe_load(open('a.yaml')))\n"

LOADS = "import yaml\nfrom lib import Layer\ncfg = yaml.safe_load(open('a.yaml'))\n"

# Options, files, what the GPU can: nothing is proposed.
STAYS = {
    "a setting that is off": (TO_BF16, {"a.yaml": "fp16: false\n"}, True),
    "a GPU that cannot": (TO_BF16, {"a.yaml": "fp16: true\n"}, False),
    "a bare variable": (TO_BF16, {"train.py": "fp16 = True\n"}, True),
    "a value that aliases repeat": (NO_REENTRY, {"a.yaml": "a: &x {use_reentrant: true}\nb: *x\n"}, None),
    "reentry where a tensor is written in place": (NO_REENTRY, {"a.yaml": "use_reentrant: true\n", "train.py": "import yaml\ncfg = yaml.safe_load(open('a.yaml'))\ndef f(x):\n    x.relu_()\n    return x\n"}, None),
    "reentry where a helper of a layer writes in place": (NO_REENTRY, {"a.yaml": "use_reentrant: true\n", "train.py": LOADS + "class Block(Layer):\n    def forward(self, x):\n        return half(x)\ndef half(x):\n    x.mul_(0.5)\n    return x\nhalf(cfg)\n"}, None),
    "reentry where a hook writes in place": (NO_REENTRY, {"a.yaml": "use_reentrant: true\n", "train.py": LOADS + "def hook(m, i, x):\n    x.mul_(0.5)\nmodel.register_forward_hook(hook)\n"}, None),
    "reentry where an imported helper writes in place": (NO_REENTRY, {"a.yaml": "use_reentrant: true\n", "ops.py": "def half(x):\n    x.mul_(0.5)\n    return x\nhalf(1)\n", "train.py": LOADS + "from ops import half as h\nclass Block(Layer):\n    def forward(self, x):\n        return h(x)\n"}, None),
    "two settings in two places": (ONE, {"a.yaml": "a: {bf16: true}\nb: {fp16: true}\n"}, None),
    "two settings in two files": (ONE, {"a.yaml": "bf16: true\n", "config.yaml": "fp16: true\n"}, None),
    "two settings in two calls": (ONE, {"train.py": "f(bf16=True)\ng(fp16=True)\n"}, None),
    "a loader that is no model's": (NO_CACHE, {"train.py": "Tok.from_pretrained('x', a=1)\n"}, None),
    "a loader with another setting elsewhere": (NO_CACHE, {"train.py": "Auto.from_pretrained('x', a=1)\n", "config.yaml": "use_cache: false\n"}, None),
    "a call without what needs it": (KEEP, {"train.py": "from lib import Args\nArgs(a=1)\n"}, None),
    "a class of the program that is only called so": (KEEP, {"train.py": "class Args:\n    pass\nf(Args(a=1), collator=g)\n"}, None),
    "a setting that is in the dictionary": (KEEP, {"train.py": "from lib import Args\nOPT = dict(keep=False)\nf(Args(**OPT), collator=g)\n"}, None),
    "a file that no parser reads": (KEEP, {"a.yaml": "batch: 2\n", "train.py": "from lib import Args\nopen('a.yaml')\nf(Args, collator=g)\n"}, None),
    "a section of INI whose values are text": (KEEP, {"a.ini": "[trainer]\nkeep = 0\n", "train.py": "import configparser\nfrom lib import Args\ncfg = configparser.ConfigParser()\ncfg.read('a.ini')\nf(Args(**cfg['trainer']), collator=g)\n"}, None),
    "settings in two sections of INI": (ONE, {"a.ini": "[a]\nbf16 = true\n[b]\nfp16 = true\n"}, None),
    "an INI file that does not load": (TO_BF16, {"a.ini": "fp16 = true\n[a]\n"}, True),
    "a default of several sections of INI": (TO_BF16, {"a.ini": "[DEFAULT]\nfp16 = true\n[a]\nx = 1\n[b]\nx = 1\n"}, True),
    "a file that does not load": (TO_BF16, {"a.yaml": "fp16: true\n  x: [\n"}, True),
}  # fmt: skip
# ... and what is proposed: the file and its new text.
CHANGED = {
    "a file": (TO_BF16, {"a.yaml": "fp16: true # T4\nlr: 1\n"}, True, ("a.yaml", "fp16: false # T4\nbf16: true\nlr: 1\n")),
    "a file with both": (TO_BF16, {"a.yaml": "bf16: False\nfp16: True\n"}, True, ("a.yaml", "bf16: True\nfp16: False\n")),
    "an INI file": (TO_BF16, {"a.ini": "; T4\n[run]\nFP16 = yes ; fast\nlr = 1\n"}, True, ("a.ini", "; T4\n[run]\nFP16 = no ; fast\nbf16 = yes\nlr = 1\n")),
    "an INI file with both": (TO_BF16, {"a.ini": "[run]\nbf16: off\nfp16: on\n"}, True, ("a.ini", "[run]\nbf16: on\nfp16: off\n")),
    "one of two in an INI file": (ONE, {"a.ini": "[run]\nbf16 = true\nfp16 = true\n\n[data]\n"}, None, ("a.ini", "[run]\nbf16 = true\n\n[data]\n")),
    "the value of another in an INI file": (BEST, {"a.ini": "[run]\nbest = true\nsave = epoch\n"}, None, ("a.ini", "[run]\nbest = true\nsave = epoch\neval = epoch\n")),
    "the call with a section of INI": (KEEP, {"a.ini": "[trainer]\nbatch = 2\n", "train.py": "import configparser\nfrom lib import Args\ncfg = configparser.ConfigParser()\ncfg.read('a.ini')\nf(Args(a=1, **cfg['trainer']), collator=g)\n"}, None, ("train.py", "import configparser\nfrom lib import Args\ncfg = configparser.ConfigParser()\ncfg.read('a.ini')\nf(Args(a=1, keep=True, **cfg['trainer']), collator=g)\n")),
    "a script": (TO_BF16, {"run.sh": "python t.py --fp16 True\n"}, True, ("run.sh", "python t.py --fp16 False --bf16 True\n")),
    "an argument": (TO_BF16, {"train.py": "f(fp16=True)\n"}, True, ("train.py", "f(fp16=False, bf16=True)\n")),
    "reentry where a data set writes in place": (NO_REENTRY, {"a.yaml": "use_reentrant: true\n", "train.py": "import torch\nimport yaml\ncfg = yaml.safe_load(open('a.yaml'))\nclass Clips:\n    def __init__(self, x):\n        self.x = torch.zeros(3)\n        self.x[0] += 1\n"}, None, ("a.yaml", "use_reentrant: false\n")),
    "reentry where functions that make data write in place": (NO_REENTRY, {"a.json": '{"t": {"k": {"use_reentrant": true}}}', "data.py": "import numpy as np\ndef recordings(n):\n    specs = np.random.default_rng(0).normal(size=(n, 3))\n    for i in range(n):\n        specs[i] += 1\n    return specs\ndef collate(rows):\n    out = rows[0]['x'].new_zeros(3)\n    out[0] = 1\n    return out\n", "train.py": "import json\nfrom data import collate, recordings\ncfg = json.load(open('a.json'))\ndef main():\n    Trainer(args=Args(**cfg['t']), data=recordings(3), data_collator=collate)\nmain()\n"}, None, ("a.json", '{"t": {"k": {"use_reentrant": false}}}')),
    "reentry in a table of TOML": (NO_REENTRY, {"a.toml": "[trainer.gradient_checkpointing_kwargs]\nuse_reentrant = true\n"}, None, ("a.toml", "[trainer.gradient_checkpointing_kwargs]\nuse_reentrant = false\n")),
    "a mapping in a mapping": (NO_REENTRY, {"a.yaml": "k: {use_reentrant: true}\n"}, None, ("a.yaml", "k: {use_reentrant: false}\n")),
    "one of two": (ONE, {"a.json": '{\n  "bf16": true,\n  "fp16": true\n}\n'}, None, ("a.json", '{\n  "bf16": true\n}\n')),
    "one of two arguments": (ONE, {"train.py": "f(bf16=True, fp16=True)\n"}, None, ("train.py", "f(bf16=True)\n")),
    "the value of another": (BEST, {"a.yaml": "best: true\nsave: epoch\n"}, None, ("a.yaml", "best: true\nsave: epoch\neval: epoch\n")),
    "the value of another, changed": (BEST, {"a.yaml": "eval: 'no'\nbest: true\nsave: epoch\n"}, None, ("a.yaml", "eval: 'epoch'\nbest: true\nsave: epoch\n")),
    "a call with what needs it": (KEEP, {"train.py": "from lib import Args\nf(Args(a=1), collator=g)\n"}, None, ("train.py", "from lib import Args\nf(Args(a=1, keep=True), collator=g)\n")),
    "a call with a place alone": (KEEP, {"train.py": "import lib\nf(lib.Conf('out'), collator=g)\n"}, None, ("train.py", "import lib\nf(lib.Conf('out', keep=True), collator=g)\n")),
    "a class of the program's that inherits the owner": (KEEP, {"train.py": "from lib import Args\nclass Own(Args):\n    x: int = 1\nf(Own(a=1), collator=g)\n"}, None, ("train.py", "from lib import Args\nclass Own(Args):\n    x: int = 1\nf(Own(a=1, keep=True), collator=g)\n")),
    "the dictionary behind a call": (KEEP, {"train.py": "from lib import Args\nOPT = dict(a=1)\nf(Args(**OPT), collator=g)\n"}, None, ("train.py", "from lib import Args\nOPT = dict(a=1, keep=True)\nf(Args(**OPT), collator=g)\n")),
    "the section behind a call": (KEEP, {"a.yaml": "model: {a: 1}\ntrainer:\n  batch: 2\n", "train.py": "import yaml\nfrom lib import Args\ncfg = yaml.safe_load(open('a.yaml'))\nf(Args(**cfg['trainer']), collator=g)\n"}, None, ("a.yaml", "model: {a: 1}\ntrainer:\n  batch: 2\n  keep: true\n")),
    "the JSON file of a parser": (KEEP, {"a.json": '{\n  "out": "x",\n  "batch": 2\n}\n', "train.py": "from lib import Args, ArgumentParser\nargs = ArgumentParser(Args).parse_json_file('a.json')\nf(args, collator=g)\n"}, None, ("a.json", '{\n  "out": "x",\n  "batch": 2,\n  "keep": true\n}\n')),
    "the script of a parser of several classes": (KEEP, {"run.sh": "python train.py --out x --batch 2\n", "train.py": "from lib import Conf, OwnParser\nclass Script:\n    pass\nscript, args = OwnParser((Script, Conf)).parse()\nf(args, collator=g)\n"}, None, ("run.sh", "python train.py --out x --batch 2 --keep True\n")),
    "a new argument": (NO_CACHE, {"train.py": "Auto.from_pretrained('x', a=1)\n"}, None, ("train.py", "Auto.from_pretrained('x', a=1, use_cache=False)\n")),
}  # fmt: skip
# The name that the message complains of, files: what the renamed argument becomes; None for nothing.
RENAMED = {
    "an argument that the table does not know": ("lr", {"a.yaml": "lr: 1\n", "train.py": CODE}, None),
    "an argument of another class": ("mode", {"train.py": "Args(mode=1)\n"}, None),
    "an argument that moved to another class": ("packing", {"train.py": "Args(packing=True)\n"}, None),
    "a file that has both names": ("evaluation_strategy", {"a.yaml": "evaluation_strategy: steps\neval_strategy: steps\n", "train.py": CODE}, None),
    "a file": ("evaluation_strategy", {"a.yaml": "evaluation_strategy: steps # x\n", "train.py": CODE}, ("a.yaml", "eval_strategy: steps # x\n")),
    "the file that reaches the call, not another": ("evaluation_strategy", {"a.yaml": "evaluation_strategy: x\n", "config.yaml": "evaluation_strategy: y\n", "train.py": CODE}, ("a.yaml", "eval_strategy: x\n")),
    "a call": ("evaluation_strategy", {"train.py": "Args(evaluation_strategy='steps')\n"}, ("train.py", "Args(eval_strategy='steps')\n")),
    "a script": ("evaluation_strategy", {"run.sh": "x --evaluation_strategy steps\n"}, ("run.sh", "x --eval_strategy steps\n")),
    "an argument that is gone": ("tpu", {"train.py": "Args(tpu=1, lr=2)\n"}, ("train.py", "Args(lr=2)\n")),
}  # fmt: skip


def proposed(name: str, folder: pathlib.Path, files: dict[str, str], **known) -> list[dict[str, str]]:
    """What each proposal makes of the files that it changes."""
    for path, text in {
        "train.py": "import a\nopen('a.yaml'), open('a.json'), open('a.toml'), open('a.ini')\n",
        **files,
    }.items():
        (folder / path).write_text(text)
    program = read_program(str(folder), ["train.py"])
    found = []
    for one in find_codemod(name)(Context(program=program, incident=FAILED, **known)):
        patch = make_patch(one.edits, program.editable(edit.file for edit in one.edits), program.root)
        assert isinstance(patch, Patch), patch
        assert one.culprit.code
        found.append({pathlib.Path(file.file).name: file.after.decode() for file in patch.files})
    return found


@pytest.mark.parametrize(("options", "files", "can"), STAYS.values(), ids=STAYS)
def test_settings_stay(options: dict, files: dict, can: bool | None, tmp_path: pathlib.Path) -> None:
    """Nothing is proposed where the conditions are not met in one place, or the edit could harm."""
    assert proposed("setting", tmp_path, files, options=options, ability=lambda _: can) == []


@pytest.mark.parametrize(("options", "files", "can", "wanted"), CHANGED.values(), ids=CHANGED)
def test_settings_change(options: dict, files: dict, can: bool | None, wanted: tuple, tmp_path: pathlib.Path) -> None:
    """The settings are changed where they are written, and a second time nothing is left to do."""
    assert proposed("setting", tmp_path, files, options=options, ability=lambda _: can) == [dict([wanted])]
    again = {**files, wanted[0]: wanted[1]}
    assert proposed("setting", tmp_path, again, options=options, ability=lambda _: can) == []


def test_unknown_gpu(tmp_path: pathlib.Path) -> None:
    """Where it is not known whether the GPU can, the fix is unsafe and says why."""
    (tmp_path / "config.yaml").write_text("fp16: true\n")
    (tmp_path / "train.py").write_text("")
    context = Context(program=read_program(str(tmp_path), ["train.py"]), incident=FAILED, options=TO_BF16)
    (one,) = find_codemod("setting")(context)
    assert (one.applicability, one.because) == ("unsafe", "whether the GPU has bf16 is not known")


@pytest.mark.parametrize(("argument", "files", "wanted"), RENAMED.values(), ids=RENAMED)
def test_renamed_argument(argument: str, files: dict, wanted: tuple | None, tmp_path: pathlib.Path) -> None:
    """The argument gets the name of this release where it is written; its value moves along."""
    fields = {"callee": "Args.__init__", "argument": argument}
    changes = lambda owner, name: [CHANGES[name]] if owner == "Args" and name in CHANGES else []  # noqa: E731
    assert proposed("renamed_argument", tmp_path, files, fields=fields, changes=changes) == (
        [dict([wanted])] if wanted else []
    )


MOVED = {
    "to a configuration above": (
        "c = Conf(a=1)\nt = Args(model, args=c, beta=0.1)\n",
        "c = Conf(a=1, beta=0.1)\nt = Args(model, args=c)\n",
    ),
    "to one that is made in place": ("t = Args(args=Conf(), beta=0.1)\n", "t = Args(args=Conf(beta=0.1))\n"),
    "a value that is made later": ("c = Conf(a=1)\nb = 0.1\nt = Args(args=c, beta=b)\n", None),
    "a configuration that has it": ("c = Conf(beta=1)\nt = Args(args=c, beta=0.1)\n", None),
    "another configuration": ("c = Other(a=1)\nt = Args(args=c, beta=0.1)\n", None),
}


@pytest.mark.parametrize(("source", "wanted"), MOVED.values(), ids=MOVED)
def test_an_argument_that_moved(source: str, wanted: str | None, tmp_path: pathlib.Path) -> None:
    """It goes into the configuration that the trainer is given, with its value."""
    change = Change(library="lib", kind="argument", of="Args", old="beta", new="Conf.beta", write="x", checked="run")
    source = f"from lib import Args, Conf, Other\n{source}"
    after = rewritten(
        tmp_path,
        "renamed_argument",
        source,
        "t = Args",
        fields={"callee": "Args.__init__", "argument": "beta"},
        changes=lambda owner, name: [change] if (owner, name) == ("Args", "beta") else [],
    )
    assert after == (f"from lib import Args, Conf, Other\n{wanted}" if wanted else source)


INPLACE = {
    "a file": ({"a.json": '{"inplace": true}', "train.py": "import json\nfrom torch import nn\nc = json.load(open('a.json'))\nnn.ReLU(**c)\n"}, ("a.json", '{"inplace": false}')),
    "a default": ({"train.py": "from torch import nn\ndef act(inplace=True):\n    return nn.ReLU(inplace=inplace)\nact()\n"}, ("train.py", "from torch import nn\ndef act(inplace=False):\n    return nn.ReLU(inplace=inplace)\nact()\n")),
}  # fmt: skip


@pytest.mark.parametrize(("files", "wanted"), INPLACE.values(), ids=INPLACE)
def test_inplace_from_settings(files: dict, wanted: tuple, tmp_path: pathlib.Path) -> None:
    """An `inplace` that comes from a setting is switched off there."""
    assert proposed("inplace_argument_off", tmp_path, files) == [dict([wanted])]


@pytest.mark.parametrize("line", ["module.inplace = {}", 'setattr(module, "inplace", {})'])
def test_inplace_that_is_switched_on(line: str, tmp_path: pathlib.Path) -> None:
    """The flag of modules that were made without it; what switches it off stays."""
    source = "for module in model.modules():\n    " + line + "\n"
    made = proposed("inplace_argument_off", tmp_path, {"train.py": source.format("True")})
    assert made == [{"train.py": source.format("False")}]
    assert proposed("inplace_argument_off", tmp_path, {"train.py": source.format("False")}) == []


@pytest.mark.parametrize(
    ("text", "applicability"),
    [
        ("best: true\nsave: epoch\neval: steps\n", "unsafe"),
        ("best: true\nsave: epoch\neval: 'no'\n", None),
        ("best: true\nsave: epoch\n", None),
    ],
    ids=["both are written", "switched off", "left out"],
)
def test_a_value_of_the_author(text: str, applicability: str | None, tmp_path: pathlib.Path) -> None:
    """Of two that do not fit, what was written on purpose is changed only where that is asked for."""
    (tmp_path / "config.yaml").write_text(text)
    (tmp_path / "train.py").write_text("")
    options = {**BEST, "yours": ["eval"]}
    context = Context(program=read_program(str(tmp_path), ["train.py"]), incident=FAILED, options=options)
    (one,) = find_codemod("setting")(context)
    assert one.applicability == applicability
    assert one.edits


PARSED = "import yaml\nfrom lib import Args, ArgumentParser\nargs = ArgumentParser(Args).parse_file('a.yaml')\nf(args, collator=g)\n"
SECTION = "import yaml\nfrom lib import Args\ncfg = yaml.safe_load(open('a.yaml'))\nf(Args(**cfg['run']), collator=g)\n"
LACKING = {
    "the section of a call's options": ({"a.yaml": "x: 1\nrun:\n  batch: 2\n", "train.py": SECTION}, ("train.py", 4)),
    "the dictionary of a call's options": (
        {"train.py": "from lib import Args\nOPT = dict(batch=1)\nf(Args(**OPT), collator=g)\n"},
        ("train.py", 3),
    ),
    "a section of YAML": ({"a.yaml": "x: 1\nrun:\n  y: 1\n  batch: 2\n", "train.py": PARSED}, ("a.yaml", 2)),
    "a section of JSON": ({"a.json": '{\n  "run": {\n    "y": 1,\n    "batch": 2\n  }\n}\n', "train.py": PARSED.replace("yaml')", "json')")}, ("a.json", 2)),
    "a table of TOML": ({"a.toml": "x = 1\n[all.run] # here\ny = 1\nbatch = 2\n", "train.py": PARSED.replace("yaml')", "toml')")}, ("a.toml", 2)),
    "a whole file": ({"a.yaml": "y: 1\nbatch: 2\n", "train.py": PARSED}, ("train.py", 3)),
    "a script": ({"run.sh": "python train.py --batch 2\n", "train.py": PARSED}, ("train.py", 3)),
}  # fmt: skip


@pytest.mark.parametrize(("files", "wanted"), LACKING.values(), ids=LACKING)
def test_the_line_that_lacks_a_setting(files: dict, wanted: tuple[str, int], tmp_path: pathlib.Path) -> None:
    """It is the call that takes the mapping, or where a parser reads it the mapping's own key: not what stands beside it."""
    for path, text in {"train.py": "", **files}.items():
        (tmp_path / path).write_text(text)
    context = Context(program=read_program(str(tmp_path), ["train.py"]), incident=FAILED, options=KEEP)
    (one,) = find_codemod("setting")(context)
    assert (pathlib.Path(one.culprit.file).name, one.culprit.line) == wanted
    assert one.edits
