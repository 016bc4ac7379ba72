"""Gives a tokenizer without a padding token the one that it has: `tokenizer.pad_token = tokenizer.eos_token`.

One that is made from an own vocabulary is told the padding token that stands in it: `PreTrainedTokenizerFast(..., pad_token="[PAD]")`;
the end of text where it has none.

A classification head is told the tokenizer's: behind the model's making, or in the configuration that it is made from. Where the
program has no tokenizer, and one number of its own by the name of `PAD`, the configuration gets that.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TypeGuard

from explainer.fix.codemod import Context, Proposal, culprit_of, insert_after
from explainer.fix.text.import_line import import_after
from explainer.fix.text.rewrite import add_argument
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program, module_name
from explainer.source.setting.flow import documents_behind, members_behind
from explainer.source.value.binding import Bound, Value, all_parameters, bounds_of, scope_of, walk_scope
from explainer.source.value.resolve import resolver_of

_PADS = frozenset({"[PAD]", "<pad>", "<PAD>", "[pad]", "<|pad|>", "<|padding|>", "<|finetune_right_pad_id|>"})
_PAD_NAME = re.compile(r"_?PAD(?:_?(?:ID|IDX|INDEX|TOKEN|TOKEN_ID))?")
_OTHER_CONFIGURATIONS = ("transformers.GenerationConfig", "transformers.BitsAndBytesConfig")
_HEADS = ("ForSequenceClassification", "ForTokenClassification")


def propose(context: Context) -> Iterator[Proposal]:
    """A statement after the tokenizer's making, and, for a classification head, one after the model's."""
    if not context.has_failed:
        return
    is_head = any("no padding token is defined" in record.message for record in context.incident.exceptions)
    if is_head:
        yield from _by_constant(context)
    for file in context.program.parsed():
        tokenizer = next(_made(file, context, "Tokenizer", "TokenizerFast"), None)
        if is_head:
            yield from _configured(file, context)
            made = ((statement, name) for statement, name, _ in _made(file, context, *_HEADS))
            for statement, name in (*made, *_returned(file, context)):
                known = _known_at(statement, tokenizer, file, context.program)
                if known is not None and not _sets(f"{name}.config.pad_token_id", file):
                    text = f"{name}.config.pad_token_id = {known}.pad_token_id"
                    yield _proposal(statement, text, file, f"`{name}` does not know the padding token")
            continue
        own = list(_with_own_vocabulary(file, context))
        yield from own
        if tokenizer is not None and not own and not _sets(f"{tokenizer[1]}.pad_token", file):
            statement, name, node = tokenizer
            if _has_pad(node):
                continue
            yield _proposal(
                statement, f"{name}.pad_token = {name}.eos_token", file, f"makes `{name}` without a padding token"
            )


def _by_constant(context: Context) -> Iterator[Proposal]:
    """`GPT2Config(...)` without a padding token, in a program that pads by a constant of its own."""
    program = context.program
    files = list(program.parsed())
    if any(True for file in files for _ in _made(file, context, "Tokenizer", "TokenizerFast")):
        return
    pads = {(one.name, file.path) for file in files for one in _of_module(file) if _PAD_NAME.fullmatch(one.name)}
    made = [(file, node) for file in files for node in file.walk() if _is_configuration(node, file, context)]
    if len(pads) != 1 or len(made) != 1:
        return
    (name, path), (file, node) = pads.pop(), made[0]
    if not any(_pads_with(one, name, where) for where in files for one in where.walk()) or any(
        one.arg in ("pad_token_id", None) for one in node.keywords
    ):
        return
    is_here = path == file.path or name in program.names(file).imports
    imports = () if is_here else import_after(file, f"from {module_name(path, program.root)} import {name}")
    yield Proposal(
        edits=(*imports, add_argument(file, node, f"pad_token_id={name}")),
        culprit=culprit_of(file, node, f"does not say which token pads, as `{name}` does in the batches"),
        belief=1.5,
        title="Tell the configuration which token pads: `GPT2Config(..., pad_token_id=PAD)`",
        because="the head then reads each row at its last token that is none",
    )


def _pads_with(node: ast.AST, name: str, file: SourceFile) -> bool:
    """`padding_value=PAD`, `[PAD] * n`, `torch.full(size, PAD)`, `ids != PAD`: what a token does, and no width of pixels."""
    if not isinstance(node, ast.Name) or node.id != name or not isinstance(node.ctx, ast.Load):
        return False
    above = file.parents.get(node)
    if isinstance(above, ast.keyword):
        return above.arg in ("padding_value", "fill_value", "value")
    if isinstance(above, ast.Call):
        return node in above.args and (dotted_name(above.func) or "").rpartition(".")[2] in (
            "full",
            "full_like",
            "new_full",
            "fill_",
        )
    return isinstance(above, ast.Compare) or (
        isinstance(above, ast.List) and isinstance(file.parents.get(above), ast.BinOp)
    )


def _of_module(file: SourceFile) -> list[Bound]:
    return list(bounds_of(file.tree)) if file.tree is not None else []


def _is_configuration(node: ast.AST, file: SourceFile, context: Context) -> TypeGuard[ast.Call]:
    called = (context.program.names(file).qualified(node.func) or "") if isinstance(node, ast.Call) else ""
    return called.startswith("transformers.") and called.endswith("Config") and called not in _OTHER_CONFIGURATIONS


def _with_own_vocabulary(file: SourceFile, context: Context) -> Iterator[Proposal]:
    """A tokenizer that is made in the file in which its vocabulary has one padding token, or none beside the end of text."""
    words = {one.value for one in file.walk() if isinstance(one, ast.Constant) and isinstance(one.value, str)} & _PADS
    names = context.program.names(file)
    for node in file.walk():
        is_made = isinstance(node, ast.Call) and names.is_call(node, "transformers.PreTrainedTokenizerFast")
        if not is_made or not isinstance(node, ast.Call):
            continue
        if any(one.arg in ("pad_token", None) for one in node.keywords) or _is_told_later(file):
            continue
        ends = [one.value for one in node.keywords if one.arg == "eos_token" and isinstance(one.value, ast.Constant)]
        if len(words) == 1:
            (pad,) = words
            why = f"does not say that {pad} of the vocabulary is the padding token"
            yield Proposal(
                edits=(add_argument(file, node, f'pad_token="{pad}"'),), culprit=culprit_of(file, node, why), belief=2.5
            )
        elif ends and not words and not isinstance(file.parents.get(node), ast.Assign):  # a name is told behind it
            yield Proposal(
                edits=(add_argument(file, node, f"pad_token={file.segment(ends[0])}"),),
                culprit=culprit_of(file, node, "names no padding token, and the vocabulary has none of its own"),
                belief=2.0,
            )


def _is_told_later(file: SourceFile) -> bool:
    """Whether a file sets a padding token of anything: `tokenizer.pad_token = ...`, `add_special_tokens({"pad_token": ...})`."""
    return any(
        (isinstance(one, ast.Attribute) and one.attr == "pad_token" and isinstance(one.ctx, ast.Store))
        or (isinstance(one, ast.Constant) and one.value == "pad_token")
        for one in file.walk()
    )


def _configured(file: SourceFile, context: Context) -> Iterator[Proposal]:
    """`GPT2Config(..., pad_token_id=tokenizer.pad_token_id)`, where the function that makes a head's configuration knows the tokenizer."""
    program = context.program
    names = program.names(file)
    for node in file.walk():
        called = (names.qualified(node.func) or "") if isinstance(node, ast.Call) else ""
        if not isinstance(node, ast.Call) or not called.removesuffix(".from_config").endswith(_HEADS) or not node.args:
            continue
        made = resolver_of(program).constructors_of(Value(node.args[0], file))
        where, config = (made[0].file, made[0].node) if len(made) == 1 else (file, None)
        if not isinstance(config, ast.Call) or not (dotted_name(config.func) or "").endswith("Config"):
            continue
        tokenizer = _tokenizer_before(config, where, program)
        if tokenizer is not None and not _may_name_padding(config, where, program):
            yield Proposal(
                edits=(add_argument(where, config, f"pad_token_id={tokenizer}.pad_token_id"),),
                culprit=culprit_of(where, config, "does not name the padding token, which the head looks for"),
                belief=2.2,
            )


def _may_name_padding(config: ast.Call, file: SourceFile, program: Program) -> bool:
    """Whether a configuration names a padding token, or gets options that are not seen or name one."""
    if any(one.arg == "pad_token_id" for one in config.keywords):
        return True
    handed = [one.value for one in config.keywords if one.arg is None]
    return any(
        members_behind(one, "pad_token_id", file, program) or not documents_behind(one, file, program) for one in handed
    )


def _returned(file: SourceFile, context: Context) -> Iterator[tuple[ast.stmt, str]]:
    """The assignments of a head that a function of the program makes: `model = build(options)`."""
    program = context.program
    for node in file.walk():
        name = dotted_name(node.targets[0]) if isinstance(node, ast.Assign) else None
        if name is None or not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
            continue
        made = [
            one for one in resolver_of(program).constructors_of(Value(node.value, file)) if one.node is not node.value
        ]
        kinds = [
            program.names(one.file).qualified(one.node.func) or "" for one in made if isinstance(one.node, ast.Call)
        ]
        if kinds and all(_is_head(one) for one in kinds):
            yield node, name


def _is_head(called: str) -> bool:
    """Whether a call makes a model of transformers with a classification head."""
    owner = called.removesuffix(".from_pretrained").removesuffix(".from_config")
    return owner.startswith("transformers.") and owner.endswith(_HEADS)


def _tokenizer(scope: ast.AST, file: SourceFile, program: Program) -> str | None:
    """What a scope calls its tokenizer: a parameter, or a name that it binds; by its name, else by what it is."""
    given = all_parameters(scope) if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)) else set()
    names = sorted(name for name in {*given, *(one.name for one in bounds_of(scope))} if "." not in name)
    found = [name for name in names if "tokenizer" in name.lower()]
    if not found:
        read = {one.id: one for one in walk_scope(scope) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}
        found = [name for name in names if name in read and _is_tokenizer(Value(read[name], file), program)]
    return found[0] if len(found) == 1 else None


def _is_tokenizer(value: Value, program: Program) -> bool:
    """Whether a name holds what a tokenizer class of transformers makes."""
    made = resolver_of(program).constructors_of(value)
    called = [program.names(one.file).qualified(one.node.func) or "" for one in made if isinstance(one.node, ast.Call)]
    return bool(called) and all(
        one.startswith("transformers.")
        and one.removesuffix(".from_pretrained").endswith(("Tokenizer", "TokenizerFast"))
        for one in called
    )


def _tokenizer_before(node: ast.stmt | ast.expr, file: SourceFile, program: Program) -> str | None:
    """What the scope of a statement calls its tokenizer, where it has it by then."""
    scope = scope_of(node, file)
    name = _tokenizer(scope, file, program)
    is_late = any(one.name == name and one.node.lineno >= node.lineno for one in bounds_of(scope))
    return None if is_late else name


def _known_at(
    statement: ast.stmt, tokenizer: tuple[ast.Assign, str, ast.Call] | None, file: SourceFile, program: Program
) -> str | None:
    """What a statement may call the tokenizer: the name of the one that the file makes, where its scope sees that, else its own."""
    if tokenizer is not None:
        made, name, _ = tokenizer
        if "." in name or scope_of(made, file) in (scope_of(statement, file), file.tree):
            return name
    return _tokenizer_before(statement, file, program)


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
