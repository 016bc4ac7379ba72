"""Generated logs: the printed samples of the rule base, dirty as real ones are, and failures that no rule knows."""

from __future__ import annotations

import functools
import gzip
import pathlib
import random
from collections.abc import Iterator

from tests.conftest import ROOT

GPUS = ("NVIDIA A100-SXM4-80GB", "NVIDIA H100", "Tesla T4", "NVIDIA L4")
RELEASES = ("2.4.1", "2.6.0", "2.8.0", "2.13.0")
UNKNOWN = (
    "FluxCapacitorError: flux of stage {n} fell to {k}.{n} below the minimum of 0x{n:08x} in shard '{k}-{n}'",
    "ShardLedgerError: ledger {n} of tenant 'team-{k}' is sealed; replay from /mnt/ledger/{k}/{n}.bin",
    "QuotaOracleError: oracle answered {n} after {k}.5 s, not granted",
)


@functools.cache
def samples() -> tuple[tuple[str, str], ...]:
    """Every printed sample of the rule base: its cause's folder, and what was printed."""
    paths = sorted((ROOT / "knowledge").glob("*/*/*/printed/*.txt"))
    return tuple(
        ("/".join(path.parts[-5:-3]), path.read_text(encoding="utf-8", errors="replace").partition("\n")[2])
        for path in paths
        if path.parts[-5] != "myths"
    )


def make_log(number: int) -> str:
    """The log of a run that failed, the same for the same number."""
    rng = random.Random(number)
    if number % 20 == 7:
        failure = unknown_failure(rng)
    else:
        failure = samples()[rng.randrange(len(samples()))][1]
    minute = rng.randrange(60 * 24 * 30)
    lines = [*_banner(rng, minute), *_training(rng, minute)]
    return _dirty(rng, lines, failure.splitlines(), minute)


def unknown_failure(rng: random.Random) -> str:
    """A traceback whose message no rule knows."""
    n, k = rng.randrange(100, 10_000), rng.randrange(2, 9)
    return (
        "Traceback (most recent call last):\n"
        f'  File "/home/user/project/fleet_{k}.py", line {n}, in main\n    stage.run(batch)\n'
        f"{rng.choice(UNKNOWN).format(n=n, k=k)}\n"
    )


def _stamp(minute: int) -> str:
    return f"2026-04-{1 + minute // 1440:02d} {minute // 60 % 24:02d}:{minute % 60:02d}:11"


def _banner(rng: random.Random, minute: int) -> Iterator[str]:
    yield f"{_stamp(minute)},001 INFO trainer: starting on {rng.choice(GPUS)}"
    yield f"torch=={rng.choice(RELEASES)} transformers==5.{rng.randrange(9)}.0"
    yield "wandb: Currently logged in as: team. Use `wandb login --relogin` to force relogin"
    yield f"trainable params: {rng.randrange(10**6, 10**9):,} || all params: 7,000,000,000 || trainable%: 0.06"


def _training(rng: random.Random, minute: int) -> Iterator[str]:
    for step in range(rng.randrange(3, 40)):
        loss = f"{2.5 - step / 100 + rng.random() / 10:.4f}"
        kind = rng.randrange(4)
        if kind == 0:
            yield f"{{'loss': {loss}, 'grad_norm': {rng.random():.4f}, 'learning_rate': 2e-05, 'epoch': 0.{step:02d}}}"
        elif kind == 1:
            yield f"{_stamp(minute)},{step:03d} INFO trainer: step {step} loss {loss} tokens/s {rng.randrange(9000)}"
        elif kind == 2:
            bars = (
                f"{done}%|{'#' * (done // 10):<10}| {done}/100 [00:{done:02d}<00:10, 9.9it/s]" for done in (10, 50, 99)
            )
            yield "\r".join(bars)
        else:
            yield f"\x1b[32mINFO\x1b[0m step {step} \x1b[1mloss\x1b[0m {loss}"


def _dirty(rng: random.Random, before: list[str], failure: list[str], minute: int) -> str:
    """The lines as one of several launchers, loggers and shells would have left them."""
    kind = rng.randrange(5)
    after = ["wandb: Synced 5 W&B file(s), 0 media file(s)"] if rng.random() < 0.3 else []
    if kind == 1:
        failure = [f"[rank{number % 8}]: {line}" for number in [rng.randrange(8)] for line in failure]
    elif kind == 2:
        before = [f"{_stamp(minute)} {line}" for line in before]
        failure = [f"{_stamp(minute)} {line}" for line in failure]
    elif kind == 3:
        failure = [f"\x1b[31m{line}\x1b[0m" if line and line[0] != " " else line for line in failure]
    ending = "\r\n" if kind == 4 else "\n"
    return ending.join([*before, *failure, *after, ""])


def write_logs(folder: pathlib.Path, count: int, *, first: int = 0) -> None:
    """`count` logs in folders of jobs: most plain, some gzip or zstandard."""
    for number in range(first, first + count):
        place = folder / f"job-{number // 4:05d}"
        place.mkdir(parents=True, exist_ok=True)
        data = make_log(number).encode()
        if number % 10 == 3:
            (place / f"rank{number % 4}.log.gz").write_bytes(gzip.compress(data, mtime=0))
        elif number % 10 == 6:
            import zstandard

            (place / f"rank{number % 4}.log.zst").write_bytes(zstandard.ZstdCompressor().compress(data))
        else:
            (place / f"rank{number % 4}.log").write_bytes(data)
