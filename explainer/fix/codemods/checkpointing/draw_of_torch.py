"""Numbers that a checkpointed segment draws come from torch's generator, which the replay restores, not from Python's or NumPy's.

`random.random() < self.p` becomes `torch.rand(()).item() < self.p`: the same distribution, other draws. So does what is drawn in
functions and callable objects that a module calls.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.graph.uncheckpoint import checkpoint_calls
from explainer.fix.text.rewrite import operand, spell
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import Function, Names, dotted_name
from explainer.source.network.module import inherits_module
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.callee import callees_of
from explainer.source.value.resolve import resolver_of

_GENERATORS = ("random.Random", "numpy.random.default_rng", "numpy.random.RandomState")
_OUTSIDE = frozenset(
    {"__init__", "training_step", "validation_step", "test_step", "configure_optimizers", "train_dataloader", "reset_parameters"}
)  # fmt: skip
# How a draw without a size is spelled, by the method's name: of a module or of a generator.
_UNIT = frozenset({"random", "rand", "random_sample"})
_NORMAL = frozenset({"randn", "standard_normal"})
_UP_TO = frozenset({"randrange", "integers"})
_DEPTH = 2


def propose(context: Context) -> Iterator[Proposal]:
    """One edit for all draws of the program's modules, and of functions that are checkpointed by their names."""
    if not context.has_failed:
        return
    edits: list[Edit] = []
    first: tuple[SourceFile, ast.Call] | None = None
    for file, function in _functions(context):
        for node in walk(function):
            new = _drawn(node, file, context.program) if isinstance(node, ast.Call) else None
            if new is not None and isinstance(node, ast.Call):
                edits.append(edit_of(file, node, new))
                first = first or (file, node)
    if first is not None:
        why = "draws from a generator that the replay of a segment does not restore"
        yield Proposal(edits=tuple(dict.fromkeys(edits)), culprit=culprit_of(*first, why), belief=2.4, is_origin=True)


def _functions(context: Context) -> Iterator[tuple[SourceFile, Function]]:
    """The methods of modules, the functions that are checkpointed by their names, and what these call, each once."""
    program = context.program
    segments = {dotted_name(node.args[0]) for _, node in checkpoint_calls(program) if node.args}
    found: dict[Function, SourceFile] = {}
    for file, function in program.functions():
        names = program.names(file)
        owner = names.class_of(function)
        is_module = owner is not None and inherits_module(owner, file, program) and not _is_program(owner, names)
        if function.name in segments if owner is None else is_module and function.name not in _OUTSIDE:
            found[function] = file
    for _ in range(_DEPTH):
        for function, file in list(found.items()):
            for node in walk(function):
                for one in callees_of(node.func, file, program) if isinstance(node, ast.Call) else ():
                    if (
                        isinstance(one.function, (ast.FunctionDef, ast.AsyncFunctionDef))
                        and one.function.name != "__init__"
                    ):
                        found.setdefault(one.function, one.file)
    yield from ((file, function) for function, file in found.items())


def _is_program(owner: ast.ClassDef, names: Names) -> bool:
    """Whether a class holds the whole training, as Lightning's do: it is no segment, and draws for data as well."""
    return any("ightning" in (names.qualified(base) or "") for base in owner.bases)


def _drawn(node: ast.Call, file: SourceFile, program: Program) -> str | None:
    """The same draw by torch; None for what is no draw of one number."""
    names = program.names(file)
    method = _method(node, file, program)
    if method is None or any(isinstance(one, ast.Starred) for one in node.args) or node.keywords:
        return None
    given = [file.segment(one) for one in node.args]
    if method in _UNIT | _NORMAL:
        drawn = spell(names, "torch.rand" if method in _UNIT else "torch.randn")
        return f"{drawn}({', '.join(given)}).numpy()" if given else f"{drawn}(()).item()"
    if method == "uniform" and len(given) == 2:
        return f"{spell(names, 'torch.empty')}(()).uniform_({given[0]}, {given[1]}).item()"
    is_pythons = (names.qualified(node.func) or "").startswith("random.")  # NumPy's `choice` takes a number as well
    if method == "choice" and is_pythons and len(given) == 1 and dotted_name(node.args[0]) is not None:
        return f"{given[0]}[{_below(f'len({given[0]})', names)}]"
    if method in _UP_TO and len(given) in (1, 2):
        return _below(", ".join(given), names)
    if method == "randint" and len(given) in (1, 2):
        is_closed = len(given) == 2 and (names.qualified(node.func) or "") == "random.randint"
        return _below(f"{given[0]}, {_one_more(node.args[1], file)}" if is_closed else ", ".join(given), names)
    return None


def _one_more(node: ast.expr, file: SourceFile) -> str:
    """The bound behind an end that is drawn too: 4 for 3, `n + 1` for `n`."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return str(node.value + 1)
    return f"{operand(file, node)} + 1"


def _below(bounds: str, names: Names) -> str:
    return f"int({spell(names, 'torch.randint')}({bounds}, ()))"


def _method(node: ast.Call, file: SourceFile, program: Program) -> str | None:
    """The name of a draw of Python's `random`, of `numpy.random`, or of a generator of either."""
    called = program.names(file).qualified(node.func) or ""
    owner, _, last = called.rpartition(".")
    if owner in ("random", "numpy.random"):
        return last
    if not isinstance(node.func, ast.Attribute):
        return None
    made = list(resolver_of(program).constructors_of(Value(node.func.value, file)))
    is_generator = bool(made) and all(
        isinstance(one.node, ast.Call) and program.names(one.file).is_call(one.node, *_GENERATORS) for one in made
    )
    is_closed = node.func.attr == "randint" and any(
        isinstance(one.node, ast.Call) and program.names(one.file).is_call(one.node, _GENERATORS[0]) for one in made
    )
    return node.func.attr if is_generator and not is_closed else None
