"""Where the graph of a value ends: the value followed back to the parameters, and what cuts the way between.

`trace` answers for one expression whether the graph of a parameter reaches it and, where it does not, the chains of cuts
that would have to go so that it does. What a `detach()` hides behind `no_grad` is one chain of two cuts.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from explainer.source.file import SourceFile
from explainer.source.graph.cut import (
    CALLS_THROUGH,
    Cut,
    cut_of,
    grad_mode_cut,
    is_blind,
    is_leaf,
    is_plain_module,
    operands_of,
)
from explainer.source.name import Function, dotted_name
from explainer.source.network.freeze import frozen_constructors, is_frozen_at
from explainer.source.program import Program
from explainer.source.tree import children
from explainer.source.value.binding import Value, all_parameters, scope_of
from explainer.source.value.resolve import DEPTH, Resolver, resolver_of

_STEPS = 6000  # of one trace
_ALL_STEPS = 24_000  # of all traces of a program: in a large one the later ones are cut short
_LEAST_STEPS = 200
_CHAINS = 16
_LOADERS = frozenset({"from_pretrained", "from_config", "create_model", "load_model"})
_WHOLE = sys.maxsize  # no value that is still open was met
_BLIND_ATTRIBUTES = frozenset({"shape", "dtype", "device", "grad", "ndim", "training"})

_Key = tuple[int, int | str | None, bool, int]


class _Frozen(dict[str, Value]):
    """The arguments of a function that runs inside a frozen module: its parameters have no graph of their own."""


@dataclass(frozen=True)
class Trace:
    """Whether a graph reaches the value; else the chains of cuts, each of which stands alone in the way.

    `sources` are the calls of modules and the leaves that were reached, cut off or not.
    """

    live: bool = False
    chains: tuple[tuple[Cut, ...], ...] = ()
    sources: tuple[ast.AST, ...] = ()


class Provenance:
    """The traces of one program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.resolver: Resolver = resolver_of(program)
        self._steps = 0
        self._left = _ALL_STEPS
        self._open: dict[_Key, int] = {}
        self._lowest = _WHOLE
        self._finished: dict[_Key, Trace] = {}
        self._arguments: dict[int, int] = {}
        self._alike: dict[tuple[object, ...], int] = {}
        self._kept: dict[int, object] = {}  # an id stands for its object only while that lives

    def trace(self, value: Value) -> Trace:
        """The trace of an expression that stands in `value.file`; what was traced before is not paid for again."""
        self._steps = most = max(_LEAST_STEPS, min(_STEPS, self._left))
        self._open.clear()
        self._lowest = _WHOLE
        found = self._entered(value, 0)
        self._left -= most - self._steps
        return found

    def _entered(self, value: Value, depth: int) -> Trace:
        """The trace of what a statement computes: grad mode is that of the statement."""
        found = self._value(value, depth)
        cut = grad_mode_cut(value.node, value.file, self.program)
        return _cut(found, cut) if cut is not None else found

    def _value(self, value: Value, depth: int) -> Trace:
        """The trace of a value, kept once it is whole: where neither the budget nor a value that waits for it cut it."""
        key = self._key(value)
        if key in self._finished:
            return self._finished[key]
        if depth > DEPTH * 4 or self._steps <= 0 or key in self._open:
            self._lowest = min(self._lowest, self._open.get(key, -1))
            return Trace()
        self._steps -= 1
        at = self._open[key] = len(self._open)
        lowest, self._lowest = self._lowest, _WHOLE
        try:
            found = self._node(value, depth + 1)
        finally:
            del self._open[key]
        if self._lowest >= at:
            self._finished[key] = found
            self._lowest = lowest
        else:
            self._lowest = min(lowest, self._lowest)
        return found

    def _key(self, value: Value) -> _Key:
        self._kept[id(value.node)] = value.node
        return id(value.node), value.pick, value.is_element, self._number_of(value.arguments)

    def _number_of(self, arguments: Mapping[str, Value]) -> int:
        """The same number for arguments that stand for the same values: each way to a call binds them anew."""
        if id(arguments) not in self._arguments:
            self._kept[id(arguments)] = arguments
            parts = [(name, *self._key(one), one.key) for name, one in arguments.items()]
            alike = (isinstance(arguments, _Frozen), *parts)
            self._arguments[id(arguments)] = self._alike.setdefault(alike, len(self._alike))
        return self._arguments[id(arguments)]

    def _each(self, nodes: Iterable[ast.expr], value: Value, depth: int) -> Trace:
        return _union(self._value(replace(value, node=one, pick=None), depth) for one in nodes)

    def _node(self, value: Value, depth: int) -> Trace:
        node = value.node
        cut = cut_of(node, value.file, self.program)
        if cut is not None and not self._is_own(node, value):
            found = _cut(self._each(operands_of(cut), value, depth), cut)
            is_new = not found.chains and is_leaf(node, value.file, self.program)
            return Trace(live=True, sources=(node,)) if is_new else found
        if is_leaf(node, value.file, self.program):
            return self._leaf(value, depth)
        if isinstance(node, ast.Name):
            return self._bound(self.resolver.behind(value), value, depth)
        if isinstance(node, ast.Attribute):
            return self._attribute(node, value, depth)
        if isinstance(node, ast.Call):
            return self._call(node, value, depth)
        return self._parts(node, value, depth)

    def _is_own(self, node: ast.expr, value: Value) -> bool:
        """Whether a call runs a method of the program that is called as one which cuts: `policy.sample(prompts)`."""
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            return False
        is_named = bool(self.program.functions_named(node.func.attr))
        return is_named and self.resolver.function_of(node, value) is not None

    def _leaf(self, value: Value, depth: int) -> Trace:
        """A leaf of its own; a flag that is set on what a model computed and lost is none."""
        node = value.node
        assert isinstance(node, ast.Call)
        is_flag = isinstance(node.func, ast.Attribute) and node.func.attr == "requires_grad_"
        inner = self._each([node.func.value], value, depth) if is_flag else Trace()  # type: ignore[attr-defined]
        return inner if inner.chains else Trace(live=True, sources=(node,))

    def _parts(self, node: ast.expr, value: Value, depth: int) -> Trace:
        if isinstance(node, (ast.Tuple, ast.List)) and isinstance(value.pick, int) and value.pick < len(node.elts):
            return self._each([node.elts[value.pick]], value, depth)
        if isinstance(node, ast.Dict) and isinstance(value.pick, str):
            entries = [one for key, one in zip(node.keys, node.values, strict=True) if _is_key(key, value.pick)]
            return self._each(entries, value, depth)
        if isinstance(node, ast.Subscript):
            return self._subscript(node, value, depth)
        return self._each(_parts_of(node), value, depth)

    def _subscript(self, node: ast.Subscript, value: Value, depth: int) -> Trace:
        """`out["loss"]` is that entry, `f(x)[0]` that element of what `f` returns; of a name any element counts."""
        key = node.slice.value if isinstance(node.slice, ast.Constant) else None
        is_result = isinstance(key, int) and not isinstance(node.value, ast.Name)
        pick = key if isinstance(key, str) or (isinstance(key, int) and is_result) else None
        return self._value(replace(value, node=node.value, pick=pick), depth)

    def _bound(self, found: Iterable[Value], value: Value, depth: int) -> Trace:
        """The union of what a name is bound to, or of what a function returns; the pick of an unpacking goes along."""
        return _union(
            self._entered(replace(one, pick=value.pick) if one.pick is None and value.pick is not None else one, depth)
            for one in found
            if one.key is None or not isinstance(value.pick, str) or one.key == value.pick
        )

    def _attribute(self, node: ast.Attribute, value: Value, depth: int) -> Trace:
        """`self.weight`, `model.head.weight`, `output.loss`: what is known of the attribute, else of its owner."""
        found = list(self.resolver.behind(value))
        if found:
            return self._bound(found, value, depth)
        if node.attr in _BLIND_ATTRIBUTES:
            return Trace()
        if node.attr in ("weight", "bias") and self._is_layer(replace(value, node=node.value)):
            return Trace(live=True, sources=(node,))
        if isinstance(node.value, ast.Name) and node.value.id == "self":
            return Trace()
        return self._each([node.value], value, depth)

    def _is_layer(self, value: Value) -> bool:
        return any(
            (self.program.names(one.file).qualified(one.node.func) or "").startswith("torch.nn.")
            for one in self.resolver.constructors_of(value)
            if isinstance(one.node, ast.Call)
        )

    def _call(self, node: ast.Call, value: Value, depth: int) -> Trace:
        names = self.program.names(value.file)
        called = names.qualified(node.func) or ""
        function = self.resolver.function_of(node, value)
        if function is not None:
            return self._returned(function, node, value, depth, is_frozen=isinstance(value.arguments, _Frozen))
        if called.rpartition(".")[2] in CALLS_THROUGH and node.args:
            inner = ast.copy_location(ast.Call(func=node.args[0], args=node.args[1:], keywords=[]), node)
            value.file.parents[inner] = value.file.parents.get(node, node)
            return self._call(inner, value, depth)
        is_library = called.startswith(("torch.", "numpy.", "math."))
        ran = self._module(node, value, depth) if not is_library else None
        if ran is not None:
            return ran
        if is_blind(node, names):
            return Trace()
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("parameters", "named_parameters"):
            made = self.resolver.constructors_of(Value(node.func.value, value.file, value.arguments))
            frozen = frozen_constructors(self.program)
            return Trace(live=not made or any(one.node not in frozen for one in made), sources=(node,))
        parts = [*node.args, *(one.value for one in node.keywords)]
        if isinstance(node.func, ast.Attribute) and not is_library:
            parts.append(node.func.value)
        if isinstance(node.func, ast.Call):  # nn.MSELoss()(output, target)
            parts += node.func.args
        return self._each(parts, value, depth)

    def _module(self, node: ast.Call, value: Value, depth: int) -> Trace | None:
        """What a module computes: its `forward` where the program has it, else its own parameters' graph."""
        func = node.func
        if isinstance(func, ast.Name) and func.id == "self":
            owner = self.program.names(value.file).class_of(node)
            method = self.resolver.method(owner, "forward", value.file) if owner is not None else None
            return self._returned(method, node, value, depth) if method is not None else None
        if isinstance(func, ast.Attribute) and func.attr == "forward":
            func = func.value
        made = self.resolver.constructors_of(Value(func, value.file, value.arguments))
        results = [self._made(one, node, value, depth) for one in made if isinstance(one.node, ast.Call)]
        known = [one for one in results if one is not None]
        if known:
            return _union(known)
        name = dotted_name(func)
        is_model = name is not None and (name in _trained(value.file) or (not made and self._is_handed_in(node, value)))
        return Trace(live=True, sources=(node,)) if is_model else None

    def _is_handed_in(self, node: ast.Call, value: Value) -> bool:
        """Whether a call runs what a function got as a parameter from callers that are not in sight: a trainer's model."""
        scope = scope_of(node, value.file)
        if not isinstance(node.func, ast.Name) or isinstance(scope, ast.Module):
            return False
        name = node.func.id
        return name in all_parameters(scope) and not re.search("loss|crit|objective|metric|fn|func", name)

    def _made(self, made: Value, node: ast.Call, value: Value, depth: int) -> Trace | None:
        """What the module that one constructor made computes in a call."""
        assert isinstance(made.node, ast.Call)
        called = self.program.names(made.file).qualified(made.node.func) or ""
        found = self.resolver.find_class(made.node.func, made.file)
        is_frozen = isinstance(value.arguments, _Frozen) or made.node in frozen_constructors(self.program)
        is_frozen = is_frozen or is_frozen_at(node, value.file, self.program)
        if found is not None:
            method = self.resolver.method(found[1], "forward", found[0])
            method = method or self.resolver.method(found[1], "__call__", found[0])
            if method is not None:
                return self._returned(method, node, value, depth, is_frozen=is_frozen)
            return Trace(live=True, sources=(node,)) if found[1].bases else None
        last = called.rpartition(".")[2]
        is_layer = called.startswith("torch.nn.") and last[:1].isupper()
        if is_frozen or (is_layer and is_plain_module(called)):
            return self._each(node.args, value, depth)
        is_model = last in _LOADERS or called.startswith(("torchvision.models", "timm.", "transformers."))
        if is_layer or is_model or last == "get_peft_model" or last.endswith(("ForCausalLM", "Model")):
            return Trace(live=True, sources=(node,))
        return None

    def _returned(
        self, target: tuple[SourceFile, Function], node: ast.Call, value: Value, depth: int, *, is_frozen: bool = False
    ) -> Trace:
        """What a function or a `forward` of the program gives back in a call."""
        returned = self.resolver.returns_of(target, node, value)
        if is_frozen:
            returned = [replace(one, arguments=_Frozen(one.arguments)) for one in returned]
        found = self._bound(returned, value, depth)
        return replace(found, sources=(node, *found.sources)[:_CHAINS])


def _is_key(node: ast.expr | None, key: str) -> bool:
    """Whether an entry of a dictionary can be the wanted one."""
    return not isinstance(node, ast.Constant) or node.value == key


def _parts_of(node: ast.expr) -> list[ast.expr]:
    """The parts of an expression whose graphs it joins."""
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp)):
        return [node.elt]
    if isinstance(node, ast.DictComp):
        return [node.value]
    if isinstance(node, ast.Dict):
        return list(node.values)
    if isinstance(node, (ast.Lambda, ast.Constant, ast.JoinedStr)):
        return []
    return [one for one in children(node) if isinstance(one, ast.expr)]


@lru_cache(maxsize=256)
def _trained(file: SourceFile) -> frozenset[str]:
    """Names whose parameters a file hands to somebody: `net` of `net.parameters()`."""
    found = set()
    for node in file.walk():
        if isinstance(node, ast.Attribute) and node.attr in ("parameters", "named_parameters"):
            found.add(dotted_name(node.value) or "")
    return frozenset(found - {""})


def _cut(inner: Trace, cut: Cut) -> Trace:
    if inner.live:
        return Trace(live=False, chains=((cut,),), sources=inner.sources)
    chains = tuple(chain if cut in chain else (*chain, cut) for chain in inner.chains)
    return Trace(live=False, chains=chains, sources=inner.sources)


def _union(traces: Iterable[Trace]) -> Trace:
    live = False
    chains: dict[tuple[Cut, ...], None] = {}
    sources: dict[ast.AST, None] = {}
    for one in traces:
        live = live or one.live
        chains.update(dict.fromkeys(one.chains))
        sources.update(dict.fromkeys(one.sources))
    return Trace(live=live, chains=tuple(chains)[:_CHAINS], sources=tuple(sources)[:_CHAINS])


@lru_cache(maxsize=2)
def provenance_of(program: Program) -> Provenance:
    """The provenance of a program's values, built once."""
    return Provenance(program)
