"""A custom `autograd.Function` whose backward is wrong leaves its derivative to autograd.

`class F(torch.autograd.Function)` becomes a plain class whose static `apply` is the body of `forward` without `ctx`: every
`F.apply(...)` stays as it is. Only where `forward` is made of differentiable operations alone, so that their derivative is what
gradcheck compares with, and where nothing but `F.apply` is used of the class.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from explainer.fix.clue.crash import crash_places, message_of
from explainer.fix.codemod import Context, Proposal, culprit_of, insert_before, remove_statement
from explainer.fix.text.import_line import drop_name
from explainer.model.finding import Culprit
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.graph.derivable import carriers_of, carries, is_derivable, is_text, loads
from explainer.source.name import bound_names, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.lineage import root_of, statements_of

_FUNCTIONS = ("torch.autograd.Function", "torch.autograd.function.Function")
_CHECKS = tuple(
    f"torch.autograd.{module}{name}" for module in ("", "gradcheck.") for name in ("gradcheck", "gradgradcheck")
)
_MISMATCH = re.compile(r"(?i)jacobian[\w ]{0,30} mismatch for output|backward not multiplied by grad_output")
_INPUT = re.compile(r"with respect to input (\d+)")
_ALL_ZERO = re.compile(r"analytical:\s*(?:tensor\([\[\]\s0.,-]+(?:dtype|device|\))|-?0\.0\b)")
_MACHINERY = frozenset({"backward", "setup_context", "vmap", "jvp"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Custom:
    """A Function of the program: its class, its methods by name, and the name of `ctx` in forward where it has one."""

    file: SourceFile
    owner: ast.ClassDef
    methods: dict[str, ast.FunctionDef]
    ctx: str | None

    @property
    def forward(self) -> ast.FunctionDef:
        return self.methods["forward"]

    @property
    def inputs(self) -> list[str]:
        """The arguments of forward, `ctx` left out."""
        names = [one.arg for one in self.forward.args.args]
        return names[1:] if self.ctx is not None else names


def propose(context: Context) -> Iterator[Proposal]:
    """The Function that gradcheck found wrong, derived by autograd."""
    message = message_of(context) if context.has_failed else ""
    if not _MISMATCH.search(message) or _is_in_single_precision(message, context):
        return
    found = _checked(context)
    custom = _read(*found) if found is not None else None
    if custom is None or not _is_only_applied(custom, context.program):
        return
    place = _input_of(custom, message)
    edits = list(_edits(custom, place, context.program))
    if edits:
        yield Proposal(edits=tuple(edits), culprit=_culprit(custom, place, message), belief=1.5)


def _is_in_single_precision(message: str, context: Context) -> bool:
    """Whether the numerical gradient is rounding noise: no backward passes such a check."""
    if any("double precision floating point" in one.message for one in context.incident.warnings):
        return True
    is_printed = "tensor(" in message and not re.search(r"dtype=torch\.(?:float64|complex128)", message)
    return is_printed and not any("set_default_dtype" in file.text for file in context.program.parsed())


# Which class is checked.


def _checked(context: Context) -> tuple[SourceFile, ast.ClassDef] | None:
    """The one Function that the failing gradcheck runs, or the only one of the program."""
    program = context.program
    known = {owner: file for file in program.parsed() for owner in program.names(file).classes.values() if _is_custom(owner, file, program)}  # fmt: skip
    if len(known) != 1:
        crashed = [statement for _, statement in crash_places(context)]
        calls = [
            (file, node)
            for file in program.parsed()
            for node in file.walk()
            if isinstance(node, ast.Call) and program.names(file).is_call(node, *_CHECKS)
        ]
        failing = [one for one in calls if one[0].statement(one[1]) in crashed] or calls
        reached: set[ast.ClassDef] = set()
        for file, call in failing:
            given = [*call.args[:1], *(one.value for one in call.keywords if one.arg == "func")]
            for node in given:
                reached |= _reached(node, file, program, set())
        known = {owner: file for owner, file in known.items() if owner in reached}
    return next(((file, owner) for owner, file in known.items()), None) if len(known) == 1 else None


def _is_custom(owner: ast.ClassDef, file: SourceFile, program: Program) -> bool:
    return any(program.names(file).qualified(base) in _FUNCTIONS for base in owner.bases)


def _reached(node: ast.AST, file: SourceFile, program: Program, seen: set[ast.AST]) -> set[ast.ClassDef]:
    """The Functions whose `apply` an expression names, or what stands behind its names calls."""
    found: set[ast.ClassDef] = set()
    if node in seen:
        return found
    seen.add(node)
    for one in walk(node):
        if isinstance(one, ast.Attribute) and one.attr == "apply":
            applied = program.find_class(program.names(file).qualified(one.value) or "")
            found |= {applied[1]} if applied and _is_custom(applied[1], applied[0], program) else set()
        name = dotted_name(one) if isinstance(one, (ast.Name, ast.Attribute)) else None
        if name is not None:
            for where, behind in _behind(name, file, program):
                found |= _reached(behind, where, program, seen)
    return found


def _behind(name: str, file: SourceFile, program: Program) -> Iterator[tuple[SourceFile, ast.AST]]:
    """The function or class that a name stands for, and what it is assigned in its file."""
    meant = program.names(file).imports.get(name, name)
    function, owner = program.find_function(meant), program.find_class(meant)
    if function is not None and function[1].name not in ("forward", "backward", "apply"):
        yield function
    if owner is not None and not _is_custom(owner[1], owner[0], program):
        yield owner
    for one in program.names(file).assignments(name, file.tree) if file.tree is not None else ():
        if one.value is not None:
            yield file, one.value


# What the class is made of, and who uses it.


def _read(file: SourceFile, owner: ast.ClassDef) -> _Custom | None:
    """The methods of a Function; None where it holds anything beside them, or its forward is not declared plainly."""
    methods = {one.name: one for one in owner.body if isinstance(one, ast.FunctionDef)}
    others = [one for one in owner.body if not isinstance(one, (ast.FunctionDef, ast.Pass)) and not is_text(one)]
    is_known = {"forward", "backward"} <= methods.keys() <= _MACHINERY | {"forward"}
    if others or not is_known or len(owner.bases) != 1 or owner.keywords or owner.decorator_list:
        return None
    forward = methods["forward"]
    given, marks = forward.args, [dotted_name(one) for one in forward.decorator_list]
    if given.vararg or given.kwarg or given.posonlyargs or given.kwonlyargs or marks not in ([], ["staticmethod"]):
        return None
    if "setup_context" in methods:
        return _Custom(file=file, owner=owner, methods=methods, ctx=None)
    return _Custom(file=file, owner=owner, methods=methods, ctx=given.args[0].arg) if given.args else None


def _is_only_applied(custom: _Custom, program: Program) -> bool:
    """Whether `F.apply` is all that is read of the class, by whatever name; what its own lost methods read does not count."""
    name = custom.owner.name
    alone = program.find_class(name)
    own = {node for key, one in custom.methods.items() if key != "forward" for node in walk(one)}
    for file in program.parsed():
        local = {name} | {key for key, meant in program.names(file).imports.items() if meant.rpartition(".")[2] == name}
        for node in file.walk():
            is_named = (isinstance(node, ast.Name) and node.id in local) or (
                isinstance(node, ast.Attribute) and node.attr == name
            )
            above = file.parents.get(node)
            if is_named and node not in own and not _is_applied(above):
                return False
    return alone is not None and alone[1] is custom.owner


def _is_applied(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "apply" and isinstance(node.ctx, ast.Load)


# Which gradient is wrong.


def _returned(method: ast.FunctionDef | None) -> ast.Return | None:
    """The last statement that returns a value."""
    found = [one for one in statements_of(method) if isinstance(one, ast.Return) and one.value] if method else []
    return found[-1] if found else None


def _gradients(custom: _Custom) -> list[ast.expr]:
    """What backward gives for each argument of forward; empty where it does not show."""
    backward = custom.methods.get("backward")
    last = _returned(backward)
    if backward is None or last is None or last.value is None:
        return []
    value = _made(last.value, backward)
    parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) else [last.value]
    return list(parts) if len(parts) == len(custom.inputs) else []


def _bound(name: str | None, within: ast.FunctionDef) -> ast.Assign | None:
    """The last assignment to a name."""
    found = [one for one in statements_of(within) if isinstance(one, ast.Assign) and name is not None]
    return next((one for one in reversed(found) if name in map(dotted_name, one.targets)), None)


def _made(value: ast.expr, within: ast.FunctionDef) -> ast.expr:
    """What a name was last bound to; else the value itself."""
    bound = _bound(dotted_name(value), within)
    return value if bound is None else bound.value


def _is_none(value: ast.expr, custom: _Custom) -> bool:
    made = _made(value, custom.methods["backward"])
    return isinstance(made, ast.Constant) and made.value is None


def _input_of(custom: _Custom, message: str) -> int | None:
    """The argument of forward that the message means: gradcheck counts the tensors that require grad."""
    named, parts = _INPUT.search(message), _gradients(custom)
    if named is None or not parts:
        return None
    is_zero, saved = _ALL_ZERO.search(message) is not None, _saved(custom)
    counted = [
        at
        for at, (name, part) in enumerate(zip(custom.inputs, parts, strict=True))
        if not _is_none(part, custom) or (is_zero and name in saved)
    ]
    place = int(named[1])
    return counted[place] if place < len(counted) else None


def _saved(custom: _Custom) -> set[str]:
    """The arguments that are known to be tensors: those of `save_for_backward`."""
    found: set[str] = set()
    for one in (custom.forward, custom.methods.get("setup_context")):
        for node in walk(one) if one is not None else ():
            if (
                not isinstance(node, ast.Call)
                or (dotted_name(node.func) or "").rpartition(".")[2] != "save_for_backward"
            ):
                continue
            if any(isinstance(each, ast.Starred) for each in node.args):
                return set(custom.inputs)
            found |= {each.id for each in node.args if isinstance(each, ast.Name)}
    return found & set(custom.inputs)


def _culprit(custom: _Custom, place: int | None, message: str) -> Culprit:
    """The line that makes the gradient of the argument, or the return of backward; of jvp where forward mode disagrees."""
    by = f" by `{custom.inputs[place]}`" if place is not None else ""
    why = f"is not the derivative of `{custom.owner.name}.forward`{by}"
    jvp = _returned(custom.methods.get("jvp"))
    last = _returned(custom.methods.get("backward"))
    if last is None or (jvp is not None and "forward mode" in message):
        return culprit_of(custom.file, jvp or custom.owner, why)
    if place is None:
        return culprit_of(custom.file, last, why)
    part = _gradients(custom)[place]
    statement = _bound(root_of(part), custom.methods["backward"])
    return culprit_of(custom.file, statement or part, why)


# The edits.


def _edits(custom: _Custom, place: int | None, program: Program) -> Iterator[Edit]:
    """A plain class with a static `apply`; none where autograd would derive another formula than the author means."""
    file, forward, parts = custom.file, custom.forward, _gradients(custom)
    dropped = [one for one in forward.body if _is_of_ctx(one, custom.ctx)]
    kept = [one for one in forward.body if one not in dropped]
    lines = [line for one in forward.body for line in {one.lineno, one.end_lineno}]
    is_split = len(lines) == len(set(lines))
    if not parts or not is_split or not is_derivable(set(custom.inputs), kept, file, program):
        return
    dropped += _left_alone(kept, dropped)
    kept = [one for one in kept if one not in dropped]
    head = file.text.index("(", file.span(custom.owner)[0])
    yield Edit(file=file.path, start=head, end=_closing(file, custom.owner.bases[0]), new="")
    yield from drop_name(file, custom.owner.bases[0])
    if not forward.decorator_list:
        yield insert_before(file, forward, "@staticmethod")
    name = file.text.index("forward", file.span(forward)[0])
    yield Edit(file=file.path, start=name, end=name + len("forward"), new="apply")
    if custom.ctx is not None:
        yield _without_first(file, forward.args.args[0])
    constant = _constants(custom, parts, place, kept)
    if constant:
        first = next(one for one in kept if not is_text(one))
        yield insert_before(file, first, "\n".join(f"{one} = {one}.detach()" for one in constant))
    yield from (remove_statement(file, one) for one in dropped)
    yield from _without_machinery(custom)


def _constants(custom: _Custom, parts: Sequence[ast.expr], place: int | None, kept: Sequence[ast.stmt]) -> list[str]:
    """The tensors that get no gradient on purpose, as a target: they go on getting none."""
    saved = _saved(custom)
    found = [
        name
        for at, (name, part) in enumerate(zip(custom.inputs, parts, strict=True))
        if at != place and name in saved and _is_none(part, custom)
    ]
    returns = [one for statement in kept for one in walk(statement) if isinstance(one, ast.Return)]
    carriers = {name: carriers_of(kept, {name}) for name in found}
    return [name for name in found if any(carries(one.value, carriers[name]) for one in returns if one.value)]


def _closing(file: SourceFile, last: ast.expr) -> int:
    return file.text.index(")", file.span(last)[1]) + 1


def _without_first(file: SourceFile, first: ast.arg) -> Edit:
    """Takes `ctx` out of the arguments, with its comma and what is blank behind it."""
    start, end = file.span(first)
    rest = re.match(r"\s*,\s*", file.text[end:])
    return Edit(file=file.path, start=start, end=end + (rest.end() if rest else 0), new="")


def _without_machinery(custom: _Custom) -> Iterator[Edit]:
    """Takes the methods out that are not forward, each run of them with the blank lines before it."""
    file, body = custom.file, custom.owner.body
    lost = [isinstance(one, ast.FunctionDef) and one.name in _MACHINERY for one in body]
    for at, one in enumerate(body):
        if not lost[at] or (at and lost[at - 1]):
            continue
        end = next((past for past in range(at, len(body)) if not lost[past]), len(body))
        stop = (body[end - 1].end_lineno or 0) + 1
        start = (body[at - 1].end_lineno or 0) + 1 if at else _first_line(one)
        while not at and end < len(body) and not file.line(stop).strip():
            stop += 1
        yield Edit(file=file.path, start=file.line_start(start), end=file.line_start(stop), new="")


def _first_line(statement: ast.stmt) -> int:
    """The line of a statement, or of the first of its decorators."""
    marks: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(one.lineno for one in marks)])


def _is_of_ctx(statement: ast.stmt, ctx: str | None) -> bool:
    """Whether a statement does nothing but keep something for backward: `ctx.save_for_backward(x)`, `ctx.scale = scale`."""
    if ctx is None:
        return False
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return dotted_name(statement.value.func) in (f"{ctx}.save_for_backward", f"{ctx}.save_for_forward")
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return False
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    each = [part for one in targets for part in (one.elts if isinstance(one, ast.Tuple) else [one])]
    return all(isinstance(one, ast.Attribute) and dotted_name(one.value) == ctx for one in each)


def _left_alone(kept: Sequence[ast.stmt], dropped: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The assignments that only what is dropped has read."""
    found: list[ast.stmt] = []
    for one in reversed(kept):
        names = set(bound_names(one)) if isinstance(one, ast.Assign) else set()
        rest = [each for each in kept if each is not one and each not in found]
        if names.intersection(loads([*dropped, *found])) and not names.intersection(loads(rest)):
            found.append(one)
    return found
