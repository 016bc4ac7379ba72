"""A gather that copies the values of all ranks becomes the one that hands their gradients back."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

from explainer.fix.splice import splice
from explainer.model.incident import Incident
from explainer.model.trace import CUT, STARVING_CUT, TracedLine
from tests.fix.rewriting import best, diff_lines, line_of, write

HEAD = "import torch\nimport torch.distributed as dist\n\n\ndef gather(z, group=None):\n"
IMPORT = "+import torch.distributed.nn.functional"
GATHER = "torch.distributed.nn.functional.all_gather"
ROOM = "    parts = [torch.zeros_like(z) for _ in range(dist.get_world_size())]\n"
WRONG = {
    "a list": (
        HEAD + ROOM + "    dist.all_gather(parts, z)\n    return torch.cat(parts)\n",
        [IMPORT, "-" + ROOM[:-1], "-    dist.all_gather(parts, z)", f"+    parts = {GATHER}(z)"],
    ),
    "a group": (
        HEAD + ROOM + "    dist.all_gather(tensor_list=parts, tensor=z, group=group)\n    return torch.cat(parts)\n",
        [
            IMPORT,
            "-" + ROOM[:-1],
            "-    dist.all_gather(tensor_list=parts, tensor=z, group=group)",
            f"+    parts = {GATHER}(z, group=group)",
        ],
    ),
    "one tensor": (
        HEAD + "    rows = z.new_empty(8, 3)\n    dist.all_gather_into_tensor(rows, z)\n    return rows\n",
        [
            IMPORT,
            "-    rows = z.new_empty(8, 3)",
            "-    dist.all_gather_into_tensor(rows, z)",
            f"+    rows = torch.cat({GATHER}(z))",
        ],
    ),
    "a helper of that name": (
        HEAD.replace("gather(z", "all_gather(z")
        + ROOM
        + "    dist.all_gather(parts, z)\n    return torch.cat(parts)\n",
        [IMPORT, "-" + ROOM[:-1], "-    dist.all_gather(parts, z)", f"+    parts = {GATHER}(z)"],
    ),
    "room that is read": (
        HEAD + ROOM + "    print(len(parts))\n    dist.all_gather(parts, z)\n    return torch.cat(parts)\n",
        [IMPORT, "-    dist.all_gather(parts, z)", f"+    parts = {GATHER}(z)"],
    ),
}
RIGHT = {
    "room of another": HEAD + "    dist.all_gather(z.parts, z.all)\n    return z.parts\n",
    "a handle": HEAD
    + ROOM
    + "    work = dist.all_gather(parts, z, async_op=True)\n    work.wait()\n    return parts\n",
    "another collective": HEAD + "    parts = z\n    dist.all_reduce(parts, z)\n    return parts\n",
}
RANKS = """import os
import sys
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
{gather}

def work(rank, world, store):
    dist.init_process_group("gloo", init_method=f"file://{{store}}", rank=rank, world_size=world)
    torch.manual_seed(0)
    weight = torch.nn.Parameter(torch.randn(3, 2))
    x = torch.randn(4 * world, 3)
    mine = x[4 * rank : 4 * rank + 4]
    z = gather(mine @ weight)
    (z @ z.t()).logsumexp(1).mean().backward()
    dist.all_reduce(weight.grad)
    whole = weight.detach().clone().requires_grad_()
    z = x @ whole
    (z @ z.t()).logsumexp(1).mean().backward()
    torch.testing.assert_close(weight.grad / world, whole.grad)


if __name__ == "__main__":
    mp.spawn(work, (2, sys.argv[1]), nprocs=2)
"""


def proposed(folder: pathlib.Path, source: str, kind: str = CUT) -> tuple[str, str | None]:
    """The program with what is proposed for a cut that was traced at its collective, and whether it needs leave."""
    line = TracedLine(kind=kind, operation="all_gather", file="train.py", line=line_of(source, "dist.all_"))
    found = best("gather_with_graph", write(folder, {"train.py": source}), incident=Incident(traced=(line,)))
    after = splice(source, found.edits) if found is not None else source
    assert after is not None
    return after, found.culprit.code if found is not None else None


@pytest.mark.parametrize("kind", [CUT, STARVING_CUT])
@pytest.mark.parametrize(("source", "wanted"), WRONG.values(), ids=WRONG)
def test_the_gather_keeps_the_graph(source: str, wanted: list[str], kind: str, tmp_path: pathlib.Path) -> None:
    """The room for the parts goes with it where nothing else reads it; the guilty line is that of the collective."""
    after, code = proposed(tmp_path, source, kind)
    assert diff_lines(source, after) == wanted
    assert code is not None
    assert "dist.all_gather" in code


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_other_calls_stay(source: str, tmp_path: pathlib.Path) -> None:
    """What cannot be written as a value, and other collectives."""
    assert proposed(tmp_path, source) == (source, None)


@pytest.mark.slow
@pytest.mark.torch
def test_ranks_train_as_one(tmp_path: pathlib.Path) -> None:
    """The mean over two ranks is the gradient of the loss over the whole batch."""
    pytest.importorskip("torch")
    source, _ = WRONG["a list"]
    after, _ = proposed(tmp_path, source)
    program = tmp_path / "ranks.py"
    program.write_text(RANKS.format(gather=after))
    command = [sys.executable, str(program), str(tmp_path / "store")]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    run = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=120)
    assert run.returncode == 0, run.stderr
