"""Edits of settings: the value that was meant changes and no other byte; what cannot be done so is refused with a reason."""

from __future__ import annotations

import configparser
import copy
import json
import pathlib
import shlex
import sys

import pytest
import yaml

from explainer.fix.setting.edit import add_key, remove, rename_key, set_value
from explainer.fix.splice import splice
from explainer.model.patch import Edit
from explainer.source.file import parse_source
from explainer.source.setting.setting import Setting, read_document, read_settings
from explainer.source.text import make_text

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SETTINGS = pathlib.Path(__file__).parent / "settings"
FILES = sorted(str(path.relative_to(SETTINGS)) for path in SETTINGS.rglob("*") if path.is_file())
INI = [name for name in FILES if name.startswith("ini/")]
LOADED = [name for name in FILES if not name.startswith(("scripts/", "ini/"))]
SCRIPTS = [name for name in FILES if name.startswith("scripts/")]

# A file, the path of a setting in it, an edit, and what its refusal says.
REFUSED = {
    "a key that stands twice": ("a.yaml", "lr: 1\nlr: 2\n", "lr", "set", "stands twice"),
    "a key that stands twice in JSON": ("a.json", '{"lr": 1, "lr": 2}', "lr", "set", "stands twice"),
    "a key below one that stands twice": ("a.json", '{"a": {"lr": 1}, "a": {"x": 2}}', "a.lr", "set", "stands twice"),
    "a value that aliases repeat": ("a.yaml", "a: &x 1\nb: *x\n", "a", "set", "through `*x`"),
    "a value in a mapping that aliases repeat": ("a.yaml", "a: &x {lr: 1}\nb: *x\n", "a.lr", "set", "more than this"),
    "a value that a merge key passes on": ("a.yaml", "a: &x\n  lr: 1\nb:\n  <<: *x\n", "a.lr", "set", "more than this"),
    "an anchor that aliases need": ("a.yaml", "a: &x 1\nb: *x\n", "a", "remove", "undefined alias"),
    "a block of text": ("a.yaml", "a: |\n  x\nb: 1\n", "a", "set", "block of text"),
    "a value with a tag": ("a.yaml", "a: !env HOME\nb: 1\n", "a", "set", "tag"),
    "a block of several lines": ("a.yaml", "a:\n  b: 1\n", "a", "set", "several lines"),
    "a list over several lines": ("a.toml", "a = [\n 1, # one\n]\n", "a", "set", "several lines"),
    "the only key of a block": ("a.yaml", "a:\n  b: 1\nc: 2\n", "a.b", "remove", "only key"),
    "an element of a list": ("a.yaml", "a: [1, 2]\n", "a.0", "remove", "no plain"),
    "no value in TOML": ("a.toml", "a = 1\n", "a", "none", "cannot be written"),
    "a key that stands twice in INI": ("a.ini", "[a]\nlr = 1\nLR = 2\n", "a.lr", "set", "stands twice"),
    "a value over several lines in INI": ("a.ini", "[a]\nx = 1\n  2\n", "a.x", "set", "several lines"),
    "a word with what may be a comment in INI": ("a.ini", "[a]\nx = b ; c\n", "a.x", "set", "may be a comment"),
    "a value that others repeat in INI": ("a.ini", "[a]\nx = 1\ny = %(x)s\n", "a.x", "set", "through `%(x)s`"),
    "a key that others repeat in INI": ("a.ini", "[a]\nx = 1\ny = ${a:x}\n", "a.x", "remove", "no plain"),
    "a default that sections have in INI": ("a.ini", "[DEFAULT]\nx = 1\n[a]\ny = 2\n", "DEFAULT.x", "set", "more than this"),
    "a key with a default in INI": ("a.ini", "[DEFAULT]\nx = 1\n[a]\nx = 2\n", "a.x", "remove", "more than this"),
    "no value in INI": ("a.ini", "[a]\nx = 1\n", "a.x", "none", "cannot be written"),
    "a name that is taken": ("a.yaml", "lr: 1\nrate: 2\n", "lr", "rename", "there already"),
    "a name that is taken, to be added": ("a.json", '{"lr": 1, "rate": 2}', "lr", "add", "there already"),
    "a value that is there": ("a.yaml", "lr: 7\n", "lr", "set", "has that value"),
    "the first key of an element, alone": ("a.yaml", "a:\n- b: 1\n- c: 2\n", "a.0.b", "remove", "only key"),
    "a flag that switches": ("a.py", 'p.add_argument("--x", action="store_true")\n', "x", "set", "command line"),
}  # fmt: skip
UNREADABLE = {
    "no end of a list": ("a.yaml", b"a: [1\n", "does not parse"),
    "a tab for indentation": ("a.yaml", b"a:\n\tb: 1\n", "does not parse"),
    "an alias of nothing": ("a.yaml", b"a: *b\n", "undefined alias"),
    "a mapping that holds itself": ("a.yaml", b"a: &a [*a]\n", "holds itself"),
    "a few lines for billions of values": (
        "a.yaml",
        b"a: &a [1,1,1,1,1,1,1,1,1]\n" + b"".join(b"%c: &%c [%s]\n" % (98 + i, 98 + i, b",".join([b"*%c" % (97 + i)] * 9)) for i in range(9)),
        "more than 50000",
    ),
    "brackets without end": ("a.yaml", b"[" * 20_000, "does not parse"),
    "brackets without end in JSON": ("a.json", b"[" * 100_000, "does not parse"),
    "JSON with comments": ("a.json", b'{"a": 1} // no\n', "does not parse"),
    "a comma too many in JSON": ("a.json", b'{"a": 1,}', "does not parse"),
    "an empty JSON file": ("a.json", b"", "does not parse"),
    "a TOML key without a value": ("a.toml", b"a =\n", "does not parse"),
    "a TOML table twice": ("a.toml", b"[a]\nx = 1\n[a]\n", "does not parse"),
    "a control character": ("a.yaml", b"a: \x01\n", "does not parse"),
    "an INI key without a section": ("a.ini", b"x = 1\n", "does not parse"),
    "an unknown kind of file": ("a.rst", b"[a]\nx = 1\n", "no configuration file"),
}  # fmt: skip

# A file, the path of a setting, an edit with its value, and the whole text that comes out.
WRITTEN = {
    "true in YAML": ("a.yaml", "a: true # x\n", "a", "set", False, "a: false # x\n"),
    "True in YAML": ("a.yaml", "a: True\n", "a", "set", False, "a: False\n"),
    "yes in YAML": ("a.yaml", "a: yes\n", "a", "set", False, "a: no\n"),
    "ON in YAML": ("a.yaml", "a: ON\n", "a", "set", False, "a: OFF\n"),
    "single quotes stay": ("a.yaml", "a: 'no'\n", "a", "set", "bf16", "a: 'bf16'\n"),
    "a word that would be a truth value": ("a.yaml", "a: steps\n", "a", "set", "no", 'a: "no"\n'),
    "a word with a colon": ("a.yaml", "a: x\n", "a", "set", "b: c", 'a: "b: c"\n'),
    "a small number": ("a.yaml", "a: 1\n", "a", "set", 1e-5, "a: 1.0e-05\n"),
    "a value where none is": ("a.yaml", "a:\nb: 1\n", "a", "set", True, "a: true\nb: 1\n"),
    "an alias becomes a value": ("a.yaml", "a: &x 1\nb: *x\n", "b", "set", 2, "a: &x 1\nb: 2\n"),
    "a mapping into YAML": ("a.yaml", "a: 1\n", "a", "set", {"use_reentrant": False}, "a: {use_reentrant: false}\n"),
    "the second document": ("a.yaml", "a: 1\n---\na: 1\n", "1:a", "set", 2, "a: 1\n---\na: 2\n"),
    "the first key of an element": ("a.yaml", "- a: 1\n  b: 2\n", "0.a", "remove", None, "- b: 2\n"),
    "a block with its comment": ("a.yaml", "a:\n  b: 1 # x\nc: 2\n", "a", "remove", None, "c: 2\n"),
    "the last member of JSON": ("a.json", '{\n  "a": 1,\n  "b": 2\n}', "b", "remove", None, '{\n  "a": 1\n}'),
    "a first member of JSON": ("a.json", '{"a": 1, "b": 2}', "a", "remove", None, '{"b": 2}'),
    "a new member of JSON": ("a.json", '{\n\t"a": 1\n}', "a", "add", True, '{\n\t"a": 1,\n\t"rate": true\n}'),
    "a trailing comma in TOML": ("a.toml", "a = [1, 2,]\nb = 1\n", "b", "set", 2, "a = [1, 2,]\nb = 2\n"),
    "a dotted key in TOML": ("a.toml", "x.a = 1\n", "x.a", "rename", None, "x.rate = 1\n"),
    "a sibling of a dotted key": ("a.toml", "x.a = 1\n", "x.a", "add", "v", 'x.a = 1\nx.rate = "v"\n'),
    "yes in INI": ("a.ini", "[a]\nx = Yes ; b\n", "a.x", "set", False, "[a]\nx = No ; b\n"),
    "a switch of 1 in INI": ("a.ini", "[a]\nx=1\n", "a.x", "set", False, "[a]\nx=0\n"),
    "a number with a comment in INI": ("a.cfg", "[a]\nLR : 0.8  # high\n", "a.lr", "set", 1e-5, "[a]\nLR : 1e-05  # high\n"),
    "a value where none is in INI": ("a.ini", "[a]\nx =\ny = 1\n", "a.x", "set", 2, "[a]\nx = 2\ny = 1\n"),
    "a word that is a truth value in INI": ("a.ini", "[a]\nx = steps\n", "a.x", "set", "no", "[a]\nx = no\n"),
    "a quoted word in INI": ("a.ini", "[a]\nx = 'b'\n", "a.x", "set", "c d", "[a]\nx = 'c d'\n"),
    "a default alone in INI": ("a.ini", "[DEFAULT]\nx = 1\n", "DEFAULT.x", "set", 2, "[DEFAULT]\nx = 2\n"),
    "a value in place of a default in INI": ("a.ini", "[DEFAULT]\nrate = 1\n[a]\nx = 2\n", "a.x", "add", 3, "[DEFAULT]\nrate = 1\n[a]\nx = 2\nrate = 3\n"),
    "a new key in INI": ("a.ini", "[a]\n  x:1\n\n[b]\n", "a.x", "add", True, "[a]\n  x:1\n  rate:true\n\n[b]\n"),
    "a new key behind several lines in INI": ("a.ini", "[a]\nx =\n  1\n  2\ny = 3\n", "a.x", "add", "b", "[a]\nx =\n  1\n  2\nrate = b\ny = 3\n"),
    "a new key at the end in INI": ("a.ini", "[a]\r\nx = no", "a.x", "add", True, "[a]\r\nx = no\r\nrate = yes"),
    "a key goes in INI": ("a.ini", "[a]\n# b\nx = 1 ; c\ny = 2\n", "a.x", "remove", None, "[a]\n# b\ny = 2\n"),
    "the only key goes in INI": ("a.ini", "[a]\nx = 1\n[b]\n", "a.x", "remove", None, "[a]\n[b]\n"),
    "lines of a key go in INI": ("a.ini", "[a]\nx = 1\n  2\ny = 3\n", "a.x", "remove", None, "[a]\ny = 3\n"),
    "another key in INI": ("a.ini", "[a]\nx : b ; c\n", "a.x", "rename", None, "[a]\nrate : b ; c\n"),
    "a flag with a value": ("a.sh", "python t.py --a True --b 1\n", "a", "set", False, "python t.py --a False --b 1\n"),
    "a flag alone": ("a.sh", "python t.py --a --b 1\n", "a", "set", False, "python t.py --a False --b 1\n"),
    "a flag with dashes": ("a.sh", "x --my-flag 1\n", "my_flag", "rename", None, "x --rate 1\n"),
    "a continued line": ("a.sh", "x \\\n  --a 1 \\\n  --b 2\n", "a", "remove", None, "x \\\n  --b 2\n"),
    "the last continued line": ("a.sh", "x \\\n  --a 1 \\\n  --b 2\n", "b", "remove", None, "x \\\n  --a 1\n"),
    "a new continued line": ("a.sh", "x \\\n  --a 1\n", "a", "add", 2, "x \\\n  --a 1 \\\n  --rate 2\n"),
    "an argument": ("a.py", "f(1, a=True)  # x\n", "a", "set", False, "f(1, a=False)  # x\n"),
    "an argument's quotes": ("a.py", "f(a='x')\n", "a", "set", "y", "f(a='y')\n"),
    "an argument goes": ("a.py", "f(1, a=True, b=2)\n", "a", "remove", None, "f(1, b=2)\n"),
    "the last argument goes": ("a.py", "f(1, a=True)\n", "a", "remove", None, "f(1)\n"),
    "the only argument goes": ("a.py", "f(a=True)\n", "a", "remove", None, "f()\n"),
    "a line of an argument goes": ("a.py", "f(\n    a=1,\n    b=2,\n)\n", "a", "remove", None, "f(\n    b=2,\n)\n"),
    "an argument is added": ("a.py", "f(\n    a=1,\n)\n", "a", "add", "v", 'f(\n    a=1,\n    rate="v",\n)\n'),
    "a key of a dictionary": ("a.py", "x = {'a': 1}\n", "a", "rename", None, "x = {'rate': 1}\n"),
    "a default of a class": ("a.py", "class C:\n    a: bool = True\n", "a", "set", False, "class C:\n    a: bool = False\n"),
    "a default of argparse": ("a.py", "p.add_argument('--a', default=1)\n", "a", "set", 2, "p.add_argument('--a', default=2)\n"),
    "a constant": ("a.py", "c.a = True\n", "a", "set", False, "c.a = False\n"),
}  # fmt: skip


def found(file, path: str) -> Setting:
    """The setting at a dotted path, in a document by its number: `1:lr`."""
    group, _, path = path.rpartition(":")
    settings = read_settings(file)
    return next(one for one in settings if ".".join(one.path) == path and (not group or one.group == int(group)))


def read(name: str, data: bytes):
    return parse_source(name, data) if name.endswith(".py") else make_text(name, data)


def edited(setting: Setting, what: str, value: object) -> Edit | str:
    if what == "remove":
        return remove(setting)
    if what == "rename":
        return rename_key(setting, "rate")
    return add_key(setting, "rate", value) if what == "add" else set_value(setting, value)


@pytest.mark.parametrize(("name", "text", "path", "what", "reason"), REFUSED.values(), ids=REFUSED)
def test_refused(name: str, text: str, path: str, what: str, reason: str) -> None:
    """What would change more than one setting, or cannot be written, is refused with the reason."""
    answer = edited(found(read(name, text.encode()), path), what, None if what == "none" else 7)
    assert isinstance(answer, str)
    assert reason in answer


@pytest.mark.parametrize(("name", "data", "reason"), UNREADABLE.values(), ids=UNREADABLE)
def test_unreadable(name: str, data: bytes, reason: str) -> None:
    """A file that does not load has no settings, and says why."""
    document = read_document(make_text(name, data))
    assert document.settings == ()
    assert reason in (document.fault or "")


@pytest.mark.parametrize(("name", "text", "path", "what", "value", "wanted"), WRITTEN.values(), ids=WRITTEN)
def test_written(name: str, text: str, path: str, what: str, value: object, wanted: str) -> None:
    """The new text is written in the style of what stands there."""
    file = read(name, text.encode())
    edit = edited(found(file, path), what, value)
    assert isinstance(edit, Edit), edit
    assert splice(file.text, [edit]) == wanted


def load(name: str, data: bytes) -> list:
    """The documents of a file by the libraries themselves."""
    text = data.decode("utf-8-sig")
    if name.endswith(".json"):
        return [json.loads(text)]
    return [tomllib.loads(text)] if name.endswith(".toml") else list(yaml.safe_load_all(text))


def changed(trees: list, setting: Setting, what: str, value: object) -> list:
    """The documents as they are to be."""
    trees = copy.deepcopy(trees)
    owner = trees[setting.group]
    for part in setting.path[:-1]:
        owner = owner[int(part)] if isinstance(owner, list) else owner[part]
    last = int(setting.name) if isinstance(owner, list) else setting.name
    if what == "remove":
        del owner[last]
    elif what == "rename":
        owner["rate"] = owner.pop(last)
    else:
        owner["rate" if what == "add" else last] = value
    return trees


def is_apart(text: str, edit: Edit, setting: Setting, what: str) -> bool:
    """Whether the edit reaches over nothing but the setting: no other setting, and no comment on a line of its own."""
    if what == "set":
        return text[edit.start : edit.end] == setting.raw
    if what == "rename":
        return (edit.start, edit.end) == setting.key
    if what == "add":
        return edit.start == edit.end
    others = [
        one
        for one in read_document(setting.file).settings
        if one.group == setting.group and not is_nested(one, setting)
    ]
    return all(one.span[1] <= edit.start or edit.end <= one.span[0] for one in others)


def is_nested(one: Setting, setting: Setting) -> bool:
    size = min(len(one.path), len(setting.path))
    return one.path[:size] == setting.path[:size]


# Settings that a file's own layout keeps from an edit: {file: {edit: paths}}.
KEPT = {
    "axolotl/anchors.yml": {
        "set": ["defaults.bf16", "defaults.tf32", "defaults.optimizer", "seed"],
        "rename": ["defaults.bf16", "defaults.tf32", "defaults.optimizer"],
        "remove": ["defaults", "defaults.bf16", "defaults.tf32", "defaults.optimizer", "seed"],
        "add": ["defaults.bf16", "defaults.tf32", "defaults.optimizer"],
    },
}


@pytest.mark.parametrize("what", ["set", "rename", "remove", "add"])
@pytest.mark.parametrize("name", LOADED)
def test_every_setting_of_a_file(name: str, what: str) -> None:
    """Each setting of a realistic file is edited alone; what is refused is what the layout does not allow."""
    data = (SETTINGS / name).read_bytes()
    file = make_text(name, data)
    trees = load(name, data)
    kept = []
    for setting in read_document(file).settings:
        value = (
            "changed" if isinstance(setting.value, str) else not setting.value if isinstance(setting.value, bool) else 7
        )
        edit = edited(setting, what, value)
        if isinstance(edit, str):
            kept.append((".".join(setting.path), edit))
            continue
        after = file.encode(splice(file.text, [edit]))
        assert load(name, after) == changed(trees, setting, what, value), setting.path
        assert is_apart(file.text, edit, setting, what), setting.path
        before = len(file.encode(file.text[: edit.start])), len(data) - len(file.text[edit.end :].encode())
        assert after[: before[0]] == data[: before[0]]
        assert after[len(after) - (len(data) - before[1]) :] == data[before[1] :]
    assert [path for path, reason in kept if not is_by_layout(reason)] == KEPT.get(name, {}).get(what, [])


def is_by_layout(reason: str) -> bool:
    """Whether a refusal is one that any file of that layout gets."""
    known = ("several lines", "no plain one", "block of text", "shared with something", "only key of its block")
    return any(one in reason for one in known)


@pytest.mark.parametrize("what", ["set", "rename", "remove", "add"])
@pytest.mark.parametrize("name", SCRIPTS)
def test_every_flag_of_a_script(name: str, what: str) -> None:
    """Each flag of a launch script is edited alone: the other words of the shell stay, in their order."""
    file = make_text(name, (SETTINGS / name).read_bytes())
    for setting in read_document(file).settings:
        edit = edited(setting, what, "other")
        assert isinstance(edit, Edit), edit
        before, after = (shlex.split(one, comments=True) for one in (file.text, splice(file.text, [edit])))
        lost = [one for one in before if one not in after]
        new = [one for one in after if one not in before]
        assert len(lost) <= 2, (setting.path, lost)
        assert len(new) <= 2, (setting.path, new)
        assert bool(new) == (what != "remove"), (setting.path, new)


def ini(data: bytes) -> dict[tuple[str, str], str]:
    """The values of an INI file as a program gets them, by section and key."""
    parser = configparser.RawConfigParser()
    parser.read_string(data.decode("utf-8-sig"))
    return {(name, key): value for name in (*parser, "DEFAULT") for key, value in parser.items(name)}


# What a section hands on to others, or others repeat, is kept: {file: {edit: paths}}.
KEPT_INI = {
    "ini/train.ini": {
        "set": ["DEFAULT.root", "DEFAULT.seed", "data.columns"],
        "rename": ["DEFAULT.root", "DEFAULT.seed"],
        "remove": ["DEFAULT.root", "DEFAULT.seed"],
        "add": ["DEFAULT.root", "DEFAULT.seed"],
    },
    "ini/windows.cfg": {"set": ["run.note"]},
}


@pytest.mark.parametrize("what", ["set", "rename", "remove", "add"])
@pytest.mark.parametrize("name", INI)
def test_every_key_of_an_ini_file(name: str, what: str) -> None:
    """Each key of an INI file is edited alone: the program gets all other values as before, and other bytes stay."""
    data = (SETTINGS / name).read_bytes()
    file = make_text(name, data)
    kept = []
    for setting in read_document(file).settings:
        edit = edited(setting, what, "changed" if isinstance(setting.value, str) else not setting.value)
        if isinstance(edit, str):
            kept.append(".".join(setting.path))
            continue
        before, after = ini(data), ini(file.encode(splice(file.text, [edit])))
        new = (setting.path[0], "rate")
        assert {key for key in {**before, **after} if before.get(key) != after.get(key)} == {
            "set": {setting.path}, "rename": {setting.path, new}, "remove": {setting.path}, "add": {new},
        }[what]  # fmt: skip
        assert is_apart(file.text, edit, setting, what), setting.path
    assert kept == KEPT_INI[name].get(what, [])
