"""Which values are made of log-probabilities of a distribution."""

from __future__ import annotations

import ast

from explainer.source.file import SourceFile
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.lineage import sources

LOG_PROB = "log_prob"
_OF_NUMBERS = frozenset(("Normal", "LogNormal", "Laplace", "Beta", "Uniform", "Gamma", "Cauchy", "StudentT"))


def is_of_log_prob(node: ast.AST, at: ast.stmt, file: SourceFile, program: Program) -> bool:
    """Whether what an expression of a statement computes with is made of log-probabilities."""
    parts = [node, *(one for _, one in sources(node, at, file, program))]
    return any(isinstance(one, ast.Attribute) and one.attr == LOG_PROB for part in parts for one in walk(part))


def are_of_numbers(program: Program) -> bool:
    """Whether all distributions of a program give a value for each number."""
    called = {
        name.rpartition(".")[2]
        for file in program.parsed()
        for node in file.walk()
        if isinstance(node, ast.Call)
        and (name := program.names(file).qualified(node.func) or "").startswith("torch.distributions.")
    }
    return bool(called) and called <= _OF_NUMBERS
