"""Gives `target_modules` names that the model has: those of its architecture, a list for one string, an open pattern."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_at, culprit_of, edit_of
from explainer.fix.setting_edit import set_value
from explainer.model.patch import Edit
from explainer.source.binding import Value, bounds_of
from explainer.source.file import SourceFile
from explainer.source.resolve import resolver_of
from explainer.source.setting import Setting

# The attention projections that PEFT itself takes for these architectures, read from its table (0.21).
_PROJECTIONS = {
    "Bloom": ["query_key_value"], "GPTNeoX": ["query_key_value"], "Falcon": ["query_key_value"], "GPT2": ["c_attn"],
    "GPTBigCode": ["c_attn"], "GPTJ": ["q_proj", "v_proj"], "GPTNeo": ["q_proj", "v_proj"], "OPT": ["q_proj", "v_proj"],
    "Llama": ["q_proj", "v_proj"], "Mistral": ["q_proj", "v_proj"], "Qwen2": ["q_proj", "v_proj"], "T5": ["q", "v"],
    "Bert": ["query", "value"], "Roberta": ["query", "value"], "XLMRoberta": ["query", "value"], "Electra": ["query", "value"],
    "Mixtral": ["q_proj", "v_proj"], "Gemma": ["q_proj", "v_proj"], "Bart": ["q_proj", "v_proj"],
}  # fmt: skip
_LAYERS = ("torch.nn.Linear", "torch.nn.Embedding", "torch.nn.Conv1d", "torch.nn.Conv2d")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each `target_modules` that fits nothing."""
    if not context.has_failed:
        return
    for file in context.program.parsed():
        for node in file.walk():
            if isinstance(node, ast.keyword) and node.arg == "target_modules":
                yield from _settled(node.value, file, context)
    for document in context.program.documents("target_modules"):
        for setting in document.named("target_modules"):
            yield from _in_a_file(setting, context)


def _in_a_file(setting: Setting, context: Context) -> Iterator[Proposal]:
    """The names as a configuration file gives them: one string of several, or a list of which this model has none."""
    value = setting.value
    if isinstance(value, str) and _is_enumeration(value):
        new: list[str] | None = [one.strip() for one in value.split(",")]
        why = f'"{value}" is one pattern for PEFT, which no module is called'
    elif isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        new = _of_architecture(context) or _of_own_layers(value, context)
        new = new if new and not set(new) & set(value) else None
        why = f"names {', '.join(value)}, which this model does not have"
    else:
        return
    edit = set_value(setting, new) if new else None
    if isinstance(edit, Edit):
        yield Proposal(edits=(edit,), culprit=culprit_at(setting.file, setting.span, why), belief=2.0)


def _is_enumeration(text: str) -> bool:
    """Whether a string lists several names, as PEFT does not read it."""
    return "," in text and re.fullmatch(r"[\w.,\s]+", text) is not None


def _settled(value: ast.expr, file: SourceFile, context: Context) -> Iterator[Proposal]:
    for one in [Value(value, file), *resolver_of(context.program).behind(Value(value, file))]:
        if isinstance(one.node, ast.Constant) and isinstance(one.node.value, str):
            yield from _string(one.node, one.file, value, file)
        elif isinstance(one.node, (ast.List, ast.Tuple)):
            yield from _listed(one.node, one.file, context)


def _string(node: ast.Constant, file: SourceFile, use: ast.expr, where: SourceFile) -> Iterator[Proposal]:
    text = str(node.value)
    if _is_enumeration(text):
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
    elif (edit := _opened(node, text, file)) is not None:
        yield Proposal(
            edits=(edit,),
            culprit=culprit_of(file, node, "spells a path that this class of model does not have"),
            belief=1.5,
        )


def _opened(node: ast.Constant, text: str, file: SourceFile) -> Edit | None:
    """The pattern from its `layers` on, open before."""
    found = re.search(r"(?:layers|blocks|h|layer)\\\.", text)
    raw = file.segment(node)
    if found is None or found.start() == 0 or text.startswith(".*") or text[found.start() :] not in raw:
        return None
    head, quote = re.match(r"[rR]?", raw).group(), raw.rstrip()[-1]  # type: ignore[union-attr]
    return edit_of(file, node, f"{head}{quote}.*{text[found.start() :]}{quote}")


def _listed(node: ast.List | ast.Tuple, file: SourceFile, context: Context) -> Iterator[Proposal]:
    names = [one.value for one in node.elts if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    if len(names) != len(node.elts) or not names:
        return
    new = _of_architecture(context) or _of_own_layers(names, context)
    if new and not set(new) & set(names):
        text = "[" + ", ".join(f'"{one}"' for one in new) + "]"
        yield Proposal(
            edits=(edit_of(file, node, text),),
            culprit=culprit_of(file, node, f"names {', '.join(names)}, which this model does not have"),
            belief=2.0,
        )


def _of_architecture(context: Context) -> list[str] | None:
    """The projections of the class of transformers that is wrapped."""
    for where in context.program.parsed():
        for node in where.walk():
            called = (context.program.names(where).qualified(node.func) or "") if isinstance(node, ast.Call) else ""
            found = re.match(r"transformers\.(?:TF)?(\w+?)(?:For\w+|Model|LMHeadModel)(?:\.from_\w+)?$", called)
            if found and found[1] in _PROJECTIONS:
                return _PROJECTIONS[found[1]]
    return None


def _of_own_layers(names: list[str], context: Context) -> list[str] | None:
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
