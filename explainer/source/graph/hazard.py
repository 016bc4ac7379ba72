"""Expressions whose derivative is infinite or undefined somewhere: roots, logarithms, quotients, powers, inverse cosines, exponentials.

A hazard is left out where the source shows that its argument stays away from the bad place (`x + eps`, `clamp_min(1e-8)`, a
safe `where`), and where no gradient passes through it.
"""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator
from dataclasses import dataclass

from explainer.source.file import SourceFile
from explainer.source.name import Names
from explainer.source.program import Program
from explainer.source.value.flow import Reach, flow_of
from explainer.source.value.number import number_of
from explainer.source.value.sign import Sign, definition_of, is_positive, value_of

LOG, ROOT, QUOTIENT, POWER, ARC, NORM, EXP = "log", "root", "quotient", "power", "arc", "norm", "exp"
DEVIATION = "deviation"
INVERSE = "inverse"
_KINDS = {
    "log": LOG, "log2": LOG, "log10": LOG, "sqrt": ROOT, "rsqrt": ROOT, "reciprocal": QUOTIENT, "acos": ARC, "asin": ARC,
    "arccos": ARC, "arcsin": ARC, "atanh": ARC, "pow": POWER, "div": QUOTIENT, "divide": QUOTIENT, "true_divide": QUOTIENT,
    "norm": NORM, "vector_norm": NORM, "exp": EXP,
}  # fmt: skip
_OWNERS = ("torch", "torch.special", "torch.linalg", "torch.nn.functional")
# autograd's nodes of each kind, without `Backward0`.
NODES = {
    LOG: {"Log", "Log2", "Log10"},
    ROOT: {"Sqrt", "Rsqrt"},
    QUOTIENT: {"Div", "Reciprocal", "Mul"},
    POWER: {"Pow"},
    ARC: {"Acos", "Asin", "Atanh"},
    NORM: {"LinalgVectorNorm", "Norm", "Div"},
    EXP: {"Exp", "Expm1"},
    DEVIATION: set(),
    INVERSE: set(),
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Hazard:
    """An expression and the operand at fault: `argument` is what must stay away from the bad place.

    `reach` says whether a gradient passes through; `sign` what the source shows of the argument.
    """

    kind: str
    file: SourceFile
    node: ast.expr
    argument: ast.expr
    reach: Reach
    sign: Sign


def find_hazards(program: Program, known: Container[ast.stmt] = (), *, with_negative: bool = False) -> Iterator[Hazard]:
    """Every hazard of a program through which a gradient may pass, file by file; through the `known` statements one does.

    `with_negative` asks for powers as `x ** 1.5` too, that are wrong below 0 only.
    """
    flow = flow_of(program)
    for file in program.parsed():
        names = program.names(file)
        for node in file.walk():
            found = _operand(node, names)
            if found is None:
                power = _of_negative(node, names) if with_negative else None
                if power is None or value_of(power, file, program).not_negative:
                    continue
                found = POWER, power
            kind, argument = found
            assert isinstance(node, ast.expr)
            reach = flow.reach_of(node if kind == QUOTIENT else argument, file)
            if not reach and file.statement(node) in known:
                reach = Reach.SURE
            if reach and not _is_safe(kind, argument, file, program):
                yield Hazard(
                    kind=kind,
                    file=file,
                    node=node,
                    argument=argument,
                    reach=reach,
                    sign=value_of(argument, file, program),
                )


def find_deviations(program: Program) -> Iterator[Hazard]:
    """Divisions of data by a standard deviation, which is 0 for a constant column; no gradient passes through them."""
    for file in program.parsed():
        for node in file.walk():
            if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Div):
                continue
            value = definition_of(node.right, file, program) or node.right
            is_deviation = (
                isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "std"
            )
            if is_deviation and not flow_of(program).reach_of(node, file):
                sign = value_of(node.right, file, program)
                yield Hazard(kind=DEVIATION, file=file, node=node, argument=node.right, reach=Reach.SURE, sign=sign)


def find_inverses(program: Program, known: Container[ast.stmt]) -> Iterator[Hazard]:
    """Negative fractional powers of data, `degree.pow(-0.5)`, on statements that are known: infinite at 0, where a root is not."""
    for file in program.parsed():
        names = program.names(file)
        for node in file.walk():
            argument = _inverted(node, names)
            if argument is not None and isinstance(node, ast.expr) and file.statement(node) in known:
                sign = value_of(argument, file, program)
                if not is_positive(sign):
                    yield Hazard(kind=INVERSE, file=file, node=node, argument=argument, reach=Reach.SURE, sign=sign)


def _inverted(node: ast.AST, names: Names) -> ast.expr | None:
    """What is raised to a negative power that only what is not negative has."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        base, power = node.left, number_of(node.right, names)
        return base if power is not None and power < 0 and power % 1 else None
    if not isinstance(node, ast.Call):
        return None
    called = names.qualified(node.func) or ""
    is_function = called.startswith("torch.")
    operands = node.args if is_function or not isinstance(node.func, ast.Attribute) else [node.func.value, *node.args]
    last = called.rpartition(".")[2] if is_function else getattr(node.func, "attr", "")
    if last == "rsqrt" and operands:
        return operands[0]
    power = number_of(operands[1], names) if last == "pow" and len(operands) > 1 else None
    return operands[0] if power is not None and power < 0 and power % 1 else None


def _operand(node: ast.AST, names: Names) -> tuple[str, ast.expr] | None:
    """The kind of a singular operation and its dangerous operand; None for anything else."""
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Div) and number_of(node.right, names) is None:
            return QUOTIENT, node.right
        if isinstance(node.op, ast.Pow) and _is_singular_power(node.right, names):
            return POWER, node.left
        return None
    if not isinstance(node, ast.Call):
        return None
    called = names.qualified(node.func) or ""
    owner, _, last = called.rpartition(".")
    if owner in _OWNERS and last in _KINDS:
        given = {one.arg: one.value for one in node.keywords}
        operands = [*node.args, *(given[name] for name in ("input", "x", "other", "exponent") if name in given)]
    elif isinstance(node.func, ast.Attribute) and node.func.attr in _KINDS and not _is_foreign(called):
        last, operands = node.func.attr, [node.func.value, *node.args]
    else:
        return None
    kind = _KINDS[last]
    if kind == POWER:
        return (POWER, operands[0]) if len(operands) > 1 and _is_singular_power(operands[1], names) else None
    at = 1 if last in ("div", "divide", "true_divide") else 0
    return (kind, operands[at]) if at < len(operands) and number_of(operands[at], names) is None else None


def _of_negative(node: ast.AST, names: Names) -> ast.expr | None:
    """What is raised to a power above 1 that no negative number has: `head` of `head ** 1.5`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        base, exponent = node.left, node.right
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "pow":
        operands = [*([] if names.qualified(node.func) == "torch.pow" else [node.func.value]), *node.args]
        if len(operands) < 2:
            return None
        base, exponent = operands[:2]
    else:
        return None
    number = number_of(exponent, names)
    return base if number is not None and number > 1 and number % 1 else None


def _is_foreign(called: str) -> bool:
    return called.startswith(("numpy.", "math.", "scipy.", "torch.distributions", "cmath."))


def _is_singular_power(exponent: ast.expr, names: Names) -> bool:
    """Whether a power has a singular derivative at 0: a fraction below 1, a negative one, or one that is not known."""
    number = number_of(exponent, names)
    if number is None:
        return True
    return number < 0 or (number < 1 and number != 0)


def _is_safe(kind: str, argument: ast.expr, file: SourceFile, program: Program) -> bool:
    sign = value_of(argument, file, program)
    if kind == ARC:
        return sign.inside
    if kind == EXP:
        return sign.bounded
    if kind == NORM:
        return False
    return is_positive(sign)
