"""What `gradfix run` costs a rank while nothing fails: per collective, and per training step of a small model over two gloo ranks.

    python benchmarks/ranks.py

The same process calls torch's own function and the wrapped one in turn, so that what else the machine does hits both alike.
"""

from __future__ import annotations

import importlib.util
import multiprocessing
import os
import statistics
import sys
import tempfile
import time

LIVE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "explainer", "live")
CALLS, ROUNDS = 2_000, 15


def load_live():
    """`live/` as a watched program loads it."""
    spec = importlib.util.spec_from_file_location(
        "_gradfix_live", os.path.join(LIVE, "__init__.py"), submodule_search_locations=[LIVE]
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules["_gradfix_live"] = module
    spec.loader.exec_module(module)
    return importlib.import_module("_gradfix_live.collective")


def timed(function, *arguments, calls: int) -> float:
    """Seconds a call."""
    began = time.perf_counter()
    for _ in range(calls):
        function(*arguments)
    return (time.perf_counter() - began) / calls


def rank(number: int, store: str, results) -> None:
    """One rank: a model's step with the plain functions and with the wrapped ones, alternately."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=store, rank=number, world_size=2)
    inner = dist.distributed_c10d
    plain = inner.all_reduce
    collectives = load_live().Collectives()
    wrapped = collectives._noted(plain, "all_reduce")
    model = torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(4)))
    batch = torch.ones(64, 256)

    def step(all_reduce) -> None:
        model(batch).square().mean().backward()
        for one in model.parameters():
            all_reduce(one.grad)
            one.grad = None

    for function in (plain, wrapped):
        timed(step, function, calls=20)
    pairs = [(timed(step, plain, calls=40), timed(step, wrapped, calls=40)) for _ in range(ROUNDS)]
    noop = collectives._noted(lambda tensor: None, "noop")
    tensor = torch.ones(8)
    cost = statistics.median(
        timed(noop, tensor, calls=CALLS) - timed(lambda one: None, tensor, calls=CALLS) for _ in range(ROUNDS)
    )
    if number == 0:
        results.put((cost, statistics.median(one for one, _ in pairs), statistics.median(b / a for a, b in pairs)))


def main() -> None:
    """Print the figures."""
    fork = multiprocessing.get_context("spawn")
    results = fork.Queue()
    store = f"file://{tempfile.mkdtemp()}/store"
    ranks = [fork.Process(target=rank, args=(number, store, results)) for number in range(2)]
    for one in ranks:
        one.start()
    cost, seconds, ratio = results.get()
    for one in ranks:
        one.join()
    print(f"a collective costs {cost * 1e6:.2f} us more")
    print(
        f"a step of 8 all_reduce takes {seconds * 1e3:.2f} ms plain; wrapped {ratio:.3f} times (median of {ROUNDS} pairs)"
    )
    print(f"by the cost of a collective alone: {1 + 8 * cost / seconds:.4f} times")


if __name__ == "__main__":
    main()
