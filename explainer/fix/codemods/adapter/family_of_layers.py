"""A table of layer names is asked for another family of models: `ATTENTION[args.family]` with "llama", where the model is a GPT-NeoX.

The right entry is known by the live model: it is the one whose names the model has. What is changed is the word that chooses it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from explainer.fix.clue.crash import message_of
from explainer.fix.codemod import Context, Proposal, culprit_at
from explainer.fix.setting.edit import set_value
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.program import Program
from explainer.source.setting.flow import settings_behind
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.resolve import resolver_of

_SAID = ("not found in the base model", "No modules were targeted for adaptation")
_OPTION = "target_modules"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the setting that chooses the entry, where just one other entry fits the model."""
    paths = next((one.value.split() for one in context.incident.facts if one.name == "live_layers"), [])
    if not any(one in message_of(context) for one in _SAID) or not paths:
        return
    for file, chosen in _chosen(context.program):
        table = _table(chosen.value, file, context.program)
        fits = [key for key, names in table.items() if names and all(_has(paths, one) for one in names)]
        for one in settings_behind(chosen.slice, file, context.program) if len(fits) == 1 else ():
            edit = set_value(one, fits[0]) if one.value in table and one.value != fits[0] else None
            if isinstance(edit, Edit):
                names = ", ".join(table[str(one.value)])
                why = f"chooses the names {names}, which this model does not have; it has those of `{fits[0]}`"
                yield Proposal(
                    edits=(edit,),
                    culprit=culprit_at(one.file, one.span, why),
                    belief=2.6,
                    applicability="unsafe",
                    because=f"of the entries in the table only that of `{fits[0]}` names layers of this model",
                    title=f"Choose the layer names of the model that is wrapped: `{fits[0]}` for `{one.value}`",
                )


def _chosen(program: Program) -> Iterator[tuple[SourceFile, ast.Subscript]]:
    """What is taken out of a table by a name that is no constant, for `target_modules`."""
    for file in program.parsed():
        for node in file.walk():
            if isinstance(node, ast.keyword) and node.arg == _OPTION:
                for one in (Value(node.value, file), *resolver_of(program).behind(Value(node.value, file))):
                    if isinstance(one.node, ast.Subscript) and not isinstance(one.node.slice, ast.Constant):
                        yield one.file, one.node


def _table(node: ast.expr, file: SourceFile, program: Program) -> Mapping[str, list[str]]:
    """The names of layers by family, as a dictionary of lists is written; empty where it is something else."""
    behind = [one.node for one in resolver_of(program).behind(Value(node, file))]
    made = behind[0] if len(behind) == 1 else None
    pairs = zip(made.keys, made.values, strict=True) if isinstance(made, ast.Dict) else ()
    return {str(key.value): _words(value) for key, value in pairs if isinstance(key, ast.Constant)}


def _words(node: ast.expr) -> list[str]:
    found = [one.value for one in walk(node) if isinstance(one, ast.Constant)]
    is_list = isinstance(node, (ast.List, ast.Tuple, ast.Set)) and all(isinstance(one, str) for one in found)
    return [str(one) for one in found] if is_list else []


def _has(paths: list[str], name: str) -> bool:
    """Whether PEFT finds a name: a path is it, or ends in it."""
    return any(one == name or one.endswith(f".{name}") for one in paths)
