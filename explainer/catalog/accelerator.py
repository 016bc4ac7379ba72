"""What each accelerator can compute natively, from its compute capability or its marketing name.

Source: NVIDIA's CUDA C++ Programming Guide, "Compute Capabilities" (arithmetic instructions), and its list of GPUs.
Emulation does not count: torch runs bfloat16 on a T4, slowly and without tensor cores, and `is_bf16_supported()` of
torch 2.4 and later answers True there unless `including_emulation=False`.
"""

from __future__ import annotations

import re

from explainer.model.environment import Gpu

_CAPABILITIES = (
    (r"\bB(?:200|300|100)\b|\bGB[23]00\b", "10.0"),
    (r"\bRTX ?50\d0|\bRTX PRO \d000 Blackwell", "12.0"),
    (r"\bH(?:20|100|200|800)\b|\bGH200\b", "9.0"),
    (r"\bL(?:4|40|40S|20)\b|\bRTX ?40\d0|\bRTX ?[456]000 Ada", "8.9"),
    (r"\bA(?:10G?|16|2|40)\b|\bRTX ?30\d0|\bRTX ?A\d{4}\b|\bA[2456]000\b", "8.6"),
    (r"\bA(?:100|800|30)\b", "8.0"),
    (r"\bT4\b|\bRTX ?20\d0|\bGTX ?16\d0|\bQuadro RTX|\bTITAN RTX|\bT[1245]\d00?\b", "7.5"),
    (r"\bV100S?\b|\bTITAN V\b|\bGV100\b", "7.0"),
    (r"\bP(?:100)\b|\bGP100\b", "6.0"),
    (r"\bP(?:4|40)\b|\bGTX ?10\d0|\bTITAN X[Pp]?\b|\bP[1-6]000\b", "6.1"),
    (r"\bM(?:60|40|6|4)\b|\bGTX ?9\d0", "5.2"),
    (r"\bK(?:80)\b", "3.7"),
)
_SINCE = {"bf16": (8, 0), "tf32": (8, 0), "fp8": (8, 9), "fp16": (5, 3)}


def capability_of(name: str) -> str | None:
    """The compute capability of an NVIDIA GPU by its name ("Tesla T4" has "7.5"), or None for one not listed."""
    return next((capability for pattern, capability in _CAPABILITIES if re.search(pattern, name)), None)


def has_ability(capability: str, ability: str) -> bool:
    """Whether that compute capability has "bf16", "tf32", "fp8" or "fp16" arithmetic in hardware."""
    major, _, minor = capability.partition(".")
    return (int(major), int(minor or 0)) >= _SINCE[ability]


def describe_gpu(name: str, source: str, capability: str | None = None, memory_mib: int | None = None) -> Gpu:
    """A `Gpu` with the abilities that its capability, given or known by name, implies."""
    capability = capability or capability_of(name)
    abilities = {ability: has_ability(capability, ability) if capability else None for ability in _SINCE}
    return Gpu(name=name, memory_mib=memory_mib, capability=capability, source=source, **abilities)
