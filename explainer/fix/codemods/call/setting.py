"""Gives settings other values, wherever they are written: a configuration file, a launch script, an argument in Python.

The rule's options:

- `swap`: what must be written and what is to be written for it (`explainer/fix/setting/choice.py` says how);
- `add` with `owner`: a setting that is added to the calls of an owner (`TrainingArguments`), or of a class that inherits it, or
  where such a call takes its `**options` from, where it is not written anywhere; `beside`: other settings of the owner, behind
  which it goes in a file that a parser reads;
- `only_with`: names of which the program must have one, as an argument, a function or a method that it calls;
- `not_in_place`: the fix is refused where the program's modules write in place (non-reentrant checkpointing does not notice);
- `in_files`: only configuration files and scripts are read, for the arguments in Python have a codemod of their own;
- `spares`: owners in Python that mean something else by the name;
- `gpu`: an ability that the GPU must have; not known, the fix is unsafe;
- `yours`: settings that train nothing whose written value is the author's: an edit that changes one is unsafe;
- `why`: what the line does, for the finding.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace

from explainer.fix.codemod import Context, Proposal, culprit_at, culprit_of
from explainer.fix.setting.choice import ANY, Swap, Wanted, has_value, is_setting, place_of_setting, read_swaps
from explainer.fix.setting.edit import add_key, remove, set_value
from explainer.fix.setting.owner import key_of_mapping, parsers_of, setting_in_call, settings_of_parser
from explainer.model.finding import Culprit
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.graph.segment_code import may_run_in_model
from explainer.source.graph.write import find_writes
from explainer.source.setting.owner import calls_of_owner
from explainer.source.setting.python import read_python
from explainer.source.setting.setting import ASSIGNED, IN_CODE, Setting

_MAX_PLACES = 4
_YOURS = (
    "both are written: what is trained is the same whichever of them gives way, how often each happens is yours to say"
)


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each place in which what the rule speaks of is written."""
    if not context.has_failed or not _is_possible(context):
        return
    found = False
    for swap in read_swaps(context.options.get("swap")):
        for proposal in _swapped(swap, context):
            found = True
            yield proposal
    if not found:
        yield from _added(context)


def _is_possible(context: Context) -> bool:
    options = context.options
    if options.get("gpu") and context.ability(str(options["gpu"])) is False:
        return False
    if options.get("not_in_place") and any(
        may_run_in_model(one.node, one.file, context.program) for one in find_writes(context.program)
    ):
        return False
    names = _words(options.get("only_with"))
    return not names or any(_mentions(file, names) for file in context.program.parsed())


def _words(option: object) -> list[str]:
    return [str(one) for one in option] if isinstance(option, Sequence) and not isinstance(option, str) else []


def _mentions(file: SourceFile, names: list[str]) -> bool:
    given = {node.arg for node in file.walk() if isinstance(node, ast.keyword)}
    made = {node.name for node in file.walk() if isinstance(node, ast.FunctionDef)}
    called = {
        node.func.attr for node in file.walk() if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    }
    return bool((given | made | called) & set(names))


def _swapped(swap: Swap, context: Context) -> Iterator[Proposal]:
    settings = _written(swap.names, context)
    for number, met in enumerate(_met(swap, settings)):
        edits = _edits(swap, met, settings)
        if edits and number < _MAX_PLACES:
            one = _proposal(context, edits, met[0], _belief(met[0], context) - 0.1 * number)
            yield (
                replace(one, applicability="unsafe", because=_YOURS)
                if _is_choice(swap, met, settings, context)
                else one
            )


def _is_choice(swap: Swap, met: tuple[Setting, ...], settings: list[Setting], context: Context) -> bool:
    """Whether a swap changes a value that the author wrote, where another of the two could give way."""
    place = place_of_setting(met[0], swap.conditions[0])
    yours = _words(context.options.get("yours"))
    written = [one for result in swap.results if result.name in yours for one in _beside(result, place, settings)]
    return any(one.value is not None and not has_value(one, False) for one in written)  # noqa: FBT003 - the value it has


def _proposal(context: Context, edits: list[Edit], first: Setting, belief: float) -> Proposal:
    is_unknown = bool(context.options.get("gpu")) and context.ability(str(context.options["gpu"])) is None
    span = (first.key or first.span)[0], first.span[1]
    return Proposal(
        edits=tuple(edits),
        culprit=culprit_at(first.file, span, str(context.options.get("why", "is what the library refuses"))),
        belief=belief,
        applicability="unsafe" if is_unknown else None,
        because=f"whether the GPU has {context.options['gpu']} is not known" if is_unknown else None,
    )


def _belief(one: Setting, context: Context) -> float:
    """A line of a traceback, or a file that the program or a script names, is more likely the guilty one."""
    if one.kind in IN_CODE:
        lines = [(frame.file.rpartition("/")[2], frame.line) for frame in context.frames]
        return 1.5 if any(one.file.path.endswith(name) and line == one.line for name, line in lines) else 1.0
    name = one.file.path.rpartition("/")[2]
    texts = (*context.program.order, *context.program.texts)
    return 1.2 if any(name in text.text for text in texts if text.path != one.file.path) else 0.5


def _written(names: set[str], context: Context) -> list[Setting]:
    """The settings of those names: in configuration files and scripts first, then in Python."""
    program = context.program
    found = [
        one
        for document in program.documents()
        if any(name.lower() in document.file.text.replace("-", "_").lower() for name in names)
        for one in document.settings
        if one.name in names
    ]
    for file in program.parsed() if not context.options.get("in_files") else ():
        # A bare variable is no option: `fp16 = True` may be read by anybody.
        found += [one for one in read_python(file) if one.name in names and (one.kind != ASSIGNED or one.owner)]
    spared = set(_words(context.options.get("spares")))
    return [one for one in found if (one.owner or "").rpartition(".")[2] not in spared]


def _met(swap: Swap, settings: list[Setting]) -> Iterator[tuple[Setting, ...]]:
    """The settings that meet all conditions of a swap, place by place."""
    if not swap.conditions:
        return
    first = swap.conditions[0]
    for one in settings:
        if not is_setting(one, first) or not has_value(one, first.value):
            continue
        met = [one]
        for other in swap.conditions[1:]:
            beside = _beside(other, place_of_setting(one, first), settings)
            met += [it for it in beside if has_value(it, other.value)][:1]
        if len(met) == len(swap.conditions):
            yield tuple(met)


def _beside(wanted: Wanted, place: tuple[object, ...], settings: list[Setting]) -> list[Setting]:
    return [one for one in settings if is_setting(one, wanted) and place_of_setting(one, wanted) == place]


def _edits(swap: Swap, met: tuple[Setting, ...], settings: list[Setting]) -> list[Edit]:
    """What a swap changes in one place; nothing where a part of it cannot be done."""
    place = place_of_setting(met[0], swap.conditions[0])
    found: list[Edit | str] = []
    for result in swap.results:
        beside = _beside(result, place, settings)
        value = _value(result, swap, met)
        if result.is_gone:
            found += [remove(one) for one in beside]
        elif beside:
            found += [set_value(one, value) for one in beside if not has_value(one, value)]
        elif len(result.parts) == 1:
            found.append(add_key(met[-1], result.name, value))
    return [one for one in found if isinstance(one, Edit)] if not any(isinstance(one, str) for one in found) else []


def _value(result: Wanted, swap: Swap, met: tuple[Setting, ...]) -> object:
    """The value that is wanted; `@name` is that of a setting among the conditions."""
    for condition, one in zip(swap.conditions, met, strict=True):
        if result.value == f"@{condition.name}":
            return one.value
    return result.value if result.value != ANY else None


def _added(context: Context) -> Iterator[Proposal]:
    """A new argument beside the others of an owner's call, or in the file that the call takes its arguments from."""
    owners = _words(context.options.get("owner"))
    why = str(context.options.get("why", "leaves it at its default"))
    for swap in read_swaps([context.options.get("add", "")]):
        if len(swap.results) != 1 or _written(swap.names, context):
            return
        name, value = swap.results[0].name, swap.results[0].value
        calls = list(calls_of_owner(owners, context.program))
        for file, call in calls:
            found = setting_in_call(call, name, value, file, context.program)
            if found is not None:
                # What lacks the setting is the call, wherever its arguments are written.
                yield Proposal(edits=(found,), culprit=culprit_of(file, call, why), belief=0.3)
        known = _words(context.options.get("beside"))
        for one in settings_of_parser(owners, known, context.program) if not calls else ():
            edit = add_key(one, name, value)
            if isinstance(edit, Edit):
                yield Proposal(edits=(edit,), culprit=_lacking(one, owners, why, context), belief=0.3)


def _lacking(sibling: Setting, owners: Sequence[str], why: str, context: Context) -> Culprit:
    """The line that lacks a setting: the key of the mapping that it is added to; of a whole file or script the parser's call."""
    key = key_of_mapping(sibling)
    if key is not None:
        return culprit_at(sibling.file, key, why)
    file, call = next(parsers_of(owners, context.program))
    return culprit_of(file, call, why)
