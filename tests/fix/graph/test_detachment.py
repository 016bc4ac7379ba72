"""The text that detaches a state follows how the state is nested."""

from __future__ import annotations

import ast
import pathlib

import pytest

from explainer.fix.graph.detachment import detached
from explainer.source.program import read_program
from explainer.source.value.nesting import nesting_of

HEAD = """import collections
import dataclasses
import typing

import torch
from torch import nn

State = typing.NamedTuple("State", [("h", object), ("c", object)])


Counted = collections.namedtuple("Counted", "h c, step")
zero = lambda n: (torch.zeros(n), torch.zeros(n))


@dataclasses.dataclass
class Memory:
    h: torch.Tensor
    c: torch.Tensor
    layers: list = dataclasses.field(default_factory=lambda: [torch.zeros(2) for _ in range(2)])
    name: str = ""


class Pair(typing.NamedTuple):
    h: torch.Tensor
    c: torch.Tensor


class Stack(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.cells = nn.ModuleList(nn.LSTMCell(a, b) for a, b in zip(sizes, sizes[1:]))
        self.named = nn.ModuleDict({"low": nn.GRUCell(2, 3), "high": nn.GRUCell(3, 4)})

    def initial(self, n):
        w = next(self.parameters())
        return [(w.new_zeros(n, c.hidden_size), w.new_zeros(n, c.hidden_size)) for c in self.cells]

    def split(self, n):
        return [torch.zeros(n, 2) for _ in self.cells], [torch.zeros(n, 2) for _ in self.cells]

    def forward(self, x, states):
        for step in x:
            fresh = []
            for cell, state in zip(self.cells, states):
                h, c = cell(step, state)
                fresh.append((h, c))
                step = h
            states = fresh
        return step, states

    def by_name(self, x):
        fresh = {}
        for name, cell in self.named.items():
            x = cell(x)
            fresh[name] = x
        return fresh

    def filled(self, x):
        states = {}
        x, states["low"] = nn.LSTM(2, 2)(x)
        x, states["high"] = nn.LSTM(2, 2)(x)
        return states

    def listed(self, xs):
        states = [None] * 3
        for i in range(3):
            states[i] = torch.relu(xs)
        return states


stack = Stack([2, 3, 4])
lstm = nn.LSTM(2, 3)
kinds = {"lstm": nn.LSTM, "gru": nn.GRU}
chosen, named, gated = kinds[word](2, 3), getattr(nn, word)(2, 3), (nn.GRU if word else nn.RNN)(2, 3)
x = torch.randn(5, 2, 2)
"""
EITHER = "tuple(part.detach() for part in it) if isinstance(it, tuple) else it.detach()"
CASES = {
    "a tensor": ("torch.zeros(2)", "it.detach()"),
    "a parameter of nobody": ("unknown", "it.detach()"),
    "an LSTM's state": ("lstm(x)[1]", "tuple(part.detach() for part in it)"),
    "a state of the layer that a table gives": ("chosen(x)[1]", EITHER),
    "a state of the layer that a word names": ("named(x)[1]", EITHER),
    "a state of one of two layers that keep a tensor": ("gated(x)[1]", "it.detach()"),
    "a dictionary of such states": (
        '{"low": chosen(x)[1], "high": chosen(x)[1]}',
        "{key: tuple(one.detach() for one in part) if isinstance(part, tuple) else part.detach() for key, part in it.items()}",
    ),
    "cells with their pairs": ("stack.initial(2)", "[tuple(part.detach() for part in parts) for parts in it]"),
    "what the cells give back": (
        "stack(x, stack.initial(2))[1]",
        "[tuple(part.detach() for part in parts) for parts in it]",
    ),
    "two lists": ("stack.split(2)", "tuple([part.detach() for part in parts] for parts in it)"),
    "a list that is filled, and holds None before": (
        "stack.listed(x)",
        "[None if part is None else part.detach() for part in it]",
    ),
    "a dictionary by name": ("stack.by_name(x[0])", "{key: part.detach() for key, part in it.items()}"),
    "a dictionary of pairs": (
        '{"low": lstm(x)[1], "high": lstm(x)[1]}',
        "{key: tuple(part.detach() for part in parts) for key, parts in it.items()}",
    ),
    "a tensor beside a list": (
        "(torch.zeros(2), [torch.zeros(2) for _ in range(3)])",
        "(it[0].detach(), [part.detach() for part in it[1]])",
    ),
    "a named tuple": ("Pair(torch.zeros(2), torch.ones(2))", "type(it)(*(part.detach() for part in it))"),
    "a named tuple that a function makes": (
        "State(torch.zeros(2), [torch.ones(2)])",
        "it._replace(h=it.h.detach(), c=[part.detach() for part in it.c])",
    ),
    "a tuple that a function makes of names in a text": (
        "Counted(torch.zeros(2), torch.ones(2), 0)",
        "it._replace(h=it.h.detach(), c=it.c.detach())",
    ),
    "a tuple with one value replaced": (
        "Counted(torch.zeros(2), torch.ones(2), 0)._replace(h=torch.ones(2), step=1 + 1)",
        "it._replace(h=it.h.detach(), c=it.c.detach())",
    ),
    "a dataclass": (
        "Memory(c=torch.ones(2), h=torch.ones(2))",
        "type(it)(h=it.h.detach(), c=it.c.detach(), layers=[part.detach() for part in it.layers], name=it.name)",
    ),
    "a dictionary with a count in it": (
        '{"h": torch.zeros(2), "step": 0, "pair": lstm(x)[1]}',
        '{**it, "h": it["h"].detach(), "pair": tuple(part.detach() for part in it["pair"])}',
    ),
    "a dictionary by name, of a call": (
        "dict(h=torch.zeros(2), c=x)",
        "{key: part.detach() for key, part in it.items()}",
    ),
    "a dictionary of what a lambda gives": (
        '{"low": zero(2), "high": zero(3)}',
        "{key: tuple(part.detach() for part in parts) for key, parts in it.items()}",
    ),
    "a dictionary that is filled": (
        "stack.filled(x)",
        "{key: tuple(part.detach() for part in parts) for key, parts in it.items()}",
    ),
    "a number": ("0", "it"),
    "pairs that are zipped": (
        "tuple(zip(stack.split(2)[0], stack.split(2)[1]))",
        "tuple(tuple(part.detach() for part in parts) for parts in it)",
    ),
}


@pytest.mark.parametrize(("made", "wanted"), CASES.values(), ids=CASES)
def test_each_part_is_detached(made: str, wanted: str, tmp_path: pathlib.Path) -> None:
    """The expression reaches into every container that the program shows."""
    (tmp_path / "train.py").write_text(f"{HEAD}it = {made}\n")
    program = read_program(str(tmp_path), ["train.py"])
    (file,) = program.order
    (node,) = [one.value for one in file.walk() if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == "it"]
    assert detached(nesting_of(node, file, program), "it") == wanted
