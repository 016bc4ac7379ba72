"""A part that an optimizer is given by its name is thawed: `encoder.get_input_embeddings().requires_grad_(True)` before `AdamW(...)`.

A freeze of the parts around it took it as well. What an optimizer was given of a model, rather than all of it, is what is to train:
also a list that is chosen of its parameters, `joining = [p for n, p in net.named_parameters() if "head" in n]`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from explainer.fix.codemod import Context, Proposal, culprit_of, insert_after, insert_before
from explainer.source.file import SourceFile
from explainer.source.name import Names, dotted_name
from explainer.source.program import Program
from explainer.source.tree import start_of, walk
from explainer.source.value.binding import reaching

_STEPS = 16
_THAWED = "for parameter in {0}:\n    parameter.requires_grad_(True)"
_WHOLE = frozenset({"model", "net", "network", "module", "policy", "agent"})


class _List(NamedTuple):
    """A list of parameters: its name, and the statement that makes it."""

    name: str
    statement: ast.Assign


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the parts that the optimizers of the program are given, where each of them is given one."""
    trainable = context.incident.fact("live_trainable")
    if not context.has_failed or (trainable is not None and trainable.value != "0"):
        return
    found = [
        (file, call, _part(call, context.program.names(file)))
        for file in context.program.parsed()
        for call in file.walk()
        if isinstance(call, ast.Call) and _is_optimizer(call, context.program.names(file))
    ]
    parts = [(file, call, part) for file, call, part in found if part is not None]
    if found and not parts:
        yield from _lists_thawed([(file, call) for file, call, _ in found], context.program)
    if not parts or len(parts) != len(found):
        return
    frozen = _freeze(parts[0][0], context.program)
    if frozen is None and trainable is None:
        return  # neither the program nor a live one shows a freeze
    yield Proposal(
        edits=tuple(
            insert_before(file, file.statement(call), f"{file.segment(part)}.requires_grad_(True)")
            for file, call, part in parts
        ),
        culprit=culprit_of(*frozen, "freezes what the optimizer is given to train")
        if frozen is not None
        else culprit_of(parts[0][0], parts[0][1], "is given parameters that are frozen"),
        belief=1.6,
        is_origin=True,
    )


def _lists_thawed(calls: Sequence[tuple[SourceFile, ast.Call]], program: Program) -> Iterator[Proposal]:
    """An edit for the lists of chosen parameters that all optimizers of the program are given, behind what makes them."""
    lists = [(file, list(_chosen(call, file))) for file, call in calls]
    if not all(chosen for _, chosen in lists):
        return
    frozen = _freeze(calls[0][0], program)
    made = dict.fromkeys((file, one) for file, chosen in lists for one in chosen)
    if frozen is not None:
        yield Proposal(
            edits=tuple(insert_after(file, one.statement, _THAWED.format(one.name)) for file, one in made),
            culprit=culprit_of(calls[0][0], next(one for _, one in made).statement, "are frozen, and are to train"),
            belief=1.6,
            is_origin=True,
        )


def _chosen(call: ast.Call, file: SourceFile) -> Iterator[_List]:
    """The lists of parameters that an optimizer is given by their names, alone or in groups; a filter by the flag chooses nothing."""
    todo, steps = [*call.args[:1], *(one.value for one in call.keywords if one.arg == "params")], 0
    while todo and (steps := steps + 1) < _STEPS:
        node = todo.pop()
        if isinstance(node, ast.Name):
            for bound in reaching(node.id, node, file):
                if not isinstance(bound.node, ast.ListComp):
                    todo.append(bound.node)
                elif _chooses(bound.node) and isinstance(bound.statement, ast.Assign):
                    yield _List(node.id, bound.statement)
        elif isinstance(node, ast.List):
            todo += node.elts
        elif isinstance(node, ast.Dict):
            todo += [
                value
                for key, value in zip(node.keys, node.values, strict=True)
                if getattr(key, "value", "") == "params"
            ]


def _chooses(made: ast.ListComp) -> bool:
    """Whether a list takes some of what it walks over, for another reason than that it trains."""
    tests = [one for part in made.generators for one in part.ifs]
    return bool(tests) and not any(
        isinstance(one, ast.Attribute) and one.attr == "requires_grad" for test in tests for one in _asked(test)
    )


def _asked(test: ast.expr) -> Iterator[ast.AST]:
    """What a test asks for; nothing of one that is negated."""
    return iter(()) if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else walk(test)


def _is_optimizer(call: ast.Call, names: Names) -> bool:
    called = names.qualified(call.func) or ""
    return called.startswith("torch.optim.") and called.count(".") == 2 and called.rpartition(".")[2][:1].isupper()


def _part(call: ast.Call, names: Names) -> ast.expr | None:
    """`model.head` or `model.get_input_embeddings()` of `AdamW(model.head.parameters())`; None where it is a whole model, or a list."""
    given = call.args[0] if call.args else next((one.value for one in call.keywords if one.arg == "params"), None)
    if not isinstance(given, ast.Call) or not isinstance(given.func, ast.Attribute) or given.func.attr != "parameters":
        return None
    part = given.func.value
    path = part.func if isinstance(part, ast.Call) and not part.args and not part.keywords else part
    name = dotted_name(path)
    if not isinstance(path, ast.Attribute) or name is None or names.imports.get(name.partition(".")[0]):
        return None
    is_own = name.startswith("self.") and name.count(".") < 2
    return None if is_own or path.attr in _WHOLE else part


def _freeze(near: SourceFile, program: Program) -> tuple[SourceFile, ast.AST] | None:
    """The last line that switches a flag off, `p.requires_grad = False`, in the file that makes the optimizer, else in another."""
    for file in (near, *(one for one in program.parsed() if one is not near)):
        off = [file.statement(one) for one in file.attributes.get("requires_grad", ()) if _is_off(one, file)]
        off += [file.statement(one) for one in file.attributes.get("requires_grad_", ()) if _is_off(one, file)]
        if off:
            return file, max(off, key=start_of)
    return None


def _is_off(flag: ast.Attribute, file: SourceFile) -> bool:
    above = file.parents.get(flag)
    if isinstance(above, ast.Call):
        given = [*above.args, *(one.value for one in above.keywords)]
    else:
        given = [above.value] if isinstance(above, ast.Assign) and flag in above.targets else []
    return any(isinstance(one, ast.Constant) and one.value is False for one in given)
