"""`self.points = torch.cat(...).detach().requires_grad_(True)`, where the attribute has its flag wherever else it is bound.

A gradient is asked by it: what binds it anew, as a refinement or a reset does, has to flag it again.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import put_method
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.tree import walk


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each attribute of a class that some of its statements bind with the flag, and some without."""
    if not context.has_failed:
        return
    for file in context.program.parsed():
        for owner in (one for one in file.walk() if isinstance(one, ast.ClassDef)):
            for name, bound in _bound(owner).items():
                plain = [one for one in bound if not _is_flagged(one.value)]
                flagged = len(bound) - len(plain)
                is_made = all(isinstance(one.value, (ast.Call, ast.BinOp)) for one in plain)
                if flagged and plain and is_made and not _is_flagged_later(name, owner, file):
                    yield Proposal(
                        edits=tuple(put_method(file, one.value, ".requires_grad_(True)") for one in plain),
                        culprit=culprit_of(file, plain[0], f"binds `{name}` anew without the flag that it had"),
                        belief=2.3,
                        is_origin=True,
                    )


def _bound(owner: ast.ClassDef) -> dict[str, list[ast.Assign]]:
    """The statements of a class that bind each of its attributes to anything but a constant."""
    found: dict[str, list[ast.Assign]] = {}
    for node in walk(owner):
        if not isinstance(node, ast.Assign) or len(node.targets) != 1 or isinstance(node.value, ast.Constant):
            continue
        name = dotted_name(node.targets[0])
        if name is not None and name.startswith("self."):
            found.setdefault(name, []).append(node)
    return found


def _is_flagged(value: ast.expr) -> bool:
    """Whether the tensor itself is made with the flag, or gets it: `torch.rand(8).requires_grad_(True)`."""
    if not isinstance(value, ast.Call):
        return False
    is_method = isinstance(value.func, ast.Attribute) and value.func.attr == "requires_grad_"
    return is_method or any(one.arg == "requires_grad" for one in value.keywords)


def _is_flagged_later(name: str, owner: ast.ClassDef, file: SourceFile) -> bool:
    """Whether a statement sets the flag of the attribute by itself."""
    calls = (one.value for one in file.attributes.get("requires_grad_", ()))
    sets = (one.value for one in file.attributes.get("requires_grad", ()) if isinstance(one.ctx, ast.Store))
    inside = set(walk(owner))
    return any(dotted_name(one) == name and one in inside for one in (*calls, *sets))
