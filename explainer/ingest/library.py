"""Which package a source file belongs to, from its path alone."""

from __future__ import annotations

import re
from functools import cache, lru_cache

from explainer.model.incident import Frame

# Libraries whose paths people shorten to "torch/..." or ".../torch/...", so that no site-packages shows.
KNOWN = frozenset(
    [
        "torch",
        "torchvision",
        "torchaudio",
        "functorch",
        "torch_xla",
        "torch_npu",
        "transformers",
        "peft",
        "accelerate",
        "trl",
        "deepspeed",
        "huggingface_hub",
        "bitsandbytes",
        "xformers",
        "flash_attn",
        "triton",
        "unsloth",
        "unsloth_zoo",
        "pytorch_lightning",
        "lightning_fabric",
        "torchmetrics",
        "fairscale",
        "numpy",
        "scipy",
        "pandas",
        "sklearn",
        "diffusers",
        "timm",
        "mmcv",
        "mmengine",
    ]
)
_PACKAGES = ("site-packages/", "dist-packages/")


@lru_cache(maxsize=4096)
def owner_of(path: str) -> tuple[str | None, str | None]:
    """The library that owns the file at `path` and its version, where the path tells; (None, None) for user code.

    The standard library is "python". `path` may be shortened, relative, or a Windows path.
    """
    posix = path.replace("\\", "/")
    for marker in _PACKAGES:
        at = posix.rfind(marker)
        if at >= 0:
            return _in_packages(posix[:at], posix[at + len(marker) :])
    if posix.startswith("<"):
        return _generated(posix)
    if "torchinductor_" in posix:
        return "torch", None
    if "unsloth_compiled_cache/" in posix:
        return "unsloth", None
    return _by_folder(posix)


def own(frame: Frame) -> Frame:
    """`frame` with its library filled in."""
    from dataclasses import replace

    library, version = owner_of(frame.file)
    if frame.file == "<string>" and re.fullmatch(r"__\w+__", frame.function or ""):
        library = "python"  # what `dataclass` and its like write for a class
    return replace(frame, library=library, library_version=version) if library else frame


def _in_packages(before: str, inside: str) -> tuple[str | None, str | None]:
    top, _, rest = inside.partition("/")
    egg = re.match(r"(?P<name>[\w.]+)-(?P<version>\d[\w.+]*?)(?:-py\d.*)?\.egg$", top)
    if egg:
        return rest.partition("/")[0] or egg["name"], egg["version"]
    store = re.search(r"-(?P<name>[\w.]+)-(?P<version>\d[\d.]*)/lib/python3\.\d+/?$", before)
    name = top.removesuffix(".py")
    if not name:
        return None, None
    return name, store["version"] if store and store["name"] == name else None


def _generated(name: str) -> tuple[str | None, str | None]:
    """Files that are no files: frozen modules and evaluated strings belong to Python, cells to the user."""
    if name.startswith(("<frozen", "<string>", "<stdin-")):
        return ("python", None) if name.startswith("<frozen") else (None, None)
    if name.startswith("<__array_function__"):
        return "numpy", None
    if name.startswith(("<eval_with_key>", "<@beartype", "<attrs", "<decorator-gen")):
        return "python", None
    return None, None


@cache
def _standard() -> re.Pattern[str]:
    return re.compile(r"(?:^|/)(?:lib(?:64)?/python3(?:\.\d+)?|Python3?\d*/[Ll]ib|Python\.framework/.*)/(?!site|dist)")


def _by_folder(posix: str) -> tuple[str | None, str | None]:
    if _standard().search(posix):
        return "python", None
    if re.search(r"/bin/[\w.-]+$", posix) and not posix.endswith(".py"):
        return posix.rpartition("/")[2], None
    parts = [part for part in posix.split("/") if part]
    if not parts or len(parts) < 2:
        return None, None
    if not posix.startswith("/") and not re.match(r"[A-Za-z]:", posix):
        first = parts[1] if parts[0].strip(".") == "" and len(parts) > 2 else parts[0].lstrip(".")
        if first in KNOWN:
            return first, None
        if parts[0].startswith("...") and len(parts) > 2 and parts[1] in KNOWN:
            return parts[1], None
    if "pytorch/torch/" in posix:
        return "torch", None
    return None, None
