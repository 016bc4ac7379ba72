"""What an expression of the program stands for: the values behind a name, the function or module that a call runs."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache

from explainer.source.file import SourceFile
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.value.binding import (
    Value,
    all_parameters,
    bind_call,
    bounds_of,
    default_of,
    find_calls,
    parameters_of,
    reaching,
    scope_of,
)
from explainer.source.value.by_target import classes_by_target
from explainer.source.value.fields import fields_of, given_field
from explainer.source.value.from_outside import assignments_from_outside
from explainer.source.value.registry import calls_out_of_tables, members_of

DEPTH = 14
_BUDGET = 40_000  # steps a program: a large one is read in part rather than for minutes
_MAX_MADE = 32  # calls that may have made one object; more say nothing any more
_SAME = frozenset(
    {"to", "cuda", "cpu", "train", "eval", "double", "float", "half", "bfloat16", "requires_grad_", "compile", "apply", "module"}
)  # fmt: skip
_WRAPPERS = frozenset(
    {"DataParallel", "DistributedDataParallel", "FullyShardedDataParallel", "compile", "fully_shard", "prepare", "setup"}
    | {"get_peft_model", "prepare_model_for_kbit_training", "checkpoint_wrapper", "weight_norm", "spectral_norm", "script"}
    | {"setup_module", "prepare_model", "DDP", "FSDP"}
)  # fmt: skip

_PROPERTIES = frozenset({"property", "cached_property"})


class Resolver:
    """Answers what names and calls of one program stand for. Built once a program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._callers: dict[ast.AST, list[tuple[SourceFile, ast.Call]]] = {}
        self._made: dict[tuple[int, int | str | None, bool, int], list[Value]] = {}
        self._kept: list[object] = []
        self._left = _BUDGET
        self._returns: dict[ast.AST, list[tuple[ast.Return | ast.Yield, ast.expr]]] = {}
        self._modules: dict[ast.ClassDef, list[tuple[SourceFile, ast.Call]]] | None = None

    @cached_property
    def _calls(self) -> dict[str, list[tuple[SourceFile, ast.Call]]]:
        found: dict[str, list[tuple[SourceFile, ast.Call]]] = {}
        for file, call in find_calls(self.program):
            name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            found.setdefault(name, []).append((file, call))
        return found

    def calls_named(self, name: str) -> Sequence[tuple[SourceFile, ast.Call]]:
        """The calls of that name in the program, of a function or of a method: `name(...)`, `x.name(...)`."""
        return self._calls.get(name, ())

    @property
    def _runs(self) -> dict[ast.ClassDef, list[tuple[SourceFile, ast.Call]]]:
        """The calls of instances of the project's classes, `model(x)`, by class; while they are looked for, none."""
        if self._modules is None:
            self._modules = {}
            found: dict[ast.ClassDef, list[tuple[SourceFile, ast.Call]]] = {}
            for file, call in find_calls(self.program):
                for _, owner in self.classes_of(Value(call.func, file)):
                    found.setdefault(owner, []).append((file, call))
            self._modules = found
            self._made.clear()  # what was asked for on the way may have missed a call
            self._callers.clear()
        return self._modules

    def behind(self, value: Value) -> Iterator[Value]:
        """The values that a name or `self.x` stands for, the latest binding first; none where that is not known."""
        name = dotted_name(value.node)
        if name is None:
            return
        if name.startswith(("self.", "cls.")):
            yield from self._attribute(name, value)
        elif "." not in name:
            yield from self._variable(name, value)
        else:
            found = reaching(name, value.node, value.file)
            yield from (self._value(one, value) for one in found)
            if not found:
                yield from self._member(value)

    def _value(self, bound: object, near: Value) -> Value:
        from explainer.source.value.binding import Bound

        assert isinstance(bound, Bound)
        return Value(bound.node, near.file, near.arguments, bound.pick, bound.is_element, bound.statement, bound.key)

    def _variable(self, name: str, value: Value) -> Iterator[Value]:
        found = reaching(name, value.node, value.file)
        scope = scope_of(value.node, value.file)
        yield from (self._value(one, value) for one in found)
        is_parameter = not isinstance(scope, ast.Module) and name in all_parameters(scope)
        certain = any(not bound.fills and _is_straight(bound.statement, scope, value.file) for bound in found)
        if is_parameter and not certain:
            yield from self._parameter(name, scope, value)  # type: ignore[arg-type]
        elif not found and not isinstance(scope, ast.Module):
            yield from self._outer(name, scope, value)
        elif not found:
            yield from self._imported(name, value)

    def outside(self, value: Value) -> Iterator[Value]:
        """What a name stands for around its function, which may fill it: a list of the file to which a function adds."""
        scope = scope_of(value.node, value.file)
        if isinstance(value.node, ast.Name) and not isinstance(scope, ast.Module):
            yield from self._outer(value.node.id, scope, value)

    def _outer(self, name: str, scope: ast.AST, value: Value) -> Iterator[Value]:
        """A name of the function around, or of the module."""
        around = value.file.enclosing(scope, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.Module)
        while around is not None:
            found = [one for one in bounds_of(around) if one.name == name]
            if found:
                yield from (self._value(one, value) for one in reversed(found))
                return
            if not isinstance(around, ast.Module) and name in all_parameters(around):  # type: ignore[arg-type]
                yield from self._parameter(name, around, value)  # type: ignore[arg-type]
                return
            around = value.file.enclosing(around, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.Module)
        yield from self._imported(name, value)

    def _imported(self, name: str, value: Value) -> Iterator[Value]:
        """A module-level name of another file of the project."""
        target = self.program.names(value.file).imports.get(name, "")
        module, _, last = target.rpartition(".")
        for file in self._by_module.get(module, ()):
            for one in bounds_of(file.tree) if file.tree is not None else ():
                if one.name == last:
                    yield Value(one.node, file, {}, one.pick, one.is_element, one.statement)

    @cached_property
    def _by_module(self) -> dict[str, list[SourceFile]]:
        found: dict[str, list[SourceFile]] = {}
        for file in self.program.parsed():
            found.setdefault(self.program.names(file).module, []).append(file)
        return found

    def _parameter(self, name: str, function: Function | ast.Lambda, value: Value) -> Iterator[Value]:
        """What a parameter stands for: the argument of the call that is followed, else of every call in sight."""
        if name in value.arguments:
            yield value.arguments[name]
            return
        if isinstance(function, ast.Lambda):
            return
        for file, call in self.calls_of(function, value.file):
            bound = bind_call(call, function, Value(call, file))
            if name in bound:
                yield bound[name]
            elif (default := default_of(function, name)) is not None:
                yield Value(default, value.file)

    def calls_of(self, function: Function, file: SourceFile) -> list[tuple[SourceFile, ast.Call]]:
        """The calls that run a function of the program, by its name or, for `__init__` and `forward`, its class."""
        if function not in self._callers:
            self._callers[function] = []  # what asks for itself on the way finds none
            self._callers[function] = list(self._find_calls(function, file))
        return self._callers[function]

    def _find_calls(self, function: Function, file: SourceFile) -> Iterator[tuple[SourceFile, ast.Call]]:
        yield from self._plain_calls(function, file)
        owner = self.program.names(file).class_of(function) if function.name == "__init__" else None
        yield from calls_out_of_tables(function if owner is None else owner, self.program)

    def _plain_calls(self, function: Function, file: SourceFile) -> Iterator[tuple[SourceFile, ast.Call]]:
        owner = self.program.names(file).class_of(function)
        direct = owner is None or file.parents.get(function) is not owner
        if direct:
            yield from self._calls.get(function.name, ())
            return
        assert owner is not None
        if function.name == "__init__":
            yield from self._calls.get(owner.name, ())
            for other_file, other in self._derived(owner, is_passed=_has_no_constructor):
                if _has_no_constructor(other):
                    yield from self._calls.get(other.name, ())
                    yield from calls_out_of_tables(other, self.program)
                else:
                    yield from self._super_calls(other_file, other)
        elif function.name in ("forward", "__call__"):
            yield from self._runs.get(owner, ())
        else:
            yield from self._calls.get(function.name, ())

    def _derived(
        self, owner: ast.ClassDef, depth: int = 0, is_passed: Callable[[ast.ClassDef], bool] = bool
    ) -> Iterator[tuple[SourceFile, ast.ClassDef]]:
        """The classes derived from one, nearest first; those derived from these where `is_passed` is true of them."""
        direct = self._by_base.get(owner.name, ())
        yield from direct
        for _, one in direct if depth < DEPTH else ():
            if is_passed(one):
                yield from self._derived(one, depth + 1, is_passed)

    @cached_property
    def _by_base(self) -> dict[str, list[tuple[SourceFile, ast.ClassDef]]]:
        found: dict[str, list[tuple[SourceFile, ast.ClassDef]]] = {}
        for file in self.program.parsed():
            for one in self.program.names(file).classes.values():
                for base in {(dotted_name(base) or "").rpartition(".")[2] for base in one.bases}:
                    found.setdefault(base, []).append((file, one))
        return found

    def _super_calls(self, file: SourceFile, owner: ast.ClassDef) -> Iterator[tuple[SourceFile, ast.Call]]:
        for called, call in self._calls.get("__init__", ()):
            if called is file and self.program.names(file).class_of(call) is owner:
                yield file, call

    def _attribute(self, name: str, value: Value) -> Iterator[Value]:
        """`self.x`: what the same function bound it to before, else all that the class and its bases assign to it."""
        found = reaching(name, value.node, value.file)
        yield from (self._value(one, value) for one in found)
        if any(not one.fills for one in found):
            return
        owner = self.program.names(value.file).class_of(value.node)
        if owner is None:
            return
        attribute = name.partition(".")[2]
        assigned = list(self._assigned(attribute, owner, value.file)) or list(self._fields(attribute, owner, value))
        for file, one in self._derived(owner) if not assigned else ():
            assigned += self._assigned(attribute, one, file)
        held = [
            one for one in assigned if not isinstance(one.statement, (ast.Call, ast.AugAssign))
        ]  # no more than filled
        if held and "." not in attribute and all(_is_none(one.node) for one in held):
            assigned += self._hung_on(attribute, owner)
        if "." in attribute and not assigned and not found:
            yield from self._member(value)  # `self.loss.penalty`: what the class of `self.loss` assigns
        yield from assigned
        if all(isinstance(one.statement, (ast.Call, ast.AugAssign)) for one in assigned):  # what only fills it
            yield from self._of_class(attribute, owner, value.file)
            yield from self._computed(attribute, owner, value.file)

    def _assigned(self, attribute: str, owner: ast.ClassDef, file: SourceFile, depth: int = 0) -> Iterator[Value]:
        found = False
        for method in owner.body:
            if isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef)):
                for one in bounds_of(method):
                    if one.name == f"self.{attribute}":
                        found = True
                        yield Value(one.node, file, {}, one.pick, one.is_element, one.statement)
        if not found and depth < DEPTH:
            for base in owner.bases:
                above = self.find_class(base, file)
                if above is not None:
                    yield from self._assigned(attribute, above[1], above[0], depth + 1)

    def _hung_on(self, attribute: str, owner: ast.ClassDef) -> Iterator[Value]:
        """What others assign to an attribute that the class itself leaves None: `data.teacher = teacher`."""
        for file, target, statement in assignments_from_outside(self.program).get(attribute, ()):
            if any(one is owner for _, one in self.classes_of(Value(target.value, file))):
                yield Value(statement.value, file, statement=statement)

    def _of_class(self, attribute: str, owner: ast.ClassDef, file: SourceFile) -> Iterator[Value]:
        """What the body of a class binds an attribute to, where no method and no call does: also the default of a field."""
        for one in owner.body:
            if not isinstance(one, (ast.Assign, ast.AnnAssign)) or one.value is None:
                continue
            target = one.targets[0] if isinstance(one, ast.Assign) else one.target
            if isinstance(target, ast.Name) and target.id == attribute:
                yield Value(one.value, file, statement=one)

    def _computed(self, attribute: str, owner: ast.ClassDef, file: SourceFile) -> Iterator[Value]:
        """What a property of a class returns."""
        for method in owner.body:
            if isinstance(method, ast.FunctionDef) and method.name == attribute:
                marks = {(dotted_name(one) or "").rpartition(".")[2] for one in method.decorator_list}
                for one in _own_nodes(method) if marks & _PROPERTIES else ():
                    if isinstance(one, ast.Return) and one.value is not None:
                        yield Value(one.value, file, statement=one)

    def _member(self, value: Value) -> Iterator[Value]:
        """`model.head`: what the class of `model` assigns to `self.head`."""
        assert isinstance(value.node, ast.Attribute)
        attribute = value.node.attr
        for made in self.constructors_of(Value(value.node.value, value.file, value.arguments)):
            found = self.find_class(made.node.func, made.file) if isinstance(made.node, ast.Call) else None
            if found is None:
                continue
            fields = fields_of(found[1], self.program.names(found[0]))
            given = given_field(attribute, fields, made) if attribute in fields else None
            assigned = list(self._assigned(attribute, found[1], found[0])) if given is None else [given]
            yield from assigned or self._computed(attribute, found[1], found[0])

    def _fields(self, attribute: str, owner: ast.ClassDef, value: Value) -> Iterator[Value]:
        """What the calls that make records of a class give one of its fields."""
        fields = fields_of(owner, self.program.names(value.file))
        for file, call in self._calls.get(owner.name, ()) if attribute in fields else ():
            given = given_field(attribute, fields, Value(call, file))
            if given is not None:
                yield given

    def find_class(self, node: ast.expr, file: SourceFile) -> tuple[SourceFile, ast.ClassDef] | None:
        """The project's class that an expression names; `cls` is that of the method around."""
        if isinstance(node, ast.Name) and node.id == "cls":
            method, around = self.program.names(file).function_of(node), self.program.names(file).class_of(node)
            first = method.args.args[0].arg if method is not None and method.args.args else None
            return (file, around) if around is not None and first == "cls" else None
        name = self.program.names(file).qualified(node)
        if name is None:
            return None
        here = self.program.names(file).classes.get(name)
        return (file, here) if here is not None else self.program.find_class(name)

    def classes_of(self, value: Value, depth: int = 0) -> list[tuple[SourceFile, ast.ClassDef]]:
        """The project's classes that the object behind an expression may be an instance of."""
        found: list[tuple[SourceFile, ast.ClassDef]] = []
        for made in self.constructors_of(value, depth):
            if isinstance(made.node, ast.Call):
                one = self.find_class(made.node.func, made.file)
                found += [one] if one is not None else self.classes_in_table(made.node.func, made)
        return found

    def classes_in_table(self, func: ast.expr, near: Value) -> list[tuple[SourceFile, ast.ClassDef]]:
        """The classes of which a call makes one whose class it takes out of a table, or by its name in a configuration."""
        found = members_of(func, near.file, self.program)
        classes = [(where, one) for where, one in found if isinstance(one, ast.ClassDef)]
        return classes or classes_by_target(func, near.file, near.arguments, self)

    def constructors_of(self, value: Value, depth: int = 0) -> list[Value]:
        """The calls that made the object behind an expression, seen through wrappers, `.to(device)` and factories."""
        key = (id(value.node), value.pick, value.is_element, id(value.arguments) if value.arguments else 0)
        if key in self._made:
            return self._made[key]
        self._left -= 1
        if depth > DEPTH or self._left < 0:
            return []
        self._kept += [value.node, value.arguments]  # an id stands for its object only while that lives
        self._made[key] = []  # what is made of itself is made of nothing
        found = {
            (id(one.node), one.pick, one.is_element, id(one.arguments) if one.arguments else 0): one
            for one in self._find_constructors(value, depth)
        }
        self._made[key] = list(found.values())[:_MAX_MADE]
        return self._made[key]

    def _find_constructors(self, value: Value, depth: int) -> list[Value]:
        node = value.node
        if isinstance(node, ast.Call):
            return self._constructed(node, value, depth)
        parts = _alternatives(value)
        if parts is not None:
            return [made for one in parts for made in self.constructors_of(one, depth + 1)]
        found = []
        for one in self.behind(value):
            is_element = value.is_element or one.is_element
            pick = value.pick if one.pick is None and isinstance(one.node, ast.Dict) else one.pick
            found += self.constructors_of(replace(one, is_element=is_element, pick=pick), depth + 1)
        return found

    def _constructed(self, node: ast.Call, value: Value, depth: int) -> list[Value]:
        called = self.program.names(value.file).qualified(node.func) or ""
        last = called.rpartition(".")[2] or (node.func.attr if isinstance(node.func, ast.Attribute) else "")
        if self.find_class(node.func, value.file) is not None or self.classes_in_table(node.func, value):
            return [value]
        function = self.function_of(node, value)
        if function is not None:
            return [
                made
                for one in self.returns_of(function, node, value)
                for made in self.constructors_of(_picked(one, value.pick), depth + 1)
            ]
        ran = self._run(node, value, depth) if not called.startswith("torch.") else []
        if ran:
            return ran
        if last in _WRAPPERS and node.args:
            at = value.pick if isinstance(value.pick, int) and value.pick < len(node.args) else 0
            inner = self.constructors_of(Value(node.args[at], value.file, value.arguments), depth + 1)
            return inner or [value]
        if last in ("ModuleList", "Sequential", "ModuleDict", "list", "values", "items", "children") and (
            value.is_element or last in ("list", "values")
        ):
            parts = [*node.args, *([node.func.value] if isinstance(node.func, ast.Attribute) else [])]
            inner = [
                made
                for one in parts
                for made in self.constructors_of(Value(_bare(one), value.file, value.arguments), depth + 1)
            ]
            return inner or [value]
        if isinstance(node.func, ast.Attribute) and last in _SAME and not called.startswith("torch."):
            inner = self.constructors_of(
                Value(node.func.value, value.file, value.arguments, is_element=value.is_element), depth + 1
            )
            return inner or [value]
        return [value]

    def _run(self, node: ast.Call, value: Value, depth: int) -> list[Value]:
        """What the `forward` of a called module makes: a distribution, another module."""
        if not isinstance(node.func, (ast.Name, ast.Attribute)) or depth > DEPTH // 2:
            return []
        found: list[Value] = []
        for file, owner in self.classes_of(Value(node.func, value.file, value.arguments), depth + 2):
            method = self.method(owner, "forward", file)
            for one in self.returns_of(method, node, value) if method is not None else ():
                found += self.constructors_of(_picked(one, value.pick), depth + 2)
        return found

    def function_of(self, call: ast.Call, value: Value) -> tuple[SourceFile, Function] | None:
        """The program's own function or method that a call runs; None for libraries, modules and what is not known."""
        func, file = call.func, value.file
        names = self.program.names(file)
        if isinstance(func, ast.Name):
            return self._named(func.id, file) or self._out_of_table(func, file)
        if not isinstance(func, ast.Attribute):
            return self._out_of_table(func, file)
        if isinstance(func.value, ast.Name) and func.value.id in ("self", "cls"):
            owner = names.class_of(call)
            found = self.dispatched(owner, func.attr, file) if owner is not None else []
            return found[0] if found else None
        if isinstance(func.value, ast.Call) and names.qualified(func.value.func) == "super":
            owner = names.class_of(call)
            bases = [self.find_class(one, file) for one in owner.bases] if owner else []
            above = [self.method(one[1], func.attr, one[0]) for one in bases if one is not None]
            return next((one for one in above if one is not None), None)
        called = names.qualified(func) or ""
        if called.partition(".")[0] in ("torch", "numpy", "math"):
            return None
        target = self.program.find_function(called) if names.imports.get(called.partition(".")[0]) else None
        target = target or (self.program.find_function(called) if self._is_imported(func, file) else None)
        if target is not None:
            return target
        return self._called_on(func, value) or self._out_of_table(func, file)

    def _out_of_table(self, func: ast.expr, file: SourceFile) -> tuple[SourceFile, Function] | None:
        """The function that a call takes out of a table, where it can be one alone: `LOSSES[cfg["loss"]](x, y)`."""
        if isinstance(func, ast.Name) and hasattr(builtins, func.id):
            return None
        found = members_of(func, file, self.program)
        where, one = found[0] if len(found) == 1 else (file, None)
        return None if one is None or isinstance(one, ast.ClassDef) else (where, one)

    def _called_on(self, func: ast.Attribute, value: Value) -> tuple[SourceFile, Function] | None:
        """The method of a class, where it is one of classes, else of the object behind an expression."""
        named = self.find_class(func.value, value.file)
        if named is not None:
            made = self.method(named[1], func.attr, named[0])
            return made if made is not None and _is_of_class(made[1]) else None
        for where, owner in self.classes_of(Value(func.value, value.file, value.arguments)):
            found = self.method(owner, func.attr, where)
            if found is not None:
                return found
        return None

    def dispatched(self, owner: ast.ClassDef, name: str, file: SourceFile) -> list[tuple[SourceFile, Function]]:
        """The methods that `self.name()` may run: where the class leaves it to those derived from it, theirs."""
        own = self.method(owner, name, file)
        if own is not None and not _is_left_open(own[1]):
            return [own]
        found = [
            (where, one)
            for where, derived in self._derived(owner)
            for one in derived.body
            if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)) and one.name == name
        ]
        return found or ([own] if own is not None else [])

    def _is_imported(self, func: ast.Attribute, file: SourceFile) -> bool:
        return isinstance(func.value, ast.Name) and func.value.id in self.program.names(file).imports

    def _named(self, name: str, file: SourceFile) -> tuple[SourceFile, Function] | None:
        names = self.program.names(file)
        here = [one for where, one in self.program.functions_named(name) if where is file]
        plain = [one for one in here if not isinstance(file.parents.get(one), ast.ClassDef)]
        if plain:
            return file, plain[0]
        target = names.imports.get(name)
        if target is None:
            return None
        wanted = target.rpartition(".")[2]
        found = [
            (where, one)
            for where, one in self.program.functions_named(wanted)
            if not isinstance(where.parents.get(one), ast.ClassDef)
        ]
        return found[0] if len(found) == 1 else None

    def method(
        self, owner: ast.ClassDef, name: str, file: SourceFile, depth: int = 0
    ) -> tuple[SourceFile, Function] | None:
        """The method of a class or of a base of it that the program holds."""
        for one in owner.body:
            if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)) and one.name == name:
                return file, one
        for base in owner.bases if depth < DEPTH else ():
            above = self.find_class(base, file)
            found = self.method(above[1], name, above[0], depth + 1) if above is not None else None
            if found is not None:
                return found
        return None

    def returns_of(
        self, target: tuple[SourceFile, Function], call: ast.Call, value: Value, skip: int = 0
    ) -> list[Value]:
        """What a function returns in a call, its parameters bound to the arguments."""
        file, function = target
        arguments = bind_call(call, function, value, skip)
        if function not in self._returns:
            own = [node for node in _own_nodes(function) if isinstance(node, (ast.Return, ast.Yield))]
            self._returns[function] = [(one, one.value) for one in own if one.value is not None]
        return [Value(value, file, arguments, statement=one) for one, value in self._returns[function]]


def _has_no_constructor(owner: ast.ClassDef) -> bool:
    return not any(isinstance(one, ast.FunctionDef) and one.name == "__init__" for one in owner.body)


def _is_of_class(function: Function) -> bool:
    """Whether a method is called on its class as it is: a class method or a static one."""
    return any(dotted_name(one) in ("classmethod", "staticmethod") for one in function.decorator_list)


def _is_left_open(function: Function) -> bool:
    """Whether a method does nothing but raise, pass or speak of itself: the derived classes give it."""
    return all(
        isinstance(one, (ast.Pass, ast.Raise)) or (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
        for one in function.body
    )


def _own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    from explainer.source.value.binding import walk_scope

    return walk_scope(function)


def _alternatives(value: Value) -> list[Value] | None:
    """The expressions that one stands for: its elements, its branches, what it is a part of; None where it is a name."""
    node = value.node
    if isinstance(node, (ast.Tuple, ast.List)) and isinstance(value.pick, int) and value.pick < len(node.elts):
        return [replace(value, node=node.elts[value.pick], pick=None)]
    if isinstance(node, (ast.Tuple, ast.List)):
        return [replace(value, node=one) for one in node.elts]
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        return [replace(value, node=node.elt, pick=value.pick if value.is_element else None)]
    if isinstance(node, ast.Dict):
        keys = [getattr(key, "value", None) for key in node.keys]
        is_picked = isinstance(value.pick, str) and value.pick in keys
        pairs = zip(keys, node.values, strict=True)
        return [replace(value, node=one, pick=None) for key, one in pairs if not is_picked or key == value.pick]
    if isinstance(node, ast.Subscript):
        key = getattr(node.slice, "value", None) if isinstance(node.slice, ast.Constant) else None
        return [replace(value, node=node.value, is_element=True, pick=key if isinstance(key, str) else value.pick)]
    if isinstance(node, ast.IfExp):
        return [replace(value, node=one) for one in (node.body, node.orelse)]
    if isinstance(node, ast.Attribute) and node.attr == "module":
        return [replace(value, node=node.value)]
    return None


def _picked(value: Value, pick: int | str | None) -> Value:
    if isinstance(pick, int) and isinstance(value.node, ast.Tuple) and pick < len(value.node.elts):
        return replace(value, node=value.node.elts[pick])
    return replace(value, pick=pick) if pick is not None else value


def _bare(node: ast.expr) -> ast.expr:
    return node.value if isinstance(node, ast.Starred) else node


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_straight(statement: ast.AST, scope: ast.AST, file: SourceFile) -> bool:
    """Whether a statement is executed whenever its scope is: it stands in the scope's own block."""
    if isinstance(statement, ast.comprehension):
        return True
    return file.parents.get(statement) is scope


@lru_cache(maxsize=2)
def resolver_of(program: Program) -> Resolver:
    """The resolver of a program, built once."""
    return Resolver(program)


__all__ = ["Resolver", "parameters_of", "resolver_of"]
