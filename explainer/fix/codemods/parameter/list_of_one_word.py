"""One word where names are listed is gone through letter by letter: `freeze: backbone` becomes `freeze: [backbone]`.

`any(name.startswith(prefix) for prefix in prefixes)` with a text for `prefixes` asks for names that begin with one of its letters. So
does `("backbone")`, which is a text in brackets: a tuple has its comma. Only where the letters together freeze every parameter of the
live model, and the word as a whole does not.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from explainer.fix.codemod import Context, Proposal, culprit_at
from explainer.fix.setting.edit import set_value
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.network.name_test import NameTest, find_name_tests, fits
from explainer.source.program import Program
from explainer.source.setting.flow import settings_behind
from explainer.source.setting.setting import IN_CODE
from explainer.source.text import TextFile
from explainer.source.value.resolve import resolver_of

_DEPTH = 8


def propose(context: Context) -> Iterator[Proposal]:
    """An edit of the one text whose letters freeze everything."""
    live = next((one.value.split() for one in context.incident.facts if one.name == "live_parameter_names"), [])
    if not context.has_failed or not live:
        return
    for test in find_name_tests(context.program):
        found = _text_of(test, context.program)
        if found is None:
            continue
        text, file, span, edit = found
        by_letters = [name for name in live if any(fits(name, one, test.how) for one in text)]
        whole = [name for name in live if fits(name, text, test.how)]
        if len(by_letters) == len(live) and 0 < len(whole) < len(live):
            yield Proposal(
                edits=(edit,),
                culprit=culprit_at(file, span, f"is one text: what goes through it gets its letters, {', '.join(text[:3])}, ..."),
                belief=2.6,
                because=f"as a word it takes {len(whole)} of the {len(live)} parameters; its letters take all of them",
                title=f"Write the one name as a list: `[{text}]`",
            )  # fmt: skip


def _text_of(test: NameTest, program: Program) -> tuple[str, TextFile, tuple[int, int], Edit] | None:
    """The text that a test goes through letter by letter, where it is written, and the edit that makes a list of it."""
    behind = list(resolver_of(program).behind(test.words)) if isinstance(test.words.node, ast.Name) else []
    if len(behind) != 1 or not behind[0].is_element:
        return None
    source = replace(behind[0], is_element=False)
    for _ in range(_DEPTH):
        node, file = source.node, source.file
        if isinstance(node, ast.Constant):
            is_text = isinstance(node.value, str) and node.value.isidentifier()
            return (str(node.value), file, file.span(node), _listed(node, file)) if is_text else None
        settings = settings_behind(node, file, program)
        if len(settings) == 1 and settings[0].kind not in IN_CODE:
            (one,) = settings
            edit = set_value(one, [one.value]) if isinstance(one.value, str) and one.value.isidentifier() else None
            start = (one.key or one.span)[0]
            if isinstance(edit, Edit):
                edit = Edit(file=edit.file, start=one.span[0], end=one.span[1], new=f"[{one.raw}]")  # in its own quotes
            return (str(one.value), one.file, (start, one.span[1]), edit) if isinstance(edit, Edit) else None
        further = list(resolver_of(program).behind(source))
        if len(further) != 1:
            return None
        (source,) = further
    return None


def _listed(node: ast.Constant, file: SourceFile) -> Edit:
    """`("backbone")` gets its comma, `"backbone"` brackets."""
    start, end = file.span(node)
    before, after = file.text[:start].rstrip(), file.text[end:].lstrip()
    is_call = before[:-1].rstrip()[-1:].isalnum() or before[:-1].rstrip()[-1:] in ("_", "]", ")")
    if before.endswith("(") and after.startswith(")") and not is_call:
        return Edit(file=file.path, start=end, end=end, new=",")
    return Edit(file=file.path, start=start, end=end, new=f"[{file.text[start:end]}]")
