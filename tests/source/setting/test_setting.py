"""Settings are read with their place, from the files that belong to a program, and followed from their use to where they stand."""

from __future__ import annotations

import ast
import pathlib

import pytest

from explainer.source.file import parse_source
from explainer.source.program import Program, read_program
from explainer.source.setting.flow import members_behind, settings_behind
from explainer.source.setting.setting import read_document, read_settings
from explainer.source.text import Unreadable, make_text, read_text

REFUSED = {
    "Latin-1": (b"name: gr\xfc\xdfe\n", "not UTF-8"),
    "UTF-16": ("a: 1\n".encode("utf-16"), "no text"),
    "a program": (b"\x7fELF\x02\x01\x00\x00" * 100, "no text"),
    "five megabytes": (b"a: 1\n" * 1_000_000, "larger than 256 KiB"),
}


@pytest.mark.parametrize(("data", "reason"), REFUSED.values(), ids=REFUSED)
def test_no_text(data: bytes, reason: str, tmp_path: pathlib.Path) -> None:
    """A file that is no text of bearable size is refused with the reason."""
    path = tmp_path / "a.yaml"
    path.write_bytes(data)
    with pytest.raises(Unreadable, match=reason):
        read_text(str(path))


def test_no_regular_file(tmp_path: pathlib.Path) -> None:
    """A folder is no configuration file."""
    with pytest.raises(Unreadable, match="no regular file"):
        read_text(str(tmp_path))


# What a text says: path, value and line of each setting.
READ = {
    "nothing in an empty YAML file": ("a.yaml", "", []),
    "nothing in a list of one word": ("a.sh", "echo done\n", []),
    "no flag of a here-document": ("a.sh", "cat <<E > f\n--a 1\nE\nx --b 2\n", [("b", 2, 4)]),
    "no flag of a comment": ("a.sh", "# x --a 1\nx --b 2 # --c 3\n", [("b", 2, 2)]),
    "no program as the value of a flag": ("a.sh", "torchrun --standalone train.py --a 1\n", [("standalone", True, 1), ("a", 1, 1)]),
    "YAML 1.1 truth values": ("a.yaml", "a: yes\nb: 'yes'\n", [("a", True, 1), ("b", "yes", 2)]),
    "a merge key adds no setting": ("a.yaml", "a: &x {b: 1}\nc:\n  <<: *x\n", [("a", {"b": 1}, 1), ("a.b", 1, 1), ("c", {"b": 1}, 2)]),
    "an unknown tag": ("a.yaml", "a: !include b.yaml\n", [("a", "!include b.yaml", 1)]),
    "escapes in JSON": ("a.json", '{"a\\u0062": "x\\"y"}', [("ab", 'x"y', 1)]),
    "CRLF": ("a.json", '{\r\n"a": 1,\r\n"b": [true]}', [("a", 1, 2), ("b", [True], 3), ("b.0", True, 3)]),
    "tables of TOML": ("a.toml", "[a.b]\nc = 1\n[[d]]\ne = 2\n[[d]]\ne = 3\n", [("a.b.c", 1, 2), ("d.0.e", 2, 4), ("d.1.e", 3, 6)]),
    "a string with brackets in TOML": ("a.toml", 'a = "[x] # y"\nb = 1\n', [("a", "[x] # y", 1), ("b", 1, 2)]),
    "arguments": ("a.py", "f(1, a=True)\n", [("a", True, 1)]),
    "a dictionary": ("a.py", "x = {'a': 1, 2: 3}\n", [("x", {"a": 1, 2: 3}, 1), ("a", 1, 1)]),
    "a dataclass": ("a.py", "class C:\n    a: bool = True\n    b: int\n", [("a", True, 2)]),
    "argparse": ("a.py", "p.add_argument('--my-flag', type=int, default=3)\n", [("type", "int", 1), ("my_flag", 3, 1)]),
    "defaults of a function": ("a.py", "def f(x, a=1, *, b=True): ...\n", [("a", 1, 1), ("b", True, 1)]),
}  # fmt: skip


@pytest.mark.parametrize(("name", "text", "wanted"), READ.values(), ids=READ)
def test_read(name: str, text: str, wanted: list) -> None:
    """Each setting has its path, its value and its line."""
    file = parse_source(name, text.encode()) if name.endswith(".py") else make_text(name, text.encode())
    assert [(".".join(one.path), one.value, one.line) for one in read_settings(file)] == wanted


def test_spans() -> None:
    """A span holds the text of the value, also after characters of several bytes."""
    document = read_document(make_text("a.yaml", "é: 'ü'  # ß\nb: [1, {c: \"🔥\"}]\n".encode()))
    assert [one.raw for one in document.settings] == ["'ü'", '[1, {c: "🔥"}]', "1", '{c: "🔥"}', '"🔥"']


def project(folder: pathlib.Path, files: dict[str, str]) -> Program:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return read_program(str(folder), ["train.py"])


# The files of a project beside train.py, what train.py says, and which of them belong to the program.
LEFT_OUT = {
    "a data file that nobody names": ({"stats.json": "{}"}, "", []),
    "settings of other tools": ({"package.json": "{}", ".pre-commit-config.yaml": "a: 1"}, "", []),
    "a file outside of the root": ({"../outside.yaml": "a: 1"}, "open('../outside.yaml')", []),
    "a file of an installed package": ({"venv/config.yaml": "a: 1"}, "open('venv/config.yaml')", []),
    "a file that is not there": ({}, "open('config.yaml')", []),
    "a file below too many folders": ({"conf/a/b/c/d.yaml": "a: 1"}, "", []),
}
BELONGS = {
    "a file that is named": ({"stats.json": "{}"}, "open('stats.json')", ["stats.json"]),
    "a file that is named with its folder": ({"data/x.yaml": "a: 1"}, "p = 'data/x.yaml'", ["data/x.yaml"]),
    "a file that a script names": ({"run.sh": "python train.py --config my/x.yaml", "my/x.yaml": "a: 1"}, "", ["my/x.yaml", "run.sh"]),
    "well-known names": ({"ds_config.json": "{}", "accelerate.yaml": "a: 1"}, "", ["accelerate.yaml", "ds_config.json"]),
    "Hydra's folder": ({"conf/config.yaml": "a: 1", "conf/model/x.yaml": "b: 1"}, "", ["conf/config.yaml", "conf/model/x.yaml"]),
}  # fmt: skip


@pytest.mark.parametrize(("files", "code", "wanted"), {**LEFT_OUT, **BELONGS}.values(), ids={**LEFT_OUT, **BELONGS})
def test_files_of_a_program(files: dict, code: str, wanted: list, tmp_path: pathlib.Path) -> None:
    """The files that the program or a script names, and those with well-known names, belong to it; others do not."""
    root = tmp_path / "project"
    program = project(root, {"train.py": code, **files})
    assert sorted(str(pathlib.Path(one.path).relative_to(root.resolve())) for one in program.texts) == wanted


def test_link_that_leads_out(tmp_path: pathlib.Path) -> None:
    """A symbolic link to a file outside of the root is not followed."""
    (tmp_path / "secret.yaml").write_text("a: 1")
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "config.yaml").symlink_to(tmp_path / "secret.yaml")
    assert project(tmp_path / "project", {"train.py": "open('config.yaml')"}).texts == ()


def test_many_files(tmp_path: pathlib.Path) -> None:
    """The number of files is bounded."""
    program = project(tmp_path, {"train.py": "", **{f"configs/{number}.yaml": "a: 1" for number in range(300)}})
    assert len(program.texts) == 64


CONFIG = {"config.json": '{\n  "act": {"inplace": true}\n}', "run.sh": "python train.py --inplace true\n"}
LOADED = "import json, yaml, argparse\nfrom dataclasses import dataclass\ncfg = json.load(open('config.json'))\n"
JSON_LINE = ("config.json", 2, True)
# What train.py says after `cfg` was loaded; the argument of `use(...)` is followed.
NOT_FOLLOWED = {
    "a key that the file lacks": "use(inplace=cfg['act']['other'])",
    "a computed key": "use(inplace=cfg[name])",
    "a name that nobody binds": "use(inplace=flag)",
    "a variable that reads itself": "x = x\nuse(inplace=x)",
    "functions that call each other": "def f():\n    return g()\ndef g():\n    return f()\nuse(inplace=f())",
    "a parameter that nobody passes": "def f(a):\n    use(inplace=a)",
}
FOLLOWED = {
    "a subscript": ("use(inplace=cfg['act']['inplace'])", [JSON_LINE]),
    "get with a default": ("use(inplace=cfg['act'].get('inplace', False))", [JSON_LINE]),
    "the default of get": ("use(inplace=cfg.get('none', True))", []),
    "two stars": ("use(**cfg['act'])", [JSON_LINE]),
    "a copy whose key is popped": ("def f(spec):\n    spec = dict(spec)\n    spec.pop('type')\n    use(**spec)\nf(cfg['act'])", [JSON_LINE]),
    "a parameter": ("def f(a, b):\n    use(inplace=b)\nf(1, cfg['act']['inplace'])", [JSON_LINE]),
    "a default of a parameter": ("def f(a=True):\n    use(inplace=a)\nf()", [("train.py", 4, True)]),
    "two calls": ("def f(a):\n    use(inplace=a)\nf(a=True)\nf(a=False)", [("train.py", 6, True), ("train.py", 7, False)]),
    "an attribute of an object": ("class N:\n    def __init__(self, c):\n        self.c = c\n    def run(self):\n        use(inplace=self.c['inplace'])\nN(cfg['act'])", [JSON_LINE]),
    "a namespace": ("from types import SimpleNamespace\nns = SimpleNamespace(**cfg['act'])\nuse(inplace=ns.inplace)", [JSON_LINE]),
    "a dataclass made of a file": ("@dataclass\nclass C:\n    inplace: bool = False\nc = C(**cfg['act'])\nuse(inplace=c.inplace)", [JSON_LINE]),
    "the default of a dataclass": ("@dataclass\nclass C:\n    inplace: bool = True\nc = C()\nuse(inplace=c.inplace)", [("train.py", 6, True)]),
    "a dictionary of dictionaries": ("d = {'a': {'inplace': True}}\nuse(**d['a'])", [("train.py", 4, True)]),
    "a constant": ("INPLACE = True\nuse(inplace=INPLACE)", [("train.py", 4, True)]),
    "a function that loads": ("def load(path='config.json'):\n    with open(path) as file:\n        return json.load(file)\nuse(**load()['act'])", [JSON_LINE]),
    "argparse, set by a script": ("p = argparse.ArgumentParser()\np.add_argument('--inplace', default=False)\nargs = p.parse_args()\nuse(inplace=args.inplace)", [JSON_LINE, ("run.sh", 1, True), ("train.py", 5, False)]),
}  # fmt: skip


def behind(code: str, folder: pathlib.Path) -> list[tuple[str, int, object]]:
    program = project(folder, {"train.py": LOADED + code, **CONFIG})
    file = program.order[0]
    (call,) = [node for node in file.walk() if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "use"]
    (keyword,) = call.keywords
    if keyword.arg:
        found = settings_behind(keyword.value, file, program)
    else:
        found = members_behind(keyword.value, "inplace", file, program)
    return sorted((pathlib.Path(one.file.path).name, one.line, one.value) for one in found)


@pytest.mark.parametrize("code", NOT_FOLLOWED.values(), ids=NOT_FOLLOWED)
def test_not_followed(code: str, tmp_path: pathlib.Path) -> None:
    """Where the program does not show which setting is meant, none is given."""
    assert behind(code, tmp_path) == []


@pytest.mark.parametrize(("code", "wanted"), FOLLOWED.values(), ids=FOLLOWED)
def test_followed(code: str, wanted: list, tmp_path: pathlib.Path) -> None:
    """A value is followed from its use to the line where it is written."""
    assert behind(code, tmp_path) == wanted


TABLE = """import json
cfg = json.load(open("config.json"))
class Clip:
    def __init__(self, limit):
        use(limit)
class Log:
    def __init__(self, limit=0):
        print(limit)
KINDS = {"clip": Clip, "log": Log}
def make(specs):
    return [KINDS[one["kind"]](**{k: v for k, v in one.items() if k != "kind"}) for one in specs]
"""
HOOKS = '{"hooks": [\n{"kind": "log", "limit": 1},\n{"kind": "clip", "limit": 2}\n]}'
# What train.py says of a class that is taken out of a table, the configuration, and which setting its argument is.
BY_NAME = {
    "a list of mappings": (TABLE + 'make(cfg["hooks"])\n', HOOKS, [("config.json", 3, 2)]),
    "mappings in the program": (
        TABLE + 'make([{"kind": "log", "limit": 1}, dict(kind="clip", limit=3)])\n', HOOKS, [("train.py", 12, 3)],
    ),
    "a loop": (
        TABLE + 'for one in cfg["hooks"]:\n    one = dict(one)\n    KINDS[one.pop("kind")](**one)\n', HOOKS, [("config.json", 3, 2)],
    ),
    "items by name": (
        TABLE + 'for kind, one in cfg["hooks"].items():\n    KINDS[kind](**one)\n',
        '{"hooks": {\n"log": {"limit": 1},\n"clip": {"limit": 2}}}', [("config.json", 3, 2)],
    ),
    "one mapping": (TABLE + 'KINDS[cfg["kind"]](limit=cfg["limit"])\n', '{"kind": "clip",\n"limit": 4}', [("config.json", 2, 4)]),
    "nobody makes one": (TABLE, HOOKS, []),
}  # fmt: skip


@pytest.mark.parametrize(("code", "config", "wanted"), BY_NAME.values(), ids=BY_NAME)
def test_what_is_made_by_name(code: str, config: str, wanted: list, tmp_path: pathlib.Path) -> None:
    """Of several mappings that one call hands on, the one that names the class is that of its arguments."""
    program = project(tmp_path, {"train.py": code, "config.json": config})
    file = program.order[0]
    (call,) = [node for node in file.walk() if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "use"]
    found = settings_behind(call.args[0], file, program)
    assert sorted((pathlib.Path(one.file.path).name, one.line, one.value) for one in found) == wanted


PLAN = """import yaml
plan = dict(yaml.safe_load(open("plan.yaml")))
def at(step):
    for part in plan.get(step, []):
        use(part["name"])
"""


def test_the_lists_under_a_computed_key(tmp_path: pathlib.Path) -> None:
    """Each of them may be meant: a plan by the step at which its parts join; what is no list is not followed."""
    text = "0:\n  - {name: head, lr: 0.1}\n4:\n  - {name: stem, lr: 0.01}\nseed: 1\n"
    program = project(tmp_path, {"train.py": PLAN, "plan.yaml": text})
    (file,) = program.parsed()
    (node,) = [one.args[0] for one in file.walk() if isinstance(one, ast.Call) and getattr(one.func, "id", "") == "use"]
    assert [one.value for one in settings_behind(node, file, program)] == ["head", "stem"]
