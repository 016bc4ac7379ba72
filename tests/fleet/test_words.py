"""Templates of messages, times of failures: what is read out of words."""

from __future__ import annotations

import re

import pytest

from explainer.catalog.pattern import check_pattern
from explainer.fleet.clock import Clock
from explainer.fleet.template import literals_of, pattern_of, template_of

KEPT = {
    "names with digits": "Conv2d of layer4 wants float16",
    "an apostrophe": "the model doesn't train",
    "a version in a word": "use torch2trt",
    "a slash": "read/write failed",
}
TEMPLATES = {
    "numbers": ("expected 3, got -4.5e-3", "expected <number>, got <number>"),
    "a shape": ("size [4, 8] or 3x4", "size <shape> or <shape>"),
    "an address": ("object at 0x7f00 freed", "object at <address> freed"),
    "a path": ("cannot open /mnt/a-1/b.bin", "cannot open <path>"),
    "quoted": ("no key 'labels_3' in \"x\"", "no key <text> in <text>"),
    "a host": ("to 10.0.0.1:29500 failed", "to <host> failed"),
    "a uuid": ("run 01234567-89ab-cdef-0123-456789abcdef ended", "run <uuid> ended"),
    "lines": ("a\n  b 1", "a b <number>"),
}


@pytest.mark.parametrize("message", ["the model doesn't train", "read/write failed", "no open values"])
def test_what_has_no_value_stays(message: str) -> None:
    """Words are kept."""
    assert template_of(message) == message


@pytest.mark.parametrize(("message", "template"), TEMPLATES.values(), ids=TEMPLATES.keys())
def test_templates(message: str, template: str) -> None:
    """Values are open, and the template's pattern finds the message, at a bounded cost."""
    assert template_of(message) == template
    assert re.search(pattern_of(template), " ".join(message.split()))
    assert check_pattern(pattern_of(template)) == []
    assert all(literal in message for literal in literals_of(template)) or "\n" in message


def test_literals() -> None:
    """The longest runs of fixed words, in their order."""
    assert literals_of("ledger <number> of tenant <text> is sealed; replay from <path>") == [
        "of tenant",
        "is sealed; replay from",
    ]


HEADER = "Traceback (most recent call last):\n"
TIMES = {
    "none": (f"loss 1\n{HEADER}", 2, None),
    "no date": (f"2026-13-41 12:00:00 x\n{HEADER}", 2, None),
    "above": (f"2026-05-01 12:00:01,5 x\n{HEADER}", 2, "2026-05-01T12:00:01Z"),
    "a zone": (f"2026-05-01T12:00:01.123+02:00 x\n{HEADER}", 2, "2026-05-01T10:00:01Z"),
    "month first": (f"05/01/2026 12:00:01 - INFO - x\n{HEADER}", 2, "2026-05-01T12:00:01Z"),
    "the first of two": (f"2026-05-01 12:00:01 x\n{HEADER}2026-05-02 12:00:01 x\n{HEADER}", 2, "2026-05-01T12:00:01Z"),
    "the second of two": (f"2026-05-01 12:00:01 x\n{HEADER}2026-05-02 12:00:01 x\n{HEADER}", 4, "2026-05-02T12:00:01Z"),
    "no line known": (f"2026-05-01 12:00:01 x\n{HEADER}2026-05-02 12:00:01 x\n", None, "2026-05-02T12:00:01Z"),
}


@pytest.mark.parametrize("size", [7, 4096], ids=["in small pieces", "at once"])
@pytest.mark.parametrize(("text", "line", "time"), TIMES.values(), ids=TIMES.keys())
def test_times(text: str, line: int | None, time: str | None, size: int) -> None:
    """A failure's time is the last timestamp above it."""
    clock, data = Clock(), text.encode()
    for start in range(0, len(data), size):
        clock.feed(data[start : start + size])
    assert clock.time_of(line) == time


def test_a_huge_log_keeps_its_lines_apart() -> None:
    """Line numbers hold beyond what is kept in memory."""
    clock, filler = Clock(), b"nothing to see here\n" * 50_000
    for day in range(1, 6):
        clock.feed(filler + f"2026-05-{day:02d} 12:00:00 x\n{HEADER}".encode())
    assert [clock.time_of(50_002 * day) for day in (1, 3, 5)] == [f"2026-05-0{day}T12:00:00Z" for day in (1, 3, 5)]
