"""`with torch.device("meta"):` becomes `with torch.device("cpu"):` where the state that is loaded lacks a tensor of the model.

A buffer with `persistent=False`, or a table in a plain attribute, is in no state dict: `load_state_dict(..., assign=True)` leaves
it on the meta device. Built with memory the model is the same, for every parameter is loaded. Building draws the numbers of the
weights that are replaced; where the run draws from the same generator later it is put back: `torch.random.fork_rng(devices=[])`.
What a setting asks for (`lazy: true`) is asked for no more.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from explainer.fix.clue.crash import crash_places
from explainer.fix.clue.seen import seen_tensors
from explainer.fix.codemod import Context, Proposal, culprit_at, culprit_of, edit_of
from explainer.fix.setting.choice import has_value
from explainer.fix.setting.edit import set_value
from explainer.fix.text.rewrite import remove_argument, spell
from explainer.model.finding import Culprit
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.graph.draw import draws_behind
from explainer.source.name import dotted_name
from explainer.source.network.built_empty import META, Choice, EmptyBuild, Loaded, empty_builds, is_all_loaded, loads_of
from explainer.source.network.unsaved import Unsaved, is_drawn, is_filled_later, unsaved_tensors
from explainer.source.program import Program
from explainer.source.setting.flow import settings_behind
from explainer.source.setting.setting import Setting
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.resolve import resolver_of

_WHY = "builds the model without memory, though no state holds"
_MANY = 2  # lines of the same kind that are named
_DRAWS = "building on the CPU draws the numbers of the weights that are replaced, so that those drawn later are others"
_PUT_BACK = (
    "the weights that are built and replaced draw random numbers: `fork_rng` puts the generator back behind them"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Left:
    """The tensors that a program leaves on meta, those that the failure shows first."""

    tensors: tuple[Unsaved, ...]
    is_shown: bool

    @property
    def name(self) -> str:
        """The first of them, as a person says it."""
        return f"`{self.tensors[0].attribute}`" if self.tensors[0].attribute else "its buffers"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each place that builds a loaded model without memory, and for the setting that asks for it."""
    program = context.program
    if not context.has_failed or any(file.attributes.get("to_empty") for file in program.parsed()):
        return
    builds = [(one, loads) for one in program.once(empty_builds) if (loads := list(loads_of(one, program)))]
    left = _left(context) if builds else None
    if left is None:
        return
    is_drawn_anew = any(is_drawn(one, program) for one in left.tensors)
    for build, loads in builds:
        yield from _of_build(build, loads, left, context, is_random=is_drawn_anew)
    for one in left.tensors[:_MANY]:
        yield Proposal(
            edits=(), culprit=culprit_of(one.file, one.node, "makes a tensor that no state holds"), belief=0.4
        )


def _left(context: Context) -> _Left | None:
    """The tensors that no state holds and nothing fills; where the failing frame held some on meta, these lead."""
    seen = {name.rpartition(".")[2]: tensor.device for name, tensor in seen_tensors(context).items() if "." in name}
    made = context.program.once(unsaved_tensors)
    shown = [one for one in made if seen.get(one.attribute) == META]
    others = [one for one in made if one.attribute not in seen and not is_filled_later(one, context.program)]
    read = _read_by_failure(context)
    named = [one for one in others if one.attribute in read.get(one.owner.name, ())]
    found = tuple(dict.fromkeys([*shown, *named, *others]))
    return _Left(tensors=found, is_shown=bool(shown or named)) if found else None


def _read_by_failure(context: Context) -> dict[str, set[str]]:
    """The attributes of `self` that the statement reads which failed, by its class."""
    for file, statement in crash_places(context):
        owner = context.program.names(file).class_of(statement)
        names = [dotted_name(node) or "" for node in walk(statement) if isinstance(node, ast.Attribute)]
        return {owner.name: {one.removeprefix("self.") for one in names}} if owner is not None else {}
    return {}


def _of_build(
    build: EmptyBuild, loads: Sequence[Loaded], left: _Left, context: Context, *, is_random: bool
) -> Iterator[Proposal]:
    program, asked = context.program, build.asked
    place = culprit_of(build.file, build.place, f"{_WHY} {left.name}")
    belief = 2.4 if left.is_shown else 1.8
    is_loaded = all(one.is_strict for one in loads) and is_all_loaded(build, loads, program)
    if is_random or not (is_loaded or asked.keyword is not None):
        # What no state holds would be drawn: other values than those that the author had in mind.
        yield Proposal(edits=(), culprit=place, belief=belief)
        return
    draws = asked.keyword is None and draws_behind(build.last, build.file, program)
    yield from _by_choice(build, left, belief, program, draws=draws)
    edit, because = _edit(build, program, draws=draws)
    culprit = place
    if asked.setting is not None:
        culprit = _setting_line(asked.setting, left)
    elif asked.context is not None:
        culprit = culprit_of(asked.file, asked.context, place.why or "")
    yield Proposal(
        edits=(edit,) if edit is not None else (),
        culprit=culprit,
        belief=belief,
        applicability="unsafe" if because == _DRAWS else None,
        because=because,
        title=f"Build the model with memory: the state that is loaded into it lacks {left.name}",
    )
    yield Proposal(edits=(), culprit=place, belief=belief - 0.5)


def _edit(build: EmptyBuild, program: Program, *, draws: bool) -> tuple[Edit | None, str | None]:
    """The edit that builds with memory, and what is to be said of it."""
    asked, is_named = build.asked, isinstance(build.place, (ast.Name, ast.Attribute)) and not build.asked.choices
    if asked.keyword is not None:
        assert isinstance(asked.node, ast.Call)
        return remove_argument(asked.file, asked.node, asked.keyword), None
    if asked.setting is not None:
        edit = set_value(asked.setting, "cpu")
        return edit if isinstance(edit, Edit) else None, _DRAWS if draws else None
    # Within `torch.device("meta" if lazy else "cpu")` the word alone is another.
    is_plain = asked.context is not None and asked.context.args[0] is asked.node
    file, context = (build.file, build.place) if is_named else (asked.file, asked.context if is_plain else None)
    names = program.names(file)
    if draws and context is not None and not _has_default_device(program):
        return edit_of(file, context, f"{spell(names, 'torch.random.fork_rng')}(devices=[])"), _PUT_BACK
    if is_named and context is not None:
        return edit_of(file, context, f'{spell(names, "torch.device")}("cpu")'), _DRAWS if draws else None
    text = asked.file.segment(asked.node).replace(META, "cpu")
    return edit_of(asked.file, asked.node, text), _DRAWS if draws else None


def _has_default_device(program: Program) -> bool:
    return any(
        "set_default_device" in file.attributes or "set_default_device" in file.plain_names for file in program.parsed()
    )


def _setting_line(setting: Setting, left: _Left) -> Culprit:
    span = (setting.key or setting.span)[0], setting.span[1]
    return culprit_at(setting.file, span, f"asks for a model without memory, though no state holds {left.name}")


def _by_choice(build: EmptyBuild, left: _Left, belief: float, program: Program, *, draws: bool) -> Iterator[Proposal]:
    """The setting that chooses the empty context, where it chooses nothing else and the other way builds with memory."""
    choices = build.asked.choices
    if len(choices) != 1 or not choices[0].is_full_otherwise:
        return
    text = "false" if choices[0].wanted else "true"
    for setting in _deciding(choices[0], program):
        edit = set_value(setting, not choices[0].wanted)
        if isinstance(edit, Edit):
            yield Proposal(
                edits=(edit,),
                culprit=_setting_line(setting, left),
                belief=belief - 0.3 if draws else belief + 0.1,
                applicability="unsafe" if draws else None,
                because=_DRAWS if draws else "the setting asks for nothing else",
                title=f"Build the model with memory, `{setting.name}` of {text}: the state that is loaded lacks {left.name}",
            )


def _deciding(choice: Choice, program: Program) -> Iterator[Setting]:
    """The settings of which each alone makes a choice, and which the program reads for that only."""
    parts = [choice.test]
    if isinstance(choice.test, ast.BoolOp):
        # Any part that is false makes `and` so, any that is true makes `or` so.
        turns = ast.And if choice.wanted else ast.Or
        parts = list(choice.test.values) if isinstance(choice.test.op, turns) else []
    for part in parts:
        if not isinstance(part, (ast.Name, ast.Attribute, ast.Subscript, ast.Call)):
            continue
        settings = settings_behind(part, choice.file, program)
        is_one = len(settings) == 1 and isinstance(settings[0].value, bool) and has_value(settings[0], choice.wanted)
        if is_one and not _is_used_otherwise(settings[0], part, choice, program):
            yield settings[0]


def _is_used_otherwise(setting: Setting, part: ast.expr, choice: Choice, program: Program) -> bool:
    """Whether anything but a choice reads a setting, or a name that it goes by; a call of the program's hands it on."""
    own = set(walk(choice.test))
    wanted = {setting.name, (dotted_name(part) or "").rpartition(".")[2]} - {""}
    for file in program.parsed():
        for node in file.walk():
            if _spelled(node) in wanted and node not in own and not _is_handed_on(node, file, program):
                return True
    return False


def _spelled(node: ast.AST) -> str | None:
    """The name by which an expression reads something: `lazy`, `args.lazy`, `cfg["lazy"]`, `cfg.get("lazy")`."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
        return node.attr
    key: ast.expr | None = None
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        key = node.slice
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("get", "pop"):
        key = node.args[0] if node.args else None
    return key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else None


def _is_handed_on(node: ast.AST, file: SourceFile, program: Program) -> bool:
    """Whether an expression is an argument of a function or class of the program, which reads it by a name again."""
    above = file.parents.get(node)
    above = file.parents.get(above) if isinstance(above, ast.keyword) else above
    if not isinstance(above, ast.Call) or above.func is node:
        return False
    resolver = resolver_of(program)
    is_own = resolver.function_of(above, Value(above, file)) is not None
    return is_own or resolver.find_class(above.func, file) is not None
