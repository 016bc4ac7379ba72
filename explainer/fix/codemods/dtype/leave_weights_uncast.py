"""`model.half()` goes: the weights keep the dtype that they were made or loaded in.

Under autocast and a GradScaler weights stay float32; those of a quantized model have no dtype that a cast could change.
`dtypes` in the rule's options lists the casts to take out. A `from_pretrained` in float16 is asked for float32 instead.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from explainer.fix.blame import crash_frames
from explainer.fix.codemod import Context, Proposal, culprit_at, culprit_of, edit_of, remove_statement
from explainer.fix.rewrite import spell
from explainer.fix.setting_edit import set_value
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import Names, dotted_name
from explainer.source.network.precision import is_module
from explainer.source.program import Program
from explainer.source.setting.flow import settings_behind
from explainer.source.value.binding import Value
from explainer.source.value.resolve import resolver_of

_METHODS = {"half": "float16", "bfloat16": "bfloat16", "float": "float32", "double": "float64"}


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each cast of a module to one of the rule's dtypes."""
    dtypes = context.options.get("dtypes", ())
    if not context.has_failed or not isinstance(dtypes, Sequence):
        return
    for file in context.program.parsed():
        for node in file.walk():
            if not isinstance(node, ast.Call):
                continue
            edit = _edit(node, [str(one) for one in dtypes], file, context.program)
            if edit is None:
                yield from _by_setting(node, [str(one) for one in dtypes], file, context.program)
            else:
                yield Proposal(
                    edits=(edit,),
                    culprit=culprit_of(file, node, "casts the weights of the model"),
                    belief=1.5 if node.lineno in crash_frames(file, context) else 1.0,
                )


def _by_setting(node: ast.Call, dtypes: Sequence[str], file: SourceFile, program: Program) -> Iterator[Proposal]:
    """Where a setting says what the weights are cast to, `net.to(getattr(torch, cfg["dtype"]))`, it says float32."""
    is_cast = isinstance(node.func, ast.Attribute) and node.func.attr == "to" and len(node.args) == 1
    if not is_cast or not is_module(node.func.value, file, program):  # type: ignore[attr-defined]
        return
    values = [Value(node.args[0], file), *resolver_of(program).behind(Value(node.args[0], file))]
    for one in values:
        made = one.node
        if isinstance(made, ast.Call) and dotted_name(made.func) == "getattr" and len(made.args) == 2:
            for setting in settings_behind(made.args[1], one.file, program):
                edit = set_value(setting, "float32") if str(setting.value) in dtypes else ""
                if isinstance(edit, Edit):
                    why = "asks for weights in float16, which the scaler is not for"
                    yield Proposal(edits=(edit,), culprit=culprit_at(setting.file, setting.span, why), belief=1.5)


def _edit(node: ast.Call, dtypes: Sequence[str], file: SourceFile, program: Program) -> Edit | None:
    names = program.names(file)
    called = names.qualified(node.func) or ""
    if called.endswith((".from_pretrained", ".from_config")) and "float16" in dtypes:
        wanted = [
            one
            for one in node.keywords
            if one.arg in ("torch_dtype", "dtype") and _dtype(one.value, names) == "float16"
        ]
        return edit_of(file, wanted[0].value, spell(names, "torch.float32")) if wanted else None
    if not isinstance(node.func, ast.Attribute) or not is_module(node.func.value, file, program):
        return None
    method = node.func.attr
    if method in _METHODS and _METHODS[method] in dtypes and not node.args:
        return _without(node, file)
    if method != "to":
        return None
    given = [*node.args, *(one.value for one in node.keywords)]
    cast = next((one for one in given if _dtype(one, names) in dtypes), None)
    if cast is None:
        return None
    if len(given) == 1:
        return _without(node, file)
    others = [file.segment(one) for one in node.args if one is not cast]
    others += [file.segment(one) for one in node.keywords if one.value is not cast]
    return edit_of(file, node, f"{file.segment(node.func)}({', '.join(others)})")


def _dtype(node: ast.expr, names: Names) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    called = names.qualified(node) or ""
    return {"torch.half": "float16", "torch.float": "float32"}.get(called, called.removeprefix("torch."))


def _without(node: ast.Call, file: SourceFile) -> Edit | None:
    """The call taken off its module, with the whole statement where nothing of it is left: `model = model.half()`."""
    assert isinstance(node.func, ast.Attribute)
    above = file.parents.get(node)
    name = dotted_name(node.func.value)
    is_alone = isinstance(above, ast.Expr)
    if isinstance(above, ast.Assign) and name is not None and dotted_name(above.targets[0]) == name:
        is_alone = True
    if is_alone and name is not None:
        assert isinstance(above, ast.stmt)
        return remove_statement(file, above)
    start = file.span(node.func.value)[1]
    text = file.text[start : file.span(node)[1]]
    if text.startswith(")"):  # `(a or b).half()`
        return None
    return Edit(file=file.path, start=start, end=file.span(node)[1], new="")
