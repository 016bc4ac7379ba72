"""`gradcheck(f, torch.randn(4, dtype=torch.float64, requires_grad=True))`: differences of float32 values have too few digits."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import add_argument, spell
from explainer.source.file import SourceFile
from explainer.source.tree import walk
from explainer.source.value.binding import reaching

_CHECKS = ("torch.autograd.gradcheck", "torch.autograd.gradgradcheck", "torch.autograd.gradcheck.gradcheck",
           "torch.autograd.gradcheck.gradgradcheck")  # fmt: skip
# `torch.tensor` and `torch.full` make integers of integers: an index stays one.
_MAKERS = ("torch.randn", "torch.rand", "torch.ones", "torch.zeros", "torch.linspace")


def propose(context: Context) -> Iterator[Proposal]:
    """One edit for all inputs of the failing check whose making is seen, where none says a dtype."""
    if not context.has_failed:
        return
    for file, statement in list(raised_at(context))[:1]:
        names = context.program.names(file)
        for call in walk(statement):
            if not isinstance(call, ast.Call) or not names.is_call(call, *_CHECKS) or len(call.args) < 2:
                continue
            made = [one for one in dict.fromkeys(_made(call.args[1], statement, file)) if names.is_call(one, *_MAKERS)]
            made = [one for one in made if not any(given.arg in ("dtype", None) for given in one.keywords)]
            if made:
                dtype = f"dtype={spell(names, 'torch.float64')}"
                yield Proposal(
                    edits=tuple(add_argument(file, one, dtype) for one in made),
                    culprit=culprit_of(
                        file, made[0], "makes float32 inputs, whose differences are too coarse for the check"
                    ),
                    belief=1.5,
                )


def _made(node: ast.expr, statement: ast.stmt, file: SourceFile) -> Iterator[ast.Call]:
    """The calls that make the inputs: in place, or bound to their names before."""
    for one in walk(node):
        if isinstance(one, ast.Call):
            yield one
        elif isinstance(one, ast.Name):
            for bound in reaching(one.id, statement, file):
                yield from (each for each in walk(bound.node) if isinstance(each, ast.Call))
