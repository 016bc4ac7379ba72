"""The engine of clusters: Ray Data's `map_batches` over the objects, on this machine or where RAY_ADDRESS says.

A batch whose process dies is dropped by Ray Data and not by us: what it owes is asked for again, one object at a time, so
that only the object that kills its reader ends as a row that says so.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from explainer.errors import CannotStart, UsageError
from explainer.fleet.explained import catalog_of, explain_source, killed_row
from explainer.fleet.pool import Answer, Settings
from explainer.fleet.remote import describe
from explainer.fleet.row import Reading, reading_of
from explainer.fleet.source import Source

BATCH = 16
MAX_BLOCKS = 4096


def run_ray(sources: Sequence[Source], settings: Settings, is_stopped: Callable[[], bool]) -> Iterator[Answer]:
    """What came of each object with its place in `sources`, as they come; ends early where `is_stopped` says so.

    Raises:
        UsageError: Ray is not installed.
        CannotStart: its processes cannot import gradfix or read the rules.
    """
    with _cluster(settings) as ray:
        _try_out(ray, settings)
        owed = dict(enumerate(sources))
        for batch in (BATCH, 1):
            for index, reading in _map(ray, owed, batch, settings):
                if owed.pop(index, None) is not None:
                    yield index, reading
                if is_stopped():
                    return
            if not owed:
                return
        for index, source in owed.items():
            yield index, reading_of([killed_row(source)])


@contextlib.contextmanager
def _cluster(settings: Settings) -> Iterator[Any]:
    """Ray, connected; ended afterwards where it was begun here."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # gradfix sends nothing anywhere, nor what it starts
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise UsageError(f"--engine ray: {error}; pip install 'gradfix[ray]'") from None
    is_ours = not ray.is_initialized()
    if is_ours:
        local = {} if os.environ.get("RAY_ADDRESS") else {"num_cpus": settings.workers, "include_dashboard": False}
        try:
            ray.init(logging_level=logging.ERROR, log_to_driver=False, **local)
        except Exception as error:  # noqa: BLE001 - whatever keeps Ray from starting is for the user to read
            raise CannotStart(f"Ray does not start: {describe(error)}") from None
    context = ray.data.DataContext.get_current()
    context.max_errored_blocks = -1
    context.enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    try:
        with contextlib.redirect_stdout(sys.stderr):  # where Ray tells of processes that died; ours is for rows
            yield ray
    finally:
        if is_ours:
            ray.shutdown()


def _try_out(ray: Any, settings: Settings) -> None:
    """Load the rules in a process of the cluster: what is wrong there would else look like objects that kill."""
    try:
        ray.get(ray.remote(_count_causes).remote(settings.knowledge))
    except Exception as error:  # noqa: BLE001 - the cluster's words
        raise CannotStart(f"gradfix does not work in Ray's processes: {describe(error)}") from None


def _count_causes(knowledge: str | None) -> int:
    return len(catalog_of(knowledge).cause_ids)


def _map(ray: Any, owed: dict[int, Source], batch: int, settings: Settings) -> Iterator[Answer]:
    items = [{"index": index, "source": _packed(source)} for index, source in owed.items()]
    blocks = max(min(-(-len(items) // batch), MAX_BLOCKS) if batch > 1 else len(items), 1)
    data = ray.data.from_items(items, override_num_blocks=blocks)
    with warnings.catch_warnings():
        # Ray Data retries for ever by itself. Ray 2.60 warns that this way to say so goes in 2.64 and names no other.
        warnings.filterwarnings("ignore", message=".*ray_remote_args.*")
        data = data.map_batches(
            _explain_batch,
            batch_size=None,
            batch_format="numpy",
            fn_kwargs={"knowledge": settings.knowledge},
            concurrency=None if os.environ.get("RAY_ADDRESS") else min(settings.workers, blocks),
            max_retries=0 if batch > 1 else 1,  # a batch that dies is asked for again by us, smaller
        )
    for answer in data.iter_rows():
        failures, is_faulty = int(answer["failures"]), bool(answer["is_faulty"])
        yield int(answer["index"]), Reading(rows=str(answer["rows"]), failures=failures, is_faulty=is_faulty)


def _explain_batch(batch: dict[str, Any], knowledge: str | None) -> dict[str, Any]:
    """What comes of a batch's objects; it runs in a process of the cluster."""
    readings = [reading_of(explain_source(_unpacked(text), knowledge)) for text in batch["source"]]
    columns = {name: [getattr(one, name) for one in readings] for name in ("rows", "failures", "is_faulty")}
    return {"index": batch["index"], **columns}


def _packed(source: Source) -> str:
    named = {name: getattr(source, name) for name in ("address", "job", "size", "stamp", "changed", "fault")}
    return json.dumps(named)


def _unpacked(text: str) -> Source:
    values = json.loads(text)
    return Source(**{**values, "fault": tuple(values["fault"]) if values["fault"] else None})
