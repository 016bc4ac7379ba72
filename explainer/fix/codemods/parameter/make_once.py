"""A parameter or layer that a forward makes anew each time it runs is made once, in `__init__`, where an optimizer finds it.

    def forward(self, x):                                     self.scale = nn.Parameter(torch.ones(self.width))
        scale = nn.Parameter(torch.ones(self.width))      def forward(self, x):
        return self.last(x) * scale                           scale = self.scale
                                                              return self.last(x) * scale

Only where `__init__` knows all that it is made of, and the forward makes it once: of a loop's rounds each may be meant to have its
own. Else its line alone is told.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from explainer.fix.clue.crash import message_of
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_after, insert_before, remove_statement
from explainer.fix.text.in_init import text_in_init
from explainer.fix.text.rewrite import spell
from explainer.model.patch import Edit
from explainer.model.verification import MADE_ANEW
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.network.anew import PARAMETER, Anew, init_of, is_taken, made_at, made_in_forwards, runs_once
from explainer.source.program import Program
from explainer.source.tree import walk

_SEEN = re.compile(rf"(\S+):(\d+) makes a (\w+) {re.escape(MADE_ANEW)}")
_EMPTY = "empty parameter list"
_WHY = "makes parameters anew each time it runs: they are trained by no optimizer"


def propose(context: Context) -> Iterator[Proposal]:
    """One edit for all that a run was seen to make anew, or that leaves an optimizer without parameters; else the lines."""
    program = context.program
    seen = [found for line in context.incident.log if (found := _SEEN.search(line.text))]
    places = [(file, int(each[2])) for each in seen for file in program.parsed() if _name(file) == each[1]]
    makers = [made_at(file, line, program) for file, line in places]
    if not seen and _EMPTY in message_of(context):
        makers = list(made_in_forwards(program))
    made = list({each.node: each for each in makers if each is not None}.values())
    edits = _edits(made, program) if made and None not in makers else ()
    for one in made:
        yield Proposal(
            edits=edits, culprit=culprit_of(one.file, one.node, _WHY), belief=3.0 if seen else 1.5, is_origin=True
        )
        if edits:
            return
    for (file, line), anew in zip(places, makers, strict=False):
        statement = program.at(file.path, line)
        if anew is None and statement is not None:
            yield Proposal(edits=(), culprit=culprit_of(file, statement, _WHY), belief=3.0, is_origin=True)


def _name(file: SourceFile) -> str:
    return file.path.replace("\\", "/").rpartition("/")[2]


def _edits(made: Sequence[Anew], program: Program) -> tuple[Edit, ...]:
    """The edits that make all of it in `__init__`; none where one of them has to stay."""
    edits: list[Edit] = []
    for owner in dict.fromkeys(one.owner for one in made):
        mine = [one for one in made if one.owner is owner]
        texts = [text_in_init(one) if runs_once(one, program) else None for one in mine]
        lines: list[str] = []
        needed: set[str] = set()
        taken: set[str] = set()
        for one, text in zip(mine, texts, strict=True):
            name = _attribute(one, taken)
            if text is None or name is None:
                return ()
            taken.add(name)
            needed |= text[1]
            lines.append(f"self.{name} = {_listed(one, _outdented(one, text[0]), program)}")
            is_kept = _target(one) == f"self.{name}"
            edits.append(
                remove_statement(one.file, one.statement) if is_kept else edit_of(one.file, one.node, f"self.{name}")
            )
        put = _in_init(mine[0], lines, needed)
        if put is None:
            return ()
        edits.append(put)
    return tuple(edits)


def _outdented(one: Anew, text: str) -> str:
    """What is made, over several lines, without the indentation of the statement."""
    lead = len(one.file.indent(one.statement.lineno))
    first, *rest = text.splitlines()
    return "\n".join([first, *(line if line[:lead].strip() else line[lead:] for line in rest)])


def _listed(one: Anew, text: str, program: Program) -> str:
    """What a list of layers becomes, so that it is seen."""
    if not one.is_list:
        return text
    names = program.names(one.file)
    first = next(each for each in walk(one.node) if isinstance(each, ast.Call))
    kind = "ParameterList" if names.qualified(first.func) in PARAMETER else "ModuleList"
    return f"{spell(names, f'torch.nn.{kind}')}({text[1:-1] if isinstance(one.node, ast.ListComp) else text})"


def _target(one: Anew) -> str | None:
    """The name that is given what is made, where nothing else is done with it."""
    statement = one.statement
    is_plain = isinstance(statement, ast.Assign) and statement.value is one.node and len(statement.targets) == 1
    return dotted_name(statement.targets[0]) if is_plain and isinstance(statement, ast.Assign) else None


def _attribute(one: Anew, taken: set[str]) -> str | None:
    """The name of the attribute: the one that the method gives, else of what is made."""
    target = _target(one) or ""
    if target.startswith("self."):
        name = target.removeprefix("self.")
        stored = [
            each for each in walk(one.owner) if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store)
        ]
        return name if sum(dotted_name(each) == target for each in stored) == 1 else None
    call = next(each for each in walk(one.node) if isinstance(each, ast.Call))
    kind = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", (dotted_name(call.func) or "part").rpartition(".")[2]).lower()
    plain = (
        target if target.isidentifier() else "weight" if kind == "parameter" else f"{kind}s" if one.is_list else kind
    )
    names = (plain, f"own_{plain}")
    return next((each for each in names if each not in taken and not is_taken(each, one.owner)), None)


def _in_init(one: Anew, lines: Sequence[str], needed: set[str]) -> Edit | None:
    """The lines behind the last attribute that `__init__` sets, before what takes all parameters; in an `__init__` of their own."""
    init, text = init_of(one.owner), "\n".join(lines)
    if init is None:
        bases = [dotted_name(base) or "" for base in one.owner.bases]
        if len(bases) != 1 or bases[0].rpartition(".")[2] not in ("Module", "LightningModule"):
            return None
        body = "\n".join(f"    {line}" for line in lines)
        return insert_before(one.file, one.method, f"def __init__(self):\n    super().__init__()\n{body}\n")
    taking = next((index for index, each in enumerate(init.body) if _takes_all(each)), len(init.body))
    before = init.body[:taking]
    if not any(_is_super(each) for each in before):
        return None
    given = {name for each in before for name in _set_by(each)}
    last = max((index for index, each in enumerate(before) if _set_by(each) or _is_super(each)), default=0)
    return insert_after(one.file, before[last], text) if needed <= given else None


def _set_by(statement: ast.stmt) -> set[str]:
    names = (
        dotted_name(one) or ""
        for one in walk(statement)
        if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store)
    )
    return {name.removeprefix("self.") for name in names if name.startswith("self.")}


def _takes_all(statement: ast.stmt) -> bool:
    """Whether a statement of `__init__` uses what has been made so far: an optimizer, an initialisation of all."""
    asked = {
        one.func.attr for one in walk(statement) if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute)
    }
    return bool(
        asked & {"parameters", "named_parameters", "apply", "modules", "named_modules", "post_init", "state_dict"}
    )


def _is_super(statement: ast.stmt) -> bool:
    return any(isinstance(one, ast.Call) and dotted_name(one.func) == "super" for one in walk(statement)) or any(
        isinstance(one, ast.Attribute) and one.attr == "__init__" for one in walk(statement)
    )
