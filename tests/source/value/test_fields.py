"""What records hold, and what class methods make: followed where the call shows it, left alone where it does not."""

from __future__ import annotations

import ast
import pathlib

import pytest

from explainer.source.value.binding import Value
from explainer.source.value.resolve import resolver_of
from tests.fix.rewriting import write

HEAD = "import torch\nfrom dataclasses import KW_ONLY, dataclass, field\nfrom typing import ClassVar, NamedTuple\n"
KNOWN = {
    "by place": "@dataclass\nclass A:\n    n: ClassVar[int] = 3\n    x: int\n    y: int\na = A(first, second)\nuse(a.y)\n",
    "by name": "@dataclass(frozen=True)\nclass A:\n    x: int\n    y: int = 0\na = A(y=second, x=first)\nuse(a.y)\n",
    "a named tuple": "class A(NamedTuple):\n    x: int\n    y: int\na = A(first, second)\nuse(a.y)\n",
    "a class method": (
        "@dataclass\nclass A:\n    x: int\n    y: int\n    @classmethod\n    def draw(cls):\n        return cls(first, second)\n"
        "a = A.draw()\nuse(a.y)\n"
    ),
    "of a part": (
        "class A:\n    def __init__(self):\n        self.y = second\nclass B:\n    def __init__(self):\n        self.a = A()\n"
        "    def run(self):\n        use(self.a.y)\n"
    ),
    "of a part, bound by the whole": (
        "class A:\n    def __init__(self):\n        self.y = first\nclass B:\n    def __init__(self):\n        self.a = A()\n"
        "        self.a.y = second\n    def run(self):\n        use(self.a.y)\n"
    ),
}
UNKNOWN = {
    "inherited": "@dataclass\nclass B:\n    x: int\n@dataclass\nclass A(B):\n    y: int\na = A(first, second)\nuse(a.y)\n",
    "a field that is no argument": "@dataclass\nclass A:\n    y: int = field(init=False)\n    x: int = 0\na = A(second)\nuse(a.y)\n",
    "by keyword alone": "@dataclass\nclass A:\n    x: int\n    _: KW_ONLY\n    y: int = 0\na = A(first, y=second)\nuse(a.y)\n",
    "changed behind": "@dataclass\nclass A:\n    y: int\n    def __post_init__(self):\n        self.w = 1\na = A(second)\nuse(a.y)\n",
    "starred": "@dataclass\nclass A:\n    x: int\n    y: int\na = A(*second)\nuse(a.y)\n",
    "a variable called cls": (
        "@dataclass\nclass A:\n    y: int\n    def run(self, head):\n        cls = head\n        a = cls(second)\n        use(a.y)\n"
    ),
    "a method of a base, called with its object": (
        "class B:\n    def take(self, y):\n        return y\nclass A(B):\n    def run(self):\n        use(B.take(self, second))\n"
    ),
}  # fmt: skip


def behind(folder: pathlib.Path, text: str) -> list[str]:
    """What the argument of `use` stands for."""
    program = write(folder, {"train.py": HEAD + text})
    (file,) = program.parsed()
    call = next(one for one in file.walk() if isinstance(one, ast.Call) and getattr(one.func, "id", "") == "use")
    value = Value(call.args[0], file)
    if isinstance(value.node, ast.Call):
        target = resolver_of(program).function_of(value.node, value)
        return (
            []
            if target is None
            else [ast.unparse(one.node) for one in resolver_of(program).returns_of(target, value.node, value)]
        )
    return [ast.unparse(one.node) for one in resolver_of(program).behind(value)]


@pytest.mark.parametrize("text", KNOWN.values(), ids=KNOWN)
def test_a_field_is_what_the_call_gives(tmp_path: pathlib.Path, text: str) -> None:
    assert behind(tmp_path, text) == ["second"]


@pytest.mark.parametrize("text", UNKNOWN.values(), ids=UNKNOWN)
def test_what_does_not_show_is_no_guess(tmp_path: pathlib.Path, text: str) -> None:
    """Bases, options and own makers give the arguments another meaning."""
    assert "second" not in behind(tmp_path, text)
    assert "first" not in behind(tmp_path, text)
