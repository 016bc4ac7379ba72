"""Points at the options of which a library says that they do not go together, where they are set. No edit: which one goes is a choice.

They are set in a call, in a configuration file whose values reach one (`SFTConfig(**settings)`), or in a class of settings.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from explainer.fix.clue.crash import message_of
from explainer.fix.codemod import Context, Proposal, culprit_at
from explainer.fix.setting.choice import has_value
from explainer.source.file import SourceFile
from explainer.source.program import Program
from explainer.source.setting.flow import members_behind, settings_behind
from explainer.source.setting.python import literal, read_python, setting_at
from explainer.source.setting.setting import ASSIGNED, DEFAULT, Code, Setting
from explainer.source.tree import walk

# `name=True`, 'name', --name, `Trainer(name='x')`, `args.name`, and any bare name of several words.
_QUOTED = re.compile(
    r"[`'(]-{0,2}(?:\w+\.)*(?P<name>[A-Za-z]\w{2,59})(?: ?= ?(?P<value>['\"]?[\w.-]{1,40}?['\"]?))?[`')]"
)
_FLAG = re.compile(r"(?<!\w)--(?P<name>[A-Za-z][\w-]{2,59})(?:[= ]`?(?P<value>True|False)\b)?")
_PLAIN = re.compile(r"(?<![\w.-])(?P<name>[a-z]\w*_\w+)(?: ?= ?(?P<value>True|False)\b)?")
_MAX_LINES = 3
_BELIEF = -2.0  # a line that an edit of the cause cures leads
_OFF = ("false", "no", "off", "0", "0.0", "none", "null", "")


def propose(context: Context) -> Iterator[Proposal]:
    """The lines that set the options of the message, in its order."""
    if not context.has_failed:
        return
    found: dict[tuple[str, int], Setting] = {}
    for name, values in _named(message_of(context)).items():
        settings = [one for one in _set(name, context.program) if _is_said(one, values)]
        for one in settings:
            found.setdefault((one.file.path, one.line), one)
    for number, one in enumerate(list(found.values())[:_MAX_LINES]):
        span = (one.key or one.span)[0], one.span[1]
        why = f"sets `{one.name}`, which does not go together with what else is set or given"
        yield Proposal(edits=(), culprit=culprit_at(one.file, span, why), belief=_BELIEF - 0.1 * number)


def _named(message: str) -> dict[str, list[object]]:
    """The options that a message names, in its order, each with the values that it says they have."""
    told = sorted(
        (one for form in (_QUOTED, _FLAG, _PLAIN) for one in form.finditer(message)), key=lambda one: one.start("name")
    )
    found: dict[str, list[object]] = {}
    for one in told:
        values = found.setdefault(one["name"].replace("-", "_"), [])
        if one["value"] is not None:
            values.append(_value(one["value"]))
    return found


def _value(text: str) -> object:
    try:
        value: object = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
    return value


def _is_said(one: Setting, values: Sequence[object]) -> bool:
    """Whether a setting has a value that the message says it has; where that says none, whether it switches something on."""
    value = _own(one)
    if isinstance(value, Code):
        return True
    if values:
        return any(has_value(one, said) or value == said for said in values)
    return str(value).lower() not in _OFF


def _own(one: Setting) -> object:
    """The value of a setting; of a field of a dataclass its default."""
    if isinstance(one.value, Code) and one.kind == DEFAULT and isinstance(one.file, SourceFile):
        node = ast.parse(f"({one.raw})", mode="eval").body
        given = [it.value for it in node.keywords if it.arg == "default"] if isinstance(node, ast.Call) else []
        return literal(given[0], ast.unparse(given[0])) if given else one.value
    return one.value


def _set(name: str, program: Program) -> list[Setting]:
    """Where an option is set: what reaches a call, else all that has its name, files that the program names first."""
    reaching = list(_reaching(name, program))
    if reaching:
        return reaching
    texts = [text.text for text in program.order]
    documents = [one for document in program.documents() for one in document.named(name)]
    named = [one for one in documents if any(one.file.path.rpartition("/")[2] in text for text in texts)]
    return [*_in_code(name, program), *(named or documents)]


def _reaching(name: str, program: Program) -> Iterator[Setting]:
    """The settings that calls are given under a name, by keyword or through `**mapping`, where they are written."""
    for file in program.parsed():
        names = program.names(file)
        for call in (node for node in file.walk() if isinstance(node, ast.Call)):
            for one in call.keywords:
                if one.arg == name:
                    is_written = isinstance(one.value, ast.Constant)
                    behind = [] if is_written else settings_behind(one.value, file, program)
                    own = setting_at(one.value, file, names)
                    yield from behind or ([own] if own is not None else [])
                elif one.arg is None and name in _words(program):
                    yield from members_behind(one.value, name, file, program)


def _in_code(name: str, program: Program) -> list[Setting]:
    """The fields, entries and attributes of that name in the program; a bare variable may be read by anybody.

    What an entry computes is a result, as of the metrics that are logged, and no option.
    """
    return [
        one
        for file in program.parsed()
        for one in read_python(file)
        if one.name == name
        and (one.kind != ASSIGNED or one.owner)
        and (one.kind == DEFAULT or not isinstance(one.value, Code))
    ]


def _words(program: Program) -> frozenset[str]:
    """The words that a program has for keys and names, in its code and in its configuration files."""
    return frozenset(program.once(_find_words))


def _find_words(program: Program) -> Iterator[str]:
    for file in program.parsed():
        for node in walk(file.tree) if file.tree is not None else ():
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value
            elif isinstance(node, ast.keyword) and node.arg is not None:
                yield node.arg
    yield from (one.name for document in program.documents() for one in document.settings)
