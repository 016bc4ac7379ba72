"""What a call of a method may run where a class leaves it to those derived from it."""

from __future__ import annotations

import ast
import pathlib

import pytest

from explainer.source.program import read_program
from explainer.source.value.callee import callees_of

SOURCE = """class Algorithm:
    BODY
    def learn(self):
        self.collect()
        self.train()

    def collect(self):
        return 1


class PPO(Algorithm):
    def train(self):
        return 2


class SAC(Algorithm):
    def train(self):
        return 3
"""
OPEN = "def train(self):\n        raise NotImplementedError\n"


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("", ["Algorithm.collect", "PPO.train", "SAC.train"]),
        (OPEN, ["Algorithm.collect", "PPO.train", "SAC.train"]),
        ("def train(self):\n        return 0\n", ["Algorithm.collect", "Algorithm.train"]),
    ],
    ids=["not there", "left open", "its own"],
)
def test_a_method_of_derived_classes(tmp_path: pathlib.Path, body: str, wanted: list[str]) -> None:
    path = tmp_path / "train.py"
    path.write_text(SOURCE.replace("    BODY\n", f"    {body}\n" if body else ""))
    program = read_program(str(tmp_path), ["train.py"])
    (file,) = program.parsed()
    (learn,) = (one for _, one in program.functions_named("learn"))
    found = [
        f"{program.names(file).class_of(one.function).name}.{one.function.name}"
        for call in ast.walk(learn)
        if isinstance(call, ast.Call)
        for one in callees_of(call.func, file, program)
    ]
    assert sorted(found) == wanted
