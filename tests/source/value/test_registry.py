"""What a call runs that takes its class or function out of a table."""

from __future__ import annotations

import ast
import pathlib
from collections.abc import Mapping

import pytest

from explainer.source.program import Program, read_program
from explainer.source.value.binding import Value
from explainer.source.value.callee import callees_of
from explainer.source.value.registry import members_of
from explainer.source.value.resolve import resolver_of

CLASSES = "class A:\n    pass\n\n\nclass B:\n    pass\n\n\n"
BY_DECORATOR = """TABLE = {}


def register(name):
    def add(one):
        TABLE[name] = one
        return one
    return add


@register("a")
class A:
    pass


@register("b")
class B:
    pass


"""
BY_OBJECT = """from registry import MODELS


@MODELS.register("a")
class A:
    pass


@MODELS.register()
class B:
    pass
"""
FILED = """class Base:
    kinds = {{}}

    def __init_subclass__(cls, kind=None, **rest):
        super().__init_subclass__(**rest)
        Base.kinds[{key}] = cls


class A(Base{a}):
    pass  # a


class B(A{b}):
    pass


"""
SPEC = (
    "from dataclasses import dataclass\n\n\n@dataclass\nclass Spec:\n    name: str\n    net: type\n\n\nSPECS = {}\n\n\n"
)
REGISTRY = "class Registry(dict):\n    pass\n\n\nMODELS = Registry()\n"
PROBE = "def run(name, cfg):\n    made = {}\n    return made\n"


def one(parts: str, call: str) -> dict[str, str]:
    """A program of one file that makes an object by a call."""
    return {"train.py": f"{parts}{PROBE.format(call)}"}


CASES: dict[str, tuple[Mapping[str, str], list[str]]] = {
    "a dictionary": (one(CLASSES + 'TABLE = {"a": A, "b": B}\n', "TABLE[name](cfg)"), ["A", "B"]),
    "its get": (one(CLASSES + 'TABLE = {"a": A, "b": B}\n', "TABLE.get(name)(cfg)"), ["A", "B"]),
    "keywords": (one(CLASSES + "TABLE = dict(a=A, b=B)\n", "TABLE[name](cfg)"), ["A", "B"]),
    "classes by their names": (
        one(CLASSES + "TABLE = {x.__name__: x for x in (A, B)}\n", "TABLE[name](cfg)"), ["A", "B"],
    ),
    "stored one by one": (one(CLASSES + 'TABLE = {}\nTABLE["a"] = A\nTABLE[3] = B\n', "TABLE[name](cfg)"), ["A", "B"]),
    "a decorator": (one(BY_DECORATOR, "TABLE[name](cfg)"), ["A", "B"]),
    "a decorator that puts it in where there is none": (
        one(BY_DECORATOR.replace("    def add(one):\n        TABLE[name] = one\n        return one\n    return add\n", "    return lambda one: TABLE.setdefault(name, one)\n"), "TABLE[name](cfg)"),
        ["A", "B"],
    ),
    "a word of the program": (one(BY_DECORATOR, "TABLE[name](cfg)") | {"run.py": "import train\ntrain.run('b', {})\n"}, ["B"]),
    "a word of a configuration": (one(BY_DECORATOR, "TABLE[name](cfg)") | {"config.yaml": "model:\n  name: a\n"}, ["A"]),
    "a name of a class in a configuration": (
        one(CLASSES + "TABLE = {x.__name__: x for x in (A, B)}\n", "TABLE[name](cfg)") | {"config.yaml": "model: B\n"}, ["B"],
    ),
    "an object that registers": (
        {"registry.py": REGISTRY, "parts.py": BY_OBJECT, "train.py": "import parts\nfrom registry import MODELS\n" + PROBE.format("MODELS.build(cfg)")},
        ["A", "B"],
    ),
    "a table of another module": (
        {"parts.py": CLASSES + 'TABLE = {"a": A}\n', "train.py": "import parts\n" + PROBE.format("parts.TABLE[name](cfg)")}, ["A"],
    ),
    "a name that was taken before": (
        {"train.py": BY_DECORATOR + "def run(name, cfg):\n    kind = TABLE[name]\n    made = kind(cfg)\n"}, ["A", "B"],
    ),
    "an attribute of a module": (
        {"parts.py": CLASSES, "config.yaml": "model: B\n", "train.py": "import parts\n" + PROBE.format("getattr(parts, name)(cfg)")}, ["B"],
    ),
    "an attribute that nothing names": (
        {"parts.py": CLASSES, "train.py": "import parts\n" + PROBE.format("getattr(parts, name)(cfg)")}, [],
    ),
    "a base that files its classes": (one(FILED.format(key="kind", a=", kind='a'", b=", kind='b'"), "Base.kinds[name](cfg)"), ["A", "B"]),
    "by their names": (one(FILED.format(key="cls.__name__", a="", b=""), "Base.kinds[name](cfg)"), ["A", "B"]),
    "by a word that they bind": (
        one(FILED.format(key="cls.kind", a="", b="").replace("pass  # a", "kind = 'a'"), "Base.kinds[name](cfg)") | {"config.yaml": "model: a\n"}, ["A"],
    ),
    "a word of their keyword": (
        one(FILED.format(key="kind", a=", kind='a'", b=", kind='b'"), "Base.kinds[name](cfg)") | {"config.yaml": "model: b\n"}, ["B"],
    ),
    "a table of a class": (one(CLASSES + 'class Net:\n    HEADS = {"a": A, "b": B}\n', "Net.HEADS[name](cfg)"), ["A", "B"]),
    "the field of a record": (one(f'{CLASSES}{SPEC}SPECS["a"] = Spec("a", A)\n', "SPECS[name].net(cfg)"), ["A"]),
    "its default": (one(CLASSES + SPEC.replace("net: type", "net: type = B"), "name.net(cfg)"), ["B"]),
    "the field of two records": (one(f'{CLASSES}{SPEC}SPECS.update(a=Spec("a", A), b=Spec("b", net=B))\n', "SPECS[name].net(cfg)"), ["A", "B"]),
    "a field that is a method elsewhere": (one(f'{CLASSES}{SPEC}SPECS["a"] = Spec("a", A)\n\n\nclass Net:\n    def net(self):\n        pass\n\n\n', "name.net(cfg)"), []),
    "a field that is an attribute elsewhere": (one(f'{CLASSES}{SPEC}SPECS["a"] = Spec("a", A)\n\n\nclass Net:\n    def __init__(self):\n        self.net = A()\n\n\n', "name.net(cfg)"), []),
    "a table that holds none": (one(CLASSES + 'TABLE = {"a": 1}\n', "TABLE[name](cfg)"), []),
    "a method of another name": (one(BY_DECORATOR, "TABLE.keys()"), []),
    "a local dictionary": (one(CLASSES, "cfg[name](cfg)"), []),
}  # fmt: skip


def read(folder: pathlib.Path, files: Mapping[str, str]) -> Program:
    """The program of some files."""
    for name, text in files.items():
        (folder / name).write_text(text)
    return read_program(str(folder), [name for name in files if name.endswith(".py")])


def made_in(program: Program) -> Value:
    """The value that the probe makes."""
    for file in program.order:
        for node in file.walk():
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "made":
                return Value(node.value, file)
    raise AssertionError


@pytest.mark.parametrize(("files", "wanted"), CASES.values(), ids=CASES)
def test_classes_of_a_table(files: Mapping[str, str], wanted: list[str], tmp_path: pathlib.Path) -> None:
    """The object may be of each class of the table, or of those that are named."""
    program = read(tmp_path, files)
    assert [owner.name for _, owner in resolver_of(program).classes_of(made_in(program))] == wanted


TAKEN = {
    "by a subscript": "TABLE[name](7)",
    "by get": "TABLE.get(name)(7)",
}


@pytest.mark.parametrize("held", ["A", "B"], ids=["itself", "one below it"])
@pytest.mark.parametrize("call", TAKEN.values(), ids=TAKEN)
def test_what_a_class_of_a_table_is_given(call: str, held: str, tmp_path: pathlib.Path) -> None:
    """The parameters of a constructor stand for what the call gives that takes its class out of a table, also through a base."""
    parts = "class A:\n    def __init__(self, n):\n        self.n = n\n\n\nclass B(A):\n    pass\n\n\n"
    parts += f"TABLE = {{'b': {held}}}\n"
    program = read(tmp_path, one(parts, call))
    (file,) = [each for each in program.parsed() if "class A" in each.text]
    (given,) = [
        node.value for node in file.walk() if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "self.n"
    ]
    assert [ast.unparse(each.node) for each in resolver_of(program).behind(Value(given, file))] == ["7"]


FUNCTIONS = "def tiny(cfg):\n    pass\n\n\ndef wide(cfg):\n    pass\n\n\n"


@pytest.mark.parametrize(("table", "words", "wanted"), [
    ("TABLE = {'tiny': tiny}\n", {}, ["tiny"]),
    ("TABLE = {'tiny': tiny, 'wide': wide}\n", {"config.yaml": "loss: wide\n"}, ["wide"]),  # a key that is its function's name
    ("TABLE = {'tiny': tiny, 'wide': wide}\n", {}, ["tiny", "wide"]),
], ids=["one", "one that is named", "two"])  # fmt: skip
def test_functions_of_a_table(table: str, words: Mapping[str, str], wanted: list[str], tmp_path: pathlib.Path) -> None:
    """A table may hold functions as well; what a call runs is known where it can be one alone."""
    program = read(tmp_path, one(FUNCTIONS + table, "TABLE[name](cfg)") | words)
    made = made_in(program)
    assert isinstance(made.node, ast.Call)
    assert [member.name for _, member in members_of(made.node.func, made.file, program)] == wanted
    assert [each.function.name for each in callees_of(made.node.func, made.file, program)] == wanted
    target = resolver_of(program).function_of(made.node, made)
    assert (target[1].name if target is not None else None) == (wanted[0] if len(wanted) == 1 else None)


def test_a_function_that_a_record_holds(tmp_path: pathlib.Path) -> None:
    """It is run by the calls of the field, whatever the record came out of."""
    text = FUNCTIONS + SPEC.replace("net: type", "build: object") + "def spec(name):\n    return SPECS[name]\n\n\n"
    program = read(tmp_path, one(text + 'SPECS["tiny"] = Spec("tiny", build=wide)\n', "spec(name).build(7)"))
    made = made_in(program)
    assert isinstance(made.node, ast.Call)
    target = resolver_of(program).function_of(made.node, made)
    assert target is not None and target[1].name == "wide"
    assert [call for _, call in resolver_of(program).calls_of(target[1], target[0])] == [made.node]


def test_parts_of_a_module_dict(tmp_path: pathlib.Path) -> None:
    """What a loop over a `ModuleDict` calls is of the classes that were put into it."""
    text = """from torch import nn

class A(nn.Module):
    def forward(self, x):
        return x

KINDS = {"a": A}

class Sum(nn.Module):
    def __init__(self, specs):
        super().__init__()
        self.parts = nn.ModuleDict()
        for spec in specs:
            self.parts[spec["name"]] = KINDS[spec["kind"]](spec)

    def forward(self, x):
        for name, part in self.parts.items():
            made = part(x)
        return made
"""
    program = read(tmp_path, {"train.py": text})
    made = made_in(program)
    assert isinstance(made.node, ast.Call)
    assert [owner.name for _, owner in resolver_of(program).classes_of(Value(made.node.func, made.file))] == ["A"]
