"""In-place activations behind a layer that does not need its own result: what they overwrite, nobody else has.

`nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True))`: the container hands the result of the
normalisation to the activation alone. Not where the program reads the container's children one by one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from explainer.source.file import SourceFile
from explainer.source.graph.operation import Operation, layer_operation
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk

# Layers of torch.nn whose backward reads their input, their weights or statistics, and not their result (read on torch 2.13).
_KEEP_NO_RESULT = (
    "Linear", "Bilinear", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d",
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm", "LayerNorm", "GroupNorm", "RMSNorm", "LocalResponseNorm",
    "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "Embedding", "MaxPool1d", "MaxPool2d", "MaxPool3d", "AvgPool1d",
    "AvgPool2d", "AvgPool3d", "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "Upsample",
    "PixelShuffle", "PReLU", "GELU", "Softplus", "LogSigmoid",
)  # fmt: skip
_LAYERS = frozenset((*_KEEP_NO_RESULT, *(f"Lazy{name}" for name in _KEEP_NO_RESULT)))
# What hands on the tensor that it got, or may: outside of training, or where there is nothing to do.
_PASS = frozenset(
    {"Identity", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "Flatten", "Unflatten"}
)
_WRAPPERS = ("torch.nn.utils.", "torch.nn.utils.parametrizations.")
_CHILDREN = frozenset({"children", "named_children", "modules", "named_modules", "_modules", "get_submodule"})
_HOOKS = frozenset(
    {"register_forward_hook", "register_forward_pre_hook", "register_module_forward_hook", "create_feature_extractor"}
    | {"IntermediateLayerGetter", "register_full_backward_hook"}
)
_DEPTH = 4


def is_private(call: ast.Call, file: SourceFile, program: Program) -> bool:
    """Whether an activation that `call` makes gets, in its container, what nobody else has and no backward needs."""
    layers = _layers_around(call, file, program)
    if call not in layers or not _is_fresh(layers[: layers.index(call)], file, program):
        return False
    if any(_reads_children(one) for one in program.parsed()):
        return False
    names = frozenset(_names_of(call, file, program, 0))
    return not any(_is_taken_apart(names, one) for one in program.parsed())


def operation_above(call: ast.Call, file: SourceFile, program: Program) -> Operation | None:
    """What the layer computes whose result an activation of a container gets; None where that is not known."""
    layers = _layers_around(call, file, program)
    for one in reversed(layers[: layers.index(call)] if call in layers else []):
        found = layer_operation(one, file, program) if isinstance(one, ast.Call) else None
        if found is None or _called(one, file, program).rpartition(".")[2] not in _PASS:
            return found
    return None


def _is_fresh(above: Sequence[ast.expr], file: SourceFile, program: Program) -> bool:
    """Whether the last layer that makes a new tensor is one that does not keep it."""
    for one in reversed(above):
        owner, _, last = _called(one, file, program).rpartition(".")
        if owner != "torch.nn":
            return False
        if last not in _PASS:
            return last in _LAYERS
    return False


def _called(layer: ast.expr, file: SourceFile, program: Program) -> str:
    """The class of a layer, also under `spectral_norm(...)`."""
    names = program.names(file)
    name = names.qualified(layer.func) or "" if isinstance(layer, ast.Call) else ""
    if isinstance(layer, ast.Call) and name.startswith(_WRAPPERS) and layer.args:
        return _called(layer.args[0], file, program)
    return name.replace("torch.nn.modules.", "torch.nn.")


def _layers_around(call: ast.Call, file: SourceFile, program: Program) -> list[ast.expr]:
    """The layers among which a call stands in an `nn.Sequential`; none where it stands elsewhere."""
    above = file.parents.get(call)
    if isinstance(above, ast.Call) and _is_sequential(above, file, program):
        return list(above.args)
    if isinstance(above, ast.Tuple) and len(above.elts) == 2 and above.elts[1] is call:
        return _named_layers(above, file, program)
    if isinstance(above, ast.List) and _is_unpacked(above, file, program):
        return list(above.elts)
    return []


def _named_layers(pair: ast.Tuple, file: SourceFile, program: Program) -> list[ast.expr]:
    """`nn.Sequential(OrderedDict([("conv", ...), ("act", ...)]))`."""
    listed = file.parents.get(pair)
    made = file.parents.get(listed) if isinstance(listed, (ast.List, ast.Tuple)) else None
    around = file.parents.get(made) if isinstance(made, ast.Call) else None
    if not isinstance(around, ast.Call) or not _is_sequential(around, file, program):
        return []
    assert isinstance(listed, (ast.List, ast.Tuple))
    return [one.elts[1] for one in listed.elts if isinstance(one, ast.Tuple) and len(one.elts) == 2]


def _is_unpacked(listed: ast.List, file: SourceFile, program: Program) -> bool:
    """Whether a list becomes the layers of a container: `nn.Sequential(*[...])`, `layers += [...]; nn.Sequential(*layers)`."""
    above = file.parents.get(listed)
    if isinstance(above, ast.Starred):
        around = file.parents.get(above)
        return isinstance(around, ast.Call) and _is_sequential(around, file, program)
    if isinstance(above, ast.Call) and isinstance(above.func, ast.Attribute) and above.func.attr == "extend":
        name = dotted_name(above.func.value)
    elif isinstance(above, (ast.Assign, ast.AugAssign)):
        name = dotted_name(above.targets[0] if isinstance(above, ast.Assign) else above.target)
    else:
        return False
    scope = program.names(file).function_of(listed) or file.tree
    reads = [one for one in walk(scope) if _is_load(one, name)] if scope is not None and name else []
    return bool(reads) and all(_is_for_sequential(one, file, program) for one in reads)


def _is_load(node: ast.AST, name: str | None) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load) and dotted_name(node) == name


def _is_for_sequential(node: ast.AST, file: SourceFile, program: Program) -> bool:
    """Whether a list is read to be a container's layers, or to get more of them."""
    above = file.parents.get(node)
    if isinstance(above, ast.Attribute):
        return above.attr in ("append", "extend")
    around = file.parents.get(above) if isinstance(above, ast.Starred) else None
    return isinstance(around, ast.Call) and _is_sequential(around, file, program)


def _is_sequential(call: ast.Call, file: SourceFile, program: Program) -> bool:
    """`nn.Sequential(...)`, or `super().__init__(...)` of a class that is one and has no forward of its own."""
    names = program.names(file)
    if names.qualified(call.func) in ("torch.nn.Sequential", "torch.nn.modules.Sequential"):
        return True
    is_super = (
        isinstance(call.func, ast.Attribute) and call.func.attr == "__init__" and isinstance(call.func.value, ast.Call)
    )
    owner = names.class_of(call) if is_super else None
    if owner is None or not any(names.qualified(base) == "torch.nn.Sequential" for base in owner.bases):
        return False
    return not any(isinstance(one, ast.FunctionDef) and one.name == "forward" for one in owner.body)


def _reads_children(file: SourceFile) -> bool:
    """Whether a file looks into modules for their children, or hangs hooks on them."""
    for node in file.walk():
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        if name in _HOOKS:
            return True
        if name in _CHILDREN and not _is_setting_up(node, file):
            return True
    return False


def _is_setting_up(node: ast.AST, file: SourceFile) -> bool:
    """`for m in self.modules(): if isinstance(m, nn.Conv2d): init(m.weight)`: no child is called."""
    loop = file.enclosing(node, ast.For)
    if not isinstance(loop, ast.For) or not any(one is node for one in walk(loop.iter)):
        return False
    names = {one.id for one in walk(loop.target) if isinstance(one, ast.Name)}
    return not any(isinstance(one, ast.Call) and getattr(one.func, "id", None) in names for one in walk(loop))


def _names_of(call: ast.AST, file: SourceFile, program: Program, depth: int) -> Iterator[str]:
    """The last parts of the names under which the program has the container, through functions and classes that make it."""
    names = program.names(file)
    statement = file.statement(call)
    is_inner = depth == 0 and _is_in_container(call, file, program)  # the name is that of a container of containers
    if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and not is_inner:
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for target in targets:
            for one in walk(target):
                if isinstance(one, (ast.Name, ast.Attribute)) and _last(one) != "self":
                    yield _last(one)
    function, owner = names.function_of(call), names.class_of(call)
    maker = function.name if isinstance(statement, ast.Return) and function is not None else None
    if owner is not None and isinstance(statement, ast.Expr):
        maker = owner.name
    if maker is None or depth >= _DEPTH:
        return
    for where in program.parsed():
        for node in where.walk():
            if isinstance(node, ast.Call) and (dotted_name(node.func) or "").rpartition(".")[2] == maker:
                yield from _names_of(node, where, program, depth + 1)


def _is_in_container(call: ast.AST, file: SourceFile, program: Program) -> bool:
    """Whether the `nn.Sequential` around a layer is itself an argument of another module, or an element of a list."""
    above = file.parents.get(call)
    while isinstance(above, (ast.expr, ast.Starred)) and not (
        isinstance(above, ast.Call) and _is_sequential(above, file, program)
    ):
        above = file.parents.get(above)
    around = file.parents.get(above) if above is not None else None
    return isinstance(above, ast.Call) and isinstance(around, (ast.Call, ast.List, ast.ListComp, ast.GeneratorExp))


def _is_taken_apart(names: frozenset[str], file: SourceFile) -> bool:
    """Whether a file loops over one of the names and calls what it gets, or takes a part of it by its index."""
    handed = _loop_names(file)
    for node in file.walk():
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            above = file.parents.get(node)
            is_called = isinstance(above, ast.Call) and above.func is node
            inner = node.value.value if isinstance(node.value, ast.Subscript) else None
            if _last(node.value) in names or (is_called and (inner is not None or _last(node.value) in handed)):
                return True
        elif isinstance(node, (ast.For, ast.comprehension)) and _calls_elements(node, names | handed, file):
            return True
    return False


def _calls_elements(loop: ast.For | ast.comprehension, names: frozenset[str], file: SourceFile) -> bool:
    around = loop if isinstance(loop, ast.For) else file.parents[loop]
    called = {one.func.id for one in walk(around) if isinstance(one, ast.Call) and isinstance(one.func, ast.Name)}
    elements = {one.id for one in walk(loop.target) if isinstance(one, ast.Name)}
    return bool(elements & called) and any(_last(one) in names for one in walk(loop.iter))


def _loop_names(file: SourceFile) -> frozenset[str]:
    """Names that loops bind: what they hand out may be a container, of which nothing more is known."""
    loops = [one for one in file.walk() if isinstance(one, (ast.For, ast.comprehension))]
    return frozenset(one.id for loop in loops for one in walk(loop.target) if isinstance(one, ast.Name))


def _last(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
