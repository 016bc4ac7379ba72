"""The environment of an incident: what was probed, and, where it was not, what the log itself states."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

from explainer.catalog.accelerator import describe_gpu
from explainer.model.environment import Environment, Gpu
from explainer.model.incident import Fact, Incident


class Known(NamedTuple):
    """A value and where it was read, in words."""

    value: str
    source: str


class Surroundings:
    """Answers of versions and GPU abilities. What a log says of its own run outranks what is installed here."""

    def __init__(self, incident: Incident, environment: Environment | None) -> None:
        self._facts = incident.facts
        self._environment = environment

    def version(self, package: str) -> Known | None:
        """The version of a package, from the log or from the probe."""
        stated = self._fact(f"version:{package}")
        if stated is not None:
            return Known(stated.value, "the log")
        if self._environment is None:
            return None
        if package == "python" and self._environment.python is not None:
            return Known(self._environment.python.value, self._environment.python.source)
        installed = self._environment.package(package)
        return Known(installed.version, installed.source) if installed else None

    def ability(self, name: str) -> tuple[bool, str] | None:
        """Whether the GPUs have "bf16", "fp16", "tf32" or "fp8" in hardware, and what says so; None where unknown."""
        if name == "bf16":
            banner = self._fact("bf16")
            if banner is not None:
                return banner.value == "TRUE", f"the log says Bfloat16 = {banner.value}"
        known = [(gpu, value) for gpu in self.gpus if (value := getattr(gpu, name)) is not None]
        if not known:
            return None
        gpu, _ = known[0]
        named = f"{gpu.name}, compute capability {gpu.capability}" if gpu.capability else gpu.name
        return all(value for _, value in known), f"{named} ({gpu.source})"

    @cached_property
    def gpus(self) -> tuple[Gpu, ...]:
        """The GPUs that the log names, else those that were probed."""
        named = dict.fromkeys(fact.value for fact in self._facts if fact.name == "gpu")
        if named:
            return tuple(describe_gpu(name, "the log") for name in named)
        return (self._environment.gpus or ()) if self._environment else ()

    def satisfies(self, package: str, specifier: str) -> tuple[bool, Known] | None:
        """Whether the version of a package meets a specifier (">=2.4,<3"); None where the version is not known."""
        known = self.version(package)
        return (is_version_in(known.value, specifier), known) if known else None

    def can(self, name: str) -> bool | None:
        """Whether the GPUs have an ability; None where that is not known."""
        answer = self.ability(name)
        return answer[0] if answer else None

    def release(self, package: str) -> str | None:
        """The version of a package as text; None where it is not known."""
        known = self.version(package)
        return known.value if known else None

    def _fact(self, name: str) -> Fact | None:
        return next((fact for fact in reversed(self._facts) if fact.name == name), None)


def is_version_in(version: str, specifier: str) -> bool:
    """Whether a version meets a PEP 440 specifier; pre-releases and local builds count, an odd version does not."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.version import InvalidVersion, Version

    try:
        parsed = Version(version)
        base = Version(parsed.base_version)
        return SpecifierSet(specifier).contains(base, prereleases=True)
    except (InvalidVersion, InvalidSpecifier):
        return False
