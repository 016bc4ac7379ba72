"""Which values are made of log-probabilities of a distribution."""

from __future__ import annotations

import ast

from explainer.source.file import SourceFile
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.lineage import sources

LOG_PROB = "log_prob"


def is_of_log_prob(node: ast.AST, at: ast.stmt, file: SourceFile, program: Program) -> bool:
    """Whether what an expression of a statement computes with is made of log-probabilities."""
    parts = [node, *(one for _, one in sources(node, at, file, program))]
    return any(isinstance(one, ast.Attribute) and one.attr == LOG_PROB for part in parts for one in walk(part))
