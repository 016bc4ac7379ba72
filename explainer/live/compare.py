"""What a rank has in common with the others, unless it is the odd one out: versions, device, shapes. Never values."""

from __future__ import annotations

import os
import sys
from collections import UserDict
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from types import FrameType, ModuleType, TracebackType
from typing import Any

from .frame import is_ours

_BROKEN = "due to a previous error during capture"
MAX_TENSORS, MAX_NAMES, MAX_KEY = 48, 200, 80
_PACKAGES = ("torch", "transformers", "accelerate", "deepspeed", "lightning", "peft", "numpy", "triton")


def software() -> dict[str, str]:
    """The versions of what is loaded, and the device that is in use; a GPU that the program has not touched stays so."""
    found = {"python": ".".join(map(str, sys.version_info[:3]))}
    for name in _PACKAGES:
        version = getattr(sys.modules.get(name), "__version__", None)
        if version is not None:
            found[name] = str(version)
    torch = sys.modules.get("torch")
    with suppress(Exception):  # builds without CUDA, and drivers, refuse in ways of their own
        if torch is not None:
            found["cuda"] = str(torch.version.cuda)
            if torch.cuda.is_initialized():
                found["gpu"] = str(torch.cuda.get_device_name())
                found["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))
    found["threads"] = os.environ.get("OMP_NUM_THREADS", "")
    return found


def compared(error: BaseException) -> dict[str, Any]:
    """The tensors of the program's innermost own frame that the exception came through, by the text that reads them.

    Each with shape, dtype and device: what a name holds, a global that the frame's code reads too, then what the dictionaries,
    lists and objects behind names hold, as `batch['labels']` or `self.state`. Nothing of the program is called: no property, no `__getitem__`.
    """
    frame = _own_frame(_first_of(error).__traceback__)
    torch = sys.modules.get("torch")
    if frame is None or torch is None or not hasattr(torch, "Tensor"):
        return {}
    named = [
        one for one in [*list(frame.f_locals.items())[:MAX_NAMES], *_globals_of(frame)] if not one[0].startswith("__")
    ]
    tensors: dict[str, str] = {}
    reached = [*named, *(inner for each in named for inner in held(*each))]
    for name, value in reached:
        if issubclass(type(value), torch.Tensor) and len(tensors) < MAX_TENSORS:
            with suppress(Exception):  # a nested tensor has no shape, and a subclass may refuse anything
                mode = " in inference mode" if value.is_inference() else ""
                kind = str(value.dtype).removeprefix("torch.")
                tensors[name] = f"{list(value.shape)} {kind} on {value.device.type}{mode}"
    modules = {name: where for name, value in reached if (where := _where(torch, value))}
    seen = {"tensors": tensors, "modules_on": modules} if set(modules.values()) - {"cpu"} else {"tensors": tensors}
    return {**seen, "at": f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_code.co_name}"}


def _first_of(error: BaseException) -> BaseException:
    """The exception that broke the capture of a CUDA graph, where the end of the capture raised another for it."""
    while _BROKEN in str(error) and isinstance(error.__context__, BaseException):
        error = error.__context__
    return error


def _globals_of(frame: FrameType) -> list[tuple[str, object]]:
    """The globals that a function's code names; none for a module, whose locals they are."""
    known, code = frame.f_globals, frame.f_code
    if known is frame.f_locals:
        return []
    hidden = {*code.co_varnames, *code.co_cellvars, *code.co_freevars}
    return [(name, known[name]) for name in code.co_names[:MAX_NAMES] if name in known and name not in hidden]


def _where(torch: Any, value: object) -> str:
    """The kind of device that the parameters of a module are on; "" for anything else, and where they are on several."""
    if not issubclass(type(value), torch.nn.Module):
        return ""
    with suppress(Exception):  # a module of the program may refuse anything
        kinds = {one.device.type for one in islice(torch.nn.Module.parameters(value), MAX_NAMES)}
        return kinds.pop() if len(kinds) == 1 else ""
    return ""


def held(name: str, value: object) -> Iterator[tuple[str, object]]:
    """What a container or an object holds, by the text that reads it; of a module its own parameters and buffers."""
    state: object = None
    if not isinstance(value, (type, ModuleType)):
        with suppress(Exception):  # objects of slots have none
            state = object.__getattribute__(value, "__dict__")
    inner: object = state.get("data") if isinstance(value, UserDict) and type(state) is dict else value
    if isinstance(inner, dict):
        keys = [
            (key, one)
            for key, one in islice(dict.items(inner), MAX_NAMES)
            if type(key) in (str, int) and len(repr(key)) < MAX_KEY
        ]
        yield from ((f"{name}[{key!r}]", one) for key, one in keys)
    elif isinstance(inner, (list, tuple)):
        inside = tuple.__iter__(inner) if isinstance(inner, tuple) else list.__iter__(inner)
        fields = getattr(type(inner), "_fields", ())  # of a named tuple
        if isinstance(inner, tuple) and type(fields) is tuple and len(fields) == tuple.__len__(inner):
            yield from zip((f"{name}.{one}" for one in fields), islice(tuple.__iter__(inner), MAX_NAMES), strict=False)
        yield from ((f"{name}[{at}]", one) for at, one in enumerate(islice(inside, MAX_NAMES)))
    elif type(state) is dict:
        # an OrderedDict in torch 2.4
        own = [one for key in ("_parameters", "_buffers") if isinstance(one := state.get(key), dict)]
        for part in (state, *own):
            yield from ((f"{name}.{key}", one) for key, one in islice(dict.items(part), MAX_NAMES) if type(key) is str)


def _own_frame(trace: TracebackType | None) -> FrameType | None:
    """The program's innermost frame; an exception that is just passing a wrapper of ours has not reached it yet."""
    own = None
    caller = trace.tb_frame.f_back if trace is not None else None
    while trace is not None:
        own = trace.tb_frame if _is_programs(trace.tb_frame) else own
        trace = trace.tb_next
    while own is None and caller is not None:
        own = caller if _is_programs(caller) else None
        caller = caller.f_back
    return own


def _is_programs(frame: FrameType) -> bool:
    path = frame.f_code.co_filename.replace("\\", "/")
    is_library = "site-packages/" in path or "/lib/python" in path or path.startswith("<frozen")
    return not is_library and not is_ours(frame.f_code.co_filename)
