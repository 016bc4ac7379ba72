"""What draws numbers from torch's default generator: functions, initialisers, layers, loaders, dropout; what does so behind a place.

In doubt it draws: what a call runs is looked for by its name alone, and a library that builds and trains by itself may draw anything.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.source.data.loader import LOADERS
from explainer.source.file import SourceFile
from explainer.source.graph.cut import is_plain_module
from explainer.source.graph.generator import has_one_generator
from explainer.source.name import Names
from explainer.source.program import Program
from explainer.source.setting.flow import settings_behind
from explainer.source.tree import end_of, start_of, walk
from explainer.source.value.binding import scope_of, walk_scope
from explainer.source.value.number import number_of
from explainer.source.value.resolve import resolver_of

_FUNCTIONS = frozenset(
    {"rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like", "normal", "bernoulli", "multinomial"}
    | {"poisson", "binomial"}
)  # fmt: skip
_METHODS = frozenset(
    {"uniform_", "normal_", "random_", "bernoulli_", "exponential_", "geometric_", "log_normal_", "cauchy_", "bernoulli"}
    | {"multinomial", "sample", "rsample", "reset_parameters"}
)  # fmt: skip
_OF_DATA = (
    *LOADERS, "torch.utils.data.random_split", "torch.utils.data.RandomSampler", "torch.utils.data.WeightedRandomSampler",
    "torch.utils.data.SubsetRandomSampler",
)  # fmt: skip
_FIXED = frozenset({"constant_", "zeros_", "ones_", "eye_", "dirac_", "calculate_gain"})
_WITHOUT_DRAW = frozenset(
    {"Module", "ModuleList", "ModuleDict", "Sequential", "Parameter", "ParameterList", "ParameterDict", "Buffer", "LayerNorm"}
    | {"RMSNorm", "GroupNorm", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"}
)  # fmt: skip
_OTHERS = ("transformers", "diffusers", "timm", "lightning", "pytorch_lightning", "torchvision.models", "peft", "trl")
_RATE_AT = {"MultiheadAttention": 2, "TransformerEncoderLayer": 3, "TransformerDecoderLayer": 3, "Transformer": 5}
_DROPPED_BY_DEFAULT = frozenset({"TransformerEncoderLayer", "TransformerDecoderLayer", "Transformer"})
# Run without being named: by a module's call, a loader, a loop.
_UNNAMED = ("forward", "__call__", "__getitem__", "__iter__", "__next__", "collate_fn")

_Code = tuple[SourceFile, ast.AST]


def draws(node: ast.AST, file: SourceFile, program: Program) -> bool:
    """Whether the code of a node draws, with all that it calls."""
    return _has_draw([(file, node)], set(), program)


def draws_behind(node: ast.AST, file: SourceFile, program: Program) -> bool:
    """Whether what the program runs once a node is done draws; layers that drop and loaders do so wherever they were made."""
    files = [(each, each.tree) for each in program.parsed() if each.tree is not None]
    if any(target.startswith(_OTHERS) for each, _ in files for target in program.names(each).imports.values()):
        return True
    if any(_draws_in_use(one, each, program) for each, tree in files for one in walk(tree)):
        return True
    unnamed = [one for name in _UNNAMED for one in program.functions_named(name)]
    done: set[ast.AST] = set()
    return _has_draw([*_behind(node, file, program, set(), done), *unnamed], done, program)


def _behind(
    node: ast.AST, file: SourceFile, program: Program, seen: set[ast.AST], done: set[ast.AST]
) -> Iterator[_Code]:
    """The code that runs behind a node: of its function, then behind each call of that; all code where no call is in sight.

    `done` gets the nodes that have run by then, which those that stand around them hold.
    """
    scope = scope_of(node, file)
    done.update(walk(node))
    if scope in seen:
        return
    seen.add(scope)
    loop = file.enclosing(node, ast.For, ast.AsyncFor, ast.While)
    for one in walk_scope(scope):
        is_again = loop is not None and scope_of(loop, file) is scope and start_of(loop) <= start_of(one) < end_of(loop)
        # What a call stands in runs behind it: `Job(path).restore().run()`.
        is_around = isinstance(one, ast.expr) and start_of(one) <= start_of(node) and end_of(one) > end_of(node)
        is_behind = is_again or is_around or start_of(one) >= end_of(node)
        if isinstance(one, (ast.stmt, ast.expr)) and is_behind:
            yield file, one
    is_function = isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef))
    calls = resolver_of(program).calls_of(scope, file) if is_function else []  # type: ignore[arg-type]
    for where, call in calls:
        yield from _behind(call, where, program, seen, done)
    is_last = isinstance(scope, ast.Module) and not _is_imported(file, program)
    if not calls and not is_last:
        yield from ((each, each.tree) for each in program.parsed() if each.tree is not None)


def _is_imported(file: SourceFile, program: Program) -> bool:
    module = program.names(file).module
    targets = (one for each in program.parsed() for one in program.names(each).imports.values())
    return any(one == module or one.startswith(f"{module}.") for one in targets)


def _has_draw(todo: list[_Code], done: set[ast.AST], program: Program) -> bool:
    seen: set[ast.AST] = set()
    while todo:
        file, code = todo.pop()
        names = program.names(file)
        for node in walk(code):
            if not isinstance(node, ast.Call) or node in done:
                continue
            if _is_draw(node, names) or _draws_in_use(node, file, program):
                return True
            for where, run in _run_by(node, names, program):
                if run not in seen:
                    seen.add(run)
                    todo.append((where, run))
    return False


def _run_by(call: ast.Call, names: Names, program: Program) -> Iterator[_Code]:
    """What a call may run: every function of its name; of a class what makes an object."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name != "__init__":  # of a base: what makes an object is read with its class
        yield from program.functions_named(name)
    owner = program.find_class(names.qualified(call.func) or name)
    for one in owner[1].body if owner is not None else ():
        if owner is not None and getattr(one, "name", None) in ("__init__", "__post_init__"):
            yield owner[0], one


def _is_draw(call: ast.Call, names: Names) -> bool:
    """A call that draws itself, or makes a layer with random weights."""
    called = names.qualified(call.func) or ""
    space, _, last = called.rpartition(".")
    if has_one_generator(call) or called.startswith(("random.", "numpy.", "math.")):
        return False
    if called.startswith("torch.nn.init."):
        return last not in _FIXED
    if called.startswith("torch.nn.") and last[:1].isupper():
        return last not in _WITHOUT_DRAW and not is_plain_module(called) and not _is_dropout(last)
    if space == "torch":
        return last in _FUNCTIONS
    return isinstance(call.func, ast.Attribute) and call.func.attr in _METHODS


def _draws_in_use(node: ast.AST, file: SourceFile, program: Program) -> bool:
    """What draws once it is used: a loader or a split of data without a generator, a layer or a function that drops."""
    if not isinstance(node, ast.Call):
        return False
    called = program.names(file).qualified(node.func) or ""
    last = called.rpartition(".")[2]
    if called in _OF_DATA:
        return not has_one_generator(node)
    if not called.startswith("torch.nn."):
        return False
    named = {one.arg: one.value for one in node.keywords}
    if _is_dropout(last):
        at = 1 if last[:1].islower() else 0
        rate = named.get("p", node.args[at] if len(node.args) > at else None)
        return rate is None or not _is_zero(rate, file, program)
    at = _RATE_AT.get(last, len(node.args))
    rate = named.get("dropout", named.get("dropout_p", node.args[at] if at < len(node.args) else None))
    return last in _DROPPED_BY_DEFAULT if rate is None else not _is_zero(rate, file, program)


def _is_zero(rate: ast.expr, file: SourceFile, program: Program) -> bool:
    """Whether a rate is 0: as it is written, or as every setting says that it is taken from."""
    number = number_of(rate, program.names(file))
    if number is not None:
        return number == 0
    function = program.names(file).function_of(rate)
    is_called = function is None or bool(resolver_of(program).calls_of(function, file))
    settings = settings_behind(rate, file, program) if is_called else []
    return bool(settings) and all(one.value in (0, 0.0) for one in settings)


def _is_dropout(last: str) -> bool:
    return "dropout" in last.lower() or last in ("gumbel_softmax", "rrelu", "RReLU")
