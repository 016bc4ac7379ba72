"""Switches DDP's search for unused parameters on where its options are written: `find_unused_parameters=True`.

In the call of `DistributedDataParallel`, in the `DistributedDataParallelKwargs` that an `Accelerator` is given, in the strategy of a
trainer of Lightning, or among the arguments of one of transformers.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import culprit_at, culprit_of, edit_of
from explainer.fix.setting.choice import has_value
from explainer.fix.setting.edit import set_value
from explainer.fix.setting.spread import set_in_options
from explainer.fix.text.import_line import imported
from explainer.fix.text.rewrite import add_argument
from explainer.model.finding import Culprit
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.network.data_parallel import Wrapping
from explainer.source.program import Program
from explainer.source.setting.flow import dictionaries_behind, documents_behind, members_behind, settings_behind
from explainer.source.setting.setting import Setting
from explainer.source.value.binding import Value
from explainer.source.value.resolve import resolver_of

_SEARCH = "find_unused_parameters"
_HANDLERS = "kwargs_handlers"
_OPTIONS = "DistributedDataParallelKwargs"
_STRATEGY = "strategy"
_STRATEGIES = {
    f"{name}{ending}": f"{name}_{_SEARCH}_true"
    for name in ("ddp", "ddp_spawn", "ddp_fork", "ddp_notebook")
    for ending in ("", f"_{_SEARCH}_false")
}  # as Lightning registers them

Search = tuple[tuple[Edit, ...], Culprit]


def searches(wrapping: Wrapping, why: str, program: Program) -> Iterator[Search]:
    """The edits that let a wrapping search, with the line that leads: the `False` where one is written, else the call.

    None where it searches, where its graph is said to be static, or where what it is given cannot be followed.
    """
    if wrapping.accelerator is not None:
        yield from _in_accelerator(wrapping.accelerator, why, program)
    elif wrapping.trainer is not None:
        yield from _in_trainer(wrapping.trainer, why, program)
    elif wrapping.arguments is not None:
        yield from _in_call(wrapping.arguments.node, wrapping.arguments.file, why, program, f"ddp_{_SEARCH}")
    else:
        yield from _in_call(wrapping.call, wrapping.file, why, program)


def _in_trainer(made: Value, why: str, program: Program) -> Iterator[Search]:
    """`strategy="ddp"` becomes `strategy="ddp_find_unused_parameters_true"`; a `DDPStrategy(...)` takes the option itself."""
    call, file = made.node, made.file
    assert isinstance(call, ast.Call)
    given = next((one.value for one in call.keywords if one.arg == _STRATEGY), None)
    for one in resolver_of(program).constructors_of(Value(given, file)) if given is not None else ():
        if isinstance(one.node, ast.Call) and (program.names(one.file).qualified(one.node.func) or "").endswith(
            ".DDPStrategy"
        ):
            yield from _in_call(one.node, one.file, why, program)
            return
    written = _written(call, _STRATEGY, file, program)
    edits = [(one, set_value(one, new)) for one in written for old, new in _STRATEGIES.items() if has_value(one, old)]
    if len(written) == 1 and edits and isinstance(edits[0][1], Edit):
        span = (written[0].key or written[0].span)[0], written[0].span[1]
        yield (edits[0][1],), culprit_at(written[0].file, span, f"keeps DDP from a search for what is unused: it {why}")
    elif not written and given is None and all(one.arg is not None for one in call.keywords):
        new = _STRATEGIES["ddp"]  # what Lightning takes for several devices, with the search
        yield (add_argument(file, call, f'{_STRATEGY}="{new}"'),), culprit_of(file, call, why)


def _in_call(node: ast.expr, file: SourceFile, why: str, program: Program, search: str = _SEARCH) -> Iterator[Search]:
    assert isinstance(node, ast.Call)
    named = {one.arg: one.value for one in node.keywords}
    mappings = [one.value for one in node.keywords if one.arg is None]
    if any(not has_value(one, False) for one in _written(node, "static_graph", file, program)):  # noqa: FBT003 - the value it has
        return
    if "static_graph" in named and not isinstance(named["static_graph"], ast.Constant):
        return
    written = _written(node, search, file, program)
    if len(written) == 1 and "unused" in written[0].name:  # a setting of another name may switch more than this
        one = written[0]
        edit = set_in_options(node, search, True, file, program) if search not in named else set_value(one, True)  # noqa: FBT003
        if has_value(one, False) and isinstance(edit, Edit):  # noqa: FBT003
            span = (one.key or one.span)[0], one.span[1]
            yield (edit,), culprit_at(one.file, span, f"keeps DDP from a search for what is unused: it {why}")
    elif not written and search not in named:
        edit = set_in_options(node, search, True, file, program)  # noqa: FBT003
        if edit is None and len(mappings) == 1:  # which may hold it: given twice, the call would be refused
            edit = edit_of(file, mappings[0], f'{{**{file.segment(mappings[0])}, "{search}": True}}')
        yield (edit or add_argument(file, node, f"{search}=True"),), culprit_of(file, node, why)


def _written(node: ast.Call, argument: str, file: SourceFile, program: Program) -> list[Setting]:
    """Where an argument of a call is written: in the call, or in what it hands on with `**options`."""
    given = next((one.value for one in node.keywords if one.arg == argument), None)
    if given is not None:
        return settings_behind(given, file, program)
    mappings = [one.value for one in node.keywords if one.arg is None]
    return [one for each in mappings for one in members_behind(each, argument, file, program)]


def _in_accelerator(made: Value, why: str, program: Program) -> Iterator[Search]:
    call, file = made.node, made.file
    assert isinstance(call, ast.Call)
    given = next((one.value for one in call.keywords if one.arg == _HANDLERS), None)
    if given is not None:
        yield from _in_handlers(Value(given, file), why, program)
    elif not any(_may_hold_handlers(one.value, file, program) for one in call.keywords if one.arg is None):
        handler, imports = _handler(file)
        edit = add_argument(file, call, f"{_HANDLERS}=[{handler}]")
        yield (edit, *imports), culprit_of(file, call, why)


def _may_hold_handlers(mapping: ast.expr, file: SourceFile, program: Program) -> bool:
    """Whether `**options` may give the handlers: a file of settings cannot, and a dictionary that is written out tells."""
    if members_behind(mapping, _HANDLERS, file, program):
        return True
    return not documents_behind(mapping, file, program) and not dictionaries_behind(mapping, file, program)


def _in_handlers(given: Value, why: str, program: Program) -> Iterator[Search]:
    """In DDP's own among the handlers, else one more of them; none where the list cannot be followed."""
    lists = [given, *resolver_of(program).behind(given)]
    known = [(one, one.node) for one in lists if isinstance(one.node, ast.List)]
    if len(known) != 1:
        return
    holder, handlers = known[0]
    for one in handlers.elts:
        made = resolver_of(program).constructors_of(Value(one, holder.file))
        called = [(each.file, each.node) for each in made if isinstance(each.node, ast.Call)]
        for file, call in called:
            if program.names(file).is_call(call, f"accelerate.{_OPTIONS}", f"accelerate.utils.{_OPTIONS}"):
                yield from _in_call(call, file, why, program)
                return
        if not called:
            return
    handler, imports = _handler(holder.file)
    at = holder.file.span(handlers.elts[-1])[1] if handlers.elts else holder.file.span(handlers)[1] - 1
    new = f", {handler}" if handlers.elts else handler
    yield (Edit(file=holder.file.path, start=at, end=at, new=new), *imports), culprit_of(holder.file, handlers, why)


def _handler(file: SourceFile) -> tuple[str, tuple[Edit, ...]]:
    name, imports = imported(file, "accelerate", _OPTIONS)
    return f"{name}({_SEARCH}=True)", imports
