"""Keeps what `detach()` gives, where a statement throws it away: `self.state.detach()` becomes `self.state = self.state.detach()`.

`detach` changes no tensor. Of a state that a number picks parts of, which may be a tuple, and of one whose parts a loop hands out,
all parts are kept: `self.state = tuple(part.detach() for part in self.state)`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, remove_statement
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import Function, dotted_name
from explainer.source.value.binding import walk_scope
from explainer.source.value.lineage import block_of

_WHY = "throws away what `detach` gives, which changes no tensor: the state keeps its graph"


def propose(context: Context) -> Iterator[Proposal]:
    """One edit for all such statements: each of them alone ties the steps together."""
    if not context.has_failed:
        return
    own = {one for _, one in context.program.functions() if one.name == "detach"}
    changing = {one for one in own if not _hands_out(one)}
    edits: list[Edit] = []
    first: tuple[SourceFile, ast.stmt] | None = None
    for file in context.program.parsed():
        seen = set[ast.stmt]()
        for statement in file.walk():
            if not isinstance(statement, ast.Expr) or statement in seen or (kept := _detached(statement)) is None:
                continue
            if changing and file.enclosing(statement, ast.FunctionDef, ast.AsyncFunctionDef) not in own:
                continue  # a class of the program has such a method, which may detach what it holds
            made = list(_kept(kept, statement, file, seen))
            edits += made
            first = first or ((file, statement) if made else None)
    if first is not None:
        yield Proposal(edits=tuple(edits), culprit=culprit_of(*first, _WHY), belief=3.5)


def _hands_out(method: Function) -> bool:
    """Whether a `detach` of the program's makes another object, as that of a tensor does, and changes none."""
    nodes = list(walk_scope(method))
    returns = [one for one in nodes if isinstance(one, ast.Return)]
    is_itself = any(one.value is None or dotted_name(one.value) == "self" for one in returns)
    stores = any(isinstance(one, (ast.Attribute, ast.Subscript)) and isinstance(one.ctx, ast.Store) for one in nodes)
    writes = any(isinstance(one, ast.Attribute) and one.attr in ("detach_", "__setattr__") for one in nodes)
    return bool(returns) and not is_itself and not stores and not writes


def _detached(statement: ast.stmt) -> ast.expr | None:
    """What a statement detaches for nothing; of a list that it makes for nothing, that list."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.ListComp) and isinstance(statement, ast.Expr):
        return call if _detached(ast.Expr(value=call.elt)) is not None else None
    if not isinstance(call, ast.Call) or call.args or call.keywords or not isinstance(call.func, ast.Attribute):
        return None
    return call.func.value if call.func.attr == "detach" else None


def _kept(kept: ast.expr, statement: ast.Expr, file: SourceFile, seen: set[ast.stmt]) -> Iterator[Edit]:
    if isinstance(kept, ast.ListComp):
        only = kept.generators[0]
        if len(kept.generators) == 1 and not only.ifs and dotted_name(only.iter) is not None:
            yield edit_of(file, statement, f"{file.segment(only.iter)} = {file.segment(kept)}")
        return
    above = file.parents.get(statement)
    if isinstance(kept, ast.Name) and isinstance(above, ast.For) and dotted_name(above.target) == kept.id:
        whole = file.segment(above.iter)
        if dotted_name(above.iter) is not None and above.body == [statement] and not above.orelse:
            yield edit_of(file, above, f"{whole} = [{kept.id}.detach() for {kept.id} in {whole}]")
        return
    if isinstance(kept, ast.Subscript) and _is_number(kept.slice):
        base = file.segment(kept.value)
        alike = [one for one in block_of(statement, file) if _is_part_of(base, _detached(one), file)]
        seen.update(alike)
        yield edit_of(file, statement, f"{base} = tuple(part.detach() for part in {base})")
        yield from (remove_statement(file, one) for one in alike if one is not statement)
    elif dotted_name(kept) is not None or isinstance(kept, ast.Subscript):
        target = file.segment(kept)
        yield edit_of(file, statement, f"{target} = {target}.detach()")


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


def _is_part_of(base: str, kept: ast.expr | None, file: SourceFile) -> bool:
    return isinstance(kept, ast.Subscript) and _is_number(kept.slice) and file.segment(kept.value) == base
