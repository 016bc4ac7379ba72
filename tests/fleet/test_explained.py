"""One object to its rows: how it is stored, what it holds, and what is wrong with it."""

from __future__ import annotations

import gzip
import json
import pathlib

import pytest

from explainer.fleet.explained import explain_source
from explainer.fleet.listing import list_sources
from explainer.fleet.row import Row, from_object, to_object

LOG = """2026-05-01 12:00:01,001 INFO trainer: starting on NVIDIA A100-SXM4-80GB
torch==2.6.0 transformers==5.1.0
[rank3]: Traceback (most recent call last):
[rank3]:   File "/home/user/project/train.py", line 19, in <module>
[rank3]:     loss.backward()
[rank3]:   File "/home/user/.venv/lib/python3.11/site-packages/torch/_tensor.py", line 623, in backward
[rank3]:     torch.autograd.backward(
[rank3]: RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation: \
[torch.FloatTensor [4, 8]], which is output 0 of ReluBackward0, is at version 1; expected version 0 instead.
"""
FAILED_CELL = {
    "cell_type": "code",
    "outputs": [
        {
            "output_type": "error",
            "ename": "RuntimeError",
            "evalue": "grad can be implicitly created only for scalar outputs",
            "traceback": ["RuntimeError: grad can be implicitly created only for scalar outputs"],
        }
    ],
}


def rows_of(path: pathlib.Path) -> tuple[Row, ...]:
    (source,) = list_sources([str(path)])
    return explain_source(source, None)


def test_the_columns(tmp_path: pathlib.Path) -> None:
    """A row says what the card says, and what a fleet is sorted by."""
    path = tmp_path / "job-9.log"
    path.write_text(LOG)
    (row,) = rows_of(path)
    said = to_object(row)
    assert said.pop("score") > 0.2
    assert said.pop("fingerprint").startswith("g1-")
    assert said.pop("message").startswith("one of the variables needed")
    assert said.pop("template").startswith("one of the variables needed for gradient computation has been modified")
    assert said == {
        "job": "job-9", "file": str(path), "failure": 1, "status": "explained", "rank": 3, "time": "2026-05-01T12:00:01Z",
        "time_from": "log", "cause": "inplace/op-on-saved-tensor", "kind": "failure", "confidence": "likely",
        "guilty_file": "/home/user/project/train.py", "guilty_line": 19, "exception": "RuntimeError", "op": "Relu",
        "shapes": ["4x8"], "versions": {"python": "3.11", "torch": "2.6.0", "transformers": "5.1.0"},
        "gpu": "NVIDIA A100-SXM4-80GB", "detail": None,
    }  # fmt: skip
    assert from_object(json.loads(json.dumps(to_object(row)))) == row


def compressed_by_zstandard(data: bytes) -> bytes:
    zstandard = pytest.importorskip("zstandard")
    return zstandard.ZstdCompressor().compress(data)


STORED = {
    "plain": lambda data: data,
    "gzip": gzip.compress,
    "two gzip members": lambda data: gzip.compress(data[:200]) + gzip.compress(data[200:]),
    "zstandard": compressed_by_zstandard,
    "two zstandard frames": lambda data: compressed_by_zstandard(data[:200]) + compressed_by_zstandard(data[200:]),
    "UTF-16, as PowerShell redirects": lambda data: data.decode().encode("utf-16"),
    "carriage returns": lambda data: data.replace(b"\n", b"\r\n"),
}


@pytest.mark.parametrize("store", STORED.values(), ids=STORED.keys())
def test_however_it_is_stored(store, tmp_path: pathlib.Path) -> None:
    """The bytes decide, not the name."""
    (tmp_path / "a.log").write_bytes(store(LOG.encode()))
    (row,) = rows_of(tmp_path / "a.log")
    assert (row.cause, row.rank, row.op) == ("inplace/op-on-saved-tensor", 3, "Relu")


@pytest.mark.parametrize("name", ["a.ipynb", "a.ipynb.gz"])
def test_a_notebook(name: str, tmp_path: pathlib.Path) -> None:
    """Failed cells are failures, one row each."""
    data = json.dumps({"cells": [FAILED_CELL, {"cell_type": "code", "outputs": []}, FAILED_CELL]}).encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    rows = rows_of(tmp_path / name)
    assert [(row.failure, row.cause) for row in rows] == [
        (1, "backward/non-scalar-loss"),
        (2, "backward/non-scalar-loss"),
    ]


WRONG = {
    "nothing": (b"", "empty", None),
    "white space": (b" \n\n", "empty", None),
    "a gzip of nothing": (gzip.compress(b""), "empty", None),
    "a program": (b"\x7fELF" + bytes(99), "unreadable", "this is a program, not a log"),
    "binary data": (bytes(range(256)) * 9, "unreadable", "this is binary data, not a log"),
    "gzip twice": (gzip.compress(gzip.compress(b"x" * 99)), "unreadable", "this is a gzip file, not a log"),
    "a healthy run": (b"{'loss': 1.0, 'epoch': 1.0}\n", "no failure", None),
    "a run that was interrupted": (b"Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nKeyboardInterrupt\n", "no failure", None),
    "a gzip cut at its start": (gzip.compress(LOG.encode())[:12], "unreadable", None),
}  # fmt: skip


@pytest.mark.parametrize(("data", "status", "detail"), WRONG.values(), ids=WRONG.keys())
def test_what_holds_no_failure(data: bytes, status: str, detail: str | None, tmp_path: pathlib.Path) -> None:
    """Each object has a row, which says why it is none of a failure."""
    (tmp_path / "a.log").write_bytes(data)
    (row,) = rows_of(tmp_path / "a.log")
    assert (row.status, row.failure, row.cause) == (status, 0, None)
    assert detail is None or row.detail == detail


def test_a_broken_notebook(tmp_path: pathlib.Path) -> None:
    """What is no notebook is said to be none."""
    (tmp_path / "a.ipynb").write_text("{")
    (row,) = rows_of(tmp_path / "a.ipynb")
    assert (row.status, row.detail) == ("unreadable", "this is no notebook: JSONDecodeError")


def test_a_cut_gzip_is_explained_as_far_as_it_goes(tmp_path: pathlib.Path) -> None:
    """The log of a killed job, whose compressor was killed too, gives what it holds, and says that it ends early."""
    noise = "".join(f"{number * 7919 % 10007}\n" for number in range(4000))
    (tmp_path / "a.log").write_bytes(gzip.compress((LOG + noise).encode())[:-400])
    (row,) = rows_of(tmp_path / "a.log")
    assert row.cause == "inplace/op-on-saved-tensor"
    assert str(row.detail).startswith("not read to its end: EOFError")


def test_secrets_are_masked(tmp_path: pathlib.Path) -> None:
    """Tokens in messages, templates and names are no part of a row."""
    token = "hf_" + "a1B2" * 8
    (tmp_path / f"{token}.log").write_text(f"Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nTeamError: bad {token}\n")  # fmt: skip
    (row,) = rows_of(tmp_path / f"{token}.log")
    assert row.status == "unknown"
    assert token not in json.dumps(to_object(row))


def test_an_object_of_a_store(tmp_path: pathlib.Path) -> None:
    """An address is read as a file is."""
    fsspec = pytest.importorskip("fsspec")
    fsspec.filesystem("memory").pipe_file("/explained/job-1/rank0.log.gz", gzip.compress(LOG.encode()))
    (source,) = list_sources(["memory://explained/"])
    (row,) = explain_source(source, None)
    assert (row.job, row.cause, row.detail) == ("job-1", "inplace/op-on-saved-tensor", None)
