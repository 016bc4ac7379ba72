"""The advantage of a policy's loss is a constant: `-(log_prob * advantage.detach()).mean()`.

As in the textbooks of policy gradients (REINFORCE with a baseline, actor-critic, PPO): the critic learns from its own loss
alone. The weight beside a log-probability is cut where it was computed from what another loss of the program regresses.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import put_method
from explainer.source.file import SourceFile
from explainer.source.graph.write import is_without_grad
from explainer.source.name import Names, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.kept import Kept, find_kept, name_read
from explainer.source.value.lineage import reads, scope_of, sources, statements_of
from explainer.source.value.provenance import provenance_of

_LOG_PROBABILITY = re.compile(r"log_?probs?|log_?pi|logp|ratios?", re.IGNORECASE)
_ADVANTAGE = re.compile(r"(?:^|_)(?:adv(?:s|antages?)?|gaes?|deltas?|td_?errors?)(?:_|$)", re.IGNORECASE)
_VALUE = re.compile(r"(?:^|_)(?:v|values?|critic|baseline)(?:_|s?$)", re.IGNORECASE)
_REGRESSIONS = frozenset(("mse_loss", "smooth_l1_loss", "huber_loss", "l1_loss", "pow", "square"))
_CALLS = frozenset(("torch.pow", "torch.square"))
_WHY = "goes backward through the critic as well, which the policy's loss does not train"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each weight of a log-probability that is not detached from the critic."""
    if not context.has_failed:
        return
    for file in context.program.parsed():
        if not _LOG_PROBABILITY.search(file.text):
            continue  # every product of a long file would be followed back for nothing
        for node in file.walk():
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
                weight = _weight(node, file, context.program) or _read_weight(node, context.program)
                if weight is not None:
                    edit = put_method(file, weight, ".detach()")
                    yield Proposal(edits=(edit,), culprit=culprit_of(file, weight, _WHY), belief=2.0)


def _weight(product: ast.BinOp, file: SourceFile, program: Program) -> ast.expr | None:
    """The factor beside a log-probability, where it is a critic's."""
    at = file.statement(product)
    for chance, weight in ((product.left, product.right), (product.right, product.left)):
        if _is_log_probability(chance, at, file, program) and not _is_log_probability(weight, at, file, program):
            is_plain = isinstance(weight, (ast.Name, ast.Attribute, ast.BinOp, ast.Subscript, ast.Call))
            return weight if is_plain and _is_of_critic(weight, at, file, program) else None
    return None


def _read_weight(product: ast.BinOp, program: Program) -> ast.expr | None:
    """The advantage that is read of a batch beside a log-probability, where it was computed of a critic's values elsewhere."""
    for chance, weight in ((product.left, product.right), (product.right, product.left)):
        inner = chance.operand if isinstance(chance, ast.UnaryOp) else chance
        name = name_read(weight) if isinstance(weight, (ast.Subscript, ast.Attribute)) else None
        if not _LOG_PROBABILITY.fullmatch(name_read(inner) or "") or name is None or not _ADVANTAGE.search(name):
            continue
        if any(_is_made_of_values(one, program) for one in find_kept({name}, program)):
            return weight
    return None


def _is_made_of_values(kept: Kept, program: Program) -> bool:
    """Whether what is kept has a graph, and values of a critic among what it is made of."""
    file, at = kept.file, kept.file.statement(kept.value)
    names = reads(kept.value) | {name for _, value in sources(kept.value, at, file, program) for name in reads(value)}
    is_of_values = any(_VALUE.search(part) for name in names for part in name.split("."))
    is_cut = is_without_grad(at, file, program)
    return is_of_values and not is_cut and bool(provenance_of(program).trace(Value(kept.value, file)).live)


def _is_log_probability(node: ast.expr, at: ast.stmt, file: SourceFile, program: Program) -> bool:
    """By what made it, or, where it came from outside the function, by its name."""
    if isinstance(node, ast.UnaryOp):
        return _is_log_probability(node.operand, at, file, program)
    lines = [node, *(value for _, value in sources(node, at, file, program))]
    if any(_calls(one, "log_prob") for one in lines):
        return True
    name = (dotted_name(node) or "").rpartition(".")[2]
    return bool(_LOG_PROBABILITY.fullmatch(name))


def _calls(node: ast.AST, method: str) -> bool:
    return any(isinstance(one, ast.Attribute) and one.attr == method for one in walk(node))


def _is_of_critic(weight: ast.expr, at: ast.stmt, file: SourceFile, program: Program) -> bool:
    """Whether gradients pass from a weight to values that another loss of the function regresses."""
    flow = reads(weight)
    if not flow:
        return False
    lines = sources(weight, at, file, program)
    names = {name for _, value in lines for name in reads(value)} | flow
    scope = scope_of(at, file, program)
    if not any(_VALUE.search(part) for name in names for part in name.split(".")):
        return False
    others = [one for one in statements_of(scope) if one is not at] if scope is not None else []
    regressed = {name for one in (*others, at) for name in _regressed(one, program.names(file))}
    return bool(regressed & names)


def _regressed(statement: ast.stmt, names: Names) -> Iterator[str]:
    """The names whose squares or distances a statement takes."""
    for node in walk(statement):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            yield from reads(node.left)
        elif isinstance(node, ast.Call):
            called = names.qualified(node.func) or ""
            method = node.func.attr if isinstance(node.func, ast.Attribute) else called
            if method in _REGRESSIONS or called in _CALLS:
                taken = [*node.args, *([node.func.value] if isinstance(node.func, ast.Attribute) else [])]
                yield from (name for one in taken for name in reads(one))
