"""What is known of the interpreter, its packages and its machine, each fact with the place where it was read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """An installed distribution: its normalised name, its version, and where the version was read."""

    name: str
    version: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One accelerator. `memory_mib` is total memory in MiB, `capability` the CUDA compute capability ("8.0").

    The abilities are None where the capability is not known; a ROCm device has no compute capability.
    """

    name: str
    memory_mib: int | None = None
    capability: str | None = None
    bf16: bool | None = None
    fp16: bool | None = None
    tf32: bool | None = None
    fp8: bool | None = None
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentFact:
    """A named value of the machine or the process: `driver`, `cuda_build`, a launcher's variable."""

    name: str
    value: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """Something that was looked for and not found, and why."""

    what: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """An interpreter and its machine as probed, or as read from a file that `gradfix probe` wrote elsewhere."""

    schema: str = "gradfix.environment/1"
    python: EnvironmentFact | None = None
    packages: tuple[Package, ...] = ()
    gpus: tuple[Gpu, ...] | None = None
    facts: tuple[EnvironmentFact, ...] = ()
    unread: tuple[Unread, ...] = ()

    def package(self, name: str) -> Package | None:
        """The distribution of that normalised name, or None where it is not installed or not known."""
        return next((package for package in self.packages if package.name == name), None)
