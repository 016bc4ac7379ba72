"""What is done, on disk: parts of a triage, each written whole or not at all, so that a later run goes on from there."""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from explainer.disk import replace_file, temporary_of
from explainer.fleet.row import Reading, Row, from_object
from explainer.fleet.source import Source

MAX_OBJECTS, MAX_SECONDS = 2000, 10.0
_MODE = 0o644
_TOKEN = "part"  # noqa: S105 - part of a file's name


class _Place(NamedTuple):
    """Where an object's rows lie."""

    part: int
    offset: int
    length: int
    version: str
    is_faulty: bool


class Parts:
    """The rows of the objects that were read, in files of at most `MAX_OBJECTS` objects, written every ten seconds.

    Only places are held in memory. Rows are read back in any order.
    """

    def __init__(self, folder: str) -> None:
        os.makedirs(folder, exist_ok=True)
        self._folder = folder
        self._places: dict[str, _Place] = {}
        self._lines: list[bytes] = []
        self._waiting: list[tuple[str, int, str, bool]] = []
        self._flushed = time.monotonic()
        self._next = 0
        for name in sorted(os.listdir(folder)):
            if name.endswith(".gradfix"):  # cut off while it was written
                os.unlink(os.path.join(folder, name))
            elif name.endswith(".ndjson"):
                number = int(name.removesuffix(".ndjson"))
                self._index(number)
                self._next = number + 1

    def is_done(self, source: Source) -> bool:
        """Whether the rows of an object are here, and it was read, and is the same as it was then."""
        place = self._places.get(source.key)
        return place is not None and not place.is_faulty and place.version == source.version

    def add(self, source: Source, reading: Reading) -> None:
        """Keep the rows of an object; those of a former reading no longer count."""
        is_faulty = reading.is_faulty and source.fault is None
        head = json.dumps({"key": source.key, "version": source.version, "faulty": is_faulty})
        line = f'{head[:-1]}, "rows": {reading.rows}}}\n'.encode("ascii")
        self._lines.append(line)
        self._waiting.append((source.key, len(line), source.version, is_faulty))
        if len(self._lines) >= MAX_OBJECTS or time.monotonic() - self._flushed > MAX_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write what has come since the last part."""
        self._flushed = time.monotonic()
        if not self._lines:
            return
        path = self._path(self._next)
        replace_file(path, b"".join(self._lines), temporary_of(path, _TOKEN), _MODE)
        offset = 0
        for key, length, version, is_faulty in self._waiting:
            self._places[key] = _Place(self._next, offset, length, version, is_faulty)
            offset += length
        self._lines, self._waiting, self._next = [], [], self._next + 1

    def rows(self, sources: Sequence[Source]) -> Iterator[Row]:
        """The rows of the objects that are done, in the order of `sources`."""
        self.flush()
        named = ((source, self._places.get(source.key)) for source in sources)
        places = (place for source, place in named if place is not None and place.version == source.version)
        for number, group in itertools.groupby(places, key=lambda place: place.part):
            with open(self._path(number), "rb") as file:
                for place in group:
                    file.seek(place.offset)
                    yield from (from_object(one) for one in json.loads(file.read(place.length))["rows"])

    def _index(self, number: int) -> None:
        """Note what a part holds; a line that was damaged counts as not read."""
        offset = 0
        with open(self._path(number), "rb") as file:
            for line in file:
                try:
                    entry = json.loads(line)
                    place = _Place(number, offset, len(line), entry["version"], entry["faulty"])
                    self._places[entry["key"]] = place
                except (ValueError, KeyError, TypeError):
                    pass
                offset += len(line)

    def _path(self, number: int) -> str:
        return os.path.join(self._folder, f"{number:06d}.ndjson")
