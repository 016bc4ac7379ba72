"""Gives `target_modules` names that the model has: those of its architecture, a list for one string, an open pattern.

With the paths of a live model also the head of a pattern for another release's tree, and a longer name where one fits a block too.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from explainer.fix.clue.crash import message_of
from explainer.fix.codemod import Context, Proposal, culprit_at, culprit_of, edit_of
from explainer.fix.network.layer_path import entered, inside, layers_within, leaves, narrowed, picked, repathed
from explainer.fix.network.projection import (
    architecture_of_class,
    architecture_of_release,
    known_architecture,
    names_among,
    names_for,
)
from explainer.fix.setting.edit import set_value
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.program import Program
from explainer.source.setting.declared import declared_values, is_literal_list
from explainer.source.setting.setting import Setting
from explainer.source.value.binding import Value, bounds_of, find_calls
from explainer.source.value.resolve import resolver_of

_LAYERS = ("torch.nn.Linear", "torch.nn.Embedding", "torch.nn.Conv1d", "torch.nn.Conv2d")
_TOWERS = re.compile(
    r"language|text|vision|visual|image|audio|speech|tower"
)  # a head that chooses one of several models
_DEPTH = 4
_TAKES_ALL = "takes every child of a container, also those that are no layers"
_TAKES_BLOCKS = "fits a block, beside the layers in it"
_LATER = 0.4  # a second answer for the same list


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each `target_modules` that fits nothing."""
    if not context.has_failed:
        return
    seen: set[ast.AST] = set()
    for file in context.program.parsed():
        for node in file.walk():
            if isinstance(node, ast.keyword) and node.arg == "target_modules":
                yield from _settled(node.value, file, context, seen)
    for value in declared_values("target_modules", context.program):
        yield from _settled(value.node, value.file, context, seen)
    for document in context.program.documents("target_modules"):
        for setting in document.named("target_modules"):
            yield from _in_a_file(setting, context)


def _in_a_file(setting: Setting, context: Context) -> Iterator[Proposal]:
    """The names as a configuration file gives them: one string of several, or a list of which this model has none."""
    value = setting.value
    if isinstance(value, str) and _is_enumeration(value):
        new = [[one.strip() for one in value.split(",")]]
        why = f'"{value}" is one pattern for PEFT, which no module is called'
    elif isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        new = _fitting(value, context) if _is_meant(value, context) else []
        why = _why(value, context)
    elif isinstance(value, str) and (moved := repathed(value, _live("live_layers", context) or ())) is not None:
        yield from _placed(
            set_value(setting, value.replace(*moved, 1)), setting, "spells a path that this model does not have"
        )
        return
    elif isinstance(value, str) and (told := _picked(value, context) or _leaves(value, context)) is not None:
        edit = set_value(setting, told)
        if isinstance(edit, Edit) and value in setting.raw:  # in its own quotes
            edit = Edit(file=edit.file, start=edit.start, end=edit.end, new=setting.raw.replace(value, told))
        yield from _placed(edit, setting, _TAKES_ALL if _picked(value, context) else _TAKES_BLOCKS)
        return
    else:
        return
    for at, names in enumerate(new):
        for one in _placed(set_value(setting, names), setting, why):
            yield replace(one, belief=2.0 - at * _LATER)


def _placed(edit: Edit | str, setting: Setting, why: str) -> Iterator[Proposal]:
    if isinstance(edit, Edit):
        yield Proposal(edits=(edit,), culprit=culprit_at(setting.file, setting.span, why), belief=2.0)


def _picked(text: str, context: Context) -> str | None:
    """A pattern that takes all children of a container, with the numbers of its layers; None where it is no such pattern."""
    if "is not supported" not in message_of(context):
        return None
    return picked(text, _live("live_layers", context) or (), _live("live_numbered", context) or ())


def _leaves(text: str, context: Context) -> str | None:
    """A pattern of blocks as one of the layers in them, as the live model has them."""
    if "is not supported" not in message_of(context):
        return None
    return leaves(text, _live("live_layers", context) or (), _live("live_blocks", context) or ())


def _live(name: str, context: Context) -> list[str] | None:
    """The paths that a live model was seen to have; None where none was seen."""
    return next((one.value.split() for one in context.incident.facts if one.name == name), None)


def _is_enumeration(text: str) -> bool:
    """Whether a string lists several names, as PEFT does not read it."""
    return "," in text and re.fullmatch(r"[\w.,\s]+", text) is not None


def _settled(
    value: ast.expr, file: SourceFile, context: Context, seen: set[ast.AST], depth: int = 0
) -> Iterator[Proposal]:
    """The edits of what a value comes from: a literal, here or where its name, field or option is declared."""
    bare, is_split = _bare(value)
    if isinstance(bare, ast.Attribute) or (isinstance(bare, ast.Subscript) and isinstance(bare.slice, ast.Constant)):
        last = bare.attr if isinstance(bare, ast.Attribute) else str(bare.slice.value)  # type: ignore[attr-defined]
        found = [Value(bare, file), *declared_values(last, context.program)]
    else:
        found = [Value(bare, file)]
    for one in [*found, *resolver_of(context.program).behind(Value(bare, file))]:
        if one.node in seen:
            continue
        if isinstance(one.node, ast.Constant) and isinstance(one.node.value, str):
            seen.add(one.node)
            yield from _string(one.node, one.file, value, file, context, is_split=is_split)
        elif is_literal_list(one.node):
            seen.add(one.node)
            yield from _listed(one.node, one.file, context)
        elif one.node is not bare and depth < _DEPTH:
            yield from _settled(one.node, one.file, context, seen, depth + 1)


def _bare(value: ast.expr) -> tuple[ast.expr, bool]:
    """What is handed on by `list(...)` and cut by `.split(...)`, and whether it was cut."""
    is_split = False
    while isinstance(value, ast.Call):
        func = value.func
        if isinstance(func, ast.Name) and func.id in ("list", "tuple", "set", "sorted") and len(value.args) == 1:
            value = value.args[0]
        elif isinstance(func, ast.Attribute) and func.attr == "split":
            value, is_split = func.value, True
        else:
            break
    return value, is_split


def _string(
    node: ast.Constant, file: SourceFile, use: ast.expr, where: SourceFile, context: Context, *, is_split: bool
) -> Iterator[Proposal]:
    text = str(node.value)
    if is_split:
        yield from _cut_string(node, text, file, context)
    elif _is_enumeration(text):
        separator = ", " if ", " in text else ","
        if use is node:
            new = "[" + ", ".join(f'"{one.strip()}"' for one in text.split(",")) + "]"
        else:
            new = f'{where.segment(use)}.split("{separator}")'
        yield Proposal(
            edits=(edit_of(where, use, new),),
            culprit=culprit_of(where, use, f'"{text}" is one pattern for PEFT, which no module is called'),
            belief=2.0,
        )
    elif re.fullmatch(r"\w+", text) and f"modules {text} not found" in message_of(context):
        names = next(iter(_fitting([text], context)), [text])
        yield Proposal(
            edits=(edit_of(file, node, "[" + ", ".join(f'"{one}"' for one in names) + "]"),),
            culprit=culprit_of(file, node, f'"{text}" is a pattern for a whole path, which no module has'),
            belief=2.0,
        )
    elif "is not supported" in message_of(context):
        inner, raw = (
            inside(text, layers_within(message_of(context)), _live("live_layers", context) or ()),
            file.segment(node),
        )
        inner = inner or _leaves(text, context)
        numbers = _picked(text, context)
        if numbers is not None and raw.startswith(("r", "R")):
            yield Proposal(
                edits=(edit_of(file, node, f"{raw[:2]}{numbers}{raw[-1]}"),),
                culprit=culprit_of(file, node, _TAKES_ALL),
                belief=2.2,
            )
        elif inner is not None and raw.startswith(("r", "R")):
            yield Proposal(
                edits=(edit_of(file, node, f"{raw[:2]}{inner}{raw[-1]}"),),
                culprit=culprit_of(file, node, _TAKES_BLOCKS),
                belief=2.0,
            )
    elif (edit := _moved(node, text, file, context) or _opened(node, text, file)) is not None:
        yield Proposal(
            edits=(edit,),
            culprit=culprit_of(file, node, "spells a path that this class of model does not have"),
            belief=1.5,
        )


def _cut_string(node: ast.Constant, text: str, file: SourceFile, context: Context) -> Iterator[Proposal]:
    """Names in one string that the program cuts at commas or spaces."""
    separator = next((one for one in (", ", ",", " ") if one in text), ",")
    names = [one.strip() for one in text.split(separator)]
    quote = file.segment(node)[-1]
    for at, new in enumerate(_fitting(names, context) if _is_meant(names, context) else ()):
        yield Proposal(
            edits=(edit_of(file, node, f"{quote}{separator.join(new)}{quote}"),),
            culprit=culprit_of(file, node, _why(names, context)),
            belief=2.0 - at * _LATER,
        )


def _moved(node: ast.Constant, text: str, file: SourceFile, context: Context) -> Edit | None:
    """The pattern with the head that the live model has."""
    moved, raw = repathed(text, _live("live_layers", context) or ()), file.segment(node)
    return edit_of(file, node, raw.replace(*moved, 1)) if moved is not None and moved[0] in raw else None


def _opened(node: ast.Constant, text: str, file: SourceFile) -> Edit | None:
    """The pattern from its `layers` on, open before."""
    found = re.search(r"(?:layers|blocks|h|layer)\\\.", text)
    raw = file.segment(node)
    if (
        found is None
        or found.start() == 0
        or _TOWERS.search(text[: found.start()])
        or text.startswith(".*")
        or text[found.start() :] not in raw
    ):
        return None
    head, quote = re.match(r"[rR]?", raw).group(), raw.rstrip()[-1]  # type: ignore[union-attr]
    return edit_of(file, node, f"{head}{quote}.*{text[found.start() :]}{quote}")


def _listed(node: ast.expr, file: SourceFile, context: Context) -> Iterator[Proposal]:
    assert isinstance(node, (ast.List, ast.Tuple, ast.Set))
    names = [one.value for one in node.elts if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    if len(names) != len(node.elts) or not names or not _is_meant(names, context):
        return
    for at, new in enumerate(_fitting(names, context)):
        yield Proposal(
            edits=(edit_of(file, node, _spelled(new, node, file)),),
            culprit=culprit_of(file, node, _why(names, context)),
            belief=2.0 - at * _LATER,
        )


def _why(names: Sequence[str], context: Context) -> str:
    is_block = "is not supported" in message_of(context)
    return f"names {', '.join(names)}, {'which fits a block too' if is_block else 'which this model does not have'}"


def _spelled(names: Sequence[str], node: ast.List | ast.Tuple | ast.Set, file: SourceFile) -> str:
    """The names in the brackets and quotes of those that they replace: a tuple may be a field's default, a list not."""
    quote = file.segment(node.elts[0])[-1]
    inner = ", ".join(f"{quote}{one}{quote}" for one in names)
    text = file.segment(node)
    if isinstance(node, ast.Tuple):
        inner += "," if len(names) == 1 else ""
        return f"({inner})" if text.startswith("(") else inner
    return f"{text[0]}{inner}{text[-1]}"


def _is_meant(names: Sequence[str], context: Context) -> bool:
    """Whether the message speaks of these names; another list of the program may fit its own model."""
    found = re.search(r"Target modules \{([^}]*)\} not found", message_of(context))
    return found is None or set(re.findall(r"""['"]([^'"]+)['"]""", found[1])) == set(names)


def _fitting(names: Sequence[str], context: Context) -> list[list[str]]:
    """The lists of names that the wrapped model has, the likeliest first: as the live model calls them, where it was seen."""
    told = _live("live_layers", context)
    if "is not supported" in message_of(context):
        blocks = _live("live_blocks", context) or ()
        longer = narrowed(names, told or (), blocks)
        longer = longer or entered(names, layers_within(message_of(context)), told or (), blocks)
        return [longer] if longer is not None else []
    live = names_among(told, names) if told is not None else None
    if live is not None:
        return [live]
    architectures = _architectures(context)
    if len(architectures) == 1:
        return names_for(next(iter(architectures)), names)
    own = _of_own_layers(names, context) if not architectures else None
    return [own] if own and not set(own) & set(names) else []


def _architectures(context: Context) -> set[str]:
    """The `model_type` of what is wrapped; where that does not show, of all models of transformers in the program."""
    program = context.program
    resolver = resolver_of(program)
    wrapped: set[str] = set()
    for name in ("get_peft_model", "add_adapter"):
        for file, call in resolver.calls_named(name):
            model = call.args[0] if call.args and name == "get_peft_model" else getattr(call.func, "value", None)
            for made in resolver.constructors_of(Value(model, file)) if model is not None else ():
                wrapped |= _architecture_of(made, program)
    if wrapped:
        return wrapped
    return {found for file, call in find_calls(program) for found in _architecture_of(Value(call, file), program)}


def _architecture_of(made: Value, program: Program) -> set[str]:
    """What one constructor builds: by its class, its configuration, or the name it is published under."""
    call = made.node
    if not isinstance(call, ast.Call):
        return set()
    called = program.names(made.file).qualified(call.func) or ""
    named = architecture_of_class(called)
    if named is not None:
        return {named}
    first = next(iter(call.args), None) or next((one.value for one in call.keywords if one.arg == "config"), None)
    if first is None or not called.startswith("transformers.Auto"):
        return set()
    values = [Value(first, made.file, made.arguments)]
    values += resolver_of(program).behind(values[0])
    texts = [one.node.value for one in values if isinstance(one.node, ast.Constant)]
    if called.endswith(".for_model"):
        return {found for one in texts if (found := known_architecture(str(one))) is not None}
    if called.endswith(".from_pretrained"):
        return {found for one in texts if (found := architecture_of_release(str(one))) is not None}
    if not called.endswith(".from_config"):
        return set()
    configs = resolver_of(program).constructors_of(values[0])
    return {found for one in configs if one.node is not call for found in _architecture_of(one, program)}


def _of_own_layers(names: Sequence[str], context: Context) -> list[str] | None:
    """Layers of the program's own classes that begin like the wanted ones: `q_proj` for `query`."""
    layers: dict[str, None] = {}
    for file in context.program.parsed():
        for owner in context.program.names(file).classes.values():
            for method in (one for one in owner.body if isinstance(one, ast.FunctionDef)):
                for bound in bounds_of(method):
                    if bound.name.startswith("self.") and context.program.names(file).is_call(bound.node, *_LAYERS):
                        layers[bound.name.removeprefix("self.")] = None
    if set(names) & set(layers):
        return None
    new = []
    for name in names:
        alike = [one for one in layers if _core(one)[:1] == _core(name)[:1]]
        if len(alike) != 1:
            return None
        new.append(alike[0])
    return new


def _core(name: str) -> str:
    """What a projection's name says beside `proj`, `to` and the like."""
    return re.sub(r"^(to|w|attn)_|_?(proj|linear|lin|layer)$", "", name)
