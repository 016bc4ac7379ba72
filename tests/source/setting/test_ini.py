"""INI files are read as `configparser` reads them, each key with its place, and followed from where a program asks for it."""

from __future__ import annotations

import ast
import pathlib

import pytest

from explainer.source.program import Program, read_program
from explainer.source.setting.flow import members_behind, settings_behind
from explainer.source.setting.setting import read_document
from explainer.source.text import make_text

# What a text says: path, value and line of each setting.
READ = {
    "nothing in an empty file": ("", []),
    "nothing in a section alone": ("[a]\n", []),
    "no key in a comment": ("[a]\n# x = 1\n; y = 2\n  # z = 3\n", []),
    "no comment behind a word": ("[a]\nx = sgd # y\n", [("a.x", "sgd # y", 2)]),
    "no comment without a gap": ("[a]\nx = 1;2\n", [("a.x", "1;2", 2)]),
    "no quotes": ("[a]\nx = '1'\n", [("a.x", "'1'", 2)]),
    "no interpolation": ("[a]\nx = %(b)s/1\ny = ${c:d}\n", [("a.x", "%(b)s/1", 2), ("a.y", "${c:d}", 3)]),
    "no number of an index": ("[a]\nx = 1e\ny = 1.2.3\nz = 0x1\n", [("a.x", "1e", 2), ("a.y", "1.2.3", 3), ("a.z", "0x1", 4)]),
    "numbers": ("[a]\nx = 3\ny = -1e-3\nz = .5\nw = -inf\n", [("a.x", 3, 2), ("a.y", -0.001, 3), ("a.z", 0.5, 4), ("a.w", -float("inf"), 5)]),
    "truth values": ("[a]\nx = yes\ny = Off\nz = 1\n", [("a.x", True, 2), ("a.y", False, 3), ("a.z", 1, 4)]),
    "both delimiters": ("[a]\nx:1\ny : 2\nz=3\nurl = http://b:80\n", [("a.x", 1, 2), ("a.y", 2, 3), ("a.z", 3, 4), ("a.url", "http://b:80", 5)]),
    "a comment behind a number": ("[a]\nx = 0.8 ; slow\ny = no\t# z\n", [("a.x", 0.8, 2), ("a.y", False, 3)]),
    "keys in capitals": ("[Train]\nLR = 1\n", [("Train.lr", 1, 2)]),
    "keys with blanks": ("[a b]\nx y = 1\n", [("a b.x y", 1, 2)]),
    "a value over several lines": ("[a]\nx = 1\n  2\n  # y = 3\n\n  4\nz = 5\n", [("a.x", "1\n2\n\n4", 2), ("a.z", 5, 7)]),
    "a value that begins below": ("[a]\nx =\n  1\n", [("a.x", "\n1", 2)]),
    "an indented section": ("[a]\n  x = 1\n  y = 2\n[b]\nx = 3\n", [("a.x", 1, 2), ("a.y", 2, 3), ("b.x", 3, 5)]),
    "no value": ("[a]\nx =\ny = 1\n", [("a.x", "", 2), ("a.y", 1, 3)]),
    "defaults": ("[DEFAULT]\nx = 1\n[a]\ny = 2\n", [("DEFAULT.x", 1, 2), ("a.y", 2, 4)]),
    "a section twice": ("[a]\nx = 1\n[b]\n[a]\nx = 2\n", [("a.x", 1, 2), ("a.x", 2, 5)]),
    "CRLF and a byte order mark": ("\ufeff[a]\r\nx = 1\r\n\r\ny = 2", [("a.x", 1, 2), ("a.y", 2, 4)]),
    "a number of thousands of digits": ("[a]\nx = " + "9" * 5000 + "\n", [("a.x", "9" * 5000, 2)]),
}  # fmt: skip


@pytest.mark.parametrize(("text", "wanted"), READ.values(), ids=READ)
@pytest.mark.parametrize("name", ["run.ini", "train.CFG"])
def test_read(name: str, text: str, wanted: list) -> None:
    """Each key has its path, its value and its line."""
    document = read_document(make_text(name, text.encode()))
    assert document.fault is None
    assert [(".".join(one.path), one.value, one.line) for one in document.settings] == wanted


def test_spans() -> None:
    """A span holds the text of the value, also after characters of several bytes, without a comment behind it."""
    document = read_document(make_text("a.ini", "[é]\nü =  'ß 🔥' \nx=1 # ß\n".encode()))
    assert [one.raw for one in document.settings] == ["'ß 🔥'", "1"]


HOSTILE = {
    "no section": "x = 1\n[a]\n",
    "a line without a delimiter": "[a]\nx\n",
    "a key without a name": "[a]\n= 1\n",
    "a section without an end": "[a\nx = 1\n",
    "a section without a name": "[]\nx = 1\n",
    "Python": "import torch\nx = [1,\n  2]\n",
    "YAML": "a:\n  x: 1\n- b\n",
    "a gap without end": "[a]\nx" + " " * 200_000 + "y\n",
    "many gaps without end": "[a]\n" + ("x" + " " * 5000 + "y\n") * 50,
    "a control character": "[a]\nx\x01\n",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_broken(text: str) -> None:
    """A file that the parser refuses, or that would take it long, has no settings and says why."""
    document = read_document(make_text("a.ini", text.encode()))
    assert document.settings == ()
    assert (document.fault or "").startswith("does not parse: ")
    assert "\n" not in (document.fault or "")


LARGE = {
    "many keys": "[a]\n" + "".join(f"x{number} = {number}\n" for number in range(15_000)),
    "many sections": "".join(f"[s{number}]\nx = 1\n" for number in range(10_000)),
    "a value of many lines": "[a]\nx = 1\n" + "  2\n" * 50_000,
    "many small gaps": "[a]\nx = 1\n" + ("y" + (" " * 150 + "z") * 1000 + " = 1\n"),
    "references to each other": "[a]\n" + "".join(f"x{n} = {f'%(x{n + 1})s' * 20}\n" for n in range(300)),
    "delimiters alone": "[a]\nx" + "=:" * 100_000 + "\n",
}


@pytest.mark.parametrize("text", LARGE.values(), ids=LARGE)
def test_large(text: str) -> None:
    """A large file is read; what took the square of its size would not end here."""
    assert read_document(make_text("a.ini", text.encode())).settings


INI = """[DEFAULT]
seed = 7
[optimiser]
name = SGD
LR = 0.8
steps : 60
[train]
lr = 0.1
"""
MADE = "import configparser\ncfg = configparser.ConfigParser()\ncfg.read('run.ini')\n"
LR, STEPS, SEED = ("run.ini", 5, 0.8), ("run.ini", 6, 60), ("run.ini", 2, 7)
# What train.py says; the argument of `use(...)` is followed.
NOT_FOLLOWED = {
    "a section that the file lacks": MADE + "use(lr=cfg['other'].getfloat('lr'))",
    "a key that the file lacks": MADE + "use(lr=cfg.getfloat('optimiser', 'rate'))",
    "a computed section": MADE + "use(lr=cfg.getfloat(name, 'lr'))",
    "a computed key": MADE + "use(lr=cfg['optimiser'][name])",
    "a section as a number": MADE + "use(lr=cfg['optimiser']['lr']['x'])",
    "another object that is asked so": "import lib\ncfg = lib.Settings('run.ini')\nuse(lr=cfg.getfloat('optimiser', 'lr'))",
    "a method of a tensor": "import torch\nx = torch.zeros(1)\nuse(lr=float(x['optimiser']))",
    "a truth value of a text": MADE + "use(lr=bool(cfg['optimiser']['lr']))",
    "a file that no reader of INI reads": "import yaml\ncfg = yaml.safe_load(open(path))\nuse(lr=cfg['optimiser']['lr'])",
}  # fmt: skip
FOLLOWED = {
    "a section's number": (MADE + "use(lr=cfg['optimiser'].getfloat('lr'))", [LR]),
    "a section of that name": (MADE + "section = cfg['optimiser']\nuse(lr=section['lr'])", [LR]),
    "a key in capitals": (MADE + "use(lr=cfg['optimiser']['LR'])", [LR]),
    "a section and a key": (MADE + "use(lr=cfg.get('optimiser', 'lr'))", [LR]),
    "another section": (MADE + "use(lr=cfg.get('train', 'lr'))", [("run.ini", 8, 0.1)]),
    "a number with a fallback": (MADE + "use(lr=cfg.getfloat('optimiser', 'lr', fallback=0.1))", [LR]),
    "the fallback": (MADE + "RATE = 0.3\nuse(lr=cfg.getfloat('optimiser', 'rate', fallback=RATE))", [("train.py", 4, 0.3)]),
    "a section's fallback": (MADE + "RATE = 0.3\nuse(lr=cfg['optimiser'].getfloat('rate', RATE))", [("train.py", 4, 0.3)]),
    "a whole number": (MADE + "section = cfg['optimiser']\nuse(lr=section.getint('steps'))", [STEPS]),
    "a number of a text": (MADE + "use(lr=float(cfg['optimiser']['lr']))", [LR]),
    "a default of all sections": (MADE + "use(lr=cfg.getint('train', 'seed'))", [SEED]),
    "the section of defaults": (MADE + "use(lr=cfg['DEFAULT']['seed'])", [SEED]),
    "the defaults": (MADE + "use(lr=int(cfg.defaults()['seed']))", [SEED]),
    "a helper": (MADE + "def make(net, section):\n    use(lr=section.getfloat('lr'))\nmake(1, cfg['optimiser'])", [LR]),
    "a dictionary": (MADE + "opt = dict(cfg['optimiser'])\nuse(lr=float(opt['lr']))", [LR]),
    "two stars": (MADE + "use(**dict(cfg['optimiser']))", [LR]),
    "items": (MADE + "opt = dict(cfg.items('optimiser'))\nuse(lr=float(opt['lr']))", [LR]),
    "items of a section": (MADE + "opt = dict(cfg['optimiser'].items())\nuse(lr=float(opt['lr']))", [LR]),
    "a comprehension": (MADE + "opt = {k: float(v) for k, v in cfg.items('train')}\nuse(lr=opt['lr'])", [("run.ini", 8, 0.1)]),
    "a comprehension of a section": (MADE + "opt = {k: v for k, v in cfg['train'].items()}\nuse(lr=opt['lr'])", [("run.ini", 8, 0.1)]),
    "dictionaries of all sections": (MADE + "all = {name: dict(cfg[name]) for name in cfg.sections()}\nuse(lr=float(all['optimiser']['lr']))", [LR]),
    "a namespace": (MADE + "from types import SimpleNamespace\nns = SimpleNamespace(**cfg['train'])\nuse(lr=ns.lr)", [("run.ini", 8, 0.1)]),
    "a function that loads": ("import configparser as c\ndef load(path):\n    p = c.ConfigParser(interpolation=None)\n    p.read(path)\n    return p\nuse(lr=load('run.ini')['optimiser'].getfloat('lr'))", [LR]),
    "an open file": ("from configparser import RawConfigParser\np = RawConfigParser()\nwith open('run.ini') as file:\n    p.read_file(file)\nuse(lr=p.getfloat('optimiser', 'lr'))", [LR]),
    "a text": ("from pathlib import Path\nfrom configparser import ConfigParser\np = ConfigParser()\np.read_string(Path('run.ini').read_text())\nuse(lr=p['optimiser']['lr'])", [LR]),
    "a path beside the program": ("from pathlib import Path\nfrom configparser import ConfigParser\nHERE = Path(__file__).parent\np: ConfigParser = ConfigParser()\np.read(HERE / 'run.ini')\nuse(lr=p['optimiser']['lr'])", [LR]),
    "an attribute": ("import configparser\nclass Run:\n    def __init__(self):\n        self.cfg = configparser.ConfigParser()\n        self.cfg.read('run.ini')\n    def make(self):\n        use(lr=self.cfg.getfloat('optimiser', 'lr'))", [LR]),
    "the only file": ("import configparser, sys\ncfg = configparser.ConfigParser()\ncfg.read(sys.argv[1])\nuse(lr=cfg.getfloat('optimiser', 'lr'))", [LR]),
}  # fmt: skip


def project(folder: pathlib.Path, files: dict[str, str]) -> Program:
    for name, text in files.items():
        (folder / name).write_text(text)
    return read_program(str(folder), ["train.py"])


def behind(program: Program) -> list[tuple[str, int, object]]:
    """The settings behind the argument `lr` of `use`."""
    for file in program.parsed():
        for node in file.walk():
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "use":
                given = node.keywords[0]
                found = (
                    settings_behind(given.value, file, program)
                    if given.arg
                    else members_behind(given.value, "lr", file, program)
                )
                return sorted((pathlib.Path(one.file.path).name, one.line, one.value) for one in found)
    raise AssertionError


@pytest.mark.parametrize("code", NOT_FOLLOWED.values(), ids=NOT_FOLLOWED)
def test_not_followed(code: str, tmp_path: pathlib.Path) -> None:
    """Where the program does not show which key is meant, no line of the file is given."""
    found = behind(project(tmp_path, {"train.py": code, "run.ini": INI}))
    assert [one for one in found if one[0] == "run.ini"] == []


@pytest.mark.parametrize(("code", "wanted"), FOLLOWED.values(), ids=FOLLOWED)
def test_followed(code: str, wanted: list, tmp_path: pathlib.Path) -> None:
    """A value is followed from its use to the line where it is written."""
    assert behind(project(tmp_path, {"train.py": code, "run.ini": INI})) == wanted


def test_the_file_that_is_read(tmp_path: pathlib.Path) -> None:
    """Of two files each function's parser has its own, and a broken one beside them does no harm."""
    code = (
        "import configparser\ndef a():\n    cfg = configparser.ConfigParser()\n    cfg.read('a.ini')\n    return cfg\n"
    )
    code += code.replace("def a", "def b").replace("a.ini", "b.ini") + "use(lr=b().getfloat('x', 'lr'))\n"
    files = {"a.ini": "[x]\nlr = 1\n", "b.ini": "[x]\nlr = 2\n", "run.ini": "lr = 3\n"}
    assert behind(project(tmp_path, {"train.py": code, **files})) == [("b.ini", 2, 2)]


def test_a_yaml_file_beside(tmp_path: pathlib.Path) -> None:
    """A reader of YAML whose file is not known means the only YAML file, whatever INI files there are."""
    code = "import sys, yaml\ncfg = yaml.safe_load(open(sys.argv[1]))\nuse(lr=cfg['lr'])\n"
    program = project(tmp_path, {"train.py": code, "run.ini": INI, "config.yaml": "lr: 1\n"})
    assert behind(program) == [("config.yaml", 1, 1)]


# The files of a project beside train.py, what train.py says, and which of them belong to the program.
BELONGS = {
    "settings of other tools": ({"setup.cfg": "[a]\n", "tox.ini": "[a]\n", "pytest.ini": "[a]\n"}, "", []),
    "a file that nobody names": ({"desktop.ini": "[a]\n"}, "", []),
    "a file that is too large": ({"run.ini": "[a]\n" + "x = 1\n" * 100_000}, "open('run.ini')", []),
    "a file that is named": ({"desktop.ini": "[a]\n"}, "open('desktop.ini')", ["desktop.ini"]),
    "well-known names": ({"run.ini": "[a]\n", "train.cfg": "[a]\n"}, "", ["run.ini", "train.cfg"]),
    "a file that a script names": ({"go.sh": "python train.py --conf x.ini", "x.ini": "[a]\n"}, "", ["go.sh", "x.ini"]),
}  # fmt: skip


@pytest.mark.parametrize(("files", "code", "wanted"), BELONGS.values(), ids=BELONGS)
def test_files_of_a_program(files: dict, code: str, wanted: list, tmp_path: pathlib.Path) -> None:
    """INI files that the program or a script names, and those with well-known names, belong to it; others do not."""
    program = project(tmp_path, {"train.py": code, **files})
    assert sorted(pathlib.Path(one.path).name for one in program.texts) == wanted
