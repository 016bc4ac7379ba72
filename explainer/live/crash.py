"""What the live objects say at the moment of a failure: the graph, the tensors in the frames, modes, modules, optimizers.

Only shapes, dtypes, versions and identities of storages. Of values one bit, and only where the failure is about it: fractions among
indices, scores among probabilities, float64 values that float32 takes for the same, NaN among data or parameters, rows of several
classes; of a Trainer's column, or a key of its batch, whether it can hold the labels, and of a table's whether it is the target. Of
an index that was refused its number, as torch itself prints it for a label, and from which to which number such labels go.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any

from .batch_key import batch_key
from .class_target import class_targets, hot_rows
from .columns import columns
from .compare import compared
from .finite import not_finite
from .fraction import beyond_one, coarse, fractions, scores
from .frame import is_installed, is_ours
from .frozen_optimizer import is_due_and_frozen
from .idle_optimizer import idle_optimizer
from .leaked_target import leaked_target
from .made_steps import living, made_steps
from .no_gradient import without_gradient
from .nothing_summed import nothing_summed
from .refused_index import refused_index, refused_labels
from .renormalised import renormalised
from .saved import names_of, node_of, saved_of
from .shared_module import shared_modules
from .storage import storage_of
from .unreduced import frozen_since, unreduced
from .used_up import exhausted, used_up

MAX_FRAMES = 60
MAX_LOCALS = 400
MAX_NODES = 20_000
MAX_NAMES = 6
MAX_MOVED = 8
MAX_WRITTEN = 512  # the steps of a loop save alike
MAX_WARNINGS = 40
MAX_PARAMETERS = 1_000
MAX_WARNING = 8_000
MAX_LAYERS = 300
# The second is said of one of several views, whose base was written.
_WRITTEN = ("modified by an inplace operation", "another view of its base has been modified inplace")
_SEEKS_LAYERS = re.compile(r"target[ _]module|modules were targeted", re.IGNORECASE)


def look(error: BaseException, tracer: Any = None, steps_of: Callable[[Any], int] | None = None) -> dict[str, Any]:
    """The facts of a failure, as plain data; {} where torch has nothing to do with it. With a tracer, what it saw too.

    `steps_of` says how many steps an optimizer has made.
    """
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "autograd"):
        return {}
    frames = list(_frames(error.__traceback__))
    names = _Names(torch, frames)
    facts: dict[str, Any] = {
        # Inside inference mode `enable_grad` switches the flag on, and no graph is recorded all the same.
        "grad_enabled": torch.is_grad_enabled() and not torch.is_inference_mode_enabled(),
        "anomaly_mode": torch.is_anomaly_enabled(),
        "modules": names.modules_report(),
        **compared(error),
    }
    loss = _loss(torch, frames)
    graph = _Graph(torch, names)
    if not facts["modules"]["trainable"] or "empty parameter list" in str(error):
        facts["modules"]["names"] = names.parameter_names()
        if pairs := shared_modules(error, [one for one in frames if _is_own(one)], torch):
            facts["shared_modules"] = ", ".join(pairs)
    if _SEEKS_LAYERS.search(str(error)):
        facts["modules"].update(names.layer_names())
    facts.update(_told_of(error, torch, frames))
    facts.update(not_finite(torch, [one for one in frames if _is_own(one)], names.roots, error))
    if lacking := without_gradient(names.roots, error):
        facts["without_gradient"] = lacking
    if idle := idle_optimizer(frames, names.roots, steps_of):
        facts["idle_optimizer"] = idle
    if loss is not None:
        facts["loss"] = _tensor(loss)
        facts.update(_of_frozen(torch, frames, steps_of) if not loss.requires_grad else {})
        facts.update(graph.walk(loss))
        moved = {storage_of(one) for _, one, _ in graph.moved if isinstance(one, torch.Tensor)} - {None}
        if table := renormalised(names.roots, moved):
            facts["renormalised"] = table
    if steps_of is None and (made := made_steps(torch, living(torch))) is not None:
        facts["made_steps"] = made
    if tracer is not None:
        facts["traced"] = tracer.explain(
            loss, f"{type(error).__name__}: {error}", graph.moved, [one for one in frames if _is_own(one)]
        )
    return facts


def _of_frozen(torch: Any, frames: list[FrameType], steps_of: Callable[[Any], int] | None) -> dict[str, Any]:
    """What is frozen where a loss has no graph: an optimizer as a whole, and what was to thaw it."""
    names = used_up([one for one in frames if _is_own(one)], torch)
    told = {"used_up": ", ".join(names)} if names else {}
    return {**told, "frozen_optimizer": "yes"} if is_due_and_frozen(torch, steps_of) else told


def _told_of(error: BaseException, torch: Any, frames: list[FrameType]) -> dict[str, Any]:
    """What the values in the frames say of some messages; nothing where they say nothing."""
    message = str(error)
    alike = coarse(torch, frames, message)
    told = {
        "fractions": fractions(torch, frames, message),
        "scores": scores(torch, frames, message),
        "target_beyond_one": beyond_one(torch, frames),
        "class_targets": class_targets(torch, frames, message),
        "hot_rows": hot_rows(torch, frames, message),
        "exhausted": ", ".join(exhausted([one for one in frames if _is_own(one)]))
        if "empty parameter" in message
        else None,
        "leaked_target": leaked_target(torch, [one for one in frames if _is_own(one)], message),
        "refused_index": refused_index(torch, frames) or None,
        "refused_labels": refused_labels(torch, frames),
        "unreduced": unreduced(frames, message),
        "frozen_since": frozen_since(frames, message),
        "coarse": " ".join(alike) if alike else None,
        "columns": columns(frames, error) or None,
        "batch_key": batch_key(frames, error),
        "nothing_summed": nothing_summed([one for one in frames if _is_own(one)], message),
    }
    return {name: one for name, one in told.items() if one is not None}


def warned() -> list[str]:
    """The warnings that were shown so far, as Python prints them: each module keeps those that it has given."""
    found: list[str] = []
    for module in list(sys.modules.values()):
        given = getattr(module, "__dict__", {}).get("__warningregistry__")
        file = getattr(module, "__file__", None)
        keys = list(given) if isinstance(given, dict) and isinstance(file, str) else ()
        told = [one for one in keys if isinstance(one, tuple) and len(one) == 3 and isinstance(one[1], type)]
        found.extend(f"{file}:{line}: {kind.__name__}: {text}"[:MAX_WARNING] for text, kind, line in told)
    return found[-MAX_WARNINGS:]


def _frames(trace: TracebackType | None) -> Iterator[FrameType]:
    """The frames of a traceback, outermost first, and above them those that called it; none of this folder."""
    inner: list[FrameType] = []
    while trace is not None and len(inner) < MAX_FRAMES:
        inner.append(trace.tb_frame)
        trace = trace.tb_next
    outer: list[FrameType] = []
    above = inner[0].f_back if inner else None
    while above is not None and len(outer) < MAX_FRAMES:
        outer.append(above)
        above = above.f_back
    yield from (frame for frame in (*reversed(outer), *inner) if not is_ours(frame.f_code.co_filename))


def _loss(torch: Any, frames: list[FrameType]) -> Any:
    """The tensor whose backward failed: `self` of `Tensor.backward`, else the first that `torch.autograd` was given."""
    for frame in frames:
        code = frame.f_code
        if code.co_name == "backward" and code.co_filename.replace("\\", "/").endswith("torch/_tensor.py"):
            return frame.f_locals.get("self")
    for frame in frames:
        path = frame.f_code.co_filename.replace("\\", "/")
        if path.endswith("torch/autograd/__init__.py"):
            given = frame.f_locals.get("tensors", frame.f_locals.get("outputs"))
            given = given if isinstance(given, (tuple, list)) else (given,)
            return next((one for one in given if isinstance(one, torch.Tensor)), None)
    return None


def _tensor(tensor: Any) -> dict[str, Any]:
    """A tensor without its values."""
    node = node_of(tensor)
    return {
        "shape": list(tensor.shape),
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "device": str(tensor.device),
        "requires_grad": tensor.requires_grad,
        "leaf": node is None,
        "node": node.name() if node is not None else None,
    }


def _is_own(frame: FrameType) -> bool:
    """Whether a frame is of the program itself, not of a library."""
    return not is_installed(frame.f_code.co_filename)


def _inside(value: Any) -> list[Any]:
    """What a plain object or a short list holds, one level deep."""
    if isinstance(value, (list, tuple)):
        return list(value[:20])
    held = getattr(value, "__dict__", None)
    return list(held.values())[:50] if isinstance(held, dict) and not isinstance(value, type) else []


def _saved_tensor(raw: Any) -> Any:
    """The tensor of a saved variable that moved, without the check of its version; None where there is none.

    Only once the program has failed: before torch 2.7 or so it has no `data`, and hooks that are put on it get the tensor
    at once, but stay.
    """
    try:
        if hasattr(raw, "data"):
            return raw.data
        got: list[Any] = []

        def take(tensor: Any) -> Any:
            got.append(tensor)
            return tensor

        raw.register_hooks(take, lambda packed: packed)
        return got[0] if got else None
    except (RuntimeError, AttributeError, TypeError):  # let go already, or packed by a hook
        return None


class _Names:
    """Which objects of the program hold which storage."""

    def __init__(self, torch: Any, frames: list[FrameType]) -> None:
        self._torch = torch
        self._held: dict[int, list[tuple[str, str]]] = {}
        self._flagged: list[str] = []
        self.roots = self._find_modules(frames)
        for root in self.roots:
            for name, parameter in root.named_parameters():
                self._hold(parameter, "parameter", f"{type(root).__name__}.{name}")
            for name, buffer in root.named_buffers():
                self._hold(buffer, "buffer", f"{type(root).__name__}.{name}")
        for frame in frames:
            if _is_own(frame):
                self._hold_locals(frame)

    def _find_modules(self, frames: list[FrameType]) -> list[Any]:
        """The modules that the program's own frames hold, by themselves or in an object; of all that live where there is none."""
        found: dict[int, Any] = {}
        for frame in frames:
            if _is_own(frame):
                for value in [*frame.f_locals.values(), *frame.f_globals.values()][:MAX_LOCALS]:
                    for one in (value, *_inside(value)):
                        if issubclass(type(one), self._torch.nn.Module):
                            found[id(one)] = one
        if not found:
            import gc

            found = {id(one): one for one in gc.get_objects() if issubclass(type(one), self._torch.nn.Module)}
        inner = {id(child) for one in found.values() for child in one.modules() if child is not one}
        return [one for key, one in found.items() if key not in inner][:50]

    def _hold(self, tensor: Any, kind: str, name: str) -> None:
        storage = storage_of(tensor)
        if storage is not None:
            held = self._held.setdefault(storage, [])
            if len(held) < MAX_NAMES and (kind, name) not in held:
                held.append((kind, name))

    def _hold_locals(self, frame: FrameType) -> None:
        for name, value in list(frame.f_locals.items())[:MAX_LOCALS]:
            if isinstance(value, self._torch.Tensor):
                self._hold(value, "local", f"{name} in {frame.f_code.co_name}")
                with suppress(RuntimeError):  # one of several views, whose base was written, tells nothing of its graph
                    if value.is_leaf and value.requires_grad and name not in self._flagged:
                        self._flagged.append(name)

    def of(self, tensor: Any) -> list[tuple[str, str]]:
        """What holds the tensor's storage, parameters and buffers first."""
        storage = storage_of(tensor)
        return self._held.get(storage, []) if storage is not None else []

    def modules_report(self) -> dict[str, Any]:
        """How many parameters there are, how many train, which modules are in evaluation mode, which methods were replaced."""
        parameters = {id(one): one for root in self.roots for one in root.parameters()}
        return {
            "parameters": len(parameters),
            "trainable": sum(1 for one in parameters.values() if one.requires_grad),
            "training": sorted({type(root).__name__ for root in self.roots if root.training and any(True for _ in root.parameters())})[:MAX_NAMES],
            "evaluation": sorted(
                {type(root).__name__ for root in self.roots if not root.training and any(True for _ in root.parameters())}
            )[:MAX_NAMES],
            "flagged": self._flagged[:MAX_NAMES],
            "adapters": self._adapters(),
            "merged": self._merged(),
            "toggled": self._toggled(),
            **self._replaced(),
            **self._checkpointed(),
        }  # fmt: skip

    def parameter_names(self) -> list[str]:
        """The parameters as the live modules name them; none where there are too many to be told."""
        found = {name for root in self.roots for name, _ in root.named_parameters()}
        return sorted(found) if len(found) <= MAX_PARAMETERS else []

    def layer_names(self) -> dict[str, list[str]]:
        """The kinds of layers with weights, by path with each number as `*`, and of blocks: `encoder.layer.*.attention.q_proj`.

        Layers with the number of their own, where it tells them from other children of the same container: `layers.*.ff.0`.
        """
        found: dict[str, set[str]] = {"layers": set(), "blocks": set()}
        own: set[str] = set()
        for root in self.roots:
            for name, one in root.named_modules():
                weight = getattr(one, "weight", None)
                is_layer = isinstance(weight, self._torch.nn.Parameter) and weight.dim() > 1
                kinds = found["layers" if is_layer else "blocks"]
                if name and len(kinds) < MAX_LAYERS:
                    kinds.add(_starred(name))
                    head, _, last = name.rpartition(".")
                    own |= {f"{_starred(head)}.{last}"} if is_layer and last.isdigit() else set()
        numbered = {name for name in own if _starred(name) in found["blocks"]}
        return {kind: sorted(names) for kind, names in {**found, "numbered": numbered}.items()}

    def _adapters(self) -> list[str]:
        """The adapters that peft has put on the live modules, by name."""
        given = [getattr(root, "peft_config", None) for root in self.roots]
        return sorted({str(name) for one in given if isinstance(one, dict) for name in one})[:MAX_NAMES]

    def _merged(self) -> list[str]:
        """The adapters of peft that are merged into the layers of the live modules: these run their frozen weights alone."""
        given = [vars(one).get("merged_adapters") for root in self.roots for one in root.modules()]
        return sorted({str(name) for one in given if isinstance(one, list) for name in one})[:MAX_NAMES]

    def _toggled(self) -> list[str]:
        """The live modules of Lightning that toggled an optimizer, and did not take it back."""
        given = [type(root).__name__ for root in self.roots if vars(root).get("_param_requires_grad_state")]
        return sorted(set(given))[:MAX_NAMES]

    def _replaced(self) -> dict[str, Any]:
        """The methods that are not the module's own code: set on the object, or on its class by another library."""
        found, asleep = set(), set()
        for one in (one for root in self.roots for one in root.modules()):
            for name in ("forward", "__call__"):
                by = _author(vars(one).get(name)) if name in vars(one) else _stranger(type(one), name)
                if by is not None:
                    found.add(f"{type(one).__name__}.{name}")
                    if not one.training and by not in _CARRIERS:
                        asleep.add(f"{type(one).__name__}.{name} of {by or 'another hand'}")
        return {"replaced": sorted(found)[:MAX_NAMES], "replaced_in_evaluation": sorted(asleep)[:MAX_NAMES]}

    def _checkpointed(self) -> dict[str, Any]:
        """The modules that a library has told to checkpoint their activations, and those of them in the reentrant form."""
        told = [one for root in self.roots for one in root.modules() if vars(one).get("gradient_checkpointing") is True]
        reentrant = [
            one for one in told if getattr(vars(one).get("_gradient_checkpointing_func"), "keywords", {}).get("use_reentrant") is True
        ]  # fmt: skip
        return {
            "checkpointed": sorted({type(one).__name__ for one in told})[:MAX_NAMES],
            "reentrant": sorted({type(one).__name__ for one in reentrant})[:MAX_NAMES],
        }


# Libraries that wrap a forward and run the module's own inside.
_CARRIERS = frozenset({"torch", "accelerate", "peft", "transformers", "lightning", "deepspeed"})


def _taken(node: Any) -> Iterator[int]:
    """The storages of the leaves that a node takes, directly or as a view."""
    for following, _ in node.next_functions:
        for one in (following, *(inner for inner, _ in following.next_functions[:1])) if following is not None else ():
            storage = storage_of(one.variable) if hasattr(one, "variable") else None
            if storage is not None:
                yield storage


def _starred(path: str) -> str:
    return re.sub(r"(?<![^.])\d+(?![^.])", "*", path)


def _author(function: Any) -> str:
    """The package that a function's code comes from; "" where it does not say."""
    while hasattr(function, "func"):  # a partial
        function = function.func
    return str(getattr(function, "__module__", None) or "").partition(".")[0]


def _stranger(kind: type, name: str) -> str | None:
    """The package that has put another function in place of a class's own method; None for its own and for inherited ones."""
    own = vars(kind).get(name)
    author = _author(own) if own is not None else ""
    return author if author and author != kind.__module__.partition(".")[0] else None


class _Graph:
    """The autograd graph below a tensor: what was saved and moved, what was freed, which leaves are reached."""

    def __init__(self, torch: Any, names: _Names) -> None:
        self._torch = torch
        self._names = names
        self.moved: list[tuple[Any, Any, str]] = []

    def walk(self, loss: Any) -> dict[str, Any]:
        """What stands in the graph, walked breadth first, at most 20,000 nodes."""
        moved: list[dict[str, Any]] = []
        freed: list[str] = []
        leaves: set[int] = set()
        seen: set[Any] = set()
        queue = [loss.grad_fn] if loss.grad_fn is not None else []
        while queue and len(seen) < MAX_NODES:
            node = queue.pop(0)
            if node is None or node in seen:
                continue
            seen.add(node)
            variable = getattr(node, "variable", None)
            if variable is not None:
                leaves.add(id(variable))
            for name in names_of(node):
                self._inspect(node, name, moved, freed)
            queue.extend(following for following, _ in node.next_functions)
        trainable = {id(one) for root in self._names.roots for one in root.parameters() if one.requires_grad}
        return {
            "nodes": len(seen),
            "moved": moved[:MAX_MOVED],
            "freed": freed[:MAX_MOVED],
            "reached": len(leaves & trainable),
            "unreached": len(trainable - leaves),
            "carried": self._carried(seen),
        }

    def _carried(self, seen: set[Any]) -> str | None:
        """The parameter that one chain of nodes saved as it is now and, below that, as it was before it was written.

        Such a chain goes through two steps of training: a state ties them together. Two forwards whose losses are added, or
        the second network of a GAN, have no such chain.
        """
        old: dict[int, tuple[str, str, set[Any]]] = {}
        for node, tensor, saved in self.moved:
            held = self._names.of(tensor) if isinstance(tensor, self._torch.Tensor) else []
            storage = storage_of(tensor) if held and held[0][0] == "parameter" else None
            if storage is not None:
                old.setdefault(storage, (held[0][1], saved, set()))[2].add(node)
        for node in seen if old else ():
            for storage in _taken(node):
                name, saved, nodes = old.get(storage, ("", "", set()))
                if nodes and self._is_as_saved(node, saved) and self._leads(node, nodes):
                    return name
        return None

    @staticmethod
    def _is_as_saved(node: Any, name: str) -> bool:
        """Whether what a node saved under a name was not written since; one that this backward has been through let it go."""
        try:
            return saved_of(node, name) is not None
        except RuntimeError as error:
            return "have already been freed" in str(error)
        except AttributeError:  # another kind of node
            return False

    @staticmethod
    def _leads(start: Any, nodes: set[Any]) -> bool:
        """Whether one of some nodes lies below another."""
        queue: list[Any] = [start]
        passed: set[Any] = set()
        while queue and len(passed) < MAX_NODES:
            node = queue.pop()
            if node is None or node in passed:
                continue
            if node in nodes:
                return True
            passed.add(node)
            queue.extend(following for following, _ in node.next_functions)
        return False

    def _inspect(self, node: Any, name: str, moved: list[dict[str, Any]], freed: list[str]) -> None:
        """Ask for a saved tensor; the error that comes tells whether it moved or was freed."""
        try:
            saved_of(node, name)
        except RuntimeError as error:
            text = str(error)
            is_written = any(one in text for one in _WRITTEN)
            if is_written and len(self.moved) < MAX_WRITTEN:
                told = self._describe(node, name)
                if len(moved) < MAX_MOVED:
                    moved.append(told)
            elif "have already been freed" in text and len(freed) < MAX_MOVED:
                freed.append(node.name())
        except (AttributeError, TypeError, ValueError):
            return

    def _describe(self, node: Any, name: str) -> dict[str, Any]:
        raw = getattr(node, f"_raw_saved_{name}")
        tensors = [_saved_tensor(one) for one in (raw if isinstance(raw, (list, tuple)) else (raw,))]
        self.moved.extend((node, one, name) for one in tensors)
        tensor = tensors[0] if len(tensors) == 1 else None
        told = {"node": node.name(), "saved": name}
        if isinstance(tensor, self._torch.Tensor):
            held = self._names.of(tensor)
            told.update(shape=list(tensor.shape), held=[f"{kind} {what}" for kind, what in held])
            told["kind"] = held[0][0] if held else "activation"
            told["writes"] = tensor._version  # noqa: SLF001 - what the messages of autograd name
        return told
