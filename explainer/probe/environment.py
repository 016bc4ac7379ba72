"""Puts a probe together: interpreter, packages, GPUs, launcher; on time."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping

from explainer.model.environment import Environment, EnvironmentFact, Gpu, Unread
from explainer.model.incident import Incident
from explainer.probe.gpu import Gpus, read_gpus
from explainer.probe.interpreter import find_interpreter, folders_named_by
from explainer.probe.packages import read_packages, read_torch_build

BUDGET = 0.25
_VARIABLES = (
    "RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "CUDA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES", "CUDA_LAUNCH_BLOCKING", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF",
    "TORCH_DISTRIBUTED_DEBUG", "TORCH_COMPILE_DISABLE", "TORCHDYNAMO_DISABLE", "UNSLOTH_COMPILE_DISABLE",
    "ACCELERATE_USE_FSDP", "ACCELERATE_USE_DEEPSPEED", "ACCELERATE_MIXED_PRECISION", "ACCELERATE_TORCH_DEVICE",
    "SLURM_JOB_ID", "SLURM_NTASKS", "SLURM_PROCID", "SLURM_NNODES", "OMPI_COMM_WORLD_SIZE", "NCCL_DEBUG", "NCCL_P2P_DISABLE",
)  # fmt: skip


def probe_environment(python: str | None = None, incident: Incident | None = None) -> Environment:
    """What is known of an interpreter and this machine.

    The interpreter is `python`; else the one whose site-packages the incident's frames name, where those are on this
    machine; else VIRTUAL_ENV; else this one. The GPUs are asked for in a thread that is given `BUDGET` seconds.
    """
    here, _ = folders_named_by(incident) if incident is not None else ([], [])
    answer: list[Gpus] = []
    asker = threading.Thread(target=lambda: answer.append(read_gpus(BUDGET)), daemon=True)
    asker.start()
    interpreter = find_interpreter(python, here)
    packages = read_packages(interpreter.folders)
    build = read_torch_build(interpreter.folders)
    launcher = read_launcher(os.environ)
    asker.join(BUDGET)
    gpus = answer[0] if answer else _too_slow()
    return Environment(
        python=interpreter.fact,
        packages=tuple(packages),
        gpus=_visible(gpus.gpus, os.environ.get("CUDA_VISIBLE_DEVICES")),
        facts=(*build, *gpus.facts, *launcher),
        unread=(*interpreter.unread, *_missing(packages), *gpus.unread),
    )


def is_from_elsewhere(incident: Incident) -> bool:
    """Whether a log comes from another machine: its frames name site-packages, and none of them is here."""
    here, elsewhere = folders_named_by(incident)
    return bool(elsewhere) and not here


def read_launcher(variables: Mapping[str, str]) -> list[EnvironmentFact]:
    """The variables by which launchers and torch are steered."""
    return [
        EnvironmentFact(name=name, value=variables[name], source="environment variable")
        for name in _VARIABLES
        if name in variables
    ]


def _too_slow() -> Gpus:
    return Gpus(None, unread=(Unread(what="gpus", why=f"the driver did not answer within {BUDGET * 1000:.0f} ms"),))


def _missing(packages: list) -> tuple[Unread, ...]:  # type: ignore[type-arg]
    if any(package.name == "torch" for package in packages):
        return ()
    return (Unread(what="torch", why="it is not installed in this interpreter"),)


def _visible(gpus: tuple[Gpu, ...] | None, chosen: str | None) -> tuple[Gpu, ...] | None:
    """The GPUs that CUDA_VISIBLE_DEVICES leaves to the program, where it names them by number."""
    if gpus is None or chosen is None:
        return gpus
    numbers = [part.strip() for part in chosen.split(",") if part.strip()]
    if not all(number.lstrip("-").isdigit() for number in numbers):
        return gpus
    return tuple(gpus[int(number)] for number in numbers if 0 <= int(number) < len(gpus))
