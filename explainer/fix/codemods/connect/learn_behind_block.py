"""Moves the layers that are to learn out of a `with torch.no_grad():` that prepares their data.

    with torch.no_grad():                        with torch.no_grad():
        mel = self.log_mel(wave)                     mel = self.log_mel(wave)
        x = self.subsample(mel)                  x = self.subsample(mel)

Only what a trace saw: layers whose parameters an optimizer owns, and that never get a gradient. A block that holds nothing
but such layers is there to freeze them, and so is one round layers that the program freezes, evaluates or loads: their
line is named, and stays. A block that does nothing but write a parameter into a tensor freezes nothing: it goes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from explainer.fix.clue.trace import traced_statements
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.graph.uncut import dedent
from explainer.model.patch import Edit
from explainer.model.trace import STARVING_CUT, STARVING_OFF
from explainer.source.file import SourceFile
from explainer.source.graph.cut import grad_state
from explainer.source.graph.writable import is_writable
from explainer.source.name import bound_names, dotted_name
from explainer.source.network.freeze import ON_PURPOSE, find_freezes
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.provenance import provenance_of
from explainer.source.value.resolve import resolver_of

_DEPTH = 4
_WHY = "runs layers that the optimizer owns with grad mode off: they never get a gradient"
_LOADS = frozenset(
    {"from_pretrained", "load_state_dict", "load", "create_model", "deepcopy", "load_from_checkpoint", "get_model"}
)
_LIBRARIES = ("torchvision.models", "timm.", "transformers.", "torch.hub", "open_clip", "clip.", "torchaudio.pipelines")
_KEEPS = frozenset({"append", "extend", "add", "put", "update", "insert"})
_Starved = list[tuple[SourceFile, ast.stmt, str]]
"""The starved statements, each with the operation that was traced in it."""


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each block that a trace saw round layers which are to learn."""
    starved = [(file, statement, line.operation) for line, file, statement in traced_statements(STARVING_CUT, context)]
    for _, file, block in traced_statements(STARVING_OFF, context):
        if isinstance(block, ast.With) and starved:
            yield from _proposal(block, file, starved, context.program)


def _proposal(block: ast.With, file: SourceFile, starved: _Starved, program: Program) -> Iterator[Proposal]:
    learned = [one for one in block.body if _runs_starved(one, file, starved, program)]
    if not learned:
        return
    edits = _edits(block, learned, file, starved, program)
    yield Proposal(edits=edits, culprit=culprit_of(file, learned[0], _WHY), belief=2.0 if edits else -0.5)


def _edits(
    block: ast.With, learned: Sequence[ast.stmt], file: SourceFile, starved: _Starved, program: Program
) -> tuple[Edit, ...]:
    """The block's end, from the first statement that learns on, moved out of it; nothing where that is not known to be right."""
    written = [one for _, one, operation in starved if operation == "__setitem__"]
    if all(one in written and _written_tensor(one) for one in block.body):
        return _unblocked(block, file, program)
    first = block.body.index(learned[0])
    head, tail = block.body[:first], block.body[first:]
    is_plain = len(block.items) == 1 and _is_no_grad(block.items[0].context_expr, file, program)
    if not is_plain or not head or not any(isinstance(one, ast.Call) for part in head for one in walk(part)):
        return ()
    if head[0].lineno == block.lineno or head[-1].end_lineno == tail[0].lineno:
        return ()
    if any(_is_frozen(one, file, program) for one in tail) or _writes_state(tail) or _writes_parts(head, learned):
        return ()
    moved: set[str] = set()
    for one in tail:
        if one not in learned and not _reads(one) & moved and _may_learn(one, file, program):
            return ()
        if one not in learned and _runs_other_layers(one, file, starved, program):
            return ()
        moved |= _bound(one)
    return tuple(dedent(file, tail, file.indent(block.lineno)))


def _unblocked(block: ast.With, file: SourceFile, program: Program) -> tuple[Edit, ...]:
    """`tokens[mask] = self.token` without its block, on a clone where torch may refuse the write."""
    context = block.items[0].context_expr
    is_plain = len(block.items) == 1 and _is_no_grad(context, file, program) and block.body[0].lineno != block.lineno
    if not is_plain or any(_is_frozen(one, file, program) for one in block.body):
        return ()
    names = dict.fromkeys(name for one in block.body if (name := _written_tensor(one)))
    copied = [f"{name} = {name}.clone()" for name in names if not is_writable(name, block, file, program)]
    start, end = file.line_start(block.lineno), file.line_start(block.body[0].lineno)
    indent = file.indent(block.lineno)
    head = "".join(f"{indent}{one}{file.newline}" for one in copied)
    return (Edit(file=file.path, start=start, end=end, new=head), *dedent(file, block.body, indent))


def _written_tensor(statement: ast.stmt) -> str | None:
    """The local name of which a statement writes a part: `tokens` of `tokens[mask] = value`."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    is_part = isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name)
    return target.value.id if is_part else None  # type: ignore[union-attr]


def _is_no_grad(context: ast.expr, file: SourceFile, program: Program) -> bool:
    """Whether a context is `no_grad`: what inference mode makes could be saved for no backward."""
    names = program.names(file)
    called = names.qualified(context.func if isinstance(context, ast.Call) else context) or ""
    return grad_state(context, names) is False and called.rpartition(".")[2] in ("no_grad", "set_grad_enabled")


def _runs_starved(statement: ast.stmt, file: SourceFile, starved: _Starved, program: Program) -> bool:
    """Whether a starved line stands in a statement, or in a function of the program that it runs."""
    spans = list(_spans(statement, file, program, 0))
    return any(
        where is other and (node.lineno <= one.lineno <= (node.end_lineno or node.lineno))
        for where, one, _ in starved
        for other, node in spans
    )


def _spans(
    node: ast.stmt | ast.FunctionDef | ast.AsyncFunctionDef, file: SourceFile, program: Program, depth: int
) -> Iterator[tuple[SourceFile, ast.stmt]]:
    """A statement and the functions of the program that it runs, modules' `forward` among them."""
    yield file, node
    for call in walk(node) if depth < _DEPTH else ():
        if isinstance(call, ast.Call):
            for where, function in _run(call, file, program):
                if function is not node:
                    yield from _spans(function, where, program, depth + 1)


def _run(
    call: ast.Call, file: SourceFile, program: Program
) -> Iterator[tuple[SourceFile, ast.FunctionDef | ast.AsyncFunctionDef]]:
    resolver = resolver_of(program)
    found = resolver.function_of(call, Value(call, file))
    if found is not None:
        yield found
    for where, owner in resolver.classes_of(Value(call.func, file)):
        method = resolver.method(owner, "forward", where)
        if method is not None:
            yield method


def _reads(statement: ast.stmt) -> set[str]:
    return {one.id for one in walk(statement) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}


def _bound(statement: ast.stmt) -> set[str]:
    return {name for one in walk(statement) if isinstance(one, ast.stmt) for name in bound_names(one)}


def _may_learn(statement: ast.stmt, file: SourceFile, program: Program) -> bool:
    """Whether a statement computes with parameters: outside of the block they would train."""
    provenance = provenance_of(program)
    values = [getattr(one, "value", None) for one in walk(statement) if isinstance(one, ast.stmt)]
    traces = [provenance.trace(Value(one, file)) for one in values if isinstance(one, ast.expr)]
    return any(one.live or one.chains for one in traces)


def _runs_other_layers(statement: ast.stmt, file: SourceFile, starved: _Starved, program: Program) -> bool:
    """Whether a statement that depends on what learns runs a module which was not seen to be starved: a frozen one, perhaps."""
    resolver = resolver_of(program)
    return any(
        isinstance(one, ast.Call) and any(isinstance(made.node, ast.Call) for made in resolver.constructors_of(Value(one.func, file)))
        for one in walk(statement)
    ) and not _runs_starved(statement, file, starved, program)  # fmt: skip


def _writes_state(tail: Sequence[ast.stmt]) -> bool:
    """Whether state is written or kept: parameters take no write outside of the block, and what is kept would keep its graph."""
    return any(_is_state(target) for one in tail for node in walk(one) for target in _written(node))


def _writes_parts(head: Sequence[ast.stmt], learned: Sequence[ast.stmt]) -> bool:
    """Whether the block writes a module that it runs: one whose weights are kept by hand."""
    parts = {_last(one.func) for each in learned for one in walk(each) if isinstance(one, ast.Call)} - {""}
    written = (dotted_name(target) or "" for one in head for node in walk(one) for target in _written(node))
    return any(parts & set(name.split(".")) for name in written if "." in name)


def _written(node: ast.AST) -> Iterator[ast.expr]:
    """What a node assigns, writes in place, or puts something into."""
    if isinstance(node, ast.Assign):
        yield from node.targets
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
        yield node.target
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        is_inplace = node.func.attr.endswith("_") and not node.func.attr.endswith("__")
        if is_inplace or node.func.attr in _KEEPS:
            yield node.func.value


def _is_state(target: ast.expr) -> bool:
    while isinstance(target, ast.Subscript):
        target = target.value
    return isinstance(target, ast.Attribute)


def _is_frozen(statement: ast.stmt, file: SourceFile, program: Program) -> bool:
    """Whether a statement names or runs what the program freezes, evaluates, loads or keeps as a copy."""
    names = {dotted_name(one.func) or "" for one in walk(statement) if isinstance(one, ast.Call)}
    words = names | _bound(statement)
    if any(ON_PURPOSE.search(one) for one in words):
        return True
    parts = {one.rpartition(".")[2] for one in names} - {"self", ""}
    if any(_last(one.owner) in parts or one.test is not None for one in find_freezes(program) if not one.is_on):
        return True
    if any(_is_kept_apart(node, parts) for one in program.parsed() for node in one.walk()):
        return True
    return any(
        _is_loaded(made, program)
        for call in walk(statement)
        if isinstance(call, ast.Call)
        for made in resolver_of(program).constructors_of(Value(call.func, file))
    )


def _last(node: ast.expr) -> str:
    return (dotted_name(node) or "").rpartition(".")[2]


def _is_kept_apart(node: ast.AST, parts: set[str]) -> bool:
    """`self.encoder.eval()`, `self.encoder.train(False)`, `self.encoder.load_state_dict(...)`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    is_off = node.func.attr == "train" and any(
        isinstance(one, ast.Constant) and one.value is False for one in node.args
    )
    is_apart = is_off or node.func.attr in ("eval", "load_state_dict")
    return is_apart and _last(node.func.value) in parts


def _is_loaded(made: Value, program: Program) -> bool:
    """Whether a module comes with weights that were trained before, or is a copy of another."""
    node = made.node
    if not isinstance(node, ast.Call):
        return False
    called = program.names(made.file).qualified(node.func) or dotted_name(node.func) or ""
    is_given = any(
        one.arg in ("weights", "pretrained") and not (isinstance(one.value, ast.Constant) and not one.value.value)
        for one in node.keywords
    )
    return is_given or called.rpartition(".")[2] in _LOADS or called.startswith(_LIBRARIES)
