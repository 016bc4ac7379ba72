"""Rows as a Parquet file, a batch at a time; pyarrow is the extra `fleet`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from types import TracebackType
from typing import Any

from explainer.errors import UsageError
from explainer.fleet.row import COLUMNS, Row, to_object

BATCH = 10_000
_INTEGERS = frozenset(("failure", "rank", "guilty_line"))


def require_pyarrow() -> None:
    """Say at once, and not after hours, that rows cannot be written.

    Raises:
        UsageError: pyarrow is not installed.
    """
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        raise UsageError("--out writes Parquet with pyarrow: pip install 'gradfix[fleet]'") from None


class ParquetFile:
    """A Parquet file that is there, whole, once it is closed without an error."""

    def __init__(self, path: str) -> None:
        import pyarrow.parquet

        self._path, self._temporary = path, f"{path}.writing"
        self._schema = _schema()
        self._writer = pyarrow.parquet.ParquetWriter(self._temporary, self._schema, compression="zstd")
        self._rows: list[dict[str, Any]] = []

    def add(self, row: Row) -> None:
        """Write a row."""
        values = to_object(row)
        values["time"] = datetime.fromisoformat(row.time.replace("Z", "+00:00")) if row.time else None
        values["versions"] = list(row.versions)
        self._rows.append({name: _storable(value) for name, value in values.items()})
        if len(self._rows) >= BATCH:
            self._flush()

    def _flush(self) -> None:
        import pyarrow

        if self._rows:
            self._writer.write_table(pyarrow.Table.from_pylist(self._rows, schema=self._schema))
            self._rows = []

    def __enter__(self) -> ParquetFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._flush()
        self._writer.close()
        if kind is None:
            os.replace(self._temporary, self._path)
        else:
            os.unlink(self._temporary)


@contextmanager
def maybe_parquet(path: str | None) -> Iterator[ParquetFile | None]:
    """A file to write rows to, or none where no path is given."""
    if path is None:
        yield None
        return
    with ParquetFile(path) as file:
        yield file


def _schema() -> Any:
    import pyarrow

    text = pyarrow.string()
    special = {
        "time": pyarrow.timestamp("s", tz="UTC"),
        "score": pyarrow.float64(),
        "shapes": pyarrow.list_(text),
        "versions": pyarrow.map_(text, text),
        **dict.fromkeys(_INTEGERS, pyarrow.int64()),
    }
    return pyarrow.schema([(name, special.get(name, text)) for name in COLUMNS])


def _storable(value: object) -> object:
    """A text without lone surrogates, which file names and JSON can hold and Parquet cannot."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value
