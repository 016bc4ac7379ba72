"""Whether layers that never learn are a student's own, in a program whose frozen weights are a teacher's alone.

The words for what is frozen on purpose stand in any distillation. Where the teacher is frozen by its flags, no parameter of it
is starved: what an optimizer owns, requires grad and runs with grad mode off belongs to another model.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.network.freeze import ON_PURPOSE, Freeze, find_freezes
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.resolve import resolver_of

_COMES_FROM_ELSEWHERE = re.compile(
    r"load_(?:state|file|from|weights|checkpoint|pretrained|model)|from_pretrained|restore|(?:torch|np|numpy|pickle|joblib)\.load\b"
    r"|deepcopy|\.hub\.|lerp|copy_\(|\.data\b|vector_to_parameters|\bema\b|momentum_|target_net",
    re.IGNORECASE,
)
_STAYS_RANDOM = re.compile(
    r"\bfixed\b|reservoir|echo.state|random[_ ](?:feature|projection)|\bnot (?:be )?trained|untrained|\bprobe", re.IGNORECASE
)  # fmt: skip
_FREEZES = re.compile(r"^.*(?:freez|froze).*$", re.IGNORECASE | re.MULTILINE)
_TEACHER = re.compile(r"teacher", re.IGNORECASE)
_WHOLE = frozenset({"eval", "train", "to", "cpu", "cuda"})  # methods that give the module itself
_DEFINES = re.compile(r"\s*(?:def|from|import) ")


def is_beside_teacher(node: ast.AST, file: SourceFile, program: Program) -> bool:
    """Whether a method, or a block in one, runs layers that its class draws at random while the teacher is frozen by its flags."""
    owner = program.names(file).class_of(node)
    if owner is None or ON_PURPOSE.search(f"{owner.name} {getattr(node, 'name', '')}") or _speaks_of_teacher(owner):
        return False
    texts = [one.text for one in program.parsed()]
    if any(_COMES_FROM_ELSEWHERE.search(one) or _STAYS_RANDOM.search(one) for one in texts):
        return False
    lines = [line for one in texts for line in _FREEZES.findall(one)]
    is_teachers = all(_DEFINES.match(one) or (_TEACHER.search(one) and "student" not in one) for one in lines)
    return (
        is_teachers
        and any(_is_of_teacher(one, program) for one in find_freezes(program))
        and _runs_own_layers(node, owner, file, program)
    )


def _speaks_of_teacher(owner: ast.ClassDef) -> bool:
    """Whether a class has a name for a teacher in it; what its texts say does not count."""
    named = (getattr(one, "id", None) or getattr(one, "attr", None) or getattr(one, "arg", None) for one in walk(owner))
    return any(_TEACHER.search(str(one)) for one in named)


def _is_of_teacher(freeze: Freeze, program: Program) -> bool:
    """Whether a switch takes all parameters of a teacher: by its name, in its class, or in what is called to freeze it."""
    names = program.names(freeze.file)
    is_whole = not freeze.is_on and freeze.test is None and freeze.file.enclosing(freeze.statement, ast.If) is None
    function, owner = names.function_of(freeze.flag), names.class_of(freeze.flag)
    parts = list(_parts(freeze.owner))
    if not is_whole or any(one not in _WHOLE and not _TEACHER.search(one) for one in parts[1:]):
        return False
    if any(_TEACHER.search(one) for one in parts):
        return True
    is_its_class = parts[:1] == ["self"] and owner is not None and _TEACHER.search(owner.name) is not None
    is_called = function is not None and (
        function.name == "__init__" or bool(resolver_of(program).calls_named(function.name))
    )
    return is_called and (is_its_class or (function is not None and _FREEZES.search(function.name) is not None))


def _parts(node: ast.AST) -> Iterator[str]:
    """The names of a chain from its root on: `self`, `teacher`, `eval` of `self.teacher.eval()`."""
    while isinstance(node, (ast.Attribute, ast.Call)):
        if isinstance(node, ast.Call):
            node = node.func
            continue
        yield from _parts(node.value)
        yield node.attr
        return
    if isinstance(node, ast.Name):
        yield node.id


def _runs_own_layers(node: ast.AST, owner: ast.ClassDef, file: SourceFile, program: Program) -> bool:
    """Whether all that is called of `self` are layers which its class makes, none of them named for what is frozen."""
    called = list(_called_of_self(node))
    return bool(called) and all(
        ON_PURPOSE.search(one) is None and _is_made(program.names(file).attribute_value(owner, one), file, program)
        for one in called
    )


def _called_of_self(node: ast.AST) -> Iterator[str]:
    for one in walk(node):
        name = dotted_name(one.func) if isinstance(one, ast.Call) else None
        if name is not None and name.startswith("self."):
            yield name.split(".")[1]


def _is_made(value: ast.expr | None, file: SourceFile, program: Program) -> bool:
    """Whether an attribute is a new layer, of torch or of the program."""
    if not isinstance(value, ast.Call):
        return False
    name = program.names(file).qualified(value.func) or ""
    return name.startswith("torch.nn.") or resolver_of(program).find_class(value.func, file) is not None
