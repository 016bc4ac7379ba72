"""A collective in one rank's branch leaves it; what all ranks come to, and what needs more than values, stays."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

TOP = "import torch\nimport torch.distributed as dist\n"
WRONG = {
    "a sum for one rank": (
        "def weights(counts):\n    out = torch.empty(4)\n    if dist.get_rank() == 0:\n        dist.all_reduce(counts)\n        out = counts.sum() / counts\n    dist.broadcast(out, src=0)\n    return out\n",
        ["+    dist.all_reduce(counts)", "-        dist.all_reduce(counts)"],
    ),
    "with what it reads": (
        "def log(loss, rank):\n    if rank == 0:\n        print('epoch')\n        total = loss.detach().clone()\n        dist.all_reduce(total)\n        print(total)\n",
        ["+    total = loss.detach().clone()", "+    dist.all_reduce(total)", "-        total = loss.detach().clone()", "-        dist.all_reduce(total)"],
    ),
    "behind those that return": (
        "def log(total, rank):\n    if rank != 0:\n        return\n    dist.all_reduce(total)\n    print(total)\n",
        ["+    dist.all_reduce(total)", "-    dist.all_reduce(total)"],
    ),
    "a barrier for one rank": (
        "def save(model, self):\n    if self.is_main_process:\n        torch.save(model, 'm.pt')\n        dist.barrier()\n",
        ["-        dist.barrier()", "+    dist.barrier()"],
    ),
    "a barrier of accelerate alone in its branch": (
        "def save(accelerator):\n    if accelerator.is_main_process:\n        accelerator.wait_for_everyone()\n    print('saved')\n",
        ["-    if accelerator.is_main_process:", "-        accelerator.wait_for_everyone()", "+    accelerator.wait_for_everyone()"],
    ),
    "a barrier behind those that return": (
        "def save(model):\n    if not is_main():\n        return\n    torch.save(model, 'm.pt')\n    dist.barrier()\n",
        ["+        dist.barrier()"],
    ),
}  # fmt: skip
RIGHT = {
    "both branches": "def f(x, rank):\n    if rank == 0:\n        dist.broadcast(x, src=0)\n    else:\n        y = torch.empty(4)\n        dist.broadcast(y, src=0)\n",
    "a branch that others stand before": "def f(x, rank):\n    if x is None:\n        return\n    elif rank == 0:\n        dist.all_reduce(x)\n        print(x)\n",
    "all ranks": "def f(x, rank):\n    dist.all_reduce(x)\n    if rank == 0:\n        print(x)\n",
    "a condition that all ranks share": "def f(x, step):\n    if step == 0:\n        dist.all_reduce(x)\n",
    "what a loop makes": "def f(batches, rank):\n    if rank == 0:\n        for total in batches:\n            print(total)\n        dist.all_reduce(total)\n",
}  # fmt: skip


@pytest.mark.parametrize(("body", "changes"), WRONG.values(), ids=WRONG)
def test_all_ranks_come_to_it(body: str, changes: list[str], tmp_path: pathlib.Path) -> None:
    """A second time nothing is left to do."""
    after = rewritten(tmp_path, "collective_on_every_rank", TOP + body, "(")
    assert diff_lines(TOP + body, after) == changes
    compile(after, "train.py", "exec")
    assert rewritten(tmp_path, "collective_on_every_rank", after, "(") == after


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(body: str, tmp_path: pathlib.Path) -> None:
    assert rewritten(tmp_path, "collective_on_every_rank", TOP + body, "(") == TOP + body
