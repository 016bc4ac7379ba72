r"""Tracebacks written into one line: `\n` inside a string, as wandb, Ray, JSON loggers and `repr` print them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from explainer.ingest.traceback import HEADER_WORDS

_ESCAPES = {"n": "\n", "t": "\t", "r": "", '"': '"', "'": "'", "\\": "\\"}


def unfold(numbered: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """The lines, with every folded traceback spread over as many lines as it has; they share its number."""
    for number, text in numbered:
        if HEADER_WORDS in text and "\\n" in text:
            for part in _unescaped(text).split("\n"):
                yield number, part
        else:
            yield number, text


def _unescaped(text: str) -> str:
    """`text` with its escapes resolved, from its header to the quote that closes it; what led to it on a line before."""
    at = text.index(HEADER_WORDS)
    before, folded = text[:at], text[at:]
    quote = before.rstrip()[-1:] if before.rstrip()[-1:] in ("'", '"') else ""
    while "\\\\n" in folded:
        folded = folded.replace("\\\\", "\\")
    plain = _resolve(folded, quote)
    return f"{before.rstrip(chr(39) + chr(34) + ' ')}\n{plain}" if before.strip() else plain


def _resolve(folded: str, quote: str) -> str:
    end = len(folded)
    if quote:
        closing = re.search(rf"(?<!\\){re.escape(quote)}(?=\s*(?:[,)}}\]]|$))", folded)
        end = closing.start() if closing else end
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[0]), folded[:end])
