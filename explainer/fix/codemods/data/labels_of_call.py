"""A model of transformers is given the labels of which it computes its loss: `model(ids)` becomes `model(ids, labels=labels)`.

The labels are those that the loop unpacks beside the inputs, or the batch's own; a causal language model takes its inputs, with
-100 where they are padded, or where a mask of the batch says that they are no part of the answer. Where none of these is written nothing
is proposed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import add_argument
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.lineage import sources
from explainer.source.value.resolve import resolver_of

_CAUSAL = re.compile(r"CausalLM|LMHeadModel")
_HEAD = re.compile(r"For[A-Z]\w+|LMHeadModel")
_LABELS = re.compile(r"labels?|targets?|ys?|tgts?|classes", re.IGNORECASE)
_KEYS = ("labels", "label", "targets", "target")
_SCORED = re.compile(
    r"(?:in|is)_(?:answer|completion|response|target|reply)|(?:answer|completion|response|target|reply|loss|label|assistant)s?_masks?"
)
_OF_INPUTS = (
    "right where each token is to be predicted; padding has to be -100, and a prompt that is not to be learned too"
)
_INPUTS = ("input_ids", "inputs_embeds", "pixel_values", "input_values", "input_features")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the call of the model whose loss is None at the failing line."""
    if "NoneType" not in message_of(context):
        return
    seen: set[ast.Call] = set()
    for file, statement in raised_at(context):
        asked = [one.value for one in walk(statement) if isinstance(one, ast.Attribute) and one.attr == "backward"]
        parts = [part for one in [statement, *asked] for _, part in sources(one, statement, file, context.program)]
        for call in (one for part in [statement, *parts] for one in walk(part) if isinstance(one, ast.Call)):
            head = _head(call, file, context.program) if call not in seen else None
            seen.add(call)
            if head is None or any(one.arg == "labels" for one in call.keywords):
                continue
            written = _written(call, file, context.program)
            labels = written or _inputs(call, head, file, context.program)
            if labels is not None:
                yield Proposal(
                    edits=(add_argument(file, call, f"labels={labels}"),),
                    culprit=culprit_of(file, call, f"gives `{head}` no labels, and then it has no loss"),
                    belief=2.0,
                    applicability=None if written else "unsafe",
                    because=None if written else _OF_INPUTS,
                    title=f"Give the model its labels: `labels={labels}`",
                )


def _head(call: ast.Call, file: SourceFile, program: Program) -> str | None:
    """The class of transformers that is called, where it has a head for a task."""
    resolver, called = resolver_of(program), Value(call.func, file)
    for one in [*resolver.constructors_of(called), *resolver.behind(called)]:
        made = one.node.func if isinstance(one.node, ast.Call) else None
        name = program.names(one.file).qualified(made) if made is not None else None
        owner = next((part for part in (name or "").split(".") if _HEAD.search(part)), None)
        if owner is not None and (name or "").startswith("transformers."):
            return owner
    return None


def _given(call: ast.Call) -> tuple[ast.expr | None, list[ast.expr]]:
    """What a call gives as inputs, and what it spreads: `**batch`."""
    named = {one.arg: one.value for one in call.keywords if one.arg}
    inputs = next((named[name] for name in _INPUTS if name in named), call.args[0] if call.args else None)
    return inputs, [one.value for one in call.keywords if one.arg is None]


def _written(call: ast.Call, file: SourceFile, program: Program) -> str | None:
    """The labels that the program has: unpacked beside the inputs, or under a key of the batch."""
    inputs, spread = _given(call)
    beside = _beside(call, inputs, file) if inputs is not None and not spread else None
    if beside is None and isinstance(inputs, ast.Subscript) and (key := _key_of_batch(program)) is not None:
        return f'{file.segment(inputs.value)}["{key}"]'
    return beside


def _inputs(call: ast.Call, head: str, file: SourceFile, program: Program) -> str | None:
    """The inputs as labels, which a causal language model shifts itself; -100 where a mask says that they are padded."""
    inputs, spread = _given(call)
    if not _CAUSAL.search(head):
        return None
    if len(spread) == 1 and inputs is None and dotted_name(spread[0]) is not None and _key_of_batch(program) is None:
        return f'{file.segment(spread[0])}["input_ids"]'
    if inputs is None or (dotted_name(inputs) is None and not isinstance(inputs, ast.Subscript)):
        return None
    mask = next((one.value for one in call.keywords if one.arg == "attention_mask"), None)
    ids = file.segment(inputs)
    scored = _key_of_scored(program)
    if scored is not None and isinstance(inputs, ast.Subscript):
        return f'{ids}.masked_fill({file.segment(inputs.value)}["{scored}"] == 0, -100)'
    if mask is None or (isinstance(mask, ast.Call) and "ones" in ast.unparse(mask.func)):
        return ids
    return f"{ids}.masked_fill({file.segment(mask)} == 0, -100)"


def _key_of_scored(program: Program) -> str | None:
    """The one key beside the inputs of a batch whose mask says what is to be learned: `in_answer`, `completion_mask`."""
    found = {
        key.value
        for file in program.parsed()
        for node in file.walk()
        if isinstance(node, ast.Dict)
        and {"input_ids", "attention_mask"} <= {getattr(one, "value", None) for one in node.keys}
        for key in node.keys
        if isinstance(key, ast.Constant) and _SCORED.fullmatch(str(key.value))
    }
    return str(found.pop()) if len(found) == 1 else None


def _beside(call: ast.Call, inputs: ast.expr, file: SourceFile) -> str | None:
    """The name that the loop, or an assignment, unpacks beside the inputs and that is called labels."""
    root = inputs.id if isinstance(inputs, ast.Name) else None
    node: ast.AST | None = call
    while root is not None and node is not None:
        node = file.parents.get(node)
        targets = [node.target] if isinstance(node, ast.For) else []
        block = [*getattr(node, "body", ())] if isinstance(getattr(node, "body", None), list) else []
        targets += [target for one in block if isinstance(one, ast.Assign) for target in one.targets]
        for target in targets:
            names = [one.id for one in walk(target) if isinstance(one, ast.Name)]
            found = [one for one in names if _LABELS.fullmatch(one.rpartition("_")[2])]
            if root in names and len(found) == 1 and found[0] != root:
                return found[0]
    return None


def _key_of_batch(program: Program) -> str | None:
    """The one key under which the program's samples hold labels."""
    found = {
        key.value
        for file in program.parsed()
        for node in file.walk()
        for key in (node.keys if isinstance(node, ast.Dict) else ())
        if isinstance(key, ast.Constant) and key.value in _KEYS
    }
    return str(found.pop()) if len(found) == 1 else None
