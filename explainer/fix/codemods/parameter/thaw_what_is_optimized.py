"""A part that an optimizer is given by its name is thawed: `encoder.get_input_embeddings().requires_grad_(True)` before `AdamW(...)`.

A freeze of the parts around it took it as well. What an optimizer was given of a model, rather than all of it, is what is to train.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, insert_before
from explainer.source.file import SourceFile
from explainer.source.name import Names, dotted_name
from explainer.source.program import Program
from explainer.source.tree import start_of

_WHOLE = frozenset({"model", "net", "network", "module", "policy", "agent"})


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
