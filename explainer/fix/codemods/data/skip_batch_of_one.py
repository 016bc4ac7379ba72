"""A batch of one sample that the program cuts itself is left out: `if len(bucket) > 1`, `range(0, len(order) - 1, size)`.

A batch sampler, a generator of batches, a data set that hands out batches, or the training loop itself. Where others walk the same
sampler, an evaluation would miss that sample: the loop that trains skips it, or the sampler's own option is set where it is made.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from explainer.fix.clue.crash import message_of
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_after, insert_before
from explainer.fix.data.batch_maker import Maker, loops_round, makers_of, makers_of_trainer
from explainer.fix.setting.edit import set_value
from explainer.fix.text.rewrite import add_argument, in_block, operand
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.loop.chunk import PIECES, REST, SLICE, STARTS, Chunk, chunks_of_loop, find_chunks, taken
from explainer.source.program import Program
from explainer.source.setting.flow import settings_behind
from explainer.source.value.binding import Value, default_of
from explainer.source.value.flow import arguments_of
from explainer.source.value.number import number_of
from explainer.source.value.resolve import resolver_of

_ONE = re.compile(r"more than 1 value per channel.*\[1(?:, \d+)*\]", re.DOTALL)
_WHY = "may hand out a batch of one sample, of which there is no variance"
_SHARED = "whoever else walks these batches misses that sample too: an evaluation counts it out"
_OPTION = "each rest that is smaller than a batch is left out of the epoch"
_DROPS = re.compile(r"drop_?(?:last|remainder|incomplete|short|rest|uneven)|skip_?(?:last|incomplete|short)")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each place that cuts the batches of the failing loop, and one for the option of what makes them."""
    if not context.has_failed or _ONE.search(message_of(context)) is None:
        return
    for file, loop in loops_round(context):
        found = list(_of_loop(file, loop, context.program))
        if found:
            yield from found
            return
    for file, loop in loops_round(context):
        edits = _passed_over(file, loop, context.program) if isinstance(loop, ast.For) else ()
        if isinstance(loop, ast.For) and edits:
            yield Proposal(edits=edits, culprit=culprit_of(file, loop.iter, _WHY), belief=1.0)
            return
    for maker in makers_of_trainer(context.program):
        yield from _of_maker(maker, context.program)


def _of_loop(file: SourceFile, loop: ast.For | ast.While, program: Program) -> Iterator[Proposal]:
    """What a loop cuts itself, and what makes the batches that it walks."""
    yield from _skipped([one for one in chunks_of_loop(loop, file, program) if not _is_of_one(one, program)], None)
    for maker in makers_of((file, loop), program) if isinstance(loop, ast.For) else ():
        yield from _of_maker(maker, program)


def _of_maker(maker: Maker, program: Program) -> Iterator[Proposal]:
    found = [chunk for file, scope in maker.scopes for chunk in find_chunks(scope, file, program)]
    once = {id(one.node): one for one in found if not _is_of_one(one, program)}
    yield from _skipped(list(once.values()), maker)
    yield from _by_option(maker, program)


def _is_of_one(chunk: Chunk, program: Program) -> bool:
    """Whether every batch is one sample: then none of them is left over."""
    if chunk.size is None:
        return False
    values = [one.value for one in settings_behind(chunk.size, chunk.file, program)]
    is_one = number_of(chunk.size, program.names(chunk.file)) == 1
    return is_one or (bool(values) and all(one == 1 for one in values))


def _skipped(chunks: Sequence[Chunk], maker: Maker | None) -> Iterator[Proposal]:
    edits = [_without_one(one) for one in chunks]
    known = [(chunk, edit) for chunk, edit in zip(chunks, edits, strict=True) if edit]
    if not known:
        return
    guard = _guard(maker) if maker is not None and maker.is_shared else ()
    first = known[0][0]
    is_unsafe = maker is not None and maker.is_shared and not guard
    yield Proposal(
        edits=guard or tuple(each for _, edit in known for each in edit),
        culprit=culprit_of(first.file, first.test if first.test is not None else first.node, _WHY),
        belief=1.0 if is_unsafe else 2.0,
        applicability="unsafe" if is_unsafe else None,
        because=_SHARED if is_unsafe else None,
    )


def _passed_over(file: SourceFile, loop: ast.For, program: Program) -> tuple[Edit, ...]:
    """The guard of a loop over an object of the program whose batches are cut in ways that are not read: an iterator class."""
    if not resolver_of(program).classes_of(Value(loop.iter, file)):
        return ()
    return _guarded(file, loop)


def _guard(maker: Maker) -> tuple[Edit, ...]:
    """The loop that trains skips a batch of one; none where its batch may be a dictionary, whose length says nothing."""
    if maker.walked is None:
        return ()
    return _guarded(*maker.walked)


def _guarded(file: SourceFile, loop: ast.For | ast.AsyncFor) -> tuple[Edit, ...]:
    target = taken(loop)[1]
    first = target.elts[0] if isinstance(target, ast.Tuple) else None
    if not isinstance(first, ast.Name) or loop.body[0].lineno == loop.lineno:
        return ()
    return (insert_before(file, loop.body[0], f"if len({first.id}) == 1:\n    continue"),)


def _without_one(chunk: Chunk) -> tuple[Edit, ...]:
    """The edits that leave a batch of one out at one place."""
    file, name = chunk.file, chunk.name
    if chunk.kind == STARTS and chunk.stop is not None:
        return (edit_of(file, chunk.stop, f"{operand(file, chunk.stop)} - 1"),)
    if chunk.kind == REST and chunk.test is not None:
        return (edit_of(file, chunk.test, f"len({name}) > 1"),)
    if chunk.kind == REST and isinstance(chunk.node, ast.stmt):
        return in_block(file, [chunk.node], f"if len({name}) > 1:")
    if chunk.kind == SLICE and isinstance(chunk.node, ast.stmt):
        return (insert_after(file, chunk.node, f"if len({name}) == 1:\n    continue"),)
    return _of_pieces(chunk) if chunk.kind == PIECES and isinstance(chunk.node, ast.expr) else ()


def _of_pieces(chunk: Chunk) -> tuple[Edit, ...]:
    file, name, loop = chunk.file, chunk.name, chunk.loop
    if isinstance(loop, ast.comprehension):
        end = file.span(loop.ifs[-1] if loop.ifs else loop.iter)[1]
        return (Edit(file=file.path, start=end, end=end, new=f" {'and' if loop.ifs else 'if'} len({name}) > 1"),)
    if loop is not None:
        if loop.body[0].lineno == loop.lineno:
            return ()
        return (insert_before(file, loop.body[0], f"if len({name}) == 1:\n    continue"),)
    assert isinstance(chunk.node, ast.expr)
    return (edit_of(file, chunk.node, f"[piece for piece in {file.segment(chunk.node)} if len(piece) > 1]"),)


def _by_option(maker: Maker, program: Program) -> Iterator[Proposal]:
    """The option of a sampler that leaves every rest out, where the call that made it does not ask for that yet."""
    option = _option_of(maker, program)
    if option is None or maker.call is None:
        return
    name, value = option
    settings = settings_behind(value, maker.file, program) if value is not None else []
    if any(one.value is True for one in settings) or (isinstance(value, ast.Constant) and value.value is True):
        return
    edit: Edit | str = (
        edit_of(maker.file, value, "True") if value is not None else _argument(maker.file, maker.call, name)
    )
    if value is not None and not isinstance(value, ast.Constant) and len(settings) == 1:
        edit = set_value(settings[0], True)  # noqa: FBT003 - the value that is written
    if isinstance(edit, Edit):
        yield Proposal(
            edits=(edit,),
            culprit=culprit_of(maker.file, maker.call, _WHY),
            belief=1.4 if maker.scopes and not maker.is_shared else 1.8,
            because=_OPTION,
            title=f"Leave every incomplete batch out: `{name}=True`",
        )


def _argument(file: SourceFile, call: ast.Call, name: str) -> Edit:
    return add_argument(file, call, f"{name}=True")


def _option_of(maker: Maker, program: Program) -> tuple[str, ast.expr | None] | None:
    """The name of the option and what the call gives it; None where what is called has none."""
    if maker.call is None:
        return None
    if not maker.scopes:
        named = {one.arg: one.value for one in maker.call.keywords}
        return "drop_last", named.get("drop_last", next(iter(maker.call.args[2:3]), None))
    found = resolver_of(program).find_class(maker.call.func, maker.file)
    method = resolver_of(program).method(found[1], "__init__", found[0]) if found is not None else None
    function = method[1] if method is not None else maker.scopes[0][1]
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) or (found is not None and method is None):
        return None
    names = [one.arg for one in (*function.args.args, *function.args.kwonlyargs) if _DROPS.fullmatch(one.arg)]
    if len(names) != 1:
        return None
    given = dict(arguments_of(maker.call, function))
    default = default_of(function, names[0])
    is_off = isinstance(default, ast.Constant) and default.value is False
    return (names[0], given.get(names[0])) if names[0] in given or is_off else None
