"""Whether a tensor that is written in place has other names, or belongs to somebody else."""

from __future__ import annotations

import ast

from explainer.source.graph.write import Write, find_writes
from explainer.source.name import bound_names, dotted_name
from explainer.source.program import Program
from explainer.source.tree import start_of, walk
from explainer.source.value.definition import seen_through
from explainer.source.value.resolve import resolver_of

_VIEWS = {
    "view",
    "reshape",
    "t",
    "transpose",
    "permute",
    "squeeze",
    "unsqueeze",
    "expand",
    "expand_as",
    "detach",
    "narrow",
    "flatten",
}
_PUTS = ("append", "add", "insert", "put")


def is_aliased(write: Write, program: Program) -> bool:
    """Whether another name for the tensor, or a view of it, is made before the write and read after it, or a caller keeps it."""
    names = program.names(write.file)
    scope = names.function_of(write.node) or write.file.tree
    if scope is None or write.name is None:
        return False
    place = (write.node.lineno, write.node.col_offset)
    others: set[str] = set()
    for node in walk(scope):
        if (
            isinstance(node, ast.Assign)
            and (node.lineno, node.col_offset) < place
            and _is_view_of(node.value, write.name)
        ):
            others |= set(bound_names(node)) - {write.name}
        if is_put(node, write.name) and (node.lineno, node.col_offset) < place:  # type: ignore[attr-defined]
            return True
    return any(
        dotted_name(node) in others and (node.lineno, node.col_offset) > place
        for node in walk(scope)
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load)
    )


def is_collected(write: Write, loop: ast.AST) -> bool:
    """Whether a loop puts the tensor that it writes, not a copy of it, into a container: then all entries are its last state."""
    if any(write.name in set(bound_names(node)) for node in walk(loop) if isinstance(node, ast.Assign)):
        return False
    return any(seen_through(one)[0] == write.name for node in walk(loop) for one in _collected(node))


def writes_entries(program: Program) -> bool:
    """Whether a loop makes a tensor anew in each round, puts it into a container, and writes it then: the entry shows the write.

    `h = layer(h); layers.append(h); h += skip`: each entry is one tensor's last state, and the next round leaves it alone.
    """
    for write in find_writes(program):
        loop = write.file.enclosing(write.node, ast.For, ast.While)
        if loop is None or write.name is None:
            continue
        nodes = list(walk(loop))
        is_new = any(write.name in set(bound_names(one)) for one in nodes if isinstance(one, ast.Assign))
        if is_new and any(is_put(one, write.name) and start_of(one) < start_of(write.node) for one in nodes):
            return True
    return False


def has_two_meanings(program: Program) -> bool:
    """Whether what a name stands for depends on when a write reaches it: a view made before and read after, entries that are one.

    Without the write in place such a program computes something else, and most often what its author thought of.
    """
    for write in find_writes(program):
        loop = write.file.enclosing(write.node, ast.For, ast.While)
        if is_aliased(write, program) or (loop is not None and is_collected(write, loop)):
            return True
        if _is_collected_by_caller(write, program) or _is_view_collected(write):
            return True
    return False


def _is_view_collected(write: Write) -> bool:
    """Whether a loop around a write names a view of the tensor, and puts that into a container: `x = states[i]; outputs.append(x)`."""
    loop = write.file.enclosing(write.node, ast.For, ast.While)
    while loop is not None:
        views = {
            name
            for node in walk(loop)
            if isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Subscript)
            and _root(node.value) == write.name
            for name in bound_names(node)
        }
        if any(seen_through(one)[0] in views for node in walk(loop) for one in _collected(node)):
            return True
        loop = write.file.enclosing(loop, ast.For, ast.While)
    return False


def _is_collected_by_caller(write: Write, program: Program) -> bool:
    """Whether a caller of the function that writes what it is handed keeps that, or a view of it, in a container."""
    function = program.names(write.file).function_of(write.node)
    if function is None or write.name not in _parameters(function):
        return False
    for file, call in resolver_of(program).calls_of(function, write.file):
        statement = file.statement(call)
        names = {*bound_names(statement), *(dotted_name(one) for one in call.args)} - {None}
        scope = program.names(file).function_of(call) or file.tree
        collected = [each for node in walk(scope) for each in _collected(node)] if scope is not None else []
        if any(_root(one) in names for one in collected):
            return True
    return False


def _root(value: ast.expr) -> str | None:
    """The name that an expression is, or is a part of: `state` of `state[:, :2]`."""
    while isinstance(value, ast.Subscript):
        value = value.value
    return seen_through(value)[0]


def _collected(node: ast.AST) -> list[ast.expr]:
    """What a statement or expression puts into a container, as it is."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _PUTS:
        return node.args
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [one for side in (node.left, node.right) if isinstance(side, ast.List) for one in side.elts]
    if isinstance(node, ast.AugAssign) and isinstance(node.value, (ast.List, ast.Tuple)):
        return node.value.elts
    return [node.value] if isinstance(node, ast.Yield) and node.value is not None else []


def is_read_after(write: Write, program: Program) -> bool:
    """Whether the function reads what a write has made: behind it, or, in a loop, in the next pass.

    What only goes into further writes of the same tensor is not read: whoever owns the tensor is to see it.
    """
    scope = program.names(write.file).function_of(write.node) or write.file.tree
    if scope is None or write.name is None:
        return True
    loop = write.file.enclosing(write.node, ast.For, ast.While)
    inside = set(walk(loop)) if loop is not None and loop in set(walk(scope)) else set()
    alike = {
        one
        for each in find_writes(program)
        if each.file is write.file and each.name == write.name
        for one in walk(each.node)
    }
    return any(
        dotted_name(node) == write.name and (start_of(node) > start_of(write.node) or node in inside)
        for node in walk(scope)
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load) and node not in alike
    )


def _is_view_of(value: ast.expr, name: str) -> bool:
    """Whether `value` is the tensor `name` itself, a slice of it, or a view that a method makes."""
    if isinstance(value, ast.Subscript):
        return dotted_name(value.value) == name
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _VIEWS:
        return _is_view_of(value.func.value, name)
    return dotted_name(value) == name


def is_put(node: ast.AST, name: str) -> bool:
    """Whether a call puts the tensor into a list or another container."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _PUTS
        and any(dotted_name(one) == name for one in node.args)
    )


def is_for_others(write: Write, program: Program) -> bool:
    """Whether the write reaches somebody whom a new tensor would not: a caller, the container that a loop walks, a module."""
    names = program.names(write.file)
    function = names.function_of(write.node)
    name = write.name
    if name is None:
        return False
    if "." in name:
        if name.startswith("self.") and name.count(".") == 1:
            return _is_registered(write, program)
        return not _is_field(name, program)
    if _is_loop_variable(write, name):
        return not _is_put_back(write)
    if function is None or name not in _parameters(function):
        return False
    place = (write.node.lineno, write.node.col_offset)
    rebound = any(
        name in set(bound_names(one)) and (one.lineno, one.col_offset) < place
        for one in walk(function)
        if isinstance(one, ast.Assign)
    )
    return not rebound and not is_returned(function, name) and not _is_in_a_returned_list(function, name)


def _is_field(name: str, program: Program) -> bool:
    """Whether `state.h` is an attribute of plain objects of the program: all that hold such an object read its new value."""
    owner, _, attribute = name.rpartition(".")
    classes = [
        node
        for file in program.parsed()
        for node in file.walk()
        if isinstance(node, ast.ClassDef) and attribute in _fields(node)
    ]
    is_plain = all("Module" not in (dotted_name(base) or "") for one in classes for base in one.bases)
    return owner.count(".") <= 1 and attribute not in ("data", "grad") and bool(classes) and is_plain


def _fields(owner: ast.ClassDef) -> set[str]:
    """The attributes that a class gives its objects: `self.h = ...`, and `h: Tensor` of a dataclass."""
    stated = {
        one.target.id for one in owner.body if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
    }
    targets = (one for node in walk(owner) if isinstance(node, ast.Assign) for one in node.targets)
    names = {dotted_name(one) or "" for one in targets}
    return stated | {one.removeprefix("self.") for one in names if one.startswith("self.")}


def _is_registered(write: Write, program: Program) -> bool:
    """Whether `self.name` is a parameter or buffer, which a new tensor would replace."""
    owner = program.names(write.file).class_of(write.node)
    attribute = (write.name or "").removeprefix("self.")
    if owner is None:
        return False
    value = program.names(write.file).attribute_value(owner, attribute)
    if value is not None and program.names(write.file).is_call(
        value, "torch.nn.Parameter", "torch.nn.parameter.Parameter"
    ):
        return True
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("register_buffer", "register_parameter")
        and bool(node.args)
        and isinstance(node.args[0], ast.Constant)
        and node.args[0].value == attribute
        for node in walk(owner)
    )


def _is_put_back(write: Write) -> bool:
    """Whether the container that a loop walks gets what the write gives: `weights[name] = w.sub_(g)` over `weights.items()`."""
    statement, loop = write.file.statement(write.node), write.file.enclosing(write.node, ast.For)
    target = statement.targets[0] if isinstance(statement, ast.Assign) and statement.value is write.node else None
    if not isinstance(target, ast.Subscript) or not isinstance(loop, ast.For):
        return False
    keys = {one.id for one in walk(loop.target) if isinstance(one, ast.Name)}
    walked = [dotted_name(one.func.value) for one in walk(loop.iter)
              if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr == "items"]  # fmt: skip
    return dotted_name(target.slice) in keys and walked == [dotted_name(target.value)]


def _is_loop_variable(write: Write, name: str) -> bool:
    above: ast.AST | None = write.node
    while above is not None:
        if isinstance(above, (ast.For, ast.AsyncFor)) and name in set(bound_names(above)):
            return True
        above = write.file.parents.get(above)
    return False


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    arguments = function.args
    return {one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}


def _is_in_a_returned_list(function: ast.AST, name: str) -> bool:
    """Whether a list that the function returns gets the tensor: `path.append(y)` before `return torch.stack(path)`."""
    lists = {
        node.func.value.id
        for node in walk(function)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and is_put(node, name)
    }
    return any(is_returned(function, one) for one in lists)


def is_returned(function: ast.AST, name: str) -> bool:
    """Whether what the function returns is made from the name."""
    return any(
        isinstance(node, ast.Return)
        and node.value is not None
        and any(isinstance(one, ast.Name) and one.id == name for one in walk(node.value))
        for node in walk(function)
    )
