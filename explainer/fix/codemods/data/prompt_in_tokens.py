"""`len(tokenizer(prompt)["input_ids"])` for `len(prompt)`: how long a prompt is in tokens, where its labels are hidden.

Counted in characters it is several times as long as all of the tokens, and no label is left.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.source.data.tokenizer import NAMES
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.tree import walk

_METHODS = frozenset({"encode", "encode_plus", "tokenize"})
_KEPT = frozenset({"add_special_tokens"})
_AT_THE_END = "right where the tokenizer puts nothing behind a text, as an end of the sequence"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each length of a text that is a part of what the same function tokenizes."""
    if not context.has_failed:
        return
    for file in context.program.parsed():
        names = context.program.names(file)
        calls = [one for one in file.walk() if isinstance(one, ast.Call)]
        for call in (one for one in calls if _is_tokenizer(one) and one.args):
            function = names.function_of(call)
            measured = [one for one in calls if _measured(one) and names.function_of(one) is function]
            for text in dict.fromkeys(_parts(call.args[0], file)) if function is not None else ():
                lengths = [one for one in measured if _measured(one) == text]
                is_said = "add_special_tokens" in _given(call)
                if lengths:
                    why = f"counts the characters of `{text}`, where tokens are hidden"
                    yield Proposal(
                        edits=tuple(edit_of(file, one.args[0], _in_tokens(call, text, file)) for one in lengths),
                        culprit=culprit_of(file, lengths[0], why),
                        belief=2.0,
                        applicability=None if is_said else "unsafe",
                        because=None if is_said else _AT_THE_END,
                    )


def _parts(text: ast.expr, file: SourceFile) -> Iterator[str]:
    """The names of what a text is put together of; a text that has a name may be a list of them, which is counted otherwise."""
    for one in walk(text):
        name = dotted_name(one) if one is not text else None
        if name is not None and not isinstance(file.parents.get(one), (ast.Subscript, ast.Attribute)):
            yield name


def _is_tokenizer(call: ast.Call) -> bool:
    func = call.func
    if isinstance(func, ast.Attribute) and func.attr in _METHODS:
        func = func.value
    return NAMES.search((dotted_name(func) or "").rpartition(".")[2]) is not None


def _measured(call: ast.Call) -> str | None:
    """`prompt` of `len(prompt)`."""
    is_length = isinstance(call.func, ast.Name) and call.func.id == "len" and len(call.args) == 1
    return dotted_name(call.args[0]) if is_length else None


def _given(call: ast.Call) -> dict[str | None, ast.expr]:
    return {one.arg: one.value for one in call.keywords}


def _in_tokens(call: ast.Call, text: str, file: SourceFile) -> str:
    """The tokens of a text, by the call that makes those of the whole."""
    kept = "".join(f", {name}={file.segment(value)}" for name, value in _given(call).items() if name in _KEPT)
    is_list = isinstance(call.func, ast.Attribute) and call.func.attr in ("encode", "tokenize")
    entry = "" if is_list else '["input_ids"]'
    return f"{file.segment(call.func)}({text}{kept}){entry}"
