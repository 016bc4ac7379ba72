"""Gives a tokenizer without a padding token the one that it has: `tokenizer.pad_token = tokenizer.eos_token`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, insert_after
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name

_HEADS = ("ForSequenceClassification", "ForTokenClassification")


def propose(context: Context) -> Iterator[Proposal]:
    """A statement after the tokenizer's making, and, for a classification head, one after the model's."""
    if not context.has_failed:
        return
    is_head = any("no padding token is defined" in record.message for record in context.incident.exceptions)
    for file in context.program.parsed():
        tokenizer = next(_made(file, context, "Tokenizer", "TokenizerFast"), None)
        if is_head:
            for statement, name, _ in _made(file, context, *_HEADS):
                if tokenizer is not None and not _sets(f"{name}.config.pad_token_id", file):
                    token = f"{tokenizer[1]}.pad_token_id"
                    yield _proposal(
                        statement,
                        f"{name}.config.pad_token_id = {token}",
                        file,
                        f"`{name}` does not know the padding token",
                    )
        elif tokenizer is not None and not _sets(f"{tokenizer[1]}.pad_token", file):
            statement, name, node = tokenizer
            if _has_pad(node):
                continue
            yield _proposal(
                statement, f"{name}.pad_token = {name}.eos_token", file, f"makes `{name}` without a padding token"
            )


def _proposal(statement: ast.stmt, text: str, file: SourceFile, why: str) -> Proposal:
    return Proposal(edits=(insert_after(file, statement, text),), culprit=culprit_of(file, statement, why), belief=2.0)


def _made(file: SourceFile, context: Context, *endings: str) -> Iterator[tuple[ast.Assign, str, ast.Call]]:
    """The assignments of what a class of transformers makes: the statement, the name, the call."""
    for node in file.walk():
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            called = context.program.names(file).qualified(node.value.func) or ""
            owner = called.removesuffix(".from_pretrained")
            name = dotted_name(node.targets[0])
            if owner.startswith("transformers.") and owner.endswith(endings) and name:
                yield node, name, node.value


def _has_pad(node: ast.Call) -> bool:
    return any(one.arg == "pad_token" for one in node.keywords)


def _sets(name: str, file: SourceFile) -> bool:
    return any(
        isinstance(one, ast.Assign) and any(dotted_name(target) == name for target in one.targets)
        for one in file.walk()
    )
