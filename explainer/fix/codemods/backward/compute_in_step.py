"""What is computed once from weights, in `setup`, `__init__` or an outer scope, is computed in the functions that read it.

`self.prop = self.propagation()` of `setup` becomes `prop = self.propagation()` in the step. What else the value is computed
from comes along: data that only the old place has is kept as an attribute, a local with a graph is computed anew as well.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_before, remove_statement
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.loop.carried import training_loops
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, all_parameters, bounds_of
from explainer.source.value.once import Once, find_once, is_random
from explainer.source.value.provenance import provenance_of
from explainer.source.value.resolve import resolver_of

_DEPTH = 6
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass
class _Recipe:
    """How a value is computed elsewhere: names that are written otherwise there, lines before it, data to keep as attributes."""

    written: dict[ast.AST, str] = field(default_factory=dict)
    before: dict[ast.stmt, str] = field(default_factory=dict)
    kept: dict[str, None] = field(default_factory=dict)
    value: str = ""


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each value of weights that is made once and read in every step."""
    if not context.has_failed:
        return
    program = context.program
    for one in find_once(program):
        edits = _edits(one, program)
        if edits:
            why = f"computes `{one.name}` once, from weights that each step changes; the first backward frees its graph"
            yield Proposal(edits=edits, culprit=culprit_of(one.file, one.statement, why), belief=1.6)


def _edits(one: Once, program: Program) -> tuple[Edit, ...]:
    recipe = _Recipe()
    if not _explain(one.statement.value, one, recipe, program, 0):
        return ()
    recipe.value = _text(one.statement.value, one.file, recipe.written)
    edits: list[Edit] = []
    functions = {function: None for read in one.reads if (function := program.names(one.file).function_of(read))}
    for function in functions:
        reads = [read for read in one.reads if program.names(one.file).function_of(read) is function]
        found = _in_function(one, function, reads, recipe, program)
        if found is None:
            return ()
        edits += found
    kept = "\n".join(f"self.{name} = {name}" for name in recipe.kept)
    if one.scope not in functions:
        edits.append(edit_of(one.file, one.statement, kept.replace("\n", f"\n{one.file.indent(one.statement.lineno)}")) if kept
                     else remove_statement(one.file, one.statement))  # fmt: skip
    elif kept:
        edits.append(insert_before(one.file, one.statement, kept))
    return (*edits, *(remove_statement(one.file, each) for each in one.spare))


def _explain(value: ast.expr, one: Once, recipe: _Recipe, program: Program, depth: int) -> bool:
    """Whether a value can be computed outside of the scope that makes it; what that takes goes into the recipe."""
    for name in _free(value):
        if one.owner is None or name.id == "self" or not _is_local(name.id, one.scope):
            continue
        if not _explain_local(name, one, recipe, program, depth):
            return False
    return all(_is_steady(node, one, program) for node in walk(value) if isinstance(node, ast.Attribute))


def _free(value: ast.expr) -> list[ast.Name]:
    """The names that an expression takes from around it."""
    own = {
        target.id
        for node in walk(value)
        if isinstance(node, ast.comprehension)
        for target in walk(node.target)
        if isinstance(target, ast.Name)
    }
    own |= {name for node in walk(value) if isinstance(node, ast.Lambda) for name in all_parameters(node)}
    return [node for node in walk(value) if isinstance(node, ast.Name) and node.id not in own]


def _is_local(name: str, scope: ast.AST) -> bool:
    own = all_parameters(scope) if isinstance(scope, _FUNCTIONS) else set()
    return name in own or any(bound.name == name for bound in bounds_of(scope))


def _explain_local(name: ast.Name, one: Once, recipe: _Recipe, program: Program, depth: int) -> bool:
    """A local of the constructor: an attribute that holds the same, a line that comes along, or data that is kept."""
    assert isinstance(one.scope, _FUNCTIONS)
    bound = [each for each in bounds_of(one.scope) if each.name == name.id]
    made = bound[0].node if len(bound) == 1 and bound[0].pick is None and not bound[0].fills else None
    alias = dotted_name(made) if made is not None else None
    if alias is not None and alias.startswith("self."):
        recipe.written[name] = alias
        return True
    held = _held_as(name.id, one)
    if held is not None:
        recipe.written[name] = held
        return True
    if len(bound) > 1 or _is_object(name, one.file, program):
        return False
    value = Value(bound[0].node if bound else name, one.file, pick=bound[0].pick if bound else None)
    if not provenance_of(program).trace(value).live:
        recipe.kept[name.id] = None
        recipe.written[name] = f"self.{name.id}"
        return not _is_attribute(name.id, one)
    if made is None or depth > _DEPTH or is_random(made, one.file, program):
        return False
    statement = bound[0].statement
    if not isinstance(statement, ast.Assign) or statement not in one.scope.body:
        return False
    if not _explain(made, one, recipe, program, depth + 1):
        return False
    recipe.before.setdefault(statement, f"{name.id} = {_text(made, one.file, recipe.written)}")
    return True


def _held_as(name: str, one: Once) -> str | None:
    """The attribute that the constructor gives the same value: `self.edges = edges`, `self.edges, self.k = edges, k`."""
    held = (
        bound.name
        for bound in bounds_of(one.scope)
        if bound.name.startswith("self.") and not bound.fills and bound.pick is None and dotted_name(bound.node) == name
    )
    return next(held, None)


def _is_object(name: ast.Name, file: SourceFile, program: Program) -> bool:
    """Whether a local is called, or a module or another object of the program, which as an attribute would become a part."""
    above = file.parents.get(name)
    if isinstance(above, ast.Call) and above.func is name:
        return True
    resolver = resolver_of(program)
    made = resolver.constructors_of(Value(name, file))
    called = [one.node.func for one in made if isinstance(one.node, ast.Call) and one.file is file]
    return bool(resolver.classes_of(Value(name, file))) or any(
        (program.names(file).qualified(one) or "").startswith("torch.nn.") for one in called
    )


def _is_attribute(name: str, one: Once) -> bool:
    assert one.owner is not None
    return any(
        isinstance(node, ast.Attribute) and dotted_name(node) == f"self.{name}" for node in walk(one.owner)
    ) or any(getattr(node, "name", None) == name for node in one.owner.body)


def _is_steady(node: ast.Attribute, one: Once, program: Program) -> bool:
    """Whether an attribute that the value reads is bound by constructors alone."""
    name = dotted_name(node)
    if one.owner is None or name is None or not name.startswith("self.") or name.count(".") != 1:
        return True
    for each in program.names(one.file).assignments(name, one.owner):
        function = program.names(one.file).function_of(each)
        if function is not one.scope and getattr(function, "name", "") not in ("__init__", "setup", "__post_init__"):
            return False
    return True


def _text(value: ast.expr, file: SourceFile, written: Mapping[ast.AST, str]) -> str:
    """The text of an expression with some of its names written otherwise."""
    start, text = file.span(value)[0], file.segment(value)
    for node in sorted((one for one in walk(value) if one in written), key=lambda one: -file.span(one)[0]):
        first, last = file.span(node)
        text = text[: first - start] + written[node] + text[last - start :]
    return text


def _in_function(
    one: Once, function: Function, reads: list[ast.expr], recipe: _Recipe, program: Program
) -> list[Edit] | None:
    """The value as a local of a function, or in place of its only read where the name is taken; None where it cannot be."""
    file = one.file
    local = one.name.removeprefix("self.")
    taken = _names_in(function) if one.owner is not None else set()
    if function is one.scope:
        renamed = [edit_of(file, each, local) for each in (one.statement.targets[0], *reads)]
        return renamed if local not in taken and not recipe.kept else None
    lines = {name for each in recipe.before for name in _targets(each)}
    if not _sees_all(function, one, recipe) or lines & taken:
        return None
    if local in taken:
        if len(reads) > 1 or recipe.before:
            return None
        is_call = isinstance(one.statement.value, ast.Call)
        return [edit_of(file, reads[0], recipe.value if is_call else f"({recipe.value})")]
    first = _first(function, reads, file, program)
    if first is None:
        return None
    text = "\n".join([*recipe.before.values(), f"{local} = {recipe.value}"])
    renamed = [edit_of(file, each, local) for each in reads] if one.owner is not None else []
    return [insert_before(file, first, text), *renamed]


def _sees_all(function: Function, one: Once, recipe: _Recipe) -> bool:
    """Whether the names of the value mean the same in a function: it hides none, and has its object."""
    if one.owner is not None and not _has_self(function, one.file):
        return False
    values = [one.statement.value, *(each.value for each in recipe.before if isinstance(each, ast.Assign))]
    names = {name.id for each in values for name in _free(each) if name not in recipe.written} - {"self"}
    return not any(_is_local(name, function) for name in names)


def _targets(statement: ast.stmt) -> set[str]:
    return {node.id for one in getattr(statement, "targets", ()) for node in walk(one) if isinstance(node, ast.Name)}


def _names_in(function: Function) -> set[str]:
    return all_parameters(function) | {node.id for node in walk(function) if isinstance(node, ast.Name)}


def _has_self(function: Function, file: SourceFile) -> bool:
    around: ast.AST | None = function
    while isinstance(around, _FUNCTIONS):
        if "self" in all_parameters(around):
            return True
        around = file.enclosing(around, *_FUNCTIONS, ast.ClassDef)
    return False


def _first(function: Function, reads: list[ast.expr], file: SourceFile, program: Program) -> ast.stmt | None:
    """The statement before which the value is computed: in the round of the training loop that holds all reads, else in the function."""
    loops = [
        loop
        for where, loop, _ in training_loops(program)
        if where is file and program.names(file).function_of(loop) is function
    ]
    inside = [loop for loop in loops if any(node is read for node in walk(loop) for read in reads)]
    whole = [loop for loop in inside if {id(read) for read in reads} <= {id(node) for node in walk(loop)}]
    if inside and not whole:
        return None
    block = max(whole, key=lambda loop: loop.lineno).body if whole else function.body
    return next(
        (one for one in block if any(node is read for node in walk(one) for read in reads)),
        None,
    )
