"""Sets a keyword argument of a call: `nn.CTCLoss()` becomes `nn.CTCLoss(zero_infinity=True)`.

The rule's options say which calls (`calls`: qualified names, or `.method`), which `argument` and which `value`; `why` ends the
sentence about the line; `message` are words that the failure has to say, or a list of which one will do; `beside` arguments of which
the call has one; `written_by` a function that the program gives the same file: what it has written itself it may read without care;
`together` asks for one edit of all calls. A call that has the argument already stays; one that takes `**options` gets it where
these are written, in a section of a file or a dictionary, and stays where that is not known.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace

from explainer.fix.clue.blame import crash_frames, nearness
from explainer.fix.clue.crash import message_of
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.setting.spread import set_in_options
from explainer.fix.text.rewrite import add_argument
from explainer.source.file import SourceFile
from explainer.source.program import Program
from explainer.source.value.binding import Value
from explainer.source.value.resolve import resolver_of

_MOVES = ("os.replace", "os.rename", "shutil.move", "shutil.copy", "shutil.copyfile", "shutil.copy2")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each call without the argument; the traceback's own lines first."""
    calls, argument, value = (context.options.get(one) for one in ("calls", "argument", "value"))
    if not context.has_failed or not isinstance(calls, Sequence) or not isinstance(argument, str):
        return
    said = context.options.get("message", "")
    words, message = [said] if isinstance(said, str) or not isinstance(said, Sequence) else said, message_of(context)
    if not any(str(one) in message for one in words):
        return
    found = list(_each(calls, argument, str(value), context))
    if context.options.get("together") and len(found) > 1:  # with one alone the next call fails in the same words
        edits = tuple(edit for one in found for edit in one.edits)
        yield replace(max(found, key=lambda one: one.belief), edits=edits)
    yield from found


def _each(calls: Sequence[object], argument: str, value: str, context: Context) -> Iterator[Proposal]:
    beside = context.options.get("beside")
    for file in context.program.parsed():
        names = context.program.names(file)
        frames = crash_frames(file, context)
        for node in file.walk():
            if not isinstance(node, ast.Call) or not names.is_call(node, *map(str, calls)):
                continue
            given = {one.arg: one.value for one in node.keywords}
            if any(isinstance(one, ast.Starred) for one in node.args):
                continue
            if isinstance(beside, Sequence) and not given.keys() & set(map(str, beside)):
                continue
            writer = context.options.get("written_by")
            if writer is not None and not _is_own_file(node, str(writer), file, context.program):
                continue
            old = given.get(argument)
            if old is not None and (not isinstance(old, ast.Constant) or repr(old.value) == value):
                continue
            if None in given and old is None:  # beside an argument of that name, `**options` cannot have it
                edit = set_in_options(node, argument, ast.literal_eval(value), file, context.program)
            else:
                edit = edit_of(file, old, value) if old is not None else add_argument(file, node, f"{argument}={value}")
            if edit is None:
                continue
            lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            yield Proposal(
                edits=(edit,),
                culprit=culprit_of(file, node, str(context.options.get("why", f"leaves `{argument}` at its default"))),
                belief=(1.0 if any(line in frames for line in lines) else 0.0) + nearness(file, node, context),
            )


def _is_own_file(call: ast.Call, writer: str, file: SourceFile, program: Program) -> bool:
    """Whether the program writes the file that a call reads, by the same words: `torch.save(state, path)`.

    Also by way of another name, as `os.replace(part, path)`.
    """
    read = _texts(call.args[0], file, program) if call.args else frozenset[str]()
    written: set[str] = set()
    moved: list[tuple[frozenset[str], frozenset[str]]] = []
    for where in program.parsed():
        for one in where.walk():
            if not isinstance(one, ast.Call):
                continue
            if program.names(where).is_call(one, writer) and len(one.args) > 1:
                written |= _texts(one.args[1], where, program)
            elif program.names(where).is_call(one, *_MOVES) and len(one.args) == 2:
                moved.append((_texts(one.args[0], where, program), _texts(one.args[1], where, program)))
    return bool(read & written) or any(old & written and new & read for old, new in moved)


def _texts(node: ast.expr, file: SourceFile, program: Program) -> frozenset[str]:
    """The words that a path is written in, and those that the name of it is bound to."""
    made = resolver_of(program).behind(Value(node, file)) if isinstance(node, (ast.Name, ast.Attribute)) else ()
    return frozenset({ast.unparse(node), *(ast.unparse(one.node) for one in made)})
