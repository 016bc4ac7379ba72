"""Edits that take one cut out of a graph, each as insertions and deletions that fit together with those of other cuts."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from explainer.fix.codemod import edit_of, remove_statement
from explainer.fix.graph.held_target import held_targets, targets_among
from explainer.fix.graph.keep_mode import keep_mode
from explainer.fix.graph.stacked import is_nested, stacked
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.graph.cut import ARRAY, COPY, DATA, DETACH, GRAD_MODE, LIBRARY, SAMPLE, STEP, VALUE, Cut
from explainer.source.name import Names, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, parameters_of
from explainer.source.value.container import is_list_field
from explainer.source.value.resolve import resolver_of

_LISTS = (ast.List, ast.Tuple, ast.ListComp, ast.GeneratorExp)
_BINDS_LOOSELY = (ast.BinOp, ast.UnaryOp, ast.IfExp, ast.Compare, ast.BoolOp, ast.Lambda)
# Functions of numpy and math that torch has under the same name, for one tensor or two.
_SHARED = frozenset(
    {"exp", "log", "log1p", "expm1", "sqrt", "abs", "mean", "sum", "square", "tanh", "sin", "cos", "maximum", "minimum", "where"}
    | {"clip", "log2", "log10", "stack", "arctan", "sinh", "cosh", "power", "prod", "dot", "matmul"}
)  # fmt: skip
_RENAMED = {"power": "pow", "fabs": "abs", "pow": "pow", "concatenate": "cat", "absolute": "abs"}
_REPARAMETRISED = frozenset(
    {"Normal", "LogNormal", "MultivariateNormal", "Uniform", "Gamma", "Beta", "Dirichlet", "Laplace", "Exponential", "Gumbel"}
    | {"Cauchy", "HalfNormal", "HalfCauchy", "StudentT", "Chi2", "Weibull", "Pareto", "LowRankMultivariateNormal"}
    | {"RelaxedBernoulli", "RelaxedOneHotCategorical", "Kumaraswamy", "LogisticNormal", "TransformedDistribution", "Independent"}
)  # fmt: skip


def uncut(cut: Cut, program: Program, sources: Iterable[ast.AST] = ()) -> list[Edit] | None:
    """The edits after which the cut is gone; None where there is no local form that keeps the graph."""
    node, file = cut.node, cut.file
    if cut.kind == GRAD_MODE:
        return _grad_mode(cut, set(sources), program)
    if isinstance(node, ast.Attribute):
        return [_without_suffix(file, node, node)] if cut.kind == DATA else None
    if isinstance(node, ast.Call):
        return _called(cut, node, file, program)
    return _soft_threshold(node, file) if isinstance(node, ast.Compare) else None


def _called(cut: Cut, node: ast.Call, file: SourceFile, program: Program) -> list[Edit] | None:
    if cut.kind in (DETACH, VALUE, ARRAY):
        beside = _arrays(file.statement(node), file) if cut.kind == ARRAY else []
        own = _stripped(node, file, program)
        return own if own is None else [*own, *(one for one in beside if one not in own)]
    if cut.kind == COPY:
        return _copy(node, file, program)
    if cut.kind == LIBRARY:
        return _library(node, file, program)
    if cut.kind == SAMPLE:
        return _reparametrised(node, file, program)
    if cut.kind == STEP and _is_round(node, program.names(file)):
        is_method = isinstance(node.func, ast.Attribute) and not node.args
        return _stripped(node, file, program) if is_method else unwrapped(node, file)
    return None


def _is_round(node: ast.Call, names: Names) -> bool:
    called = names.qualified(node.func) or ""
    return called == "torch.round" or (isinstance(node.func, ast.Attribute) and node.func.attr == "round")


def _without_suffix(file: SourceFile, func: ast.Attribute, node: ast.expr) -> Edit:
    """Takes `.attribute` and what follows it off an expression."""
    end = file.span(node)[1]
    at = file.text.rindex(".", 0, file.span(func)[1])
    return Edit(file=file.path, start=at, end=end, new="")


def _stripped(node: ast.Call, file: SourceFile, program: Program) -> list[Edit] | None:
    names = program.names(file)
    called = names.qualified(node.func) or ""
    if isinstance(node.func, ast.Attribute) and not called.startswith("torch."):
        return [_without_suffix(file, node.func, node)]
    return unwrapped(node, file) if called in ("float", "torch.detach") else None


def unwrapped(node: ast.Call, file: SourceFile, head: str = "", tail: str = "") -> list[Edit] | None:
    """`f(x, ...)` becomes `x`, in parentheses where it needs them."""
    if not node.args:
        return None
    argument = node.args[0]
    if not head and isinstance(argument, _BINDS_LOOSELY) and not isinstance(file.parents.get(node), _STANDS_ALONE):
        head, tail = "(", ")"
    start, end = file.span(node)
    first, last = file.span(argument)
    return [
        Edit(file=file.path, start=start, end=first, new=head),
        Edit(file=file.path, start=last, end=end, new=tail),
    ]


_DEPTH = 4
_STANDS_ALONE = (ast.Assign, ast.Return, ast.AugAssign, ast.Call, ast.keyword, ast.Tuple, ast.List, ast.AnnAssign)


def _copy(node: ast.Call, file: SourceFile, program: Program) -> list[Edit] | None:
    """`torch.tensor(x)` becomes `x`, that of a list `torch.stack(x)`, that of what may be an array `torch.as_tensor(x)`."""
    if not node.args:
        return None
    if not is_list(Value(node.args[0], file), program):
        return _as_tensor(node, file, program) or unwrapped(node, file)
    torch = _torch_name(file, program)
    if torch and is_nested(node.args[0]):
        text = stacked(node.args[0], file, torch)
        return [edit_of(file, node, text)] if text is not None else None
    return unwrapped(node, file, f"{torch}.stack(", ")") if torch else None


def _as_tensor(node: ast.Call, file: SourceFile, program: Program) -> list[Edit] | None:
    """`torch.tensor(x, dtype=d)` of a function's own argument, which others may give an array, becomes `torch.as_tensor(x, dtype=d)`."""
    function = file.enclosing(node, ast.FunctionDef, ast.AsyncFunctionDef)
    is_given = isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) and dotted_name(
        node.args[0]
    ) in parameters_of(function)
    is_bare = len(node.args) == 1 and all(one.arg in ("dtype", "device") for one in node.keywords)
    if not is_given or not is_bare or not node.keywords or program.names(file).qualified(node.func) != "torch.tensor":
        return None
    end = file.span(node.func)[1]
    return [Edit(file=file.path, start=end - len("tensor"), end=end, new="as_tensor")]


def is_list(value: Value, program: Program, depth: int = 0) -> bool:
    """Whether an expression is a Python list rather than a tensor, here or where it was handed in."""
    if isinstance(value.node, _LISTS):
        return True
    if isinstance(value.node, ast.Call):
        called = program.names(value.file).qualified(value.node.func)
        return called in ("list", "sorted") or is_list_field(value.node)
    found = list(resolver_of(program).behind(value)) if dotted_name(value.node) else []
    # What a caller hands in has no statement here.
    plain = [
        one for one in found if isinstance(one.statement, (ast.Assign, ast.AnnAssign, type(None))) and one.pick is None
    ]
    return depth < _DEPTH and any(is_list(one, program, depth + 1) for one in plain)


def _torch_name(file: SourceFile, program: Program) -> str | None:
    """What the file calls torch."""
    return next((name for name, target in program.names(file).imports.items() if target == "torch"), None)


def _library(node: ast.Call, file: SourceFile, program: Program) -> list[Edit] | None:
    """`np.mean(x)` becomes `torch.mean(x)`, that of a list `torch.stack(x).mean()`; arrays beside it lose their `.numpy()`."""
    called = (program.names(file).qualified(node.func) or "").rpartition(".")[2]
    torch = _torch_name(file, program)
    if torch is None or not node.args:
        return None
    listed = is_list(Value(node.args[0], file), program)
    if called in ("array", "asarray"):
        return unwrapped(node, file, f"{torch}.stack(" if listed else "", ")" if listed else "")
    name = _RENAMED.get(called, called)
    if name not in _SHARED and name not in _RENAMED.values():
        return None
    if listed and name in ("mean", "sum", "prod") and len(node.args) == 1 and not node.keywords:
        return unwrapped(node, file, f"{torch}.stack(", f").{name}()")
    inner = [
        _library(one, file, program)
        for argument in node.args
        for one in walk(argument)
        if isinstance(one, ast.Call) and (program.names(file).qualified(one.func) or "").startswith(("numpy.", "math."))
    ]
    if any(one is None for one in inner):
        return None
    edits = [edit_of(file, node.func, f"{torch}.{name}"), *_arrays(node, file)]
    return edits + [edit for one in inner for edit in one or () if edit not in edits]


def _arrays(node: ast.AST, file: SourceFile) -> list[Edit]:
    """The `.numpy()`s beside a cut: of data that meets the tensor, which then stays in torch."""
    return [
        _without_suffix(file, one.func, one)
        for one in walk(node)
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr == "numpy"
    ]


def _reparametrised(node: ast.Call, file: SourceFile, program: Program) -> list[Edit] | None:
    """`distribution.sample()` becomes `rsample()` where the distribution has one."""
    if not isinstance(node.func, ast.Attribute) or node.func.attr != "sample":
        return None
    made = resolver_of(program).constructors_of(Value(node.func.value, file))
    kinds = {
        (program.names(one.file).qualified(one.node.func) or "").rpartition(".")[2]
        for one in made
        if isinstance(one.node, ast.Call)
    }
    if not kinds or not kinds <= _REPARAMETRISED:
        return None
    end = file.span(node.func)[1]
    return [Edit(file=file.path, start=end - len("sample"), end=end, new="rsample")]


def _soft_threshold(node: ast.Compare, file: SourceFile) -> list[Edit] | None:
    """`(p > 0.5).float()` becomes `p`: the probability stands for the decision."""
    limit = node.comparators[0]
    if len(node.ops) != 1 or not isinstance(node.ops[0], (ast.Gt, ast.GtE)):
        return None
    if not isinstance(limit, ast.Constant) or limit.value != 0.5:
        return None
    cast = file.parents.get(node)
    call = file.parents.get(cast) if isinstance(cast, ast.Attribute) and cast.attr in ("float", "double") else None
    if not isinstance(call, ast.Call):
        return None
    soft = file.segment(node.left)
    return [edit_of(file, call, f"({soft})" if isinstance(node.left, _BINDS_LOOSELY) else soft)]


def _grad_mode(cut: Cut, sources: set[ast.AST], program: Program) -> list[Edit] | None:
    node, file = cut.node, cut.file
    if isinstance(node, (ast.With, ast.AsyncWith)):
        return _left_block(node, file, sources, program)
    if isinstance(node, ast.Expr):
        return [remove_statement(file, node)]
    line = node.lineno  # type: ignore[attr-defined]
    function = file.parents.get(node)
    taken_off = Edit(file=file.path, start=file.line_start(line), end=file.line_start(line + 1), new="")
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) or not isinstance(node, ast.expr):
        return [taken_off]
    kept = keep_mode(function, file, file.segment(node), program)
    return [taken_off, *kept, *held_targets(function, file, program)]


def _left_block(
    block: ast.With | ast.AsyncWith, file: SourceFile, sources: set[ast.AST], program: Program
) -> list[Edit] | None:
    """The `with` goes, or, where it begins with what has no part in the graph, what has leaves it; targets stay without one."""
    if len(block.items) != 1 or block.body[0].lineno == block.lineno:
        return None
    first = next((at for at, one in enumerate(block.body) if sources & set(walk(one))), 0)
    if first and not any(isinstance(one, ast.Call) for part in block.body[:first] for one in walk(part)):
        first = 0
    head = [] if first else [_line_cut(file, block.lineno, block.body[0].lineno)]
    left = block.body[first:]
    held = targets_among(left, program.names(file).function_of(block), file, program)
    return [*head, *dedent(file, left, file.indent(block.lineno)), *held]


def _line_cut(file: SourceFile, first: int, last: int) -> Edit:
    return Edit(file=file.path, start=file.line_start(first), end=file.line_start(last), new="")


def dedent(file: SourceFile, statements: list[ast.stmt], indent: str) -> list[Edit]:
    """Moves statements out to `indent`; lines inside of strings stay as they are."""
    strings = {
        line
        for one in statements
        for node in walk(one)
        if isinstance(node, (ast.Constant, ast.JoinedStr)) and node.end_lineno != node.lineno
        for line in range(node.lineno + 1, (node.end_lineno or node.lineno) + 1)
    }
    step = len(file.indent(statements[0].lineno)) - len(indent)
    edits = []
    for line in range(statements[0].lineno, (statements[-1].end_lineno or 0) + 1):
        start = file.line_start(line)
        if line not in strings and file.line(line)[:step].isspace():
            edits.append(Edit(file=file.path, start=start, end=start + step, new=""))
    return edits
