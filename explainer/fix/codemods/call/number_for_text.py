"""A number that a configuration holds as text is written as one: `lr: 3e-3`, a string to PyYAML, becomes `lr: 0.003`.

YAML 1.1 wants a dot in the mantissa and a sign in the exponent. An option of argparse whose default is such a text gets
`type=float`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_at, culprit_of
from explainer.fix.setting.edit import set_value
from explainer.fix.text.rewrite import add_argument
from explainer.model.patch import Edit

_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?")
_OF_OPTIMIZERS = re.compile(
    r"(?:^|_)lr$|lr_|learning_rate|weight_decay|momentum|^eps|epsilon|beta|rate$|decay$|alpha|rho", re.IGNORECASE
)
_WHY = "holds a number as text: {text!r}"


def propose(context: Context) -> Iterator[Proposal]:
    """One edit for each file of settings, and for each option, that holds such numbers."""
    if not any("not supported between instances of" in one.message for one in context.incident.exceptions):
        return
    for document in context.program.documents():
        found = [one for one in document.settings if isinstance(one.value, str) and _is_meant(one.name, one.value)]
        edits = [(one, set_value(one, float(str(one.value)))) for one in found]
        kept = [(one, edit) for one, edit in edits if isinstance(edit, Edit)]
        if kept:
            first = kept[0][0]
            yield Proposal(
                edits=tuple(edit for _, edit in kept),
                culprit=culprit_at(
                    first.file, ((first.key or first.span)[0], first.span[1]), _WHY.format(text=first.value)
                ),
                belief=2.0,
            )
    for file in context.program.parsed():
        for node in file.walk():
            default = _default_of(node) if isinstance(node, ast.Call) else None
            if isinstance(node, ast.Call) and default is not None:
                yield Proposal(
                    edits=(add_argument(file, node, "type=float"),),
                    culprit=culprit_of(file, node, _WHY.format(text=default)),
                    belief=1.5,
                )


def _is_meant(name: str, text: str) -> bool:
    return bool(_OF_OPTIMIZERS.search(name.replace("-", "_")) and _NUMBER.fullmatch(text.strip()))


def _default_of(call: ast.Call) -> str | None:
    """The text that an option of argparse without a type has as its default, where it is a number of an optimizer."""
    given = {one.arg: one.value for one in call.keywords}
    default, option = given.get("default"), call.args[0] if call.args else None
    is_option = isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument" and "type" not in given
    if not is_option or not isinstance(default, ast.Constant) or not isinstance(option, ast.Constant):
        return None
    text, name = default.value, str(option.value).lstrip("-")
    return text if isinstance(text, str) and _is_meant(name, text) else None
