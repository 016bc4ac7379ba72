"""What changed since the last good run, most suspicious first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from explainer.match.surroundings import is_version_in
from explainer.model.circumstances import Circumstances, Pairs
from explainer.model.finding import Finding
from explainer.model.incident import Incident
from explainer.model.memory import (
    ARGUMENT,
    COMMIT,
    FILE,
    MACHINE,
    PACKAGE,
    PYTHON,
    SETTING,
    VARIABLE,
    Change,
)
from explainer.model.rule import Cause

# From the most to the least suspicious.
_NAMED, _GUILTY_FILE, _IN_TRACEBACK, _NEAR_TORCH, _INPUT, _OWN_FILE, _SURROUNDINGS, _REST = range(8)
_BY_KIND = {
    PYTHON: _SURROUNDINGS, PACKAGE: _REST, FILE: _OWN_FILE, SETTING: _INPUT, ARGUMENT: _INPUT, VARIABLE: _INPUT,
    MACHINE: _SURROUNDINGS, COMMIT: _REST,
}  # fmt: skip
NEAR_TORCH = frozenset((
    "torch", "transformers", "peft", "accelerate", "trl", "bitsandbytes", "deepspeed", "flash-attn", "xformers", "triton",
    "unsloth", "unsloth-zoo", "lightning", "pytorch-lightning", "torchvision", "torchaudio", "torchao", "numpy",
    "liger-kernel", "mamba-ssm", "causal-conv1d", "apex", "diffusers", "sentence-transformers", "datasets", "tokenizers",
    "safetensors",
))  # fmt: skip


def differences(before: Circumstances, now: Circumstances) -> Iterator[Change]:
    """Everything that differs, in no order of suspicion; a part that was not looked at in both runs is left out."""
    if before.python and now.python and before.python != now.python:
        yield Change(kind=PYTHON, name="python", before=before.python, now=now.python)
    parts = (
        (PACKAGE, before.packages, now.packages),
        (MACHINE, before.machine, now.machine),
        (FILE, before.files, now.files),
    )
    for kind, old, new in parts:
        if old is not None and new is not None:
            yield from _pairs(kind, old, new)
    if before.settings is not None and now.settings is not None:
        yield from _settings(before.settings, now.settings)
    if before.arguments is not None and now.arguments is not None and before.arguments != now.arguments:
        yield from _pairs(ARGUMENT, _options(before.arguments), _options(now.arguments))
    if before.variables is not None and now.variables is not None:
        yield from _pairs(VARIABLE, before.variables, now.variables)
    if before.commit and now.commit and before.commit != now.commit:
        yield Change(kind=COMMIT, name="git commit", before=before.commit, now=now.commit)


def rank_changes(
    changes: Sequence[Change], findings: Sequence[Finding], causes: Sequence[Cause], incident: Incident
) -> tuple[Change, ...]:
    """The changes with what makes each suspicious, most suspicious first.

    Args:
        changes: what differs.
        findings: of the failure, ranked.
        causes: theirs, in the same order.
        incident: the failure.
    """
    ranked = []
    for number, change in enumerate(changes):
        rank, why = _suspicion(change, findings, causes, incident)
        ranked.append((rank, number, change, why))
    ranked.sort(key=lambda one: (one[0], one[1]))
    return tuple(
        change
        if why is None
        else Change(kind=change.kind, name=change.name, before=change.before, now=change.now, why=why)
        for _, _, change, why in ranked
    )


def _suspicion(
    change: Change, findings: Sequence[Finding], causes: Sequence[Cause], incident: Incident
) -> tuple[tuple[int, int], str | None]:
    """How suspicious a change is (less is more), and why in words."""
    if change.kind in (PACKAGE, PYTHON):
        for place, cause in enumerate(causes):
            specifier = _named_by(cause, change)
            if specifier is not None:
                is_new = _applies(change.now, specifier) and not _applies(change.before, specifier)
                why = f"{cause.id} occurs with {change.name} {specifier}"
                return (_NAMED, 2 * place + (not is_new)), why
    if change.kind in (FILE, SETTING):
        file = change.name.partition(": ")[0]
        if file in {culprit.file for finding in findings for culprit in finding.culprits}:
            return (_GUILTY_FILE, 0), "it holds the line that failed"
        if _is_in_traceback(file, incident):
            return (_GUILTY_FILE, 1), "it is in the traceback"
    if change.kind == PACKAGE:
        if change.name in _libraries(incident):
            return (_IN_TRACEBACK, 0), "it is in the traceback"
        if change.name in NEAR_TORCH:
            return (_NEAR_TORCH, change.name != "torch"), None
    return (_BY_KIND[change.kind], 0), None


def _named_by(cause: Cause, change: Change) -> str | None:
    """The releases of a changed library that a cause occurs with: those that it applies to, or that speak for it and are here."""
    if change.name in cause.applies:
        return cause.applies[change.name]
    for rule in cause.evidence:
        version = rule.conditions.get("version")
        speaks = rule.reads == "environment" and rule.weight > 0 and rule.conditions.get("package") == change.name
        if speaks and isinstance(version, str) and _applies(change.now, version):
            return version
    return None


def _applies(version: str | None, specifier: str) -> bool:
    return version is not None and is_version_in(version, specifier)


def _libraries(incident: Incident) -> frozenset[str]:
    """The libraries whose code the traceback goes through, as package indexes write their names."""
    names = {frame.library for record in incident.exceptions for frame in record.frames if frame.library}
    return frozenset(name.lower().replace("_", "-") for name in names)


def _is_in_traceback(file: str, incident: Incident) -> bool:
    frames = [frame for record in incident.exceptions for frame in record.frames if frame.library is None]
    return any(frame.file == file or frame.file.endswith("/" + file) for frame in frames)


def _pairs(kind: str, old: Pairs, new: Pairs) -> Iterator[Change]:
    before, now = dict(old), dict(new)
    for name in dict.fromkeys((*now, *before)):
        if before.get(name) != now.get(name):
            yield Change(kind=kind, name=name, before=before.get(name), now=now.get(name))


def _settings(old: Pairs, new: Pairs) -> Iterator[Change]:
    """The settings that differ; a file that only one of the runs read is one change."""
    before, now = ({name.partition(": ")[0] for name, _ in pairs} for pairs in (old, new))
    for file in sorted(before ^ now):
        yield Change(
            kind=FILE, name=file, before="read" if file in before else None, now="read" if file in now else None
        )
    both = before & now
    shared = (tuple(pair for pair in pairs if pair[0].partition(": ")[0] in both) for pairs in (old, new))
    yield from _pairs(SETTING, *shared)


def _options(words: Sequence[str]) -> Pairs:
    """The words of a command line as options with their values, and the other words under their number.

    `--lr 1e-3`, `--lr=1e-3` and Hydra's `lr=1e-3` are one thing each; a word that begins with no dash after a flag is its value.
    """
    found: dict[str, str] = {}
    name, number = "", 0
    for word in words:
        key, sign, value = word.partition("=")
        if word.startswith("-") and not _is_number(word):
            name = key
            _add(found, key, value if sign else "")
        elif sign and key.replace(".", "").replace("_", "").replace("+", "").isalnum():
            _add(found, key, value)
        elif name:
            _add(found, name, word)
        else:
            number += 1
            found[f"argument {number}"] = word
    return tuple(found.items())


def _add(found: dict[str, str], name: str, value: str) -> None:
    found[name] = f"{found[name]} {value}".strip() if name in found else value


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
