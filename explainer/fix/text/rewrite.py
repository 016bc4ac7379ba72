"""Text that codemods write: a method put on an expression, a library's function as the file spells it."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from explainer.fix.codemod import edit_of, insert_before
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import Names
from explainer.source.tree import walk

_ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.List, ast.ListComp, ast.Tuple)


def put_method(file: SourceFile, node: ast.expr, method: str) -> Edit:
    """The edit that calls a method on a tensor: `x` becomes `x.float()`, `a + b` becomes `(a + b).float()`.

    A list has no such method: each element of a comprehension gets it; a cut (`[:64]`) is one of the list.
    """
    if isinstance(node, ast.ListComp) and method.startswith("."):
        return put_method(file, node.elt, method)
    start, end = bracketed(file, node)
    if isinstance(node, _ATOMS) or (start, end) != file.span(node):
        return Edit(file=file.path, start=end, end=end, new=method)
    return edit_of(file, node, f"({file.segment(node)}){method}")


def with_method(file: SourceFile, node: ast.expr, method: str) -> str:
    """The text of an expression with a method called on it."""
    return f"{operand(file, node)}{method}"


def operand(file: SourceFile, node: ast.expr) -> str:
    """The text of an expression, in parentheses where what is put behind it would bind tighter."""
    text = file.segment(node)
    return text if isinstance(node, _ATOMS) else f"({text})"


def replace_whole(file: SourceFile, node: ast.expr, new: str) -> Edit:
    """The edit that puts `new` in place of an expression and of the parentheses that are its own."""
    start, end = bracketed(file, node)
    return Edit(file=file.path, start=start, end=end, new=new)


def bracketed(file: SourceFile, node: ast.expr) -> tuple[int, int]:
    """The span of an expression with the pair of parentheses round it, where these are not those of a call."""
    start, end = file.span(node)
    before, after = start - 1, end
    while before >= 0 and file.text[before] in " \t\r\n":
        before -= 1
    while after < len(file.text) and file.text[after] in " \t\r\n":
        after += 1
    if before < 0 or after >= len(file.text) or (file.text[before], file.text[after]) != ("(", ")"):
        return start, end
    return (start, end) if _is_argument(file, node) else (before, after + 1)


def _is_argument(file: SourceFile, node: ast.expr) -> bool:
    """Whether the parentheses round a node belong to a call, a definition or a comprehension."""
    above = file.parents.get(node)
    return isinstance(above, (ast.keyword, ast.arguments, ast.ClassDef)) or (
        isinstance(above, ast.Call) and above.func is not node
    )


def spell(names: Names, qualified: str) -> str:
    """A qualified name as a file would write it, by what it imports: `torch.nn.functional.softplus` is `F.softplus` under `as F`."""
    best = qualified
    for local, meant in names.imports.items():
        if qualified == meant:
            return local
        if qualified.startswith(f"{meant}."):
            best = min(best, f"{local}{qualified.removeprefix(meant)}", key=len)
    return best


def add_argument(file: SourceFile, call: ast.Call, argument: str) -> Edit:
    """The edit that gives a call one more argument, last; on a line of its own where the last one has one."""
    given = [*call.args, *(one.value for one in call.keywords)]
    if not given:
        end = file.span(call)[1] - 1
        return Edit(file=file.path, start=end, end=end, new=argument)
    last = max(given, key=lambda one: (one.end_lineno or 0, one.end_col_offset or 0))
    end = _bracketed_argument(file, last, file.span(call)[1])
    first = next((one for one in call.keywords if one.value is last), last)
    lead = file.text[file.line_start(first.lineno) : file.offset(first.lineno, first.col_offset)]
    is_alone = not lead.strip() and first.lineno > call.lineno and (call.end_lineno or 0) > (last.end_lineno or 0)
    return Edit(
        file=file.path, start=end, end=end, new=f",{file.newline}{lead}{argument}" if is_alone else f", {argument}"
    )


def _bracketed_argument(file: SourceFile, node: ast.expr, limit: int) -> int:
    """Where an argument ends, with the parentheses that are its own: those before a comma or before the call's last one."""
    end = file.span(node)[1]
    at = end
    while at < limit - 1:
        if file.text[at] == ")":
            end = at + 1
        elif file.text[at] not in " \t\r\n":
            break
        at += 1
    return end


def remove_argument(file: SourceFile, call: ast.Call, keyword: ast.keyword) -> Edit:
    """The edit that takes a keyword argument out of a call, with the comma that belongs to it."""
    start, end = file.offset(keyword.lineno, keyword.col_offset), file.span(keyword.value)[1]
    place = (keyword.lineno, keyword.col_offset)
    starts = [(one.lineno, one.col_offset) for one in call.args] + [
        (one.lineno, one.col_offset) for one in call.keywords
    ]
    if min(starts) < place:
        start = file.text.rfind(",", 0, start)
    else:
        after = file.text.find(",", end, file.span(call)[1])
        if after >= 0:
            end = after + 1
            while file.text[end] == " ":
                end += 1
    return Edit(file=file.path, start=start, end=end, new="")


def indented(file: SourceFile, statements: Sequence[ast.stmt], without: Sequence[ast.AST] = ()) -> list[Edit]:
    """Moves statements, with the comments between them, one step in; lines in strings, or of `without`, stay as they are."""
    fixed = {
        line
        for one in without
        for line in range(one.lineno, (one.end_lineno or 0) + 1)  # type: ignore[attr-defined]
    }
    strings = {
        line
        for one in statements
        for node in walk(one)
        if isinstance(node, (ast.Constant, ast.JoinedStr)) and node.end_lineno != node.lineno
        for line in range(node.lineno + 1, (node.end_lineno or node.lineno) + 1)
    }
    step = "\t" if "\t" in file.indent(statements[0].lineno) else "    "
    first = min([statements[0].lineno, *(one.lineno for one in getattr(statements[0], "decorator_list", ()))])
    lines = range(first, (statements[-1].end_lineno or 0) + 1)
    starts = [file.line_start(line) for line in lines if line not in strings | fixed and file.line(line).strip()]
    return [Edit(file=file.path, start=start, end=start, new=step) for start in starts]


def in_block(file: SourceFile, statements: Sequence[ast.stmt], head: str) -> tuple[Edit, ...]:
    """Statements that follow each other as the body of a block: `in_block(file, row, "with torch.no_grad():")`.

    None where another statement shares a line with them: it would move along.
    """
    start, end = file.span(statements[0])[0], file.span(statements[-1])[1]
    before = file.text[file.line_start(statements[0].lineno) : start]
    behind = file.text[end:].partition("\n")[0].strip()
    decorated = bool(getattr(statements[0], "decorator_list", ()))
    if (before.strip() and not decorated) or (behind and not behind.startswith("#")):
        return ()
    return (insert_before(file, statements[0], head), *indented(file, statements))


def under_no_grad(file: SourceFile, statements: Sequence[ast.stmt], names: Names) -> tuple[Edit, ...]:
    """Statements that follow each other in a block without grad, spelled as the file spells torch."""
    return in_block(file, statements, f"with {spell(names, 'torch.no_grad')}():")


def free_name(name: str, scope: ast.AST) -> str:
    """A name that a scope does not have."""
    taken = {node.id for node in walk(scope) if isinstance(node, ast.Name)}
    while name in taken:
        name = f"{name}_"
    return name
