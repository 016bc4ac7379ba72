"""`gradfix probe`: the environment as text, or as the JSON that `gradfix explain --env` reads elsewhere."""

from __future__ import annotations

import sys

from explainer.errors import UsageError
from explainer.model.environment import Environment, Gpu


def run_probe(python: str | None, name: str) -> int:
    """Probe and print."""
    from explainer.probe.environment import probe_environment

    if name not in ("text", "json"):
        raise UsageError(f"--format {name!r}: it is text or json")
    environment = probe_environment(python)
    if name == "json":
        from explainer.render.json import render_json

        sys.stdout.write(render_json(environment))
    else:
        sys.stdout.write(render_environment(environment))
    return 0


def render_environment(environment: Environment) -> str:
    """An environment as aligned lines: name, value, and where it was read."""
    from explainer.render.visible import visible

    rows: list[tuple[str, str, str]] = []
    if environment.python is not None:
        rows.append(("python", environment.python.value, environment.python.source))
    rows.extend((package.name, package.version, package.source) for package in environment.packages)
    rows.extend(("gpu", _describe(gpu), gpu.source) for gpu in environment.gpus or ())
    rows.extend((fact.name, fact.value, fact.source) for fact in environment.facts)
    rows.extend((unread.what, "not read", unread.why) for unread in environment.unread)
    first = max((len(name) for name, _, _ in rows), default=0)
    second = min(max((len(value) for _, value, _ in rows), default=0), 60)
    return "".join(f"{name:<{first}}  {visible(value):<{second}}  {visible(source)}\n" for name, value, source in rows)


def _describe(gpu: Gpu) -> str:
    parts = [gpu.name]
    if gpu.memory_mib is not None:
        parts.append(f"{gpu.memory_mib / 1024:.0f} GiB")
    if gpu.capability is not None:
        parts.append(f"compute {gpu.capability}")
    abilities = {"bf16": gpu.bf16, "fp16": gpu.fp16, "tf32": gpu.tf32, "fp8": gpu.fp8}
    parts.extend(name if has else f"no {name}" for name, has in abilities.items() if has is not None)
    return ", ".join(parts)
