"""The report of a job: of the rank that failed first, with what the log around it says and what the ranks differ in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from explainer.catalog.catalog import Catalog
from explainer.ingest.text import read_text
from explainer.model.environment import Environment
from explainer.model.finding import Culprit
from explainer.model.incident import Frame, Incident, LogLine
from explainer.model.rank import RankStory
from explainer.model.report import Report, Unknown
from explainer.ranks import Told, tell_ranks
from explainer.verification.live_report import failure_of, with_live_facts
from explainer.verification.rank_file import read_alone, read_launches, read_ranks
from explainer.verification.report_folder import check_run
from explainer.workflow import explain_incident, plan_report


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """With what a job is explained: the rules, the project, the environment of an incident."""

    catalog: Catalog
    root: str
    environment_of: Callable[[Incident], Environment | None] = lambda _: None


def explain_folder(folder: str, reading: Reading) -> Report:
    """The report of a run in a folder of reports, read after the fact.

    Raises:
        UnreadableInput: nothing has been reported there, or nothing has failed.
    """
    check_run(folder)
    late_at = ended_at(folder)
    told = tell_ranks(read_ranks(folder), reading.catalog, late_at=late_at)
    if told is not None:
        return explain_job(told, (), reading)
    return (explain_standing(folder) if late_at is not None else None) or _nothing(folder)


def ended_at(folder: str) -> float | None:
    """When the job was ended for lateness, by the wall clock of the `gradfix run` that did; None where it was not."""
    return max((float(one["late"]) for one in read_launches(folder) if one.get("late")), default=None)


def explain_job(told: Told, printed: Sequence[Incident], reading: Reading) -> Report:
    """The report of a job's first failure, or of its hang; `printed` are the incidents of what its launcher passed on."""
    incident = _incident(told, printed[-1] if printed else Incident())
    report = explain_incident(incident, reading.environment_of(incident), reading.catalog)
    if not report.findings and report.unknown is not None and not incident.exceptions:
        report = replace(report, unknown=replace(report.unknown, why="; ".join(told.story.says), next_command=None))
    return plan_report(report, reading.catalog, reading.root)


def _incident(told: Told, base: Incident) -> Incident:
    ranks = tuple(row.rank for row in told.story.rows)
    base = replace(base, story=told.story, rank=told.story.first, ranks=ranks)
    if told.failure is None or not told.failure.text:
        lines = (LogLine(text=told.line),) if told.line else ()
        return replace(base, log=(*base.log, *lines))
    noted = list(read_text(told.failure.text))[-1]
    failed = tuple(replace(one, rank=told.story.first) for one in noted.exceptions)
    incident = replace(
        base, exceptions=failed, forward_frames=noted.forward_frames or base.forward_frames,
        anomaly_node=noted.anomaly_node or base.anomaly_node, facts=(*base.facts, *noted.facts), is_cut=noted.is_cut,
    )  # fmt: skip
    return with_live_facts(incident, failure_of(told.failure.raw))


def explain_standing(folder: str) -> Report | None:
    """What is known of a program without ranks that was ended for lateness: where its main thread stood."""
    frames = read_alone(folder)
    if not frames:
        return None
    own = next((frame for frame in reversed(frames) if frame.library is None), frames[-1])
    inner = "" if own is frames[-1] else f", in {_place(frames[-1])}"
    why = f"the program still ran when its time was up; its main thread stood at {_place(own)}{inner}"
    place = Culprit(
        file=own.file, line=own.line, function=own.function, code=own.code, why="the main thread stood here"
    )
    story = RankStory(says=(why,), place=place)
    return Report(incident=Incident(story=story), unknown=Unknown(why=why))


def _place(frame: Frame) -> str:
    return f"{frame.file}:{frame.line} ({frame.function})"


def _nothing(folder: str) -> Report:
    return Report(incident=Incident(), unknown=Unknown(why=f"no rank has reported a failure: {folder}"))
