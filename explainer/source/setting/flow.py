"""From the use of a setting to the place where it is written: `nn.ReLU(inplace=cfg["inplace"])` to the line of a file.

Values are followed through names, attributes, subscripts, `.get`, `**mapping`, dictionaries, parameters and their calls,
classes, argparse, configparser and Hydra. Where several places may be meant all are given; where none is known, none.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeGuard

from explainer.source.file import SourceFile
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program, module_name
from explainer.source.setting.binding import (
    argument_of,
    bindings_of,
    bound_values,
    calls_by_name,
    default_of,
    parameters_of,
)
from explainer.source.setting.by_name import settings_by_name
from explainer.source.setting.config_parser import MAKERS, NUMBERS, TYPED, filling_calls, walked_parser
from explainer.source.setting.file import names_file
from explainer.source.setting.ini import DEFAULTS, place_of
from explainer.source.setting.python import read_python, setting_at
from explainer.source.setting.setting import ARGPARSE, DEFAULT, INI, JSON, TOML, YAML, Document, Path, Setting
from explainer.source.tree import walk
from explainer.source.value.origin import walked_dictionary
from explainer.source.value.registry import calls_out_of_tables, keys_of
from explainer.source.value.resolve import resolver_of

_MAX_STEPS = 400
_LOADERS = frozenset(
    {"load", "loads", "safe_load", "full_load", "unsafe_load", "from_json_file", "from_yaml", "parse_yaml_file", "parse_json_file"}
)  # fmt: skip
_READERS = frozenset(
    {"json", "yaml", "tomllib", "tomli", "toml", "OmegaConf", "omegaconf", "HfArgumentParser", "ruamel"}
)
_SAME = frozenset(
    {"dict", "copy", "deepcopy", "SimpleNamespace", "Namespace", "EasyDict", "edict", "Box", "DictConfig", "create", "to_container", "vars"}
)  # fmt: skip
_FIELDS = frozenset({"dataclasses.field", "attrs.field", "attr.ib", "pydantic.Field"})
_PARSERS = frozenset({"parse_args", "parse_known_args", "parse_args_into_dataclasses", "cli"})


class _Entry(NamedTuple):
    """A place in a configuration file."""

    document: Document
    path: Path
    group: int


class _Written(NamedTuple):
    """An expression in the program."""

    node: ast.expr
    file: SourceFile


class _Parsed(NamedTuple):
    """What a parser makes of the command line: the attributes are flags, or fields of dataclasses."""

    file: SourceFile


class _Composed(NamedTuple):
    """What Hydra makes of a folder of files."""

    documents: tuple[Document, ...]


_Call = tuple[SourceFile, ast.Call]
_Value = _Entry | _Written | _Parsed | _Composed


def settings_behind(expr: ast.expr, file: SourceFile, program: Program) -> list[Setting]:
    """The settings that an expression's value comes from, nearest first; none where that is not known.

    Example: for `cfg["act"]["inplace"]` with `cfg = json.load(open("config.json"))`, the entry `act.inplace` of that file.
    """
    values = _Flow(program).values(expr, file)
    written = [(one.node, one.file) for one in values if isinstance(one, _Written) and one.node is not expr]
    named = [one for node, where in ((expr, file), *written) for one in settings_by_name(node, where, program)]
    return named or _settings(values, program)


def members_behind(mapping: ast.expr, name: str, file: SourceFile, program: Program) -> list[Setting]:
    """The settings that `**mapping` passes on under a name."""
    flow = _Flow(program)
    return _settings(flow.members(flow.values(mapping, file), name), program)


def documents_behind(mapping: ast.expr, file: SourceFile, program: Program) -> list[tuple[Document, Path, int]]:
    """The places in configuration files that a mapping was read from: the file, the path in it, and which of its documents."""
    return [
        (one.document, one.path, one.group) for one in _Flow(program).values(mapping, file) if isinstance(one, _Entry)
    ]


def dictionaries_behind(
    mapping: ast.expr, file: SourceFile, program: Program
) -> list[tuple[SourceFile, ast.Dict | ast.Call]]:
    """The dictionaries that make a mapping, `{...}` or `dict(...)`, whose keys are all written there."""
    found: list[tuple[SourceFile, ast.Dict | ast.Call]] = []
    for one in _Flow(program).values(mapping, file):
        if not isinstance(one, _Written):
            continue
        if isinstance(one.node, ast.Dict) and None not in one.node.keys:
            found.append((one.file, one.node))
        elif isinstance(one.node, ast.Call) and dotted_name(one.node.func) == "dict" and not one.node.args:
            found += [(one.file, one.node)] if all(it.arg for it in one.node.keywords) else []
    return found


def _settings(values: list[_Value], program: Program) -> list[Setting]:
    found: list[Setting] = []
    for value in values:
        if isinstance(value, _Entry):
            found.extend(value.document.at(value.path, value.group))
        elif isinstance(value, _Written):
            setting = setting_at(value.node, value.file, program.names(value.file))
            found.extend([setting] if setting else [])
    return list({(one.file.path, one.span): one for one in found}.values())


class _Flow:
    """Follows values back; the number of steps is bounded."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.steps = 0
        self.active: set[int] = set()

    def values(self, node: ast.expr | None, file: SourceFile) -> list[_Value]:
        """What an expression may be: places in files, or expressions that lead no further."""
        self.steps += 1
        if node is None or self.steps > _MAX_STEPS or id(node) in self.active:
            return []
        self.active.add(id(node))
        try:
            return self._values(node, file)
        finally:
            self.active.discard(id(node))

    def _values(self, node: ast.expr, file: SourceFile) -> list[_Value]:
        if isinstance(node, ast.Name):
            return self._name(node, file)
        if isinstance(node, ast.Attribute):
            return self._attribute(node, file)
        if isinstance(node, ast.Subscript):
            return self._under(self.values(node.value, file), node.slice)
        if isinstance(node, ast.IfExp):
            return [*self.values(node.body, file), *self.values(node.orelse, file)]
        if isinstance(node, ast.BoolOp):
            return [one for value in node.values for one in self.values(value, file)]
        if isinstance(node, ast.Call):
            return self._call(node, file)
        if isinstance(node, ast.DictComp) and (walked := walked_parser(node) or walked_dictionary(node)) is not None:
            return self.values(walked, file)
        return [_Written(node, file)]

    def _under(self, values: list[_Value], key: ast.expr) -> list[_Value]:
        """What mappings hold under a key; under one that is computed, as the step in `plan.get(step, [])`, every list they hold."""
        if isinstance(key, ast.Constant):
            return self.members(values, str(key.value))
        found = [one for value in values for one in self._elements(value)] if isinstance(key, ast.Name) else []
        return [one for one in found if _is_list(one)]

    def members(self, values: list[_Value], key: str) -> list[_Value]:
        """What a mapping or an object holds under a name."""
        return [one for value in values for one in self._member(value, key)]

    def _member(self, value: _Value, key: str) -> list[_Value]:
        if _is_ini(value):
            place = place_of(value.document, value.path, key)
            return [_Entry(value.document, place, value.group)] if place is not None else []
        if isinstance(value, _Entry):
            path = (*value.path, key)
            # A table of TOML is no setting of its own, only what its keys begin with.
            within = any(one.path[: len(path)] == path and one.group == value.group for one in value.document.settings)
            return [_Entry(value.document, path, value.group)] if within else []
        if isinstance(value, _Composed):
            return _composed(value, key)
        if isinstance(value, _Parsed):
            return self._flag(value, key)
        if isinstance(value.node, ast.Dict):
            return self._item(value.node, key, value.file)
        return self._field(value.node, key, value.file) if isinstance(value.node, ast.Call) else []

    def _item(self, node: ast.Dict, key: str, file: SourceFile) -> list[_Value]:
        found: list[_Value] = []
        for name, value in zip(node.keys, node.values, strict=True):
            if isinstance(name, ast.Constant) and name.value == key:
                found.extend(self._kept(value, file))
            elif name is None:
                found.extend(self.members(self.values(value, file), key))
        return found

    def _kept(self, node: ast.expr, file: SourceFile) -> list[_Value]:
        """A value where it is written, if it leads no further."""
        return self.values(node, file) or [_Written(node, file)]

    def _name(self, node: ast.Name, file: SourceFile) -> list[_Value]:
        names = self.program.names(file)
        walked = _walked(node, file)
        if walked is not None:
            return [one for value in self.values(walked, file) for one in self._elements(value)]
        function = names.function_of(node)
        while function is not None:
            bound = self._bound(node, function, file)
            if bound:
                return self.values(bound[-1], file)
            if node.id in parameters_of(function):
                return self._parameter(node.id, function, file)
            function = names.function_of(function)
        if file.tree is None:
            return []
        bound = self._bound(node, file.tree, file)
        if bound:
            return [one for value in bound for one in self.values(value, file)]
        return self._imported(names.imports.get(node.id, ""))

    def _elements(self, value: _Value) -> list[_Value]:
        """What a loop over a list hands out, or over the items of a mapping."""
        if isinstance(value, _Entry):
            depth = len(value.path)
            own = [one.path for one in value.document.settings if one.group == value.group]
            parts = {path[: depth + 1] for path in own if path[:depth] == value.path and len(path) > depth}
            return [_Entry(value.document, path, value.group) for path in sorted(parts)]
        if isinstance(value, _Written) and isinstance(value.node, (ast.List, ast.Tuple)):
            return [one for node in value.node.elts for one in self._kept(node, value.file)]
        if isinstance(value, _Written) and isinstance(value.node, ast.Dict):
            return [one for node in value.node.values for one in self._kept(node, value.file)]
        return []

    def _bound(self, node: ast.Name, scope: Function | ast.Module, file: SourceFile) -> list[ast.expr]:
        """What a name is bound to in a scope: before its use in a function, anywhere in a module."""
        place = (node.lineno, node.col_offset)
        return [
            one.value
            for one in bindings_of(file).get(node.id, ())
            if one.scope is scope and (isinstance(scope, ast.Module) or one.end < place)
        ]

    def _imported(self, name: str) -> list[_Value]:
        module, _, last = name.rpartition(".")
        for file in self.program.parsed():
            if module and module_name(file.path, self.program.root) == module and file.tree is not None:
                place = ast.Name(id=last, ctx=ast.Load(), lineno=1, col_offset=0, end_lineno=1, end_col_offset=0)
                bound = self._bound(place, file.tree, file)
                return [one for value in bound for one in self.values(value, file)]
        return []

    def _attribute(self, node: ast.Attribute, file: SourceFile) -> list[_Value]:
        names = self.program.names(file)
        if isinstance(node.value, ast.Name) and node.value.id == "self":
            owner = names.class_of(node)
            value = names.attribute_value(owner, node.attr) if owner else None
            return self._kept(value, file) if value is not None else self._own_field(owner, node.attr, file)
        return self.members(self.values(node.value, file), node.attr)

    def _call(self, node: ast.Call, file: SourceFile) -> list[_Value]:
        called = self.program.names(file).qualified(node.func) or ""
        owner, _, last = called.rpartition(".")
        method = node.func.attr if isinstance(node.func, ast.Attribute) else last
        if method in ("get", "pop", "setdefault") and isinstance(node.func, ast.Attribute) and node.args:
            return self._get(node.func.value, _asked(node), file)
        if called == "getattr" and len(node.args) > 1:
            return self._get(node.args[0], node.args[1:], file)
        made = self._made(node, called, method, file) or self._of_class_method(node, file)
        if made:
            return made
        if method in _LOADERS and _READERS & set(called.split(".")):
            return self._loaded(node, called, file)
        if method in _PARSERS:
            return [_Parsed(file)]
        if method in _SAME and not self.program.find_class(last) and not self.program.find_function(last):
            return self._same(node, file)
        function = self.program.find_function(last) if called and not owner.startswith("torch") else None
        if function and self.program.names(function[0]).class_of(function[1]) is None:
            return self._returned(*function)
        return [_Written(node, file)]

    def _of_class_method(self, node: ast.Call, file: SourceFile) -> list[_Value]:
        """What a method of a class makes that is called on the class: `cls(**vars(args))` of `Config.from_args()`."""
        if not isinstance(node.func, ast.Attribute):
            return []
        found = self.program.find_class(self.program.names(file).qualified(node.func.value) or "")
        where, owner = found if found is not None else (file, None)
        methods = [one for one in owner.body if isinstance(one, ast.FunctionDef)] if owner is not None else []
        method = next((one for one in methods if one.name == getattr(node.func, "attr", "")), None)
        values: list[_Value] = []
        for one in walk(method) if method is not None and owner is not None else ():
            value = one.value if isinstance(one, ast.Return) else None
            if isinstance(value, ast.Call) and dotted_name(value.func) == "cls" and owner is not None:
                made = ast.Call(ast.copy_location(ast.Name(owner.name, ast.Load()), value), value.args, value.keywords)
                values.append(_Written(ast.copy_location(made, value), where))
            elif value is not None:
                values.extend(self.values(value, where))
        return values

    def _made(self, node: ast.Call, called: str, method: str, file: SourceFile) -> list[_Value]:
        """What a parser of INI files reads, what is asked of one, what a field of a dataclass is."""
        if called in _FIELDS:
            return self._declared(node, file)
        return self._parser(node, file) if called in MAKERS else self._option(node, called, method, file)

    def _declared(self, node: ast.Call, file: SourceFile) -> list[_Value]:
        """What a field is where nothing else is given: `field(default=0.1)`, `field(default_factory=Model)`."""
        given = {one.arg: one.value for one in node.keywords}
        default = given.get("default", next(iter(node.args), None))
        factory = given.get("default_factory", given.get("factory"))
        if isinstance(factory, ast.Lambda):
            return self._kept(factory.body, file)
        if factory is not None:
            made = ast.Call(func=factory, args=[], keywords=[])
            return [_Written(ast.copy_location(made, node), file)]
        return self._kept(default, file) if default is not None else [_Written(node, file)]

    def _get(self, mapping: ast.expr, given: list[ast.expr], file: SourceFile) -> list[_Value]:
        """What a mapping holds under a key, else the default behind it; a whole INI file is asked for a section and its key."""
        found = self.values(mapping, file)
        depth = 2 if any(_is_ini(one) and not one.path for one in found) else 1
        for key in given[:depth]:
            found = self._under(found, key)
        return found or [one for value in given[depth:] for one in self.values(value, file)]

    def _option(self, node: ast.Call, called: str, method: str, file: SourceFile) -> list[_Value]:
        """What else is asked of an INI file: `section.getfloat("lr")`, `cfg.items("train")`, `float(section["lr"])`."""
        if called in NUMBERS and len(node.args) == 1:
            return [one for one in self.values(node.args[0], file) if _is_ini(one)]
        if not isinstance(node.func, ast.Attribute):
            return []
        if method in TYPED and node.args:
            return self._get(node.func.value, _asked(node), file)
        if method not in ("items", "defaults"):
            return []
        found: list[_Value] = [one for one in self.values(node.func.value, file) if _is_ini(one)]
        names: list[ast.expr] = [ast.Constant(DEFAULTS)] if method == "defaults" else node.args[:1]
        for one in names:
            found = self.members(found, str(one.value)) if isinstance(one, ast.Constant) else []
        return found

    def _parser(self, node: ast.Call, file: SourceFile) -> list[_Value]:
        """The INI files that a parser is given, else the only one."""
        literals = [name for call in filling_calls(node, file) for name in self._literals(call, file, 0)]
        return self._documents(literals, frozenset({INI}))

    def _same(self, node: ast.Call, file: SourceFile) -> list[_Value]:
        """`dict(cfg)`, `deepcopy(cfg)`, `SimpleNamespace(**cfg)`: what it is made of; a call with keywords stays itself."""
        inner = [*node.args[:1], *(one.value for one in node.keywords if one.arg is None)]
        found = [one for value in inner for one in self.values(value, file)]
        return [_Written(node, file), *found] if any(one.arg for one in node.keywords) else found

    def _returned(self, file: SourceFile, function: Function) -> list[_Value]:
        returns = [one for one in walk(function) if isinstance(one, ast.Return)]
        return [one for node in returns for one in self.values(node.value, file)]

    def _loaded(self, node: ast.Call, called: str, file: SourceFile) -> list[_Value]:
        """The documents that a call of a reader gives."""
        is_json = called.startswith("json") or "json" in called.rpartition(".")[2]
        return self._documents(self._literals(node, file, 0), frozenset({JSON}) if is_json else frozenset({YAML, TOML}))

    def _documents(self, literals: Iterable[str], kinds: frozenset[str]) -> list[_Value]:
        """The documents that literals name; where they name none, the only one of these kinds."""
        names = {os.path.basename(name) for name in literals}
        documents = [one for one in self.program.documents() if os.path.basename(one.file.path) in names]
        if not documents:
            same = [one for one in self.program.documents() if one.kind in kinds and not one.fault]
            documents = same if len(same) == 1 else []
        return [_Entry(one, (), 0) for one in documents]

    def _literals(self, node: ast.expr, file: SourceFile, depth: int) -> Iterator[str]:
        """The names of files in an expression, also behind the names in it."""
        for one in walk(node):
            name = names_file(one)
            if name:
                yield name
            elif isinstance(one, ast.Name) and depth < 4:
                function = self.program.names(file).function_of(one)
                scopes = [function, file.tree] if function is not None else [file.tree]
                for scope in scopes:
                    for bound in self._bound(one, scope, file) if scope is not None else ():
                        yield from self._literals(bound, file, depth + 1)
                if function is not None and one.id in parameters_of(function):
                    for where, value in self._arguments(one.id, function, file):
                        yield from self._literals(value, where, depth + 1)

    def _parameter(self, name: str, function: Function, file: SourceFile) -> list[_Value]:
        if any(
            "hydra" in (self.program.names(file).qualified(getattr(one, "func", one)) or "")
            for one in function.decorator_list
        ):
            return [_Composed(self.program.documents())]
        found: list[_Value] = []
        keys = keys_of(self._made_by(function, file), self.program)
        for where in self._calls_of(function, file):
            found.extend(self._passed(name, function, where, keys))
        default = default_of(name, function)
        return found or (self._kept(default, file) if default is not None else [])

    def _passed(self, name: str, function: Function, where: _Call, keys: frozenset[str]) -> list[_Value]:
        """What one call gives to a parameter of what tables hold under these keys."""
        file, call = where
        value = argument_of(name, function, call)
        if value is not None:
            return self._kept(value, file)
        spread = [one.value for one in call.keywords if one.arg is None]
        given = [found for one in spread for found in self.values(one, file)]
        # Of several those that name what the call takes out of a table: `{"type": "Freeze", "keep": [...]}`.
        named = [one for one in given if _names(one, keys)] if len(given) > 1 else []
        return self.members(named or given, name)

    def _arguments(self, name: str, function: Function, file: SourceFile) -> Iterator[tuple[SourceFile, ast.expr]]:
        for where, call in self._calls_of(function, file):
            value = argument_of(name, function, call)
            if value is not None:
                yield where, value
        default = default_of(name, function)
        if default is not None:
            yield file, default

    def _calls_of(self, function: Function, file: SourceFile) -> list[tuple[SourceFile, ast.Call]]:
        made = self._made_by(function, file)
        found = [*calls_by_name(self.program).get(made.name, []), *calls_out_of_tables(made, self.program)]
        derived = resolver_of(self.program).calls_of(function, file) if function.name == "__init__" else []
        return list({id(one[1]): one for one in (*found, *derived)}.values())

    def _made_by(self, function: Function, file: SourceFile) -> ast.ClassDef | Function:
        """What a call names that runs a function: of a constructor the class."""
        owner = self.program.names(file).class_of(function) if function.name == "__init__" else None
        return function if owner is None else owner

    def _flag(self, parsed: _Parsed, key: str) -> list[_Value]:
        """A flag: as a script gives it, as a configuration file does, or by its default."""
        found: list[_Value] = [
            _Entry(document, one.path, one.group)
            for document in self.program.documents()
            for one in document.named(key)
        ]
        written = [
            (file, setting)
            for file in dict.fromkeys((parsed.file, *self.program.parsed()))
            for setting in read_python(file)
            if setting.name == key and setting.kind in (ARGPARSE, DEFAULT)
        ]
        # Options and fields of classes first: the default of a function's parameter is a flag only where it is all there is.
        flags = [one for one in written if one[1].kind == ARGPARSE or one[1].key is not None]
        for file, setting in flags or written:
            node = next(
                (one for one in file.walk() if isinstance(one, ast.expr) and file.span(one) == setting.span), None
            )
            found.extend([_Written(node, file)] if node is not None else [])
        return list(dict.fromkeys(found))

    def _field(self, call: ast.Call, key: str, file: SourceFile) -> list[_Value]:
        """What an object of a class of the program, or a `dict(...)`, holds under a name."""
        for one in call.keywords:
            if one.arg == key:
                return self._kept(one.value, file)
        found = self.program.find_class(self.program.names(file).qualified(call.func) or "")
        if found is None:
            spread = [one.value for one in call.keywords if one.arg is None]
            return [value for one in spread for value in self.members(self.values(one, file), key)]
        where, owner = found
        value = self.program.names(where).attribute_value(owner, key)
        if value is not None:
            return self._kept(value, where)
        fields = [
            one.target.id for one in owner.body if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
        ]
        if key in fields[: len(call.args)]:
            return self._kept(call.args[fields.index(key)], file)
        spread = [one.value for one in call.keywords if one.arg is None]
        given = [value for one in spread for value in self.members(self.values(one, file), key)]
        return given or self._class_field(owner, key, where)

    def _own_field(self, owner: ast.ClassDef | None, key: str, file: SourceFile) -> list[_Value]:
        """What the calls that make records of a class give a field, `Spec(**cfg["adapter"])`; else what its class says."""
        calls = resolver_of(self.program).calls_named(owner.name) if owner is not None else ()
        given = [value for where, call in calls for value in self._field(call, key, where)]
        return given or self._class_field(owner, key, file)

    def _class_field(self, owner: ast.ClassDef | None, key: str, file: SourceFile) -> list[_Value]:
        for one in owner.body if owner is not None else ():
            for name, value in bound_values(one):
                if name == key:
                    return self._kept(value, file)
        return []


def _is_list(value: _Value) -> bool:
    if isinstance(value, _Entry):
        return any(isinstance(one.value, list) for one in value.document.at(value.path, value.group))
    return isinstance(value, _Written) and isinstance(value.node, (ast.List, ast.Tuple))


def _is_ini(value: _Value) -> TypeGuard[_Entry]:
    return isinstance(value, _Entry) and value.document.kind == INI


def _asked(node: ast.Call) -> list[ast.expr]:
    """What a call asks a mapping for, and what it takes where that is not there."""
    return [*node.args, *(one.value for one in node.keywords if one.arg == "fallback")]


def _walked(node: ast.Name, file: SourceFile) -> ast.expr | None:
    """What the loop or comprehension around a name goes through whose elements it stands for, or whose items' values."""
    below: ast.AST = node
    while (above := file.parents.get(below)) is not None and not isinstance(
        above, (ast.FunctionDef, ast.AsyncFunctionDef)
    ):
        loops: list[ast.For | ast.comprehension] = list(getattr(above, "generators", ()))
        if isinstance(above, ast.For) and below in above.body:
            loops.append(above)
        for one in loops:
            source, target = one.iter, one.target
            is_items = (
                isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute) and source.func.attr == "items"
            )
            if is_items and isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute):
                # With an argument it is a section of an INI file: `cfg.items("train")`.
                source = source if source.args else source.func.value
                target = target.elts[-1] if isinstance(target, ast.Tuple) else target
            source, target = _numbered(source, target, node.id)
            if isinstance(target, ast.Name) and target.id == node.id and below is not one:
                return source
        below = above
    return None


def _numbered(source: ast.expr, target: ast.expr, name: str) -> tuple[ast.expr, ast.expr]:
    """What hands out the values of `name` under `enumerate` or `zip`, and where it puts them."""
    called = getattr(source.func, "id", "") if isinstance(source, ast.Call) else ""
    given = [*source.args] if isinstance(source, ast.Call) else []
    if called in ("reversed", "sorted", "list", "tqdm") and given:
        return given[0], target
    parts = target.elts if isinstance(target, ast.Tuple) else []
    if called == "enumerate" and given and len(parts) == 2:
        return _numbered(given[0], parts[1], name)
    if called == "zip" and len(given) == len(parts):
        own = (pair for pair in zip(given, parts, strict=True) if getattr(pair[1], "id", "") == name)
        return next(own, (source, target))
    return source, target


def _names(value: _Value, keys: frozenset[str]) -> bool:
    """Whether a mapping holds one of these words, or stands under it."""
    if isinstance(value, _Entry):
        own = [one for one in value.document.settings if one.path[:-1] == value.path and one.group == value.group]
        return bool(keys & set(value.path[-1:])) or any(one.value in keys for one in own if isinstance(one.value, str))
    if not isinstance(value, _Written):
        return False
    node = value.node
    parts = node.values if isinstance(node, ast.Dict) else [one.value for one in getattr(node, "keywords", ())]
    return any(isinstance(one, ast.Constant) and one.value in keys for one in parts)


def _composed(value: _Composed, key: str) -> list[_Value]:
    """Hydra's files: a key of one of them, or a folder whose files stand under its name."""
    found: list[_Value] = []
    for document in value.documents:
        if document.at((key,)):
            found.append(_Entry(document, (key,), 0))
        if os.path.basename(os.path.dirname(document.file.path)) == key:
            found.append(_Entry(document, (), 0))
    return found
