"""What was left on another device goes where the rest is: an operand, a module, a result that nobody took.

`x.to(device)` on a line by itself becomes `x = x.to(device)`; a module that stayed on the CPU moves where it is made; an index
goes to what it indexes. Which tensor is where, the live program said.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.fix.clue.failure import failing_statements
from explainer.fix.clue.seen import seen, seen_modules, seen_tensors
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_before
from explainer.fix.text.device_word import HOST, device_word, has_default_device
from explainer.fix.text.rewrite import add_argument, put_method, remove_argument
from explainer.source.data.loader import LOADERS
from explainer.source.file import SourceFile
from explainer.source.graph.generator import generators_of
from explainer.source.graph.write import NOT_WRITES
from explainer.source.name import dotted_name
from explainer.source.tree import start_of, walk
from explainer.source.value.binding import Bound, bounds_of, find_calls, reaching, scope_of, walk_scope

_MOVES = ("to", "cuda")
_PACKS = "torch.nn.utils.rnn.pack_padded_sequence"
_STAYS = (_PACKS, "print", "len", "range", "isinstance", "float", "int", "str")


@dataclass(frozen=True)
class _Place:
    """A failing statement, and the way in which the program names the accelerator there."""

    file: SourceFile
    statement: ast.stmt
    context: Context

    def device(self, at: ast.AST) -> str | None:
        """What names the accelerator before a node."""
        return device_word(at, self.file, self.context)

    def beside(self, operands: list[ast.expr]) -> str | None:
        """Where a tensor is that the statement uses and that is on the accelerator."""
        for one in operands:
            known = seen(one, self.context)
            if known is not None and known.device not in HOST:
                return f"{self.file.segment(one)}.device"
        return None


def propose(context: Context) -> Iterator[Proposal]:
    """Edits of the statement that failed, and of those that made what it uses."""
    if not context.has_failed:
        return
    message = " ".join(one.message for one in context.incident.exceptions)
    for file, statement in failing_statements(context):
        yield from _not_taken(file, statement, context)
    for file, statement in failing_statements(context)[:1]:
        place = _Place(file, statement, context)
        if "to numpy" in message:
            return  # `copy_for_numpy`
        if "indices should be" in message:
            yield from _indices(place)
        elif "1D CPU int64 tensor" in message:
            yield from _lengths(place)
        elif "device type for generator" in message:
            yield from _generators(place, message)
            yield from _shuffled(place, message)
        elif "stft input and window" in message:
            yield from _window(place)
        else:
            yield from _modules(place)
            yield from _operands(place)


def _not_taken(file: SourceFile, statement: ast.stmt, context: Context) -> Iterator[Proposal]:
    """`x.to(device)` as a statement: a tensor's method gives a copy, and leaves the tensor where it is."""
    read = {one.id for one in walk(statement) if isinstance(one, ast.Name)}
    modules = seen_modules(context)
    found = [
        (node, name)
        for node in walk_scope(scope_of(statement, file))
        if isinstance(node, ast.Expr)
        and isinstance(call := node.value, ast.Call)
        and isinstance(call.func, ast.Attribute)
        if call.func.attr in _MOVES and (name := dotted_name(call.func.value)) in read and name not in modules
        if _is_tensor(name, node, file, context)
    ]
    if found:
        yield Proposal(
            edits=tuple(edit_of(file, node, f"{name} = {file.segment(node)}") for node, name in found),
            culprit=culprit_of(file, found[0][0], f"moves a copy of `{found[0][1]}` that nobody takes"),
            belief=2.5,
            title=f"Take what moving gives back: `{found[0][1]} = {file.segment(found[0][0])}`",
        )


def _is_tensor(name: str, node: ast.AST, file: SourceFile, context: Context) -> bool:
    """Whether a name holds a tensor: as was seen live, or by what a loop over a loader or a call of torch gave it."""
    if name in seen_tensors(context):
        return True
    names = context.program.names(file)
    bound = reaching(name, node, file)
    return bool(bound) and all(
        one.is_element
        or (isinstance(one.node, ast.Call) and (names.qualified(one.node.func) or "").startswith("torch.rand"))
        for one in bound
    )


def _indices(place: _Place) -> Iterator[Proposal]:
    """`features[rows]` becomes `features[rows.cpu()]` where what is indexed is on the CPU."""
    file, context = place.file, place.context
    found = [
        node.slice
        for node in walk_scope(scope_of(place.statement, file))
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and node.lineno >= place.statement.lineno
        if (index := seen(node.slice, context)) is not None and index.device not in HOST
        if (whole := seen(node.value, context)) is None or whole.device in HOST
    ]
    if found:
        yield Proposal(
            edits=tuple(put_method(file, one, ".cpu()") for one in found),
            culprit=culprit_of(
                file, place.statement, f"`{file.segment(found[0])}` is on the GPU, what it indexes on the CPU"
            ),
            belief=2.0,
            title=f"Index with a copy on the CPU: `{file.segment(found[0])}.cpu()`",
        )
    # What comes of it may meet what is on the GPU.
    pairs = [(one, file.parents[one]) for one in found if isinstance(one, (ast.Name, ast.Attribute))]
    wholes = [(one, above.value) for one, above in pairs if isinstance(above, ast.Subscript)]
    if wholes and len(wholes) == len(found):
        rows, table = wholes[0]
        yield Proposal(
            edits=tuple(put_method(file, of, f".to({file.segment(one)}.device)") for one, of in wholes),
            culprit=culprit_of(
                file, place.statement, f"`{file.segment(rows)}` is on the GPU, what it indexes on the CPU"
            ),
            belief=1.5,
            title=f"Index a copy on the GPU: `{file.segment(table)}.to({file.segment(rows)}.device)`",
        )


def _lengths(place: _Place) -> Iterator[Proposal]:
    """`pack_padded_sequence(x, lengths)` reads the lengths on the CPU: `lengths.cpu()`."""
    file, names = place.file, place.context.program.names(place.file)
    for node in walk(place.statement):
        if not isinstance(node, ast.Call) or not names.is_call(node, _PACKS):
            continue
        given = [one.value for one in node.keywords if one.arg == "lengths"] or node.args[1:2]
        if given:
            yield Proposal(
                edits=(put_method(file, given[0], ".cpu()"),),
                culprit=culprit_of(file, node, "is given lengths on the GPU, and reads them on the CPU"),
                belief=2.5,
                title=f"Give the lengths on the CPU: `{file.segment(given[0])}.cpu()`",
            )


def _generators(place: _Place, message: str) -> Iterator[Proposal]:
    """A `torch.Generator` is made for the device that draws with it."""
    wants_cpu = "Expected a 'cpu'" in message
    calls = [one for one in walk(place.statement) if isinstance(one, ast.Call)]
    drawn = {id(made) for one in calls for made in generators_of(one, place.file, place.context.program)}
    for file in place.context.program.parsed():
        names = place.context.program.names(file)
        for node in file.walk():
            if not isinstance(node, ast.Call) or names.qualified(node.func) not in (
                "torch.Generator",
                "torch._C.Generator",
            ):
                continue
            if drawn and id(node) not in drawn:
                continue
            given = next((one for one in node.keywords if one.arg == "device"), None)
            device = device_word(node, file, place.context)
            if wants_cpu and given is not None:
                edit = remove_argument(file, node, given)
            elif wants_cpu and node.args:
                edit = edit_of(file, node, f"{file.segment(node.func)}()")
            elif not wants_cpu and given is None and not node.args and device is not None:
                edit = add_argument(file, node, f"device={device}")
            else:
                continue
            yield Proposal(
                edits=(edit,),
                culprit=culprit_of(file, node, "is on another device than what draws with it"),
                belief=1.5,
                title="Make the generator for the device that draws with it: a loader's sampler draws on the CPU",
                because="the numbers that it draws are others, as on any other device",
            )


def _shuffled(place: _Place, message: str) -> Iterator[Proposal]:
    """A loader that shuffles draws its order on the default device, with a generator of the CPU where it is given none."""
    context = place.context
    if "but found 'cpu'" not in message or not has_default_device(context.program):
        return
    for file, call in find_calls(context.program):
        given = {one.arg: one.value for one in call.keywords}
        shuffle = given.get("shuffle")
        is_loader = context.program.names(file).is_call(call, *LOADERS)
        device = device_word(call, file, context) if is_loader else None
        is_shuffled = isinstance(shuffle, ast.Constant) and shuffle.value is True
        if device is not None and is_shuffled and not given.keys() & {"generator", None}:
            made = f"torch.Generator(device={device})"
            yield Proposal(
                edits=(add_argument(file, call, f"generator={made}"),),
                culprit=culprit_of(file, call, "draws its order with a generator of the CPU, on the default device"),
                belief=1.4,
                title=f"Give the loader a generator of the default device: `{made}`",
                because="the order that it draws is another, as on any other device",
            )


def _window(place: _Place) -> Iterator[Proposal]:
    """`torch.stft(wave, n, window=window)` reads a window where its signal is: `window.to(wave.device)`."""
    file, names = place.file, place.context.program.names(place.file)
    for node in walk(place.statement):
        if not isinstance(node, ast.Call):
            continue
        is_function = names.is_call(node, "torch.stft", "torch.istft")
        is_method = isinstance(node.func, ast.Attribute) and node.func.attr in ("stft", "istft") and not is_function
        wave = node.func.value if is_method and isinstance(node.func, ast.Attribute) else next(iter(node.args), None)
        window = next((one.value for one in node.keywords if one.arg == "window"), None)
        if wave is None or window is None or dotted_name(wave) is None or not (is_function or is_method):
            continue
        yield Proposal(
            edits=(put_method(file, window, f".to({file.segment(wave)}.device)"),),
            culprit=culprit_of(
                file, node, f"reads `{file.segment(window)}`, which is not where `{file.segment(wave)}` is"
            ),
            belief=2.0,
            title=f"Move the window to the signal: `.to({file.segment(wave)}.device)`",
        )


def _modules(place: _Place) -> Iterator[Proposal]:
    """A module that the statement calls, and that is on the CPU while something else is not, moves where it is made."""
    file, context = place.file, place.context
    for node in walk(place.statement):
        name = dotted_name(node.func) if isinstance(node, ast.Call) else None
        if name is None or not isinstance(node, ast.Call) or not _is_left(name, context):
            continue
        for bound in _made(name, place)[:1]:
            device = place.device(bound.statement)
            if device is None or not isinstance(bound.node, ast.expr) or bound.pick is not None:
                continue
            yield Proposal(
                edits=(put_method(file, bound.node, f".to({device})"),),
                culprit=culprit_of(file, bound.statement, f"makes `{name}` on the CPU, and nothing moves it"),
                belief=2.0,
                title=f"Move `{name}` where it is made: `.to({device})`",
            )


def _is_left(name: str, context: Context) -> bool:
    """Whether all that a module holds is on the CPU: its parameters, or the class weights that it was given."""
    kinds = {seen_modules(context).get(name)} - {None}
    kinds |= {one.device for key, one in seen_tensors(context).items() if key.rpartition(".")[0] == name}
    return kinds == {"cpu"}


def _made(name: str, place: _Place) -> list[Bound]:
    """The assignments that a module's name stands for: in the scope, in the module around it, or of `self.x` in its class."""
    found = reaching(name, place.statement, place.file)
    if not found and place.file.tree is not None:
        found = [one for one in bounds_of(place.file.tree) if one.name == name]
    owner = place.file.enclosing(place.statement, ast.ClassDef) if name.startswith("self.") else None
    if not found and owner is not None:
        functions = [one for one in walk(owner) if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))]
        found = [one for function in functions for one in bounds_of(function) if one.name == name]
    return [one for one in found if not one.fills]


def _operands(place: _Place) -> Iterator[Proposal]:
    """The tensors of the statement that are on the CPU, where others, or the modules that it calls, are not."""
    file, known = place.file, seen_tensors(place.context)
    operands = sorted(_read(place), key=start_of)
    left = [one for one in operands if known[ast.unparse(one)].device == "cpu" and known[ast.unparse(one)].shape]
    left += _of_arrays(place) if place.beside(operands) else []
    # A copy of what is written in place would be written, and what it stands for would never change.
    on_cpu = {name for name, one in known.items() if one.device == "cpu" and one.shape}
    kept = min(_written(place.statement) & on_cpu, default="")
    if kept:
        left = [one for one in operands if known[ast.unparse(one)].device not in HOST]
    device = f"{kept}.device" if kept else place.beside(operands) or place.device(place.statement)
    if not left or device is None:
        return
    edits, rebound = [], {}
    local = set() if kept else {bound.name for bound in bounds_of(scope_of(place.statement, file))}
    for one in left:
        if isinstance(one, ast.Name) and one.id in local:
            rebound[one.id] = f"{one.id} = {one.id}.to({device})"
        else:
            edits.append(put_method(file, one, f".to({device})"))
    if rebound:
        edits.append(insert_before(file, place.statement, "\n".join(rebound.values())))
    said = ", ".join(dict.fromkeys(f"`{file.segment(one)}`" for one in left))
    why = f"uses {said}, which {'is' if len(left) == 1 else 'are'} on the CPU"
    if kept:
        why = f"writes `{kept}`, which is on the CPU, with what is not"
    yield Proposal(
        edits=tuple(edits),
        culprit=culprit_of(file, place.statement, why),
        belief=1.2,
        title=f"Move {said} to the device of the rest",
    )


def _of_arrays(place: _Place) -> Iterator[ast.expr]:
    """The tensors that the statement makes of arrays, on the CPU: `torch.from_numpy(weights) * grad`."""
    names = place.context.program.names(place.file)
    for node in walk(place.statement):
        if isinstance(node, ast.Call) and names.is_call(node, "torch.from_numpy"):
            above = place.file.parents.get(node)
            while isinstance(above, ast.expr) and getattr(above, "attr", "") not in (*_MOVES, "shape"):
                above = place.file.parents.get(above)
            if not isinstance(above, ast.expr):
                yield node


def _written(statement: ast.stmt) -> set[str]:
    """What a statement writes in place, as the program spells it: `mine` of `mine.mul_(d).add_(theirs)`, `x` of `x += y`."""
    found = {ast.unparse(statement.target)} if isinstance(statement, ast.AugAssign) else set()
    for node in walk(statement):
        func = node.func if isinstance(node, ast.Call) else None
        if (
            not isinstance(func, ast.Attribute)
            or func.attr in NOT_WRITES
            or not func.attr.endswith("_")
            or func.attr.endswith("__")
        ):
            continue
        base = func.value
        while isinstance(base, ast.Call) and isinstance(base.func, ast.Attribute) and base.func.attr.endswith("_"):
            base = base.func.value
        while isinstance(base, ast.Attribute) and base.attr in ("data", "grad"):
            found.add(ast.unparse(base))
            base = base.value
        found.add(ast.unparse(base))
    return found


def _read(place: _Place) -> Iterator[ast.expr]:
    """The names, attributes and items that a statement reads as operands: not what a call that reads the CPU is given."""
    names = place.context.program.names(place.file)
    known = seen_tensors(place.context)
    head = [place.statement.iter] if isinstance(place.statement, ast.For) else [place.statement]
    stays: set[ast.AST] = set()
    for node in (one for part in head for one in walk(part)):
        if isinstance(node, ast.Call) and names.qualified(node.func) in _STAYS:
            stays.update(walk(node))
        elif isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Constant):
            stays.update(walk(node.slice))
        elif isinstance(node, ast.Attribute) and node.attr in ("shape", "device", "dtype", "ndim"):
            stays.update(walk(node))
        if not isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) or not isinstance(node.ctx, ast.Load):
            continue
        if node not in stays and ast.unparse(node) in known:
            yield node
