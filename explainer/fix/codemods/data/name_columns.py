"""Names the columns of a data set as the model's forward does: `{"target": ...}` becomes `{"labels": ...}`.

Also hands labels to a model of transformers that is called without them in a loop of one's own.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import add_argument
from explainer.model.patch import Edit
from explainer.model.verification import DROPPED
from explainer.source.data.column import trainer_calls
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, parameters_of, reaching, scope_of, walk_scope
from explainer.source.value.resolve import resolver_of

_INPUTS = frozenset(
    {"input_ids", "attention_mask", "pixel_values", "token_type_ids", "input_values", "inputs_embeds", "idx"}
)
_LABELS = (
    "target",
    "targets",
    "y",
    "class",
    "classes",
    "gt",
    "answer",
    "category",
    "score",
    "ids_labels",
    "truth",
    "label_id",
    "label_idx",
    "target_id",
    "class_id",
)
_DROPPED = re.compile(rf"{re.escape(DROPPED)}: `([^`]+)`")
_KNOWN = frozenset({"labels", "label", "label_ids"})


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each row whose keys the model does not take, and for each forward without labels whose loss is read."""
    if not context.has_failed:
        return
    wanted, asked = _forward_names(context), _asked_for(context)
    if any(_is_transformed(file) for file in context.program.parsed()):
        return
    results = set(_results(context.program))
    for file in context.program.parsed():
        for node in file.walk():
            if isinstance(node, ast.Dict) and node not in results:
                yield from _renamed(node, file, wanted, asked)
            elif isinstance(node, ast.Call):
                yield from _unlabelled(node, file, context)
        if not wanted:
            yield from _given_a_name(file, asked)
            yield from _left_over(file, context)


def _results(program: Program) -> Iterator[ast.AST]:
    """What stands in a forward, and in what a Trainer is given as `compute_metrics`: their dictionaries are no rows."""
    named = {
        dotted_name(one.value)
        for file in program.parsed()
        for one in file.walk()
        if isinstance(one, ast.keyword) and one.arg == "compute_metrics"
    }
    for _, function in program.functions():
        if function.name in {*named, "compute_metrics", "forward"}:
            yield from walk(function)


def _asked_for(context: Context) -> set[str]:
    """The columns that the program reads by their own names once the Trainer has dropped them: these names are to stay."""
    dropped = (one[1] for line in context.incident.log if (one := _DROPPED.search(line.text)))
    return {str(context.fields.get("column") or ""), *dropped, *_read_by_collators(context.program)}


def _read_by_collators(program: Program) -> Iterator[str]:
    """The keys by which the collator that a Trainer is given takes its rows apart: `row["features"]`."""
    for file, call in trainer_calls(program):
        for given in (one.value for one in call.keywords if one.arg == "data_collator"):
            named = program.find_function(dotted_name(given) or "")
            classes = resolver_of(program).classes_of(Value(given, file))
            methods = [resolver_of(program).method(owner, "__call__", where) for where, owner in classes]
            for found in [named, *methods]:
                for node in walk(found[1]) if found is not None else ():
                    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
                        yield str(node.slice.value)


def _is_transformed(file: SourceFile) -> bool:
    """Whether columns are read under their names when a row is asked for: `dataset.with_transform(read)`."""
    calls = (node.func for node in file.walk() if isinstance(node, ast.Call))
    return any(isinstance(one, ast.Attribute) and one.attr in ("with_transform", "set_transform") for one in calls)


def _forward_names(context: Context) -> list[str]:
    """The parameters of the forward of the model that a Trainer gets, where the program has its class."""
    for file in context.program.parsed():
        for node in file.walk():
            called = (context.program.names(file).qualified(node.func) or "") if isinstance(node, ast.Call) else ""
            if not called.rpartition(".")[2].endswith("Trainer") or not isinstance(node, ast.Call):
                continue
            given = [one.value for one in node.keywords if one.arg == "model"] or node.args[:1]
            for value in given:
                for where, owner in resolver_of(context.program).classes_of(Value(value, file)):
                    method = resolver_of(context.program).method(owner, "forward", where)
                    if method is not None:
                        return parameters_of(method[1])
    return []


def _renamed(node: ast.Dict, file: SourceFile, wanted: list[str], asked: set[str]) -> Iterator[Proposal]:
    keys = [one for one in node.keys if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    names = [str(one.value) for one in keys]
    if len(keys) != len(node.keys) or not keys:
        return
    pairs = _pairs(names, wanted)
    if not pairs or asked & pairs.keys():
        return
    edits = tuple(_quoted(one, pairs[str(one.value)], file) for one in keys if str(one.value) in pairs)
    first = next(one for one in keys if str(one.value) in pairs)
    yield Proposal(
        edits=edits,
        culprit=culprit_of(file, first, f'calls "{pairs[str(first.value)]}" by a name that the model does not take'),
        belief=2.0,
    )


def _given_a_name(file: SourceFile, asked: set[str]) -> Iterator[Proposal]:
    """`rows.rename_column("urgent", "target")` and `row["target"] = ...`, where no column is called as the model's labels are."""
    keys = list(_column_names(file))
    found = [one for one in keys if str(one.value).lower() in _LABELS]
    if len(found) == 1 and found[0].value not in asked and not any(one.value in _KNOWN for one in keys):
        why = 'calls "labels" by a name that the model does not take'
        yield Proposal(
            edits=(_quoted(found[0], "labels", file),), culprit=culprit_of(file, found[0], why), belief=2.0
        )  # fmt: skip


def _left_over(file: SourceFile, context: Context) -> Iterator[Proposal]:
    """`{"claim": ..., "comment": ..., "stance": ...}` whose other columns alone are read or removed: what is left is the label."""
    rows = [node for node in file.walk() if isinstance(node, ast.Dict) and len(node.keys) > 1 and _words(node)]
    for words in {tuple(_words(one)) for one in rows}:
        if _KNOWN & set(words) or _INPUTS & set(words):
            continue
        keys = [key for row in rows if tuple(_words(row)) == words for key in row.keys if key is not None]
        own = {id(key) for key in keys}
        read = {
            node.value
            for each in context.program.parsed()
            for node in each.walk()
            if isinstance(node, ast.Constant) and id(node) not in own
        }
        left = [one for one in words if one not in read]
        is_mapped = any(_is_mapping(node) for node in file.walk()) and len(left) < len(words)
        if len(left) != 1 or not is_mapped:
            continue
        found = [key for key in keys if isinstance(key, ast.Constant) and key.value == left[0]]
        why = f'calls the labels "{left[0]}", a column that the model does not take'
        yield Proposal(
            edits=tuple(_quoted(one, "labels", file) for one in found),
            culprit=culprit_of(file, found[0], why),
            belief=1.5,
        )


def _words(node: ast.Dict) -> list[str]:
    """The keys of a dictionary, where all are words."""
    words = [one.value for one in node.keys if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    return words if len(words) == len(node.keys) else []


def _is_mapping(node: ast.AST) -> bool:
    """Whether a data set is mapped, and loses columns by name."""
    is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    is_map = is_call and node.func.attr in ("map", "remove_columns")  # type: ignore[attr-defined]
    return is_map and (
        node.func.attr != "map" or any(one.arg == "remove_columns" for one in node.keywords)  # type: ignore[attr-defined]
    )


def _column_names(file: SourceFile) -> Iterator[ast.Constant]:
    """The names that columns get, by a method of a data set or as keys that are written."""
    for node in file.walk():
        given: list[ast.expr | None] = []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            named = {one.arg: one.value for one in node.keywords}
            if node.func.attr == "rename_column":
                given = [node.args[1] if len(node.args) > 1 else named.get("new_column_name")]
            elif node.func.attr == "add_column":
                given = [node.args[0] if node.args else named.get("name")]
            elif node.func.attr == "rename_columns" and node.args and isinstance(node.args[0], ast.Dict):
                given = list(node.args[0].values)
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            given = [node.slice]
        yield from (one for one in given if isinstance(one, ast.Constant) and isinstance(one.value, str))


def _pairs(names: list[str], wanted: list[str]) -> dict[str, str]:
    """The new names of keys: by a model's own parameters in their order, else `labels` beside known inputs."""
    if wanted:
        unknown = [one for one in names if one not in wanted]
        missing = [one for one in wanted if one not in names]
        if not unknown or len(unknown) > len(missing) or len(names) > len(wanted):
            return {}
        alike = {one: found[0] for one in unknown if (found := difflib.get_close_matches(one, missing, 1, 0.6))}
        if len(set(alike.values())) == len(unknown):
            return alike
        return dict(zip(unknown, missing, strict=False)) if len(names) == len(wanted) else {}
    if not _INPUTS & set(names) or _KNOWN & set(names):
        return {}
    found = [one for one in names if one.lower() in _LABELS]
    return {found[0]: "labels"} if len(found) == 1 else {}


def _quoted(key: ast.Constant, new: str, file: SourceFile) -> Edit:
    quote = file.segment(key)[0]
    return edit_of(file, key, f"{quote}{new}{quote}")


def _unlabelled(node: ast.Call, file: SourceFile, context: Context) -> Iterator[Proposal]:
    """`outputs = model(**batch)` and `outputs.loss.backward()`, with no labels in the batch."""
    made = resolver_of(context.program).constructors_of(Value(node.func, file))
    called = [
        context.program.names(one.file).qualified(one.node.func) or "" for one in made if isinstance(one.node, ast.Call)
    ]
    if not called or not all(one.startswith("transformers.") for one in called) or not _reads_loss(node, file):
        return
    if any(one.arg == "labels" for one in node.keywords):
        return
    given = next((one for one in node.keywords if one.arg is None), None)
    batch = dotted_name(given.value) if given is not None else None
    keys = _keys(batch, node, file) if batch is not None else set()
    if "labels" in keys or (batch is not None and not keys):
        return
    is_language = all("CausalLM" in one for one in called)
    label = next(
        (one for one in keys if one.lower() in _LABELS), "input_ids" if is_language and "input_ids" in keys else None
    )
    source = f'{batch}["{label}"]' if label else None
    if source is None and is_language and given is None:
        ids = next((one.value for one in node.keywords if one.arg == "input_ids"), node.args[0] if node.args else None)
        source = file.segment(ids) if ids is not None else None
    if source is not None:
        yield Proposal(
            edits=(add_argument(file, node, f"labels={source}"),),
            culprit=culprit_of(file, node, "runs the model without labels, so that it computes no loss"),
            belief=2.0,
        )


def _keys(batch: str, node: ast.AST, file: SourceFile) -> set[str]:
    found = [one.node for one in reaching(batch, node, file) if isinstance(one.node, ast.Dict)]
    return {str(key.value) for one in found for key in one.keys if isinstance(key, ast.Constant)}


def _reads_loss(node: ast.Call, file: SourceFile) -> bool:
    above = file.parents.get(node)
    if isinstance(above, ast.Attribute):
        return above.attr == "loss"
    name = dotted_name(above.targets[0]) if isinstance(above, ast.Assign) else None
    return name is not None and any(
        isinstance(one, ast.Attribute) and one.attr == "loss" and dotted_name(one.value) == name
        for one in walk_scope(scope_of(node, file))
    )
