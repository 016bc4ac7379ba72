"""What a log states about the program and its machine: parameter counts, versions, GPUs, precision, exit codes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from explainer.ingest.terminal import is_progress
from explainer.model.incident import Fact

_MAX_LENGTH = 2000
PACKAGES = (
    "torch|pytorch|transformers|peft|accelerate|trl|bitsandbytes|deepspeed|flash[-_]attn|xformers|triton|unsloth|"
    "lightning|pytorch[-_]lightning"
)


class _Reader(NamedTuple):
    """A fact's pattern behind a literal that a line must hold first; group names are the facts' names."""

    literal: str
    pattern: str


_READERS = (
    _Reader(
        "rainable params:",
        r"(?<![-\w])[Tt]rainable params: (?P<trainable_parameters>\d[\d.,]*)"
        r"(?: \|\| all params: (?P<all_parameters>[\d,]+))?(?: \|\| trainable%: (?P<trainable_percent>[\d.]+))?",
    ),
    _Reader("rainable parameters =", r"[Tt]rainable parameters = (?P<trainable_parameters>[\d,]+)"),
    _Reader("Trainable params", r"^\s*(?P<trainable_parameters>[\d.,]+)(?: [KMB])?\s+Trainable params"),
    _Reader("exitcode", r"exitcode\s*:\s*(?P<exit_code>-?\d+)"),
    _Reader("exit code", r"exit code:? (?P<exit_code>-?\d+)"),
    _Reader("rank ", r"^\s*rank\s+: (?P<failed_rank>\d+) \(local_rank"),
    _Reader("Bfloat16 =", r"Bfloat16 = (?P<bf16>TRUE|FALSE)"),
    _Reader("Num GPUs", r"^[\\/|\s_O^]*(?P<gpu>[A-Z][\w .-]{1,60}?)\. Num GPUs = (?P<gpu_count>\d+)"),
    _Reader("==((====))==", r"Unsloth (?P<unsloth>[\d.]+): Fast (?P<unsloth_model>[\w.-]+) patching"),
    _Reader(
        "fp16",
        r"\bfp16['\"]?\s*[=:]\s*(?P<fp16>True|true)\b|(?P<fp16_flag>--fp16)\b|mixed_precision['\"]?[=:\s]+['\"]?(?P<fp16_mixed>fp16)",
    ),
    _Reader("bf16", r"\bbf16['\"]?\s*[=:]\s*(?P<bf16_asked>True|true)\b|(?P<bf16_flag>--bf16)\b"),
    _Reader("float16", r"(?P<float16>torch\.float16|dtype[=:\s]+['\"]?float16|load in float16)"),
    _Reader("GradScaler", r"(?P<grad_scaler>GradScaler)"),
    _Reader("scale", r"(?:reducing|setting|reducing loss scale|setting loss scale) to:? (?P<loss_scale>\d[\d.e+-]*)"),
)
_CARDS = (
    r"\b(?P<gpu>Tesla [A-Z]\d+\w*|(?:NVIDIA )?(?:A10G|A100|A800|A6000|A40|A10|A30|H100|H200|H800|H20|B200|L4|L40S?|V100|P100|T4|"
    r"K80)(?:[- ](?:PCIe?|SXM\d?|\d+GB|80G|40G)[\w-]*)*|(?:NVIDIA )?(?:GeForce )?(?:RTX|GTX)[ -]?\d{4}(?: ?Ti| ?SUPER)?)\b"
)
_CARD_WORDS = ("Tesla", "NVIDIA", "RTX", "GTX", "GPU", "A100", "H100", "V100", "T4")


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


@cache
def _version() -> re.Pattern[str]:
    return re.compile(
        rf"(?:^|[\s`*|\-\"'])(?P<name>{PACKAGES}|[Pp]y[Tt]orch|[Tt]orch|[Tt]ransformers|[Tt]riton|[Pp]ython)"
        r"`?(?: [Vv]ersion)?`?\s{0,20}(?:==|:|=|\s)\s{0,3}[v'\"]?(?P<version>\d+\.\d+[\w.+]*)"
    )


def read_facts(text: str, log_line: int | None = None) -> Iterator[Fact]:
    """The facts that one line states."""
    if len(text) > _MAX_LENGTH:
        return
    for reader in _READERS:
        if reader.literal in text:
            found = _compiled(reader.pattern).search(text)
            if found:
                for name, value in found.groupdict().items():
                    if value is not None:
                        yield Fact(name=_plain(name), value=value.replace(",", ""), log_line=log_line)
    if any(word in text for word in _CARD_WORDS) and "Num GPUs" not in text:
        found = _compiled(_CARDS).search(text)
        if found:
            yield Fact(name="gpu", value=found["gpu"], log_line=log_line)
    if "." in text and ("orch" in text or "ransformers" in text or "==" in text or "ersion" in text):
        for found in _version().finditer(text):
            yield Fact(name=f"version:{_package(found['name'])}", value=found["version"].rstrip("."), log_line=log_line)
    yield from _flags(text, log_line)
    yield from _progress(text, log_line)


@cache
def _bar() -> re.Pattern[str]:
    return re.compile(
        r"(?P<done>\d{1,9})/(?P<total>\d{1,9}) \[\d{1,3}:\d\d|\b(?P<lightning>\d{1,9})/(?P<whole>\d{1,9}) \d+:\d\d:\d\d"
    )


# What bars of downloads, shards, data sets and evaluations say, and what only a training's says.
_NO_STEPS = (
    "oading", "ownload", "Map", "okeniz", "Filter", "enerating", "etching", "shards", "alidat", "valuat", "xtract", "rocessing",
    "ncoding", "reparing", "Writing", "examples/s", "B/s",
)  # fmt: skip
_STEPS = ("rain", "poch", "teps", "loss")


def _progress(text: str, log_line: int | None) -> Iterator[Fact]:
    """How many steps a training's progress bar has counted; what prepares data counts none, and is whole where it is not named."""
    if "/" not in text or not is_progress(text) or any(word in text for word in _NO_STEPS):
        return
    found = _bar().search(text)
    if found is None:
        return
    done, total = found["done"] or found["lightning"], found["total"] or found["whole"]
    if done != total or any(word in text for word in _STEPS):
        yield Fact(name="steps_done", value=done, log_line=log_line)


def _plain(name: str) -> str:
    """`fp16_flag` and `fp16_mixed` are the fact `fp16`."""
    return {
        "fp16_flag": "fp16",
        "fp16_mixed": "fp16",
        "float16": "fp16",
        "bf16_flag": "bf16_asked",
        "unsloth": "version:unsloth",
    }.get(name, name)


def _package(name: str) -> str:
    low = name.lower().replace("_", "-")
    return "torch" if low == "pytorch" else low


@cache
def _flag() -> re.Pattern[str]:
    return re.compile(
        r"^\s*(?P<name>[A-Za-z_][\w.]*\.(?:weight|bias|\w+))\s*[:,=]?\s+(?:requires_grad\s*[:=]?\s*)?(?P<flag>True|False)\s*$"
    )


def _flags(text: str, log_line: int | None) -> Iterator[Fact]:
    """A listing of parameters with their `requires_grad`."""
    if not text.rstrip().endswith(("True", "False")):
        return
    found = _flag().match(text)
    if found:
        kind = "adapter" if "lora_" in found["name"] or "adapter" in found["name"] else "parameter"
        yield Fact(name=f"{kind}_requires_grad", value=found["flag"], log_line=log_line)
