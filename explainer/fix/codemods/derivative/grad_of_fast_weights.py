"""`grads = torch.autograd.grad(loss, list(fast.values()), create_graph=True)` for `loss.backward(create_graph=True)` and `w.grad`.

The weights of an inner loop that is differentiated are leaves in its first round only: from the second on their `.grad`
stays None. `retain_grad` would fill it, and the `.grad` of the parameters with what no optimizer is to see.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import spell
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import Names, dotted_name
from explainer.source.tree import walk
from explainer.source.value.lineage import block_of


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each backward that keeps its graph, whose gradients the next statement takes of weights that it makes anew."""
    if not context.has_failed:
        return
    for file in context.program.parsed():
        names = context.program.names(file)
        for statement in file.walk():
            call = _backward(statement)
            if call is None or not isinstance(statement, ast.stmt):
                continue
            block = list(block_of(statement, file))
            behind = block[block.index(statement) + 1 :][:1]
            edits = [edit for one in behind for edit in _edits(statement, call, one, file, names)]
            if edits:
                yield Proposal(
                    edits=tuple(edits),
                    culprit=culprit_of(
                        file, behind[0], "takes `.grad` of weights that are results themselves, where it is None"
                    ),
                    belief=2.2,
                )


def _backward(node: ast.AST) -> ast.Call | None:
    """`loss.backward(create_graph=True)` as a statement."""
    call = node.value if isinstance(node, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "backward":
        return None
    given = {one.arg: one.value for one in call.keywords}
    keeps = given.get("create_graph")
    is_kept = isinstance(keeps, ast.Constant) and keeps.value is True
    return call if is_kept and not call.args and set(given) <= {"create_graph", "retain_graph"} else None


def _edits(statement: ast.stmt, call: ast.Call, made: ast.stmt, file: SourceFile, names: Names) -> Iterator[Edit]:
    """`fast = [w - lr * w.grad for w in fast]`, and of a dictionary `{name: w - lr * w.grad for name, w in fast.items()}`."""
    value = made.value if isinstance(made, ast.Assign) and len(made.targets) == 1 else None
    if not isinstance(value, (ast.ListComp, ast.DictComp)) or len(value.generators) != 1 or value.generators[0].ifs:
        return
    walked, target = value.generators[0].iter, value.generators[0].target
    of_items = isinstance(walked, ast.Call) and isinstance(walked.func, ast.Attribute) and walked.func.attr == "items"
    weights = walked.func.value if of_items else walked  # type: ignore[attr-defined]
    weight = target.elts[1] if of_items and isinstance(target, ast.Tuple) and len(target.elts) == 2 else target
    own = [one for one in walk(made) if isinstance(one, ast.Attribute) and one.attr == "grad"]
    is_known = dotted_name(weights) is not None and isinstance(weight, ast.Name)
    if not is_known or not own or any(dotted_name(one.value) != dotted_name(weight) for one in own):
        return
    assert isinstance(call.func, ast.Attribute)
    text, loss = file.segment(weights), file.segment(call.func.value)
    inputs = f"list({text}.values())" if of_items else text
    grad = "grad" if all(getattr(one, "id", "") != "grad" for one in walk(made)) else "gradient"
    yield edit_of(
        file, statement, f"grads = {spell(names, 'torch.autograd.grad')}({loss}, {inputs}, create_graph=True)"
    )
    yield from (edit_of(file, one, grad) for one in own)
    head = f"({file.segment(target).strip('()')})" if of_items else file.segment(target)
    start, end = file.span(target)[0], file.span(walked)[1]
    yield Edit(file=file.path, start=start, end=end, new=f"{head}, {grad} in zip({file.segment(walked)}, grads)")
