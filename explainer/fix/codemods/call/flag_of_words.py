"""A flag that `bool` makes of text reads a word for no as one: `text.strip().lower() in ("1", "true", "yes", "on")` for `bool(text)`.

Of argparse's `type=bool` only for options that the command line gave a word for no; of text from the environment and from files only
where the word that applies says no, and the flag is what freezes parameters or switches grad mode off. What reads several such
flags wrongly is mended in one edit: each of them alone leaves a part frozen.
"""

from __future__ import annotations

import ast
import configparser
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import operand, replace_whole
from explainer.model.incident import TOLD_NO
from explainer.model.patch import Edit
from explainer.source.network.condition import find_conditions
from explainer.source.program import Program
from explainer.source.setting.config_parser import MAKERS
from explainer.source.setting.flag import Cast, casts_at, casts_behind
from explainer.source.setting.held import held_by, returned_by
from explainer.source.setting.word import NO, YES, is_no, words_of
from explainer.source.value.binding import Value

_READS = 'lambda text: text.lower() in ("1", "true", "yes", "on")'
_WORDS = '.strip().lower() in ("1", "true", "yes", "on")'
_TITLE = 'Read the flag as it was meant: `text.strip().lower() in ("1", "true", "yes", "on")` for `bool(text)`'
_TRUE = 'any text but an empty one is true to `bool`, "0", "no" and "false" too'
_DEPTH = 6
_NAMED = ast.Call, ast.keyword, ast.arguments, ast.Dict, ast.Tuple, ast.List, ast.Assign, ast.AnnAssign
_TIGHT = ast.Compare, ast.BinOp, ast.UnaryOp, ast.Attribute, ast.Subscript, ast.Starred, ast.Await


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each option that was told no and reads yes, and one for the flags of other text that do."""
    yield from _options(context)
    if context.has_failed:
        yield from _flags(context)


def _options(context: Context) -> Iterator[Proposal]:
    told = {one.value for one in context.incident.facts if one.name == TOLD_NO}
    for file in context.program.parsed() if told else ():
        for call in file.walk():
            if (
                not isinstance(call, ast.Call)
                or not isinstance(call.func, ast.Attribute)
                or call.func.attr != "add_argument"
            ):
                continue
            options = [one.value for one in call.args if isinstance(one, ast.Constant)]
            kind = next((one.value for one in call.keywords if one.arg == "type"), None)
            name = next((one for one in options if one in told), None)
            if name is not None and isinstance(kind, ast.Name) and kind.id == "bool":
                yield Proposal(
                    edits=(edit_of(file, kind, _READS),),
                    culprit=culprit_of(
                        file, call, f"makes True of the word that `{name}` is given: `bool` of any word is"
                    ),
                    belief=3.0,
                )


def _flags(context: Context) -> Iterator[Proposal]:
    """One edit for all the casts that read a word for no and switch training off by it."""
    program, variables = context.program, context.variables
    found: dict[ast.expr, tuple[Cast, str]] = {}
    kinds: set[str] = set()
    for condition in find_conditions(program):
        for cast in casts_behind(condition.value, program, is_true=condition.is_true):
            word = next((one for one in words_of(cast.text, program, variables) if is_no(one)), None)
            if word is not None:
                found.setdefault(cast.node, (cast, str(word).strip()))
                kinds.add("mode" if condition.of_mode else "parameters")
    edits = [edit for cast, _ in found.values() if (edit := _edit(cast, program, variables)) is not None]
    # Grad mode is another cause than frozen parameters.
    if not edits or len(edits) < len(found) or context.options.get("of", min(kinds)) not in kinds:
        return
    first, word = next(iter(found.values()))
    yield Proposal(
        edits=tuple(edits),
        culprit=culprit_of(first.file, first.node, f'makes True of "{word}": `bool` of any word is'),
        belief=3.0,
        title=_TITLE,
        because=_TRUE,
        is_origin=True,
    )


def _edit(cast: Cast, program: Program, variables: Mapping[str, str]) -> Edit | None:
    """The edit of a cast; None where other text that goes through it is no word for yes or no."""
    at = casts_at(cast, program)
    words = [word for one in at for known in ({}, variables) for word in words_of(one.text, program, known)]
    texts = [one.strip().lower() for one in words if type(one) is str]
    if any(one and one not in NO | YES for one in texts):
        return None
    is_text = len(texts) == len(words)
    file, node, above = cast.file, cast.node, cast.file.parents.get(cast.node)
    if not isinstance(node, ast.Call):
        new = f"lambda text: {'text' if is_text else 'str(text)'}{_WORDS}"
        return edit_of(file, node, new if isinstance(above, _NAMED) else f"({new})")
    typed = _typed(cast, texts, program)
    if typed is not None:
        return edit_of(file, node, typed)
    text = operand(file, node.args[0]) if is_text else f"str({file.segment(node.args[0])})"
    return replace_whole(file, node, f"({text}{_WORDS})" if isinstance(above, _TIGHT) else f"{text}{_WORDS}")


def _typed(cast: Cast, texts: Sequence[str], program: Program) -> str | None:
    """`cfg.getboolean("train", "freeze")` for what is asked of a parser of INI files, which knows these words itself."""
    asked = cast.text.node
    if not texts or any(one not in configparser.ConfigParser.BOOLEAN_STATES for one in texts):
        return None
    if isinstance(asked, ast.Call) and isinstance(asked.func, ast.Attribute) and asked.func.attr == "get":
        owner, keys = asked.func.value, asked.args if not asked.keywords else []
    elif isinstance(asked, ast.Subscript) and isinstance(asked.value, ast.Subscript):
        owner, keys = asked.value.value, [asked.value.slice, asked.slice]
    else:
        return None
    if len(keys) != 2 or not _is_parser(replace(cast.text, node=owner), program):
        return None
    return f"{operand(cast.file, owner)}.getboolean({', '.join(cast.file.segment(one) for one in keys)})"


def _is_parser(value: Value, program: Program, depth: int = 0) -> bool:
    """Whether an expression is a parser of INI files itself, and not one of its sections."""
    node = value.node
    if program.names(value.file).is_call(node, *MAKERS):
        return True
    found = list(returned_by(node, value, program) if isinstance(node, ast.Call) else held_by(value, program))
    is_known = bool(found) and not isinstance(node, ast.Subscript) and depth < _DEPTH
    return is_known and all(_is_parser(one, program, depth + 1) for one in found)
