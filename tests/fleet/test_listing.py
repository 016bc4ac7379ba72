"""What words of the command line mean, and what a row says of those that mean nothing."""

from __future__ import annotations

import os
import pathlib

import pytest

from explainer.errors import UsageError
from explainer.fleet.listing import is_log_name, job_of, list_sources
from explainer.fleet.source import is_address

NO_LOGS = ["model.pt", "log", "train.py", "train.log.bak", "a.gz", "notes.md", "x.zst"]
LOGS = ["train.log", "slurm-7.out", "a.err", "b.txt.gz", "c.log.zst", "d.ipynb", "e.ipynb.gz", "stderr.stderr"]


@pytest.mark.parametrize("name", NO_LOGS)
def test_no_log_by_its_name(name: str) -> None:
    """A folder's other files are not read."""
    assert not is_log_name(name)


@pytest.mark.parametrize("name", LOGS)
def test_a_log_by_its_name(name: str) -> None:
    """Logs and notebooks are, also compressed."""
    assert is_log_name(name)


ADDRESSES = {
    "a path": ("logs/a.log", False),
    "a Windows path": ("C:\\logs\\a.log", False),
    "a store": ("s3://bucket/a.log", True),
    "a chained one": ("simplecache::s3://bucket/a.log", True),
    "a colon in a name": ("logs/a:b.log", False),
}


@pytest.mark.parametrize(("word", "is_one"), ADDRESSES.values(), ids=ADDRESSES.keys())
def test_addresses(word: str, is_one: bool) -> None:
    """An address has a scheme; paths with colons have none."""
    assert is_address(word) is is_one


JOBS = {
    "a file of its own": ("logs/slurm-123.out", "logs", "slurm-123"),
    "a folder a job": ("logs/job-7/rank3.log", "logs/", "job-7"),
    "deep below": ("logs/job-7/attempt-1/rank3.log.gz", "logs", "job-7"),
    "a rank's log alone": ("runs/job-7/rank3.log", "runs/job-7", "job-7"),
    "standard error alone": ("runs/job-7/stderr.txt.zst", "runs/job-7", "job-7"),
    "a name in the working directory": ("train.log", "", "train"),
    "compressed": ("night.log.gz", "", "night"),
    "a name that is all suffix": ("x/.log", "x", ".log"),
}


@pytest.mark.parametrize(("address", "root", "job"), JOBS.values(), ids=JOBS.keys())
def test_jobs(address: str, root: str, job: str) -> None:
    """The job is the folder below what was named, or the file's own name."""
    assert job_of(address, root) == job


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A folder with a log, a compressed one, something else and a pipe, as the working directory's `logs`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logs" / "job-1").mkdir(parents=True)
    for name in ("logs/b.log", "logs/job-1/rank0.log.gz", "logs/model.pt"):
        (tmp_path / name).write_text("x")
    os.mkfifo(tmp_path / "logs" / "pipe.log")
    return tmp_path


WORDS = {
    "a folder": (["logs"], ["logs/b.log", "logs/job-1/rank0.log.gz"]),
    "a glob": (["logs/*.log"], ["logs/b.log", "logs/pipe.log"]),
    "a recursive glob": (["logs/**/*.gz"], ["logs/job-1/rank0.log.gz"]),
    "a glob of folders": (["logs/job-*"], ["logs/job-1/rank0.log.gz"]),
    "twice, once": (["logs", "./logs/b.log", "logs/job-1"], ["logs/b.log", "logs/job-1/rank0.log.gz"]),
    "a file of any name": (["logs/model.pt"], ["logs/model.pt"]),
}


@pytest.mark.parametrize(("words", "addresses"), WORDS.values(), ids=WORDS.keys())
def test_words(folder: pathlib.Path, words: list[str], addresses: list[str]) -> None:
    """Objects come sorted, none twice; a pipe is read only where it is named."""
    assert [source.address for source in list_sources(words)] == addresses
    assert all(source.fault is None for source in list_sources(words))


FAULTS = {
    "no such file": ("none.log", ("unreadable", "no such file or directory")),
    "a glob of nothing": ("*.nothing", ("empty", "nothing matches")),
    "an address of nothing": ("memory://no/such/a.log", ("unreadable", "no such file or directory")),
    "a kind of address that nobody reads": (
        "gopher://x/a.log",
        ("unreadable", "ValueError: Protocol not known: gopher"),
    ),
    "a glob of a store": ("memory://no/*.log", ("empty", "nothing matches")),
}


@pytest.mark.parametrize(("word", "fault"), FAULTS.values(), ids=FAULTS.keys())
def test_faults(folder: pathlib.Path, word: str, fault: tuple[str, str]) -> None:
    """What is not there is an object with a fault, for a row that says so."""
    pytest.importorskip("fsspec")
    (source,) = list_sources([word])
    assert source.fault == fault


def test_a_store() -> None:
    """Objects behind an address are listed with their size, sorted, and by their names alone."""
    fsspec = pytest.importorskip("fsspec")
    store = fsspec.filesystem("memory")
    for name in ("bucket/job-2/rank0.log.gz", "bucket/job-1/rank0.log", "bucket/model.pt"):
        store.pipe_file(f"/{name}", b"123")
    sources = list_sources(["memory://bucket"])
    assert [(one.address, one.job, one.size) for one in sources] == [
        ("memory:///bucket/job-1/rank0.log", "job-1", 3),
        ("memory:///bucket/job-2/rank0.log.gz", "job-2", 3),
    ]


def test_a_store_whose_package_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kind of address that needs a package is refused before anything is read, with the package's name."""
    core = pytest.importorskip("fsspec.core")

    def refuse(word: str) -> None:
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr(core, "url_to_fs", refuse)
    with pytest.raises(UsageError, match="Install s3fs to access S3"):
        list_sources(["s3://bucket/"])
