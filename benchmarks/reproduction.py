"""Runs every reproducer of the rule base and prints which causes are reproduced here, and what the others need.

    python benchmarks/reproduction.py [FAMILY/CAUSE ...]

Needs torch; transformers, peft, accelerate, trl, lightning, bitsandbytes and a GPU where there are any.
"""

from __future__ import annotations

import pathlib
import platform
import sys
import threading
import time
from collections import defaultdict

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from explainer.catalog.bundle import load_catalog
from explainer.ingest.text import read_text
from explainer.match.rank import rank_causes
from tests.knowledge.reproducer import KNOWLEDGE, Run, Runner, Shape, shapes

WORKERS = 2


def run_all(chosen: list[Shape]) -> dict[Shape, tuple[Run, Run | None]]:
    """Each shape's broken and fixed program, in forks of two processes."""
    done: dict[Shape, tuple[Run, Run | None]] = {}
    queue = list(reversed(chosen))

    def work() -> None:
        runner = Runner()
        while queue:
            shape = queue.pop()
            broken = runner.run(shape.folder / "broken.py")
            fixed = shape.folder / "fixed.py"
            done[shape] = broken, runner.run(fixed) if fixed.exists() else None
        runner.close()

    workers = [threading.Thread(target=work) for _ in range(WORKERS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return done


def describe(shape: Shape, broken: Run, fixed: Run | None, catalog) -> str:
    """One row: what broken.py was explained as, and whether fixed.py trains."""
    (incident, *_) = read_text(broken.output)
    findings = rank_causes(incident, None, catalog)
    first = f"{findings[0].cause} ({findings[0].confidence})" if findings else "nothing printed"
    told = "itself" + first[len(shape.cause) :] if first.startswith(shape.cause + " ") else first
    if fixed is None:
        return f"| {shape.name} | {told} | - |"
    trained = sum(one["given"] and one["finite"] for one in fixed.gradients or ())
    health = f"{trained} of {len(fixed.gradients)} parameters with finite gradients" if fixed.gradients else "ends well"
    return f"| {shape.name} | {told} | {health if fixed.status == 0 else f'exit {fixed.status}'} |"


def main() -> None:
    import torch

    names = sys.argv[1:]
    all_shapes = [one for one in shapes() if not names or one.cause in names]
    here = [one for one in all_shapes if not one.missing()]
    start = time.perf_counter()
    done = run_all(here)
    seconds = time.perf_counter() - start
    causes = {str(path.parent.relative_to(KNOWLEDGE)) for path in KNOWLEDGE.glob("*/*/cause.toml")}
    reproduced = {one.cause for one in here}
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"
    print(f"CPython {platform.python_version()}, torch {torch.__version__}, {gpu}.\n")
    print(
        f"{len(here)} of {len(all_shapes)} shapes ran, {len(reproduced)} of {len(causes)} causes, in {seconds:.0f} s.\n"
    )
    print("| shape | explained as | fixed program |\n| --- | --- | --- |")
    catalog = load_catalog()
    for shape in here:
        print(describe(shape, *done[shape], catalog))
    needing = defaultdict(list)
    for shape in all_shapes:
        if shape.missing():
            needing[", ".join(shape.missing())].append(shape.name)
    print("\n| not run here, needs | shapes |\n| --- | --- |")
    for need, waiting in sorted(needing.items()):
        print(f"| {need} | {', '.join(waiting)} |")


if __name__ == "__main__":
    main()
