"""Another function of the same module stands for one."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = """from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, default_hooks as hooks
"""
RIGHT = {
    "another function": (
        HEAD
        + """model.register_comm_hook(None, default_hooks.bf16_compress_hook)
""",
        "",
    ),
    "a name of one's own": (
        HEAD
        + """class own:
    fp16_compress_hook = None


model.register_comm_hook(None, own.fp16_compress_hook)
""",
        "",
    ),
}
WRONG = {
    "through its module": (
        HEAD
        + """model.register_comm_hook(None, default_hooks.fp16_compress_hook)
""",
        "",
        ["model.register_comm_hook(None, default_hooks.allreduce_hook)"],
    ),
    "through an alias": (
        HEAD
        + """hook = hooks.fp16_compress_hook
""",
        "",
        ["hook = hooks.allreduce_hook"],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str) -> None:
    """Other functions are left alone."""
    assert (
        rewritten(
            tmp_path,
            "replace_name",
            source,
            at or None,
            options={
                "old": "torch.distributed.algorithms.ddp_comm_hooks.default_hooks.fp16_compress_hook",
                "new": "allreduce_hook",
            },
        )
        == source
    )


@pytest.mark.parametrize(("source", "at", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, wanted: list[str]) -> None:
    """The function is another; a second time nothing is left to do."""
    after = rewritten(
        tmp_path,
        "replace_name",
        source,
        at or None,
        options={
            "old": "torch.distributed.algorithms.ddp_comm_hooks.default_hooks.fp16_compress_hook",
            "new": "allreduce_hook",
        },
    )
    assert changed_lines(source, after) == wanted
    again = at if at and at in after else None
    assert (
        rewritten(
            tmp_path,
            "replace_name",
            after,
            again,
            options={
                "old": "torch.distributed.algorithms.ddp_comm_hooks.default_hooks.fp16_compress_hook",
                "new": "allreduce_hook",
            },
        )
        == after
    )
