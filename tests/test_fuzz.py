"""Whatever is fed in, gradfix answers: no exception of ours, in bounded time. 300 inputs here, 20,000 marked slow."""

from __future__ import annotations

import functools
import pathlib
import random
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from explainer.errors import UnreadableInput
from explainer.render.html import render_html
from explainer.render.json import render_json
from explainer.render.markdown import render_markdown
from explainer.render.terminal import Layout, render_terminal
from tests.conftest import ROOT

PIECES = (
    "Traceback (most recent call last):\n", '  File "a.py", line 1, in f\n', "    x += y\n", "    ^^^^^^\n", "RuntimeError: ", "\n",
    "\r", "\r\n", "\x1b[31m", "\x1b[0m", "\x1b]8;;x\x1b\\", "│ ", "❱ 3 │ ", "╭── Traceback (most recent call last) ──╮\n", "╰──╯\n",
    "  + Exception Group Traceback (most recent call last):\n", "  | ", "  +-+---------------- 1 ----------------\n", "    | ",
    "    +------------------------------------\n", "During handling of the above exception, another exception occurred:\n",
    "[rank3]: ", "0: ", "2026-05-01 12:00:00,123 ", "{'loss': nan, 'grad_norm': inf}\n", "loss 1e999 ", "\\n", "\\\\n", '"', "'",
    "---------------------------------------------------------------------------\n", "Cell In[3], line 2\n", "----> 2 x()\n",
    "E   ", ">   ", "UserWarning: ", "Error detected in XBackward. Traceback of forward call that caused the error:\n",
    "modified by an inplace operation: [torch.FloatTensor [" + "9" * 400 + "]] is at version 1; expected version 0 instead",
    "trainable params: 0 || all params: 1", "\x00", "\u202e", "日本", "{" * 50, "%s%n{0}{x!r}", "a" * 500, "(" * 200, " " * 300,
)  # fmt: skip


@functools.cache
def corpus() -> list[str]:
    """Real logs to cut and mix: the printed samples of the rule base and the examples."""
    files = [*ROOT.glob("knowledge/*/*/*/printed/*.txt"), *ROOT.glob("examples/*/*.log")]
    return [path.read_text(errors="replace")[:6000] for path in sorted(files)] or ["".join(PIECES)]


def mutate(rng: random.Random) -> str:
    """A log that nobody has seen: real ones cut, joined, repeated, with pieces and noise thrown in."""
    text = rng.choice(corpus())
    for _ in range(rng.randrange(1, 9)):
        at, to = sorted((rng.randrange(len(text) + 1), rng.randrange(len(text) + 1)))
        kind = rng.randrange(8)
        if kind == 0:
            text = text[:at] + text[to:]
        elif kind == 1:
            text = text[:at] + rng.choice(PIECES) + text[at:]
        elif kind == 2:
            text = text[:at] + rng.choice(corpus()) + text[at:]
        elif kind == 3:
            text = text[:to] + text[at:to] * rng.randrange(1, 4) + text[to:]
        elif kind == 4:
            text = "".join(rng.choice(PIECES) for _ in range(rng.randrange(1, 60))) + text
        elif kind == 5:
            lines = text.splitlines(keepends=True)
            rng.shuffle(lines)
            text = "".join(lines)
        elif kind == 6:
            prefix = rng.choice(("[rank1]: ", "> ", "    ", "\t", "| "))
            text = "".join(prefix + line for line in text.splitlines(keepends=True))
        else:
            text = text[:at] + "".join(map(chr, rng.choices(range(0x20, 0x2FFF), k=30))) + text[at:]
    return text[:40_000]


def answer(text: str, catalog) -> None:
    """Read, explain and render in every format."""
    import io

    from explainer.ingest.source import read_stream
    from explainer.ingest.text import read_text
    from explainer.workflow import explain_incident, localise

    try:
        incidents = read_stream(io.BytesIO(text.encode("utf-8", "surrogatepass")), "-")
    except UnreadableInput:
        incidents = list(read_text(text))
    for incident in incidents[:5]:
        report = localise(explain_incident(incident, None, catalog), catalog, root="/nowhere", mask=True)
        assert report.findings or report.unknown
        assert report.faults == ()
        render_terminal(report, Layout(width=60, is_verbose=True, is_coloured=True))
        render_markdown(report)
        render_html(report)
        render_json(report)


@given(st.randoms(use_true_random=False))
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_mutated_logs(catalog, rng: random.Random) -> None:
    """Cut, mixed and broken logs are answered."""
    answer(mutate(rng), catalog)


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=30), max_size=60))
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
def test_pieces_in_any_order(catalog, pieces: list[str]) -> None:
    """The pieces of tracebacks in any order are answered."""
    answer("".join(pieces), catalog)


@given(st.binary(max_size=2000))
@settings(max_examples=200, deadline=None)
def test_any_bytes(data: bytes) -> None:
    """Any bytes are read or refused."""
    import io

    from explainer.ingest.source import read_stream

    try:
        assert read_stream(io.BytesIO(data), "-")
    except UnreadableInput:
        pass


@pytest.mark.slow
def test_twenty_thousand(catalog) -> None:
    """The long run; prints the slowest inputs, which `benchmarks/results` keeps."""
    slowest: list[tuple[float, int, int]] = []
    for seed in range(20_000):
        text = mutate(random.Random(seed))
        start = time.perf_counter()
        answer(text, catalog)
        slowest = sorted([*slowest, (time.perf_counter() - start, seed, len(text))], reverse=True)[:5]
    report = "".join(f"seed {seed}: {seconds * 1000:.0f} ms for {size} characters\n" for seconds, seed, size in slowest)
    print("20,000 inputs, no exception; the slowest:\n" + report)
