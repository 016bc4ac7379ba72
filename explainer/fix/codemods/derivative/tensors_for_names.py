"""`torch.autograd.grad(loss, model.parameters())` for `named_parameters()`: autograd takes tensors."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.model.patch import Edit
from explainer.source.tree import walk

_CALLS = ("torch.autograd.grad", "torch.autograd.backward", ".backward")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each list of named parameters that is given as inputs."""
    if not context.has_failed:
        return
    for file in context.program.parsed():
        for call in file.walk():
            if not isinstance(call, ast.Call) or not context.program.names(file).is_call(call, *_CALLS):
                continue
            given = [*call.args[1:2], *(one.value for one in call.keywords if one.arg == "inputs")]
            for node in (each for one in given for each in walk(one)):
                func = node.func if isinstance(node, ast.Call) else None
                is_walked = isinstance(file.parents.get(node), ast.comprehension)
                if isinstance(func, ast.Attribute) and func.attr == "named_parameters" and not is_walked:
                    end = file.span(func)[1]
                    yield Proposal(
                        edits=(Edit(file=file.path, start=end - len(func.attr), end=end, new="parameters"),),
                        culprit=culprit_of(
                            file, call, f"gives pairs of names and tensors of `{file.segment(func.value)}` as inputs"
                        ),
                        belief=1.5,
                    )
