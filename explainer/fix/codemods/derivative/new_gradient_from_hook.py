"""A tensor's hook returns a new gradient where it was seen to write the one that another branch has too.

`t.register_hook(lambda grad: grad.mul_(0.1))` becomes `t.register_hook(lambda grad: grad.mul(0.1))`. Only of functions that are
hooks of tensors and nothing else, and that return nothing else.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.write.hook_result import copied, returned
from explainer.model.verification import WRITES_GIVEN
from explainer.source.graph.write import writes_in
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.value.callee import Callee, callees_of

_HOOK = "register_hook"
_SEEN = re.compile(rf"(\S+):(\d+) {re.escape(WRITES_GIVEN)}")
_DECORATORS = frozenset({"staticmethod", "torch.no_grad", "no_grad"})


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each hook that was seen; its line alone where what it returns is not for this to say."""
    seen = {(found[1], int(found[2])) for one in context.incident.log if (found := _SEEN.search(one.text))}
    hooks = _hooks(context.program) if seen else {}
    for hook, name in hooks.items():
        file, program = hook.file, context.program
        first = min([hook.function, *getattr(hook.function, "decorator_list", ())], key=lambda one: one.lineno)
        if (file.path.replace("\\", "/").rpartition("/")[2], first.lineno) not in seen:
            continue
        writes = [one for one in writes_in(hook.function, file, program) if _root(one.target) == name]
        at = writes[0].node if writes else hook.function
        culprit = culprit_of(file, at, f"writes `{name}` in place, which autograd has given to another branch too")
        ways = [(returned(hook, name, writes, _DECORATORS), 2.0), (copied(hook, name, _DECORATORS), 1.0)]
        ways = [] if _is_used_otherwise(hook, program) else [one for one in ways if one[0]]
        for edits, belief in ways or [((), 2.0)]:
            yield Proposal(edits=edits, culprit=culprit, belief=belief)


def _hooks(program: Program) -> dict[Callee, str]:
    """The functions that are hooks of tensors, each with the name of its gradient."""
    found: dict[Callee, str] = {}
    for file in program.parsed():
        for node in file.walk():
            given = _registered(node) if isinstance(node, ast.Call) and _method(node) == _HOOK else None
            for callee in callees_of(given, file, program) if given is not None else ():
                name = callee.parameter(0)
                if name is not None:
                    found[callee] = name
    return found


def _registered(call: ast.Call) -> ast.expr | None:
    return next((one.value for one in call.keywords if one.arg == "hook"), call.args[0] if call.args else None)


def _method(node: ast.AST) -> str:
    func = node.func if isinstance(node, ast.Call) else None
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")


def _root(target: ast.expr) -> str | None:
    while isinstance(target, ast.Subscript):
        target = target.value
    return dotted_name(target)


def _is_used_otherwise(hook: Callee, program: Program) -> bool:
    """Whether the function is called by the program itself, which has its gradient written, or is a hook of another kind."""
    name = getattr(hook.function, "name", None)
    for file in program.parsed():
        for node in file.walk():
            method = _method(node)
            if not isinstance(node, ast.Call) or name is None:
                continue
            asked = node.func if method == name else None
            if method.endswith("_hook") and method != _HOOK:
                asked = _registered(node)
            if asked is not None and any(one.function is hook.function for one in callees_of(asked, file, program)):
                return True
    return False
