"""Versions of installed packages from the names of their metadata folders, and how torch was built."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from explainer.model.environment import EnvironmentFact, Package

WANTED = frozenset(
    [
        "torch",
        "transformers",
        "peft",
        "accelerate",
        "trl",
        "bitsandbytes",
        "deepspeed",
        "flash-attn",
        "xformers",
        "triton",
        "unsloth",
        "unsloth-zoo",
        "lightning",
        "pytorch-lightning",
        "torchvision",
        "torchaudio",
        "torchao",
        "datasets",
        "tokenizers",
        "safetensors",
        "numpy",
        "liger-kernel",
        "mamba-ssm",
        "causal-conv1d",
        "apex",
        "fairseq",
        "ray",
        "spikingjelly",
        "diffusers",
        "sentence-transformers",
    ]
)


def read_packages(folders: Sequence[str], names: frozenset[str] | None = WANTED) -> list[Package]:
    """The wanted distributions in site-packages folders, all where `names` is None; where two folders hold one, the first counts."""
    found: dict[str, Package] = {}
    for folder in folders:
        for name, version in _metadata(folder):
            if (names is None or name in names) and name not in found:
                found[name] = Package(name=name, version=version, source=folder)
    return sorted(found.values(), key=lambda package: package.name)


def _metadata(folder: str) -> Iterator[tuple[str, str]]:
    """Normalised name and version of each `name-version.dist-info` (or egg-info) in a folder."""
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        stem, dot, suffix = entry.name.rpartition(".")
        if dot and suffix in ("dist-info", "egg-info") and "-" in stem:
            name, _, version = stem.partition("-")
            if suffix == "egg-info":
                version = re.sub(r"-py\d.*$", "", version)
            yield re.sub(r"[-_.]+", "-", name).lower(), version


def read_torch_build(folders: Sequence[str]) -> list[EnvironmentFact]:
    """`cuda_build` and `hip_build` as `torch/version.py` states them: a version, or "none" for a CPU build."""
    for folder in folders:
        path = os.path.join(folder, "torch", "version.py")
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                text = file.read(20_000)
        except OSError:
            continue
        return [
            EnvironmentFact(name=f"{key}_build", value=found[1] or "none", source=path)
            for key in ("cuda", "hip")
            if (found := re.search(rf"^{key}\b[^=\n]*=\s*(?:['\"]([\d.]+)['\"]|None)", text, re.MULTILINE))
        ]
    return []
