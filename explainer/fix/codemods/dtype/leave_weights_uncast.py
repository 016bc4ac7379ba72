"""`model.half()` goes: the weights keep the dtype that they were made or loaded in.

Under autocast and a GradScaler weights stay float32; those of a quantized model have no dtype that a cast could change.
`dtypes` in the rule's options lists the casts to take out. A `from_pretrained` in float16 is asked for float32 instead.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from explainer.fix.clue.blame import crash_frames
from explainer.fix.codemod import Context, Proposal, culprit_at, culprit_of, edit_of, remove_statement
from explainer.fix.setting.edit import set_value
from explainer.fix.text.rewrite import spell
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import Names, dotted_name
from explainer.source.network.precision import is_module
from explainer.source.program import Program
from explainer.source.setting.dtype import AskedDtype, autocast_word, dtypes_asked, is_read_otherwise

_LOADED = (".from_pretrained", ".from_config")
_DTYPE_ARGUMENTS = ("torch_dtype", "dtype")
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
    """Where a setting says what the weights are cast to, `net.to(getattr(torch, cfg["dtype"]))`, it says float32.

    Of one that autocast computes in too, or that the program compares, the cast goes and the setting stays; so it does where
    no dtype is right. Where it has a word by which autocast computes in float16, `precision: amp` beside `fp16`, that is said.
    """
    for cast in _casts(node, dtypes, file, program):
        for asked in dtypes_asked(cast, file, program):
            if asked.dtype not in dtypes:
                continue
            is_kept = "float32" in dtypes or is_read_otherwise(asked, program)
            word = autocast_word(asked, program) if asked.dtype == "float16" else None
            written = _said(asked, word) if word is not None else None if is_kept else _float32_asked(asked)
            edit = written or _without_cast(node, cast, file, program)
            if edit is not None:
                why = f"asks for weights in {asked.dtype}"
                yield Proposal(edits=(edit,), culprit=culprit_at(asked.file, asked.span, why), belief=1.5)


def _float32_asked(asked: AskedDtype) -> Edit | None:
    """The edit of a setting, or of the dtype itself, that asks for float32."""
    if asked.setting is None:
        start, end = asked.span
        text = asked.file.text[start:end].rpartition(".")[0]
        return Edit(file=asked.file.path, start=start, end=end, new=f"{text}.float32") if text else None
    word = asked.words.get("float32") if asked.words else "float32"
    return _said(asked, word) if word is not None else None


def _said(asked: AskedDtype, word: str) -> Edit | None:
    written = set_value(asked.setting, word) if asked.setting is not None else None
    return written if isinstance(written, Edit) else None


def _casts(node: ast.Call, dtypes: Sequence[str], file: SourceFile, program: Program) -> list[ast.expr]:
    """What may be the dtype that a call gives to the weights of a module."""
    called = program.names(file).qualified(node.func) or ""
    if called.endswith(_LOADED) and "float32" not in dtypes:
        return [one.value for one in node.keywords if one.arg in _DTYPE_ARGUMENTS]
    is_cast = isinstance(node.func, ast.Attribute) and node.func.attr in ("to", "type")
    if not is_cast or not (_is_data(node, file) or is_module(node.func.value, file, program)):  # type: ignore[attr-defined]
        return []
    return [*node.args, *(one.value for one in node.keywords)]


def _is_data(node: ast.Call, file: SourceFile) -> bool:
    """`layer.weight.data = layer.weight.data.to(dtype)`: the weights are cast one by one."""
    above = file.parents.get(node)
    name = dotted_name(node.func.value) if isinstance(node.func, ast.Attribute) else None
    is_put_back = isinstance(above, ast.Assign) and name is not None and dotted_name(above.targets[0]) == name
    return is_put_back and name is not None and name.endswith(".data")


def _without_cast(node: ast.Call, cast: ast.expr, file: SourceFile, program: Program) -> Edit | None:
    """A call without the dtype that it gives; one that loads weights is told float32."""
    names = program.names(file)
    if _is_data(node, file):
        return None  # others are cast in other lines
    if (names.qualified(node.func) or "").endswith(_LOADED):
        return edit_of(file, cast, spell(names, "torch.float32"))
    given = [*node.args, *(one.value for one in node.keywords)]
    if len(given) == 1:
        return _without(node, file)
    others = [file.segment(one) for one in node.args if one is not cast]
    others += [file.segment(one) for one in node.keywords if one.value is not cast]
    return edit_of(file, node, f"{file.segment(node.func)}({', '.join(others)})")


def _edit(node: ast.Call, dtypes: Sequence[str], file: SourceFile, program: Program) -> Edit | None:
    names = program.names(file)
    called = names.qualified(node.func) or ""
    if called.endswith(_LOADED) and "float16" in dtypes:
        wanted = [one for one in node.keywords if one.arg in _DTYPE_ARGUMENTS and _dtype(one.value, names) == "float16"]
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
    return _without_cast(node, cast, file, program) if cast is not None else None


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
