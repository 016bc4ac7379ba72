"""Which fix comes first depends on the environment; one that cannot be taken is not shown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from explainer.match.surroundings import Surroundings, is_version_in
from explainer.match.treatment import choose_fixes
from explainer.model.environment import Environment, Gpu, Package
from explainer.model.incident import Incident
from explainer.model.rule import Cause, FixRule


def fix(name: str, when: dict | None = None) -> FixRule:
    return FixRule(id=name, title=name, kind="advice", applicability="display", because="", when=when)


CAUSE = Cause(
    id="a/b", title="t", summary="s", kind="failure", status="stable", since="0", prior={}, applies={},
    fixes=(fix("always"), fix("bf16", {"gpu_has": "bf16"}), fix("fp32", {"gpu_lacks": "bf16"}), fix("upgrade", {"transformers": "<5"})),
)  # fmt: skip
A100 = Gpu(name="A100", capability="8.0", bf16=True, source="NVML")
T4 = Gpu(name="T4", capability="7.5", bf16=False, source="NVML")


@pytest.mark.parametrize(
    ("environment", "order"),
    [
        (None, ["always", "bf16", "fp32", "upgrade"]),
        (Environment(gpus=(A100,)), ["bf16", "always", "upgrade"]),
        (Environment(gpus=(T4,)), ["fp32", "always", "upgrade"]),
        (Environment(gpus=(A100, T4)), ["fp32", "always", "upgrade"]),
        (
            Environment(packages=(Package(name="transformers", version="4.46.1", source="x"),)),
            ["upgrade", "always", "bf16", "fp32"],
        ),
        (Environment(packages=(Package(name="transformers", version="5.1", source="x"),)), ["always", "bf16", "fp32"]),
    ],
    ids=["nothing known", "has it", "has it not", "one of two has it not", "old release", "cured release"],
)
def test_order(environment: Environment | None, order: list[str]) -> None:
    """What the environment calls for first, what it rules out not at all."""
    assert [one.id for one in choose_fixes(CAUSE, Surroundings(Incident(), environment))] == order


def test_an_open_condition_is_stated() -> None:
    """Where the condition is not known, the fix says it."""
    titles = [one.title for one in choose_fixes(CAUSE, Surroundings(Incident(), None))]
    assert titles[1:] == [
        "bf16 (where the GPU has bf16)",
        "fp32 (where the GPU has no bf16)",
        "upgrade (where transformers is <5)",
    ]


@pytest.mark.parametrize(
    ("version", "specifier", "is_in"),
    [("2.4.0+cu121", ">=2.4", True), ("2.4.0a0+git12", ">=2.4", True), ("4.46.1", "<5", True), ("5.0.0.dev0", "<5", False),
     ("odd", "<5", False), ("2.1", "nonsense", False)],
)  # fmt: skip
def test_versions(version: str, specifier: str, is_in: bool) -> None:
    """Local builds and pre-releases count as their release; what is no version meets nothing."""
    assert is_version_in(version, specifier) is is_in


def test_a_narrow_edit_is_read_last() -> None:
    """Its place among the rules is that of its belief; as advice it comes behind what always holds."""
    narrow = replace(fix("narrow"), options={"narrow": True})
    chosen = choose_fixes(replace(CAUSE, fixes=(narrow, fix("first"), fix("second"))), Surroundings(Incident(), None))
    assert [one.id for one in chosen] == ["first", "second", "narrow"]
