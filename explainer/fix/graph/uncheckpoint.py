"""Calls through activation checkpointing, written as plain calls."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import edit_of
from explainer.fix.text.import_line import drop_name
from explainer.fix.text.rewrite import operand
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.program import Program

CHECKPOINT = "torch.utils.checkpoint.checkpoint"
_OWN = ("use_reentrant", "preserve_rng_state", "context_fn", "determinism_check", "debug", "early_stop")


def checkpoint_calls(program: Program) -> Iterator[tuple[SourceFile, ast.Call]]:
    """Every `checkpoint(function, ...)` of a program."""
    for file in program.parsed():
        for node in file.walk():
            if isinstance(node, ast.Call) and program.names(file).qualified(node.func) == CHECKPOINT and node.args:
                yield file, node


def plain_call(file: SourceFile, node: ast.Call) -> Iterator[Edit]:
    """`layer(x, ...)` in place of `checkpoint(layer, x, ...)`, and the import gone where nothing else reads it."""
    given = [file.segment(one) for one in (*node.args[1:], *(one for one in node.keywords if one.arg not in _OWN))]
    yield edit_of(file, node, f"{operand(file, node.args[0])}({', '.join(given)})")
    yield from drop_name(file, node.func)
