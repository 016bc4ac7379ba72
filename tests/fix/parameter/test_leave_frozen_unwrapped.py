"""A teacher that does not train is not wrapped beside its student."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = "import torch\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n"
GIVEN = {
    "message": "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient."
}
TWO = HEAD + "student = DDP(student)\nteacher = DDP(teacher)\n"
HELPER = HEAD + "def wrap(m):\n    return DDP(m) if many else m\n\nstudent, teacher = wrap(a), wrap(b)\n"
ALONE = HEAD + "net = DDP(net)\n"
ONCE = HEAD + "def wrap(m):\n    return DDP(m)\n\nnet = wrap(a)\n"


@pytest.mark.parametrize(
    ("source", "at", "wanted"),
    [
        (
            TWO,
            "DDP(teacher)",
            "teacher = DDP(teacher) if any(p.requires_grad for p in teacher.parameters()) else teacher",
        ),
        (HELPER, "DDP(m)", "return (DDP(m) if any(p.requires_grad for p in m.parameters()) else m) if many else m"),
    ],
    ids=["each by itself", "by a helper"],
)
def test_what_is_frozen_stays_bare(source: str, at: str, wanted: str, tmp_path) -> None:
    """The one that trains is wrapped as before."""
    after = rewritten(tmp_path, "leave_frozen_unwrapped", source, at, **GIVEN)
    assert changed_lines(source, after) == [wanted]


@pytest.mark.parametrize(
    ("wrapped", "wanted"),
    [
        ("teacher = DDP(teacher)", ["bare = teacher"]),
        ("wrapped = DDP(teacher)", ["wrapped = teacher", "bare = wrapped"]),
    ],
    ids=["under its name", "under another"],
)
def test_what_the_wrapper_held_is_the_network(wrapped: str, wanted: list[str], tmp_path) -> None:
    """`teacher.module` of a bare network is nothing."""
    bare = wrapped.partition(" ")[0]
    source = f"{HEAD}student = DDP(student)\n{wrapped}\nbare = {bare}.module\n"
    after = rewritten(tmp_path, "leave_frozen_unwrapped", source, "DDP(teacher)", **GIVEN)
    assert changed_lines(source, after) == wanted


@pytest.mark.parametrize(("source", "at"), [(ALONE, "DDP(net)"), (ONCE, "DDP(m)")], ids=["alone", "one call"])
def test_one_network_is_frozen_by_mistake(source: str, at: str, tmp_path) -> None:
    """Nothing would train: the line stays, and another cause is looked for."""
    assert rewritten(tmp_path, "leave_frozen_unwrapped", source, at, **GIVEN) == source
