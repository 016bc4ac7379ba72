"""What is known and what was done while the interface is open. There is no Textual in it."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from explainer.model.verdict import GREEN, RED

# What the interface shows first needs none of these: each costs milliseconds.
if TYPE_CHECKING:
    from explainer.catalog.catalog import Catalog
    from explainer.fix.choice import Choice
    from explainer.model.environment import Environment
    from explainer.model.finding import Finding, Fix
    from explainer.model.incident import Frame, Incident
    from explainer.model.journal import Record, Refused
    from explainer.model.repair import Run
    from explainer.model.report import Report
    from explainer.model.verification import Verification
    from explainer.proof import Target
    from explainer.run import Job

NO_REASON = "nothing is explained yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What `gradfix ui` was asked to do. `source` is a log, "-" for what stands in `stream`, or None."""

    root: str
    source: str | None = None
    stream: int | None = None
    command: tuple[str, ...] = ()
    probe: bool = True
    env: str | None = None
    knowledge: str | None = None
    mask: bool = True
    steps: int = 3
    timeout: float = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """A failure explained: as it was planned, with what `apply` writes, and as it is shown. Their findings go together."""

    planned: Report
    shown: Report


@dataclass(slots=True, kw_only=True)
class Applied:
    """A fix that stands in the program, of which finding, and how its verification ended."""

    record: Record
    finding: Finding
    fix: Fix
    proof: Verification | None = None


@dataclass
class Session:
    """The state behind the screens; changed in the interface's own thread only.

    Methods that read or run are called in others and give back what they found.
    """

    options: Options
    incidents: list[Incident] = field(default_factory=list)
    failure: int = 0
    explained: Explained | None = None
    at_finding: int = 0
    at_fix: int = 0
    run: Run | None = None
    target: Target | None = None  # what a verification must show, past the failure, where a run was seen to fail
    applied: list[Applied] = field(default_factory=list)
    command: tuple[str, ...] = ()
    _environment: Environment | None = None

    def __post_init__(self) -> None:
        self.command = self.options.command

    @property
    def root(self) -> str:
        """The project."""
        return self.options.root

    @cached_property
    def catalog(self) -> Catalog:
        """The rules."""
        from explainer.catalog.bundle import load_catalog

        return load_catalog(self.options.knowledge)

    # What is read and run; these are called in threads.

    def explain(self, incident: Incident, *, is_new: bool = True) -> Explained:
        """Explain an incident and plan its edits; one that is not new was shown before, and its edits are planned again."""
        from explainer.workflow import plan

        planned = plan(incident, self.environment_of(incident), self.catalog, root=self.root)
        return self.remember(self.present(planned), way="ui") if is_new else self.present_again(planned)

    def present(self, planned: Report) -> Explained:
        """A planned report with the form in which it is shown."""
        from explainer.workflow import present

        return Explained(planned=planned, shown=present(planned, root=self.root, mask=self.options.mask))

    def present_again(self, planned: Report) -> Explained:
        """As `present`, of the failure that is shown now: what is remembered of it stays."""
        done, now = self.present(planned), self.report
        return done if now is None else replace(done, shown=replace(done.shown, seen=now.seen, changes=now.changes))

    def remember(self, explained: Explained, *, way: str) -> Explained:
        """A failure with what is remembered of it; that it was seen, in a log ("ui") or in a run ("run"), is noted."""
        from explainer import memory

        (shown,), sightings = memory.recall_failures([explained.shown], self.root, way=way)
        memory.note(sightings)
        return replace(explained, shown=shown)

    def present_run(self, run: Run) -> Explained | None:
        """What a run showed, with what differs from the last good one; None of one that showed nothing, which is noted if good."""
        from explainer import memory

        if run.report is None:
            if run.status == 0:
                memory.note_good_run(self.command, self.root, is_probed=self.options.probe)
            return None
        done = self.present(run.report)
        if run.is_asked:
            return done
        shown = memory.with_changes(done.shown, self.command, self.root, self.catalog, is_probed=self.options.probe)
        return self.remember(replace(done, shown=shown), way="run")

    def environment_of(self, incident: Incident) -> Environment | None:
        """The environment to explain an incident with: this machine's, where it happened here."""
        if self.options.env is not None:
            return self.environment()
        if not self.options.probe:
            return None
        from explainer.probe.environment import is_from_elsewhere

        return None if is_from_elsewhere(incident) else self.environment(incident)

    def environment(self, incident: Incident | None = None) -> Environment:
        """The interpreter and machine: as a file says, or probed once, for the first incident that asks.

        Raises:
            UnreadableInput: the file holds no environment.
        """
        if self._environment is None and self.options.env is not None:
            from explainer.probe.file import read_environment

            self._environment = read_environment(self.options.env)
        if self._environment is None:
            from explainer.probe.environment import probe_environment

            self._environment = probe_environment(None, incident)
        return self._environment

    def job(self, is_stopped: Callable[[], bool]) -> Job:
        """What is run, with the way to stop it."""
        from explainer.run import Job
        from explainer.verification.verify import Watch

        watch = Watch(steps=self.options.steps, timeout=self.options.timeout, is_stopped=is_stopped)
        return Job(
            command=self.command, root=self.root, catalog=self.catalog, environment_of=self.environment_of, watch=watch
        )

    # What is shown and chosen.

    def open(self, explained: Explained, incidents: Sequence[Incident] | None = None) -> None:
        """Show a report from its first finding on."""
        self.explained = explained
        self.at_finding = self.at_fix = 0
        if incidents is not None:
            self.incidents = list(incidents)
            self.failure = len(self.incidents) - 1

    def renew(self, explained: Explained) -> None:
        """Show a report that was planned again, at the finding that was shown before."""
        cause = self.finding.cause if self.finding is not None else ""
        self.open(explained)
        causes = [one.cause for one in explained.shown.findings]
        self.at_finding = causes.index(cause) if cause in causes else 0

    @property
    def report(self) -> Report | None:
        """The report as it is shown."""
        return self.explained.shown if self.explained is not None else None

    @property
    def finding(self) -> Finding | None:
        """The finding that is chosen, as it is shown."""
        findings = self.report.findings if self.report is not None else ()
        return findings[self.at_finding] if self.at_finding < len(findings) else None

    @property
    def fix(self) -> Fix | None:
        """The fix that is chosen, as it is shown."""
        fixes = self.finding.fixes if self.finding is not None else ()
        return fixes[self.at_fix] if self.at_fix < len(fixes) else None

    @property
    def planned(self) -> tuple[Finding, Fix] | None:
        """The chosen finding and fix with what they write."""
        if self.explained is None or self.fix is None:
            return None
        finding = self.explained.planned.findings[self.at_finding]
        return finding, finding.fixes[self.at_fix]

    def choose_finding(self, number: int) -> bool:
        """Choose a finding; whether it is another one."""
        count = len(self.report.findings) if self.report is not None else 0
        number = min(max(number, 0), max(count - 1, 0))
        is_other = number != self.at_finding
        self.at_finding, self.at_fix = number, 0 if is_other else self.at_fix
        return is_other

    def choose_fix(self, number: int) -> bool:
        """Choose a fix of the finding; whether it is another one."""
        count = len(self.finding.fixes) if self.finding is not None else 0
        number = min(max(number, 0), max(count - 1, 0))
        is_other = number != self.at_fix
        self.at_fix = number
        return is_other

    def choose_edit(self) -> bool:
        """Choose the first fix that can be applied, of this finding or of the next that has one; whether there is one."""
        findings = self.report.findings if self.report is not None else ()
        for number in [self.at_finding, *range(len(findings))]:
            for at, fix in enumerate(findings[number].fixes if number < len(findings) else ()):
                if fix.changes:
                    self.at_finding, self.at_fix = number, at
                    return True
        return False

    # What is done to the program.

    def apply(self) -> Applied | Refused:
        """Write the chosen fix; why not."""
        from explainer.model.journal import Refused
        from explainer.workflow import apply

        if self.planned is None:
            return Refused(reason=NO_REASON)
        finding, fix = self.planned
        if not fix.changes:
            return Refused(reason=why_no_edit(fix))
        if self.is_applied(fix):
            return Refused(reason="it is applied already; u takes it back")
        record = apply(fix, cause=finding.cause, root=self.root, command=self.command_line)
        if isinstance(record, Refused):
            return record
        self.applied.append(Applied(record=record, finding=finding, fix=fix))
        if self.report is not None:
            from explainer.memory import note_fix

            note_fix(record, self.report, way="ui")
        return self.applied[-1]

    def is_applied(self, fix: Fix | None) -> bool:
        """Whether this fix stands in the program, applied in this session."""
        return fix is not None and any(one.fix.patch == fix.patch or one.fix == fix for one in self.applied)

    @property
    def to_look(self) -> Choice | None:
        """The chosen fix, where gradients of the program as it still is are to be known before it is written."""
        if self.planned is None or self.target is None or self.applied or not self.command:
            return None
        from explainer.fix.choice import Choice
        from explainer.proof import wants_look

        choice = Choice(finding=self.planned[0], fix=self.planned[1])
        return choice if choice.fix.changes and wants_look(self.target, choice) else None

    def note_proof(self, proof: Verification, applied: Applied | None) -> None:
        """Remember how a verification ended."""
        from explainer.memory import note_verification

        note_verification(proof.verdict, applied.record if applied is not None else None, self.root)

    @property
    def last(self) -> Applied | None:
        """What was applied last and stands."""
        return self.applied[-1] if self.applied else None

    @property
    def doubted(self) -> Applied | None:
        """An edit that stands though its verification was red."""
        return next((one for one in self.applied if one.proof is not None and one.proof.verdict == RED), None)

    @property
    def is_verified(self) -> bool:
        """Whether what was applied last was proved."""
        return self.last is not None and self.last.proof is not None and self.last.proof.verdict == GREEN

    def undo(self, record: Record) -> Record | Refused:
        """Take a patch back; why not."""
        from explainer.model.journal import Refused
        from explainer.workflow import undo

        done = undo(record)
        if not isinstance(done, Refused):
            from explainer.memory import note_undo

            note_undo(record)
            self.applied = [one for one in self.applied if one.record.id != record.id]
        return done

    def to_undo(self) -> Record | None:
        """The patch that is taken back next: the last one that stands, of this session, else of the project."""
        from explainer.model.journal import APPLIED

        if self.last is not None:
            return self.last.record
        standing = [one for one in self.history() if one.state == APPLIED]
        return standing[-1] if standing else None

    def history(self) -> list[Record]:
        """The patches of this project, oldest first."""
        from explainer.workflow import history

        return history(self.root)

    def rewrite(self, texts: dict[str, str]) -> Fix | Refused:
        """Put a person's own text into the chosen fix; why not."""
        from explainer.model.journal import Refused
        from explainer.render.mask import mask_text
        from explainer.workflow import edit_fix

        if self.planned is None or self.explained is None:
            return Refused(reason=NO_REASON)
        fix = edit_fix(self.planned[1], texts, root=self.root)
        if isinstance(fix, Refused):
            return fix
        patch = mask_text(fix.patch or "") if self.options.mask else fix.patch
        self.explained = Explained(
            planned=_with_fix(self.explained.planned, self.at_finding, self.at_fix, fix),
            shown=_with_fix(self.explained.shown, self.at_finding, self.at_fix, replace(fix, patch=patch)),
        )
        return fix

    # The command.

    @property
    def command_line(self) -> str:
        """The command as one types it."""
        return shlex.join(self.command)

    def guess_command(self) -> str:
        """How the program was probably started: what the journal says, else the script that the log names."""
        recorded = [one.command for one in reversed(self.history()) if not one.command.startswith(("gradfix", "fix"))]
        if recorded and recorded[0]:
            return recorded[0]
        script = next((path for frame in self._frames() if (path := self._script(frame)) is not None), None)
        return shlex.join([_python(), script]) if script else ""

    def _frames(self) -> list[Frame]:
        exceptions = self.explained.planned.incident.exceptions if self.explained is not None else ()
        return [frame for record in exceptions for frame in record.frames if frame.library is None]

    def _script(self, frame: Frame) -> str | None:
        from explainer.source.place import place_of

        path = place_of(frame.file, os.path.realpath(self.root))
        return os.path.relpath(path, os.path.realpath(self.root)) if path and path.endswith(".py") else None

    # What is copied.

    def card(self) -> str:
        """The whole report as plain text."""
        if self.report is None:
            return ""
        from explainer.render.terminal import Layout, render_terminal

        return render_terminal(self.report, Layout(width=100, is_verbose=True, top=len(self.report.findings) or 1))


def _with_fix(report: Report, at_finding: int, at_fix: int, fix: Fix) -> Report:
    finding = report.findings[at_finding]
    fixes = tuple(fix if at == at_fix else one for at, one in enumerate(finding.fixes))
    findings = tuple(
        replace(finding, fixes=fixes) if at == at_finding else one for at, one in enumerate(report.findings)
    )
    return replace(report, findings=findings)


def why_no_edit(fix: Fix) -> str:
    """What to do with a fix that writes nothing."""
    if fix.command:
        return f"this fix is a command, to be run by hand: {fix.command}"
    return "this fix is advice: there is no edit to apply; e opens the line in your editor"


def _python() -> str:
    """The interpreter as a person would type it; ours by its path, where it alone is known to have torch."""
    found = shutil.which("python")
    is_ours = found is not None and os.path.dirname(found) == os.path.dirname(sys.executable)
    if is_ours or (found is not None and os.environ.get("VIRTUAL_ENV")):
        return "python"
    return sys.executable if found is None or importlib.util.find_spec("torch") is not None else "python"
