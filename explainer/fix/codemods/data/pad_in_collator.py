"""Gives a Trainer, or a loader, the collator that pads what its model takes: `DataCollatorForTokenClassification(tokenizer)`.

`DataCollatorWithPadding`, the Trainer's own choice beside a tokenizer, pads only what the tokenizer made: right for a model that
classifies whole texts. Which collator it is follows from the model's head; labels get -100 where they are padded, so a loss of
one's own has to ignore that.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.fix.clue.blame import crash_frames
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.setting.edit import set_value
from explainer.fix.text.import_line import imported
from explainer.fix.text.rewrite import add_argument
from explainer.model.incident import ExceptionRecord
from explainer.model.patch import Edit
from explainer.source.data.label_padding import (
    Collator,
    collator_for,
    ignores_padding,
    is_label_of_each_token,
    is_tokenizer,
)
from explainer.source.data.loader import LOADERS
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.setting.flow import settings_behind
from explainer.source.value.binding import Value, all_parameters, bounds_of, reaching, scope_of
from explainer.source.value.resolve import resolver_of

_TRAINERS = ("Trainer", "Seq2SeqTrainer")
_PADS_INPUTS = ("transformers.DataCollatorWithPadding", "transformers.data.data_collator.DataCollatorWithPadding")
_PADS_NOTHING = ("transformers.default_data_collator", "transformers.DefaultDataCollator")
_LABELS = re.compile(r"Unable to create tensor, you should probably activate.{0,200}`labels` in this case", re.DOTALL)
_ROWS = re.compile(r"expected sequence of length \d+ at dim \d+ \(got \d+\)")
_COLLATED = re.compile(
    r"stack expects each tensor to be equal size|each element in list of batch should be of equal size"
)
_COLLATE = ("data_collator.py", "_utils/collate.py")
_KEPT = frozenset({"padding", "max_length", "pad_to_multiple_of"})


@dataclass(frozen=True, slots=True)
class _Site:
    """A call that takes a collator, or the one of a tokenizer's `pad`, and what the fault looks like there."""

    file: SourceFile
    call: ast.Call
    model: ast.expr | None
    given: ast.expr | None


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the Trainer, or for all loaders of a loop of one's own, whose collator leaves the labels as they are."""
    is_padded = any(_LABELS.search(one.message) for one in context.incident.exceptions)
    if not is_padded and not any(_is_ragged(one) for one in context.incident.exceptions):
        return
    program = context.program
    for file in program.parsed():
        frames = crash_frames(file, context)
        found = [one for one in _sites(file, program) if is_padded or _pads_nothing(one, program)]
        edited = [(one, edits) for one in found if (edits := _edits(one, program, only_labels=is_padded))]
        if edited:
            yield _proposal(edited, frames)
        for call in _pads(file, frames) if is_padded else ():
            yield from _own_collate(call, file, program)


def _is_ragged(record: ExceptionRecord) -> bool:
    """Whether rows of several lengths were to become one tensor: where it says no more than that, in a library's collator."""
    where = record.frames[-1].file.replace("\\", "/") if record.frames else ""
    is_collated = where.endswith(_COLLATE) and _COLLATED.search(record.message) is not None
    return is_collated or _ROWS.search(record.message) is not None


def _proposal(edited: list[tuple[_Site, tuple[Edit, ...]]], frames: dict[int, int]) -> Proposal:
    first = edited[0][0]
    near = any(line in frames for one, _ in edited for line in range(one.call.lineno, (one.call.end_lineno or 0) + 1))
    return Proposal(
        edits=_renamed(tuple(dict.fromkeys(edit for _, edits in edited for edit in edits)), first.file),
        culprit=culprit_of(
            first.file,
            first.given or first.call,
            "is a collator that does not pad all that the model takes"
            if first.given
            else "gets no collator that pads what the model takes",
        ),
        belief=2.5 if near else 2.0,
    )


def _renamed(edits: tuple[Edit, ...], file: SourceFile) -> tuple[Edit, ...]:
    """The edits with the import renamed, where the collator that was imported has no reader left."""
    spans = {(one.start, one.end) for one in edits if one.file == file.path}
    for statement in (one for one in file.walk() if isinstance(one, ast.ImportFrom) and one.module == "transformers"):
        for alias in statement.names:
            uses = file.plain_names.get(alias.name, [])
            start, end = file.span(statement)
            new = next((one.new for one in edits if uses and (one.start, one.end) == file.span(uses[0])), None)
            is_unread = not alias.asname and new is not None and all(file.span(one) in spans for one in uses)
            if is_unread and new is not None:
                rest = [one for one in edits if not (start <= one.start <= end)]
                is_added = len(rest) < len(edits)
                return (edit_of(file, alias, new.partition("(")[0]), *rest) if is_added else edits
    return edits


def _sites(file: SourceFile, program: Program) -> Iterator[_Site]:
    """The Trainers and the loaders of a file, with the collator that each gets."""
    names = program.names(file)
    for node in file.walk():
        if not isinstance(node, ast.Call):
            continue
        named = {one.arg: one.value for one in node.keywords}
        if None in named or any(isinstance(one, ast.Starred) for one in node.args):
            continue
        if _is_trainer(node.func, file, program) and len(node.args) < 3:
            model = named.get("model") or (node.args[0] if node.args else None)
            if model is not None and _loss_ignores(node, named, file, program):
                yield _Site(file, node, model, named.get("data_collator"))
        elif names.is_call(node, *LOADERS) and len(node.args) < 7 and _is_ignored(file, program):
            yield _Site(file, node, None, named.get("collate_fn"))


def _is_ignored(file: SourceFile, program: Program) -> bool:
    return file.tree is not None and ignores_padding(file.tree, program.names(file))


def _is_trainer(func: ast.expr, file: SourceFile, program: Program) -> bool:
    """Whether a call makes a Trainer of transformers, or of a class of the program that is derived from one."""
    name = program.names(file).qualified(func) or ""
    if name.startswith("transformers."):
        return name.rpartition(".")[2] in _TRAINERS
    owner = resolver_of(program).find_class(func, file)
    return owner is not None and any(
        _is_trainer(base, owner[0], program) for base in owner[1].bases if dotted_name(base) != dotted_name(func)
    )


def _loss_ignores(call: ast.Call, named: dict[str | None, ast.expr], file: SourceFile, program: Program) -> bool:
    """Whether the loss of a Trainer is the model's, or one that leaves out -100."""
    if "compute_loss_func" in named:
        return False
    owner = resolver_of(program).find_class(call.func, file)
    method = resolver_of(program).method(owner[1], "compute_loss", owner[0]) if owner is not None else None
    return method is None or ignores_padding(method[1], program.names(method[0]))


def _pads_nothing(site: _Site, program: Program) -> bool:
    """Whether a call has a collator that pads nothing: by name, or by leaving it out, as in a Trainer without a tokenizer."""
    names = program.names(site.file)
    if site.given is not None:
        made = site.given.func if isinstance(site.given, ast.Call) else site.given
        return names.qualified(made) in _PADS_NOTHING
    return not _tokenizer_given(site)


def _tokenizer_given(site: _Site) -> ast.expr | None:
    return next((one.value for one in site.call.keywords if one.arg in ("processing_class", "tokenizer")), None)


def _edits(site: _Site, program: Program, *, only_labels: bool) -> tuple[Edit, ...]:
    """What gives one call the right collator; nothing where the model, the tokenizer or the collator is not known."""
    collator = collator_for(site.model, site.file, program)
    if collator is None or not is_label_of_each_token(collator, program) or (only_labels and not collator.pads_labels):
        return ()
    if site.given is not None:
        return _edits_of_given(site, site.given, collator, program)
    tokenizer = _tokenizer(site, program)
    if tokenizer is None or (site.model is None and only_labels):
        return ()
    name, imports = imported(site.file, "transformers", collator.name)
    is_named = collator.takes_model and site.model is not None and dotted_name(site.model)
    model = f", model={site.file.segment(site.model)}" if is_named and site.model is not None else ""
    argument = "collate_fn" if site.model is None else "data_collator"
    return (*imports, add_argument(site.file, site.call, f"{argument}={name}({tokenizer}{model})"))


def _of_registry(site: _Site, given: ast.expr, collator: Collator, program: Program) -> tuple[Edit, ...]:
    """`COLLATORS[config.collator](tokenizer)` takes the right collator under another key, where the setting of the key can be written."""
    chosen = given.func if isinstance(given, ast.Call) else None
    if not isinstance(chosen, ast.Subscript):
        return ()
    tables = [
        one for one in resolver_of(program).behind(Value(chosen.value, site.file)) if isinstance(one.node, ast.Dict)
    ]
    keys = [
        key.value
        for table in tables
        for key, value in zip(table.node.keys, table.node.values, strict=True)  # type: ignore[attr-defined]
        if isinstance(key, ast.Constant)
        and (program.names(table.file).qualified(value) or "").rpartition(".")[2] == collator.name
    ]
    settings = settings_behind(chosen.slice, site.file, program) if len(keys) == 1 else []
    edits = [edit for one in settings if isinstance(edit := set_value(one, keys[0]), Edit)]
    return tuple(edits) if len(edits) == len(settings) == 1 else ()


def _edits_of_given(site: _Site, given: ast.expr, collator: Collator, program: Program) -> tuple[Edit, ...]:
    if edits := _of_registry(site, given, collator, program):
        return edits
    for one in resolver_of(program).constructors_of(Value(given, site.file)) or [Value(given, site.file)]:
        name, imports = imported(one.file, "transformers", collator.name)
        called = program.names(one.file).qualified(one.node.func if isinstance(one.node, ast.Call) else one.node)
        if called in _PADS_INPUTS and not collator.pads_labels:
            return ()
        if called in _PADS_INPUTS and isinstance(one.node, ast.Call) and len(one.node.args) < 2:
            return (*imports, edit_of(one.file, one.node.func, name))
        tokenizer = _tokenizer(site, program) if called in _PADS_NOTHING and one.file is site.file else None
        if tokenizer is not None:
            return (*imports, edit_of(one.file, one.node, f"{name}({tokenizer})"))
    return ()


def _tokenizer(site: _Site, program: Program) -> str | None:
    """The tokenizer as it can be named at a call: what the Trainer gets, else the one of the scope around."""
    given = _tokenizer_given(site)
    if given is not None:
        name = dotted_name(given)
        return name if name and is_tokenizer(Value(given, site.file), program) else None
    found = {name for name in _visible(site) if is_tokenizer(Value(_read(name, site), site.file), program, sure=True)}
    return found.pop() if len(found) == 1 else None


def _visible(site: _Site) -> Iterator[str]:
    scope = scope_of(site.call, site.file)
    for name in {one.name for one in bounds_of(scope)}:
        if reaching(name, site.call, site.file):
            yield name
    if not isinstance(scope, ast.Module):
        yield from all_parameters(scope)
        yield from {one.name for one in bounds_of(site.file.tree)} if site.file.tree else ()


def _read(name: str, site: _Site) -> ast.expr:
    """A place of the file where a name is read; a name that is only bound is as good as not there."""
    read = [one for one in site.file.plain_names.get(name, ()) if isinstance(one.ctx, ast.Load)]
    return read[-1] if read else ast.Constant(value=None)


def _pads(file: SourceFile, frames: dict[int, int]) -> Iterator[ast.Call]:
    """The calls of `tokenizer.pad(rows, ...)` on the lines of the traceback."""
    calls = (node for node in file.walk() if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute))
    for node in calls if frames else ():
        lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "pad" and any(one in frames for one in lines):
            yield node


def _own_collate(call: ast.Call, file: SourceFile, program: Program) -> Iterator[Proposal]:
    """`tokenizer.pad(rows, return_tensors="pt")` in a collate function of the program becomes the collator's own call."""
    collator = collator_for(None, file, program)
    if collator is None or not is_label_of_each_token(collator, program) or not isinstance(call.func, ast.Attribute):
        return
    named = {one.arg: one.value for one in call.keywords}
    form = named.pop("return_tensors", None)
    tokenizer = call.func.value
    is_known = is_tokenizer(Value(tokenizer, file), program) and named.keys() <= _KEPT and len(call.args) == 1
    if not is_known or not _is_ignored(file, program) or not isinstance(form, ast.Constant) or form.value != "pt":
        return
    name, imports = imported(file, "transformers", collator.name)
    given = ", ".join([file.segment(tokenizer), *(f"{key}={file.segment(one)}" for key, one in named.items())])
    yield Proposal(
        edits=(*imports, edit_of(file, call, f"{name}({given})({file.segment(call.args[0])})")),
        culprit=culprit_of(file, call, "pads what the tokenizer made, and leaves the labels as they are"),
        belief=2.5,
    )
