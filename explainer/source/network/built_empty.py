"""Where a program builds a model on the meta device, without memory, and where a state is loaded into that model.

`with torch.device("meta"):`, also by a choice, a name or a context manager of the program, `Net(device="meta")`,
`torch.set_default_device("meta")`, accelerate's `init_empty_weights(include_buffers=True)`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from explainer.source.file import SourceFile
from explainer.source.name import Function, bound_names, dotted_name
from explainer.source.network.module import is_module
from explainer.source.program import Program
from explainer.source.setting.flow import settings_behind
from explainer.source.setting.setting import Setting
from explainer.source.tree import end_of, start_of, walk
from explainer.source.value.binding import Value, find_calls
from explainer.source.value.lineage import block_of
from explainer.source.value.resolve import resolver_of

META = "meta"
_DEVICE = "torch.device"
_DEFAULT = "torch.set_default_device"
_EMPTY = ("accelerate.init_empty_weights", "accelerate.big_modeling.init_empty_weights")
_INTO = frozenset({"load_checkpoint_in_model", "load_checkpoint_and_dispatch"})
_SAME = frozenset({"to", "train", "eval", "requires_grad_", "apply", "compile"})
_WRAPPERS = frozenset({"compile", "DataParallel", "DistributedDataParallel", "DDP"})
_DEPTH = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Of two contexts, or two ways to build, the empty one is taken where `test` is `wanted`."""

    test: ast.expr
    wanted: bool
    file: SourceFile
    is_full_otherwise: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Asked:
    """What asks for the meta device: the text `"meta"`, a setting that says it, or the keyword that leaves buffers without memory.

    `context` is the call that makes the context which stands in a `with`, and None elsewhere.
    """

    file: SourceFile
    node: ast.expr
    setting: Setting | None = None
    keyword: ast.keyword | None = None
    context: ast.Call | None = None
    choices: tuple[Choice, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EmptyBuild:
    """A model that is built on meta: where (`place`), what asks for it, and the code that builds."""

    file: SourceFile
    place: ast.AST
    asked: Asked
    code: frozenset[ast.AST]

    @property
    def last(self) -> ast.AST:
        """The last of what builds: outermost of all that ends there."""
        ends = ((end_of(one), tuple(-at for at in start_of(one)), one) for one in self.code)
        return max(ends, key=lambda one: one[:2], default=((), (), self.place))[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A call that puts the tensors of a state in the place of a model's; strict where each parameter must be in it."""

    file: SourceFile
    call: ast.Call
    is_strict: bool


def empty_builds(program: Program) -> Iterator[EmptyBuild]:
    """The places of a program that build on the meta device."""
    for file in program.parsed():
        for node in file.walk():
            if isinstance(node, (ast.With, ast.AsyncWith)):
                yield from _in_context(node, file, program)
            elif isinstance(node, ast.Call):
                yield from _on_device(node, file, program)


def _in_context(node: ast.With | ast.AsyncWith, file: SourceFile, program: Program) -> Iterator[EmptyBuild]:
    """`with torch.device("meta"):` and all that comes to the same."""
    for item in node.items:
        for asked in _contexts(Value(item.context_expr, file), program, 0, is_item=True):
            code = frozenset(one for statement in node.body for one in walk(statement))
            chosen = replace(asked, choices=(*asked.choices, *_by_branch(node, file)))
            yield EmptyBuild(file=file, place=item.context_expr, asked=chosen, code=code)


def _on_device(call: ast.Call, file: SourceFile, program: Program) -> Iterator[EmptyBuild]:
    """`torch.set_default_device("meta")`, `Net(device="meta")`."""
    called = program.names(file).qualified(call.func)
    if called == _DEFAULT and call.args:
        for asked in _words(call.args[0], file, program):
            yield EmptyBuild(file=file, place=call, asked=asked, code=_until_next(call, file, program))
    for given in (one.value for one in call.keywords if one.arg == "device" and called != _DEVICE):
        for asked in _devices(given, file, program):
            yield EmptyBuild(file=file, place=call, asked=asked, code=frozenset({call}))


def loads_of(build: EmptyBuild, program: Program) -> Iterator[Loaded]:
    """The calls that give the model of a build the tensors of a state."""
    for file, call in find_calls(program):
        last = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        found: Loaded | None = None
        if last == "load_state_dict" and isinstance(call.func, ast.Attribute):
            named = {one.arg: one.value for one in call.keywords}
            strict = named.get("strict", call.args[1] if len(call.args) > 1 else None)
            is_strict = strict is None or (isinstance(strict, ast.Constant) and strict.value is True)
            if "assign" in named and not _is_false(named["assign"]):
                found = Loaded(file=file, call=call, is_strict=is_strict)
        elif last in _INTO and call.args:
            found = Loaded(file=file, call=call, is_strict=False)
        if found is not None and _leads_to(_receiver(found), build, program, 0):
            yield found


def is_all_loaded(build: EmptyBuild, loads: Sequence[Loaded], program: Program) -> bool:
    """Whether a state is loaded into each model that the code of a build binds to a name, or into one that it is a part of."""
    for node in build.code:
        if not isinstance(node, ast.Assign) or not is_module(Value(node.value, build.file), program):
            continue
        names = set(bound_names(node))
        is_part = any(
            isinstance(one, ast.Assign) and one is not node and names & {dotted_name(each) for each in walk(one.value)}
            for one in build.code
        )
        own = replace(build, code=frozenset(walk(node)))
        if not is_part and not any(_leads_to(_receiver(one), own, program, 0) for one in loads):
            return False
    return True


def _receiver(load: Loaded) -> Value:
    """The model of a load: `net` of `net.load_state_dict(...)`, or the first argument."""
    func = load.call.func
    is_method = isinstance(func, ast.Attribute) and func.attr == "load_state_dict"
    return Value(func.value if is_method and isinstance(func, ast.Attribute) else load.call.args[0], load.file)


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not node.value


def _contexts(value: Value, program: Program, depth: int, *, is_item: bool = False) -> Iterator[Asked]:
    """What asks for meta in a context: directly, by a choice, behind a name, in a context manager of the program."""
    node, file = value.node, value.file
    if depth > _DEPTH:
        return
    if isinstance(node, ast.IfExp):
        for branch, other, wanted in ((node.body, node.orelse, True), (node.orelse, node.body, False)):
            choice = Choice(test=node.test, wanted=wanted, file=file, is_full_otherwise=_is_full(other, file, program))
            for one in _contexts(replace(value, node=branch), program, depth + 1, is_item=is_item):
                yield replace(one, choices=(*one.choices, choice))
    elif isinstance(node, (ast.Name, ast.Attribute)):
        for bound in resolver_of(program).behind(value):
            yield from _contexts(bound, program, depth + 1)
    elif isinstance(node, ast.Call):
        called = program.names(file).qualified(node.func) or ""
        if called == _DEVICE and node.args:
            context = node if is_item else None
            yield from (replace(one, context=context) for one in _words(node.args[0], file, program))
        elif called in _EMPTY:
            for given in node.keywords:
                if (
                    given.arg == "include_buffers"
                    and isinstance(given.value, ast.Constant)
                    and given.value.value is True
                ):
                    yield Asked(file=file, node=node, keyword=given)
        else:
            yield from _entered(node, value, program, depth)


def _entered(call: ast.Call, value: Value, program: Program, depth: int) -> Iterator[Asked]:
    """What a function of the program makes: the context that it returns, or those in which it yields."""
    resolver = resolver_of(program)
    target = resolver.function_of(call, value)
    if target is None:
        return
    file, function = target
    if not _is_manager(function, file, program):
        for returned in resolver.returns_of(target, call, value):
            yield from _contexts(returned, program, depth + 1)
        return
    for node in walk(function):
        if isinstance(node, ast.With) and any(isinstance(one, ast.Yield) for one in walk(node)):
            for item in node.items:
                for asked in _contexts(Value(item.context_expr, file), program, depth + 1, is_item=True):
                    yield replace(asked, choices=(*asked.choices, *_by_branch(node, file)))


def _is_manager(function: Function, file: SourceFile, program: Program) -> bool:
    names = program.names(file)
    return any((names.qualified(one) or "").endswith("contextmanager") for one in function.decorator_list)


def _devices(node: ast.expr, file: SourceFile, program: Program) -> Iterator[Asked]:
    """What asks for meta in `device=...`: the word, or a device that was made of it."""
    if isinstance(node, (ast.Constant, ast.IfExp)):
        yield from _words(node, file, program)
    elif isinstance(node, ast.Call) and program.names(file).qualified(node.func) == _DEVICE and node.args:
        yield from _words(node.args[0], file, program)
    elif isinstance(node, (ast.Name, ast.Attribute)):
        for one in resolver_of(program).behind(Value(node, file)):
            if isinstance(one.node, ast.Call) and program.names(one.file).qualified(one.node.func) == _DEVICE:
                yield from _devices(one.node, one.file, program)


def _words(node: ast.expr, file: SourceFile, program: Program) -> Iterator[Asked]:
    """The word itself, one of two by a choice, or the one setting that says it."""
    if isinstance(node, ast.Constant):
        if node.value == META:
            yield Asked(file=file, node=node)
    elif isinstance(node, ast.IfExp):
        for branch, other, wanted in ((node.body, node.orelse, True), (node.orelse, node.body, False)):
            is_full = isinstance(other, ast.Constant) and other.value != META
            choice = Choice(test=node.test, wanted=wanted, file=file, is_full_otherwise=is_full)
            for one in _words(branch, file, program):
                yield replace(one, choices=(*one.choices, choice))
    else:
        settings = settings_behind(node, file, program)
        if len(settings) == 1 and settings[0].value == META:
            yield Asked(file=file, node=node, setting=settings[0])


def _is_full(node: ast.expr, file: SourceFile, program: Program) -> bool:
    """Whether a context leaves what is built in it its memory: none, or a real device."""
    called = program.names(file).qualified(node.func) if isinstance(node, ast.Call) else None
    is_real = called == _DEVICE and not any(_contexts(Value(node, file), program, 0))
    return is_real or called in ("contextlib.nullcontext", "contextlib.ExitStack")


def _by_branch(node: ast.With | ast.AsyncWith, file: SourceFile) -> Iterator[Choice]:
    """The `if` whose one branch is this `with`, and whose other builds the same without it."""
    above = file.parents.get(node)
    if not isinstance(above, ast.If):
        return
    own, other = (above.body, above.orelse) if node in above.body else (above.orelse, above.body)
    is_same = len(own) == 1 and [ast.unparse(one) for one in node.body] == [ast.unparse(one) for one in other]
    yield Choice(test=above.test, wanted=own is above.body, file=file, is_full_otherwise=is_same)


def _until_next(call: ast.Call, file: SourceFile, program: Program) -> frozenset[ast.AST]:
    """The statements behind one that sets the default device, up to the next that does."""
    statement, names = file.statement(call), program.names(file)
    block = list(block_of(statement, file))
    found: set[ast.AST] = set()
    for one in block[block.index(statement) + 1 :] if statement in block else ():
        nodes = list(walk(one))
        if any(isinstance(each, ast.Call) and names.qualified(each.func) == _DEFAULT for each in nodes):
            break
        found.update(nodes)
    return frozenset(found)


def _leads_to(value: Value, build: EmptyBuild, program: Program, depth: int) -> bool:
    """Whether the code of a build makes what an expression stands for."""
    node, resolver = value.node, resolver_of(program)
    if node in build.code:
        return True
    if depth > _DEPTH:
        return False
    parts: list[Value] = []
    if isinstance(node, (ast.Name, ast.Attribute)) and dotted_name(node):
        parts = list(resolver.behind(value))
    elif isinstance(node, ast.IfExp):
        parts = [replace(value, node=one) for one in (node.body, node.orelse)]
    elif isinstance(node, ast.Call):
        target = resolver.function_of(node, value)
        last = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if target is not None:
            parts = resolver.returns_of(target, node, value)
        elif last in _WRAPPERS and node.args:
            parts = [replace(value, node=node.args[0])]
        elif last in _SAME and isinstance(node.func, ast.Attribute):
            parts = [replace(value, node=node.func.value)]
    return any(_leads_to(one, build, program, depth + 1) for one in parts)
