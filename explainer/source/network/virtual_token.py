"""Whether a program's adapter puts virtual tokens before the text, and how many: PEFT's prompt tuning and p-tuning.

Prefix tuning also has virtual tokens, but as keys and values in the layers: the output is as long as the text.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.source.file import SourceFile
from explainer.source.program import Program
from explainer.source.setting.flow import members_behind, settings_behind
from explainer.source.setting.setting import Setting
from explainer.source.value.number import number_of

_CONFIGURATIONS = ("PromptTuningConfig", "PromptEncoderConfig", "MultitaskPromptTuningConfig")
_KINDS = ("PROMPT_TUNING", "P_TUNING", "MULTITASK_PROMPT_TUNING")
_COUNT = "num_virtual_tokens"


def has_virtual_tokens(program: Program) -> bool:
    """Whether the program configures such an adapter, by a class or by the `peft_type` of a mapping or a file."""
    if any(True for _ in _configurations(program)):
        return True
    for file in program.parsed():
        if any(one.value in _KINDS for one in file.walk() if isinstance(one, ast.Constant)):
            return True
        if any(isinstance(one.value, ast.Name) for kind in _KINDS for one in file.attributes.get(kind, ())):
            return True
    return any(one.value in _KINDS for one in _written("peft_type", program))


def virtual_tokens(program: Program) -> set[int]:
    """The numbers of virtual tokens that are written for it; none where that is not known."""
    found = {one.value for one in _written(_COUNT, program)}
    for file, call in _configurations(program):
        for keyword in call.keywords:
            if keyword.arg is None:
                found |= {one.value for one in members_behind(keyword.value, _COUNT, file, program)}
            elif keyword.arg == _COUNT:
                found.add(number_of(keyword.value, program.names(file)))
                found |= {one.value for one in settings_behind(keyword.value, file, program)}
    return {int(one) for one in found if isinstance(one, (int, float)) and not isinstance(one, bool)}


def _configurations(program: Program) -> Iterator[tuple[SourceFile, ast.Call]]:
    for file in program.parsed():
        names = program.names(file)
        for node in file.walk():
            called = (names.qualified(node.func) or "") if isinstance(node, ast.Call) else ""
            if isinstance(node, ast.Call) and called.startswith("peft.") and called.endswith(_CONFIGURATIONS):
                yield file, node


def _written(name: str, program: Program) -> Iterator[Setting]:
    return (one for document in program.documents(name) for one in document.named(name))
