"""`torch.linalg.cholesky(a)` becomes `torch.linalg.cholesky(a.float())` where the operation is not there for the operand's dtype.

The message names the kernel, the traceback the line; the call on it that has the kernel's name is cast. With `written` in the
rule's options the value of an indexed assignment, or of `index_add_` and its like, gets the dtype of what it is written into.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.blame import crash_frames
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import operand, put_method
from explainer.source.file import SourceFile
from explainer.source.graph.indexed_write import WHOLE_TYPES, indexed_write
from explainer.source.name import Names, dotted_name
from explainer.source.value.dtype import stated_dtype

_KERNEL = re.compile(r"[a-z_]+")
_UNSUPPORTED = re.compile(r"[Uu]nsupported dtype (BFloat16|Half)")
_PARTS = frozenset(("real", "imag", "abs", "angle"))
_REAL = frozenset(("irfft", "irfft2", "irfftn", "hfft", "hfft2", "hfftn"))
_ALIASES = {"addmm": "matmul", "mean": "mean", "geqrf": "qr", "svd": "svd", "linalg": "eigh"}


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each operation that the message means on the lines that the traceback names.

    Nothing is written where whole numbers are to hold fractions: cast to them, these would be cut off.
    """
    is_cut_off = context.options.get("written") and str(context.fields.get("left_type")).lower() in WHOLE_TYPES
    if not context.has_failed or is_cut_off:
        return
    for file in context.program.parsed():
        frames = crash_frames(file, context)
        for node in file.walk() if frames else ():
            line = getattr(node, "lineno", 0)
            if frames.get(line, 99) > 0:
                continue
            if context.options.get("written"):
                yield from _written(node, file)
            elif isinstance(node, ast.Call):
                yield from _operation(node, file, context)
                yield from _transform(node, file, context)


def _written(node: ast.AST, file: SourceFile) -> Iterator[Proposal]:
    """`y[i] = f(x)` becomes `y[i] = f(x).to(y.dtype)`, and so does what `y.index_add_(0, i, f(x))` adds."""
    target, value = indexed_write(node) or (None, None)
    if target is None or value is None or isinstance(value, ast.Constant):
        return
    name = operand(file, target)
    is_known = isinstance(node, ast.Assign) or isinstance(target, ast.Name)
    if is_known and not file.segment(value).endswith(f".to({name}.dtype)"):
        yield Proposal(
            edits=(put_method(file, value, f".to({name}.dtype)"),),
            culprit=culprit_of(file, node, f"writes values of another dtype into `{name}`"),
            belief=1.2,
        )


def _operation(node: ast.Call, file: SourceFile, context: Context) -> Iterator[Proposal]:
    names = context.program.names(file)
    subject = _subject(node, names, str(context.fields.get("kernel") or _kernel(context)))
    if subject is None or (isinstance(subject, ast.Call) and stated_dtype(subject, names) == "float32"):
        return
    found = context.fields.get("found_dtype") or context.fields.get("found_type") or "this dtype"
    yield Proposal(
        edits=(put_method(file, subject, ".float()"),),
        culprit=culprit_of(file, node, f"is not there for {found}"),
        belief=1.2,
    )


def _transform(node: ast.Call, file: SourceFile, context: Context) -> Iterator[Proposal]:
    """`torch.fft.fft(x).real` becomes `torch.fft.fft(x.float()).real.to(x.dtype)`: its message names the dtype alone.

    A spectrum stays complex; what is real again goes on as the tensor came.
    """
    called = context.program.names(file).qualified(node.func) or ""
    found = _UNSUPPORTED.search(context.incident.exceptions[-1].message if context.incident.exceptions else "")
    if found is None or not called.startswith("torch.fft.") or not node.args:
        return
    subject, whole = node.args[0], _made_real(node, file)
    if isinstance(subject, ast.Call) and stated_dtype(subject, context.program.names(file)) == "float32":
        return
    edits = [put_method(file, subject, ".float()")]
    name = dotted_name(subject)
    if name is not None and (whole is not node or called.rpartition(".")[2] in _REAL):
        edits.append(put_method(file, whole, f".to({name}.dtype)"))
    yield Proposal(edits=tuple(edits), culprit=culprit_of(file, node, f"is not there for {found[1]}"), belief=1.2)


def _made_real(node: ast.expr, file: SourceFile) -> ast.expr:
    """`.real`, `.imag`, `.abs()` or `.angle()` of a spectrum, else the spectrum."""
    above = file.parents.get(node)
    if not isinstance(above, ast.Attribute) or above.attr not in _PARTS:
        return node
    call = file.parents.get(above)
    if isinstance(call, ast.Call) and call.func is above:
        return call
    return above if above.attr in ("real", "imag") else node


def _kernel(context: Context) -> str:
    """The function that a message without quotes begins with: `mean(): could not infer output dtype`."""
    message = context.incident.exceptions[-1].message if context.incident.exceptions else ""
    found = re.match(r"(\w+)\(\)", message)
    return found.group(1) if found else ""


def _subject(node: ast.Call, names: Names, kernel: str) -> ast.expr | None:
    """What the call that has the kernel's name is applied to."""
    called = names.qualified(node.func) or ""
    method = node.func.attr if isinstance(node.func, ast.Attribute) else called.rpartition(".")[2]
    words = _KERNEL.findall(kernel.lower())
    is_meant = bool(words) and any(
        method.rstrip("_") in (word, _ALIASES.get(word.partition("_")[0], "")) or word.startswith(f"{method}_")
        for word in words
    )
    if not is_meant or not method:
        return None
    if called.startswith("torch."):
        return node.args[0] if node.args else None
    return node.func.value if isinstance(node.func, ast.Attribute) else None
