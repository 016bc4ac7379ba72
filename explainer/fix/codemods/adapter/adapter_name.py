"""Names an adapter that there is: `set_adapter("default")`; gives a second adapter a name of its own."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator

from explainer.fix.clue.failure import failing_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import add_argument
from explainer.source.file import SourceFile
from explainer.source.name import Names
from explainer.source.tree import walk

_MAKES = frozenset({"get_peft_model", "add_adapter", "load_adapter", "from_pretrained"})
_USES = frozenset({"set_adapter", "delete_adapter", "set_requires_grad", "merge_adapter"})


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the failing call that uses a name which is not there, or takes one that is."""
    if not context.has_failed:
        return
    for file, statement in failing_statements(context):
        names = context.program.names(file)
        for node in walk(statement):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            before = _known(node, file, names)
            if node.func.attr in _USES:
                yield from _used(node, before, file)
            elif node.func.attr == "add_adapter" and _name(node) in before:
                new = next(one for one in ("second", "third", "fourth", "fifth", "other") if one not in before)
                yield Proposal(
                    edits=(add_argument(file, node, f'adapter_name="{new}"'),),
                    culprit=culprit_of(
                        file, node, f'adds an adapter under the name "{_name(node)}", which another one has'
                    ),
                    belief=2.0,
                )


def _name(node: ast.Call) -> str:
    """The name that a call gives to an adapter."""
    given = [one.value for one in node.keywords if one.arg == "adapter_name"]
    given += [one for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str)][-1:]
    named = [one.value for one in given if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    is_path = (
        isinstance(node.func, ast.Attribute)
        and node.func.attr in ("from_pretrained", "load_adapter")
        and len(node.args) < 2
    )
    return "default" if not named or (is_path and not node.keywords) else str(named[0])


def _known(node: ast.Call, file: SourceFile, names: Names) -> list[str]:
    """The names of the adapters that are made before a call."""
    found = [
        (one.lineno, _name(one))
        for one in file.walk()
        if isinstance(one, ast.Call)
        and one.lineno < node.lineno
        and (
            (names.qualified(one.func) or "").startswith("peft.")
            or getattr(one.func, "attr", "") in ("add_adapter", "load_adapter")
        )
        and str(names.qualified(one.func) or getattr(one.func, "attr", "")).rpartition(".")[2] in _MAKES
    ]
    return [name for _, name in sorted(found)]


def _used(node: ast.Call, known: list[str], file: SourceFile) -> Iterator[Proposal]:
    wanted = node.args[0] if node.args else None
    if not isinstance(wanted, ast.Constant) or not known or wanted.value in known:
        return
    name = str(wanted.value)
    alike = difflib.get_close_matches(name, known, 1, 0.5)
    quote = file.segment(wanted)[0]
    yield Proposal(
        edits=(edit_of(file, wanted, f"{quote}{alike[0] if alike else known[-1]}{quote}"),),
        culprit=culprit_of(file, wanted, f'names "{name}", where the adapters are called {", ".join(known)}'),
        belief=2.0,
    )
