"""A helper that detaches a carried state reaches into every container: the tuples of an LSTM, lists, dicts.

`detach(state)` that maps over dicts and lists hands a tuple back as it is, with its graph. The helper gets the branch that
it lacks, or `v.detach() if torch.is_tensor(v) else v` one for what is no tensor. A tuple with names is its own kind to a helper
that asks for the exact type: `type(state) is tuple`, or a table of types.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_after, insert_before
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.loop.carried import training_loops
from explainer.source.name import Function, Names, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.flow import flow_of
from explainer.source.value.lineage import binds, changes, reads

_COVERS = {
    "tuple": ("tuple",), "list": ("list",), "dict": ("dict",), "Sequence": ("tuple", "list"), "Mapping": ("dict",),
    "MutableMapping": ("dict",), "MutableSequence": ("list",), "Iterable": ("tuple", "list", "dict"),
    "OrderedDict": (),
}  # fmt: skip
_TENSOR = frozenset({"torch.Tensor", "torch.FloatTensor", "Tensor"})
_PAIRS = ("torch.nn.LSTM", "torch.nn.LSTMCell")
_DISPLAYS = (ast.List, ast.Tuple, ast.Dict, ast.ListComp, ast.DictComp, ast.GeneratorExp)
_DEPTH = 3
NAMED = "named"
_WORDS = {NAMED: "tuple with names"}
# What only tensors have of all that a state is made of.
_OF_TENSORS = frozenset({"dim", "detach", "requires_grad", "grad_fn", "numel", "shape", "dtype"})
_OF_NAMED = frozenset({"_fields", "_asdict", "_replace", "_make"})


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each helper of a training loop that leaves a part of the state with its graph."""
    program = context.program
    if not context.has_failed:
        return
    named, held = _named_tuples(program), set(_held(program))
    for file, function in dict.fromkeys(_in_loops(program)):
        yield from _of_helper(file, function, held | {NAMED} if named else held, program)
    if named:
        return  # which a plain tuple cannot stand for
    for file, function in dict.fromkeys(_in_loops(program)):
        yield from _of_parts(file, function, held, program)
    for file, loop, _ in dict.fromkeys(training_loops(program)):
        yield from _of_parts(file, loop, held, program)


def _in_loops(program: Program) -> Iterator[tuple[SourceFile, Function]]:
    """The functions that a training loop calls, and those that they call: a helper may hand on to a general one."""
    flow = flow_of(program)
    todo: list[tuple[SourceFile, ast.AST, int]] = [(file, loop, 0) for file, loop, _ in training_loops(program)]
    seen: set[ast.AST] = set()
    while todo:
        file, node, depth = todo.pop(0)
        for call in walk(node):
            target = flow.target_of(call, file) if isinstance(call, ast.Call) else None
            if target is not None and target[1] not in seen and depth < _DEPTH:
                seen.add(target[1])
                yield target
                todo.append((*target, depth + 1))


def _of_helper(file: SourceFile, function: Function, held: set[str], program: Program) -> Iterator[Proposal]:
    """`return state` at the end of a function that detaches tensors and maps over some containers."""
    last = _last(function.body)
    value = last.value if isinstance(last, ast.Return) else None
    value = value.orelse if isinstance(value, ast.IfExp) else value
    name = value.id if isinstance(value, ast.Name) else None
    names = program.names(file)
    if last is None or name not in _parameters(function) or not _detaches(function, name, program):
        return
    tested = {*_tested(function, name, names), *_in_table(function, name, file)}
    lacking = [kind for kind in (NAMED, "tuple", "list", "dict") if kind in held - tested]
    if "tensor" not in tested or not lacking:
        return
    text = "\n".join(_branch(kind, name, function, names, file) for kind in lacking)
    why = f"hands a {' or a '.join(_WORDS.get(one, one) for one in lacking)} back as it is, with the graph of the last step"
    yield Proposal(edits=(insert_before(file, last, text),), culprit=culprit_of(file, last, why), belief=1.9)


def _last(body: list[ast.stmt]) -> ast.stmt | None:
    """The statement that ends a function, also in the `else` of its last `if`."""
    last = body[-1] if body else None
    return _last(last.orelse) if isinstance(last, ast.If) and last.orelse else last


def _parameters(function: Function) -> list[str]:
    given = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    return [one.arg for one in given]


def _detaches(function: Function, name: str, program: Program) -> bool:
    """Whether a function detaches a tensor that it is given: by itself, or by a function that it is given for that."""
    for node in walk(function):
        if isinstance(node, ast.Attribute) and node.attr == "detach" and dotted_name(node.value) == name:
            return True
    applied = {
        node.func.id
        for node in walk(function)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and [dotted_name(one) for one in node.args] == [name]
    }
    if not applied & set(_parameters(function)):
        return False
    flow = flow_of(program)
    for where in program.parsed():
        for call in where.walk():
            if isinstance(call, ast.Call) and (target := flow.target_of(call, where)) and target[1] is function:
                given = [*call.args, *(one.value for one in call.keywords)]
                if any(_is_detach(one) for one in given):
                    return True
    return False


def _is_detach(node: ast.expr) -> bool:
    """`torch.Tensor.detach`, `lambda one: one.detach()`."""
    body = node.body.func if isinstance(node, ast.Lambda) and isinstance(node.body, ast.Call) else node
    return isinstance(body, ast.Attribute) and body.attr == "detach"


def _tested(node: ast.AST, name: str, names: Names) -> Iterator[str]:
    """What a value is tested to be: "tensor", "tuple", "list", "dict"."""
    for one in walk(node):
        if (isinstance(one, ast.Attribute) and one.attr in _OF_NAMED) or _word(one) in _OF_NAMED:
            yield NAMED
        if isinstance(one, ast.Call) and one.args and dotted_name(one.args[0]) == name:
            called = names.qualified(one.func) or ""
            if called == "torch.is_tensor" or (called == "hasattr" and _word(one.args[-1]) in _OF_TENSORS):
                yield "tensor"
            elif called == "isinstance" and len(one.args) == 2:
                found = list(_kinds(one.args[1], names))
                yield from found
                yield from (NAMED,) if "tuple" in found else ()


def _in_table(function: Function, name: str, file: SourceFile) -> Iterator[str]:
    """The exact types of which a table of the module has an entry: `RULES.get(type(state))`, `RULES[type(state)]`."""
    tables = {
        dotted_name(one.func.value if isinstance(one, ast.Call) else one.value)  # type: ignore[attr-defined]
        for one in walk(function)
        if (isinstance(one, ast.Subscript) and _is_type_of(one.slice, name))
        or (isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and any(_is_type_of(each, name) for each in one.args[:1]))
    }  # fmt: skip
    for one in file.walk():
        if isinstance(one, ast.Assign) and isinstance(one.value, ast.Dict) and dotted_name(one.targets[0]) in tables:
            yield from (key.id for key in one.value.keys if isinstance(key, ast.Name))


def _is_type_of(node: ast.expr, name: str) -> bool:
    is_type = isinstance(node, ast.Call) and dotted_name(node.func) == "type" and len(node.args) == 1
    return is_type and dotted_name(node.args[0]) == name  # type: ignore[attr-defined]


def _word(node: ast.AST) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _kinds(node: ast.expr, names: Names) -> Iterator[str]:
    for one in node.elts if isinstance(node, ast.Tuple) else [node]:
        if isinstance(one, ast.BinOp):
            yield from _kinds(one.left, names)
            yield from _kinds(one.right, names)
        called = names.qualified(one) or ""
        yield from ("tensor",) if called in _TENSOR else _COVERS.get(called.rpartition(".")[2], ())


def _branch(kind: str, name: str, function: Function, names: Names, file: SourceFile) -> str:
    """The lines that map the function over one kind of container."""
    free = (one for one in ("value", "item", "element", "part") if one not in _parameters(function))
    item = next(free)
    owner = (
        "self."
        if names.class_of(function) is not None and function in getattr(names.class_of(function), "body", ())
        else ""
    )
    given = [item if one.arg == name else one.arg for one in (*function.args.posonlyargs, *function.args.args)]
    given += [f"{one.arg}={item if one.arg == name else one.arg}" for one in function.args.kwonlyargs]
    call = f"{owner}{function.name}({', '.join(given[1:] if owner else given)})"
    step = "\t" if "\t" in file.indent(function.body[0].lineno) else "    "
    if kind == NAMED:
        return f'if hasattr({name}, "_fields"):\n{step}return type({name})(*({call} for {item} in {name}))'
    made = {
        "tuple": f"tuple({call} for {item} in {name})",
        "list": f"[{call} for {item} in {name}]",
        "dict": f"{{key: {call} for key, {item} in {name}.items()}}",
    }[kind]
    return f"if isinstance({name}, {kind}):\n{step}return {made}"


def _of_parts(file: SourceFile, within: ast.AST, held: set[str], program: Program) -> Iterator[Proposal]:
    """`v.detach() if torch.is_tensor(v) else v`, and a loop that detaches only the entries that are tensors."""
    kind = next((one for one in ("tuple", "list") if one in held), None)
    for node in walk(within) if kind is not None else ():
        if isinstance(node, ast.IfExp):
            yield from _of_choice(file, node, str(kind), program.names(file))
        elif isinstance(node, ast.If) and not node.orelse and len(node.body) == 1:
            yield from _of_entry(file, node, str(kind), program.names(file))


def _of_choice(file: SourceFile, node: ast.IfExp, kind: str, names: Names) -> Iterator[Proposal]:
    """The elements of a comprehension over the state that gives the state anew."""
    name, around = dotted_name(node.orelse), file.enclosing(node, ast.ListComp, ast.DictComp, ast.GeneratorExp)
    if name is None or around is None or not _is_detached_name(node.body, name):
        return
    statement, over = file.statement(node), around.generators[0].iter  # type: ignore[attr-defined]
    is_state = isinstance(statement, ast.Return) or bool(binds(statement) & reads(over, graph=False))
    if is_state and set(_tested(node.test, name, names)) == {"tensor"}:
        text = f"{_detached(kind, name)} if isinstance({name}, {kind}) else {name}"
        yield _part(file, node.orelse, edit_of(file, node.orelse, text), kind)


def _of_entry(file: SourceFile, node: ast.If, kind: str, names: Names) -> Iterator[Proposal]:
    """`for k, v in state.items(): if torch.is_tensor(v): state[k] = v.detach()`."""
    one, loop = node.body[0], file.parents.get(node)
    target = one.targets[0] if isinstance(one, ast.Assign) and len(one.targets) == 1 else None
    if not isinstance(one, ast.Assign) or not isinstance(target, ast.Subscript) or not isinstance(loop, ast.For):
        return
    part = (
        one.value.func.value if isinstance(one.value, ast.Call) and isinstance(one.value.func, ast.Attribute) else None
    )
    name = dotted_name(part)
    if name is None or not _is_detached_name(one.value, name) or not reads(loop.iter, graph=False) & changes(one):
        return
    if set(_tested(node.test, name, names)) == {"tensor"}:
        step = "\t" if "\t" in file.indent(one.lineno) else "    "
        text = f"elif isinstance({name}, {kind}):\n{step}{file.segment(target)} = {_detached(kind, name)}"
        yield _part(file, node.test, insert_after(file, node, text), kind)


def _part(file: SourceFile, node: ast.AST, edit: Edit, kind: str) -> Proposal:
    why = f"leaves a {kind} of tensors as it is, with the graph of the last step"
    return Proposal(edits=(edit,), culprit=culprit_of(file, node, why), belief=1.7)


def _detached(kind: str, name: str) -> str:
    return f"tuple(part.detach() for part in {name})" if kind == "tuple" else f"[part.detach() for part in {name}]"


def _is_detached_name(node: ast.expr, name: str) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "detach"
        and dotted_name(node.func.value) == name
    )


def _held(program: Program) -> Iterator[str]:
    """The containers that a state of this program may be made of: what functions return, and what a training loop reads."""
    used = {name for _, loop, _ in training_loops(program) for name in reads(loop, graph=False)}
    for file in program.parsed():
        names = program.names(file)
        for node in file.walk():
            if isinstance(node, ast.Call) and names.qualified(node.func) in _PAIRS:
                yield "tuple"
            if isinstance(node, ast.Return) and node.value is not None:
                yield from _nested(node.value)
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None and binds(node) & used:
                yield from _nested(node.value)


def _nested(value: ast.expr) -> Iterator[str]:
    """The kinds of displays that stand in a value; a tuple only inside another display: `return a, b` is none."""
    for node in walk(value):
        if isinstance(node, (ast.Dict, ast.DictComp)):
            yield "dict"
        elif isinstance(node, (ast.List, ast.ListComp)):
            yield "list"
        if isinstance(node, _DISPLAYS):
            parts = [*getattr(node, "elts", ()), *(one for one in getattr(node, "values", ()) if one is not None)]
            parts += [getattr(node, "elt", None), getattr(node, "value", None)]
            if any(isinstance(one, ast.Tuple) for one in parts):
                yield "tuple"


def _named_tuples(program: Program) -> bool:
    """Whether the program defines tuples with names."""
    return any(word in file.text for file in program.parsed() for word in ("namedtuple", "NamedTuple"))
