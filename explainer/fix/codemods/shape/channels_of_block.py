"""A block of layers that gets joined channels is built for as many: `Block(32, 16)` for `Block(16, 16)` behind `torch.cat([up, skip], 1)`.

The block is a class or function of the program, whose first argument is the number of the message.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import islice

from explainer.fix.clue.crash import crash_places, message_of
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.shape.layer_input import read_told
from explainer.source.file import SourceFile
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.resolve import resolver_of

_FRAMES = 4
_JOINS = ("torch.cat", "torch.concat", "torch.concatenate")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the innermost call of the traceback that gives joined channels to such a block."""
    told = read_told(message_of(context))
    if told is None or not told.is_convolution or told.size is None or told.lacks_batch(None):
        return
    for file, statement in islice(crash_places(context), _FRAMES):
        for call in (one for one in walk(statement) if isinstance(one, ast.Call) and one.args):
            made = _block(call, file, context.program) if _is_joined(call.args[0], file, context.program) else None
            first = made[1].args[0] if made is not None else None
            if made is not None and isinstance(first, ast.Constant) and first.value == told.wanted:
                yield Proposal(
                    edits=(edit_of(made[0], first, str(told.size)),),
                    culprit=culprit_of(
                        made[0], made[1], f"is built for {told.wanted} channels and gets {told.size} that are joined"
                    ),
                    belief=1.5,
                )
                return


def _block(call: ast.Call, file: SourceFile, program: Program) -> tuple[SourceFile, ast.Call] | None:
    """The call of a class or function of the program that made what is called; None of a layer of torch."""
    resolver = resolver_of(program)
    made = list(resolver.behind(Value(call.func, file)))
    if len(made) != 1:
        return None
    node, where = made[0].node, made[0].file
    if isinstance(node, ast.Tuple) and isinstance(made[0].pick, int):
        node = node.elts[made[0].pick]
    if not isinstance(node, ast.Call) or not node.args:
        return None
    is_own = resolver.find_class(node.func, where) or resolver.function_of(node, Value(node, where))
    return (where, node) if is_own is not None else None


def _is_joined(given: ast.expr, file: SourceFile, program: Program) -> bool:
    """Whether channels are joined in place, or under the one name that is given."""
    behind = [one.node for one in resolver_of(program).behind(Value(given, file))] or [given]
    return len(behind) == 1 and isinstance(behind[0], ast.Call) and program.names(file).is_call(behind[0], *_JOINS)
