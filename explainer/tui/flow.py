"""The way of a repair through the screens: read or run, explain, apply, verify, trace, edit."""

from __future__ import annotations

import os
import shlex
import subprocess
from typing import TYPE_CHECKING, Any

from textual.app import SuspendNotSupported
from textual.content import Content

from explainer.errors import CannotStart, UsageError
from explainer.model.verdict import GREEN, RED
from explainer.tui.session import Applied, Explained, Session
from explainer.tui.settings import remember_command, remembered_command
from explainer.tui.widgets.text import prose, styled
from explainer.tui.work import PLAN, READ, RUN, TRACE, VERIFY, Failed, Worker
from explainer.tui.worker.live import Live
from explainer.tui.worker.reading import Reading

if TYPE_CHECKING:
    from explainer.model.incident import Incident
    from explainer.model.journal import Refused
    from explainer.model.repair import Run
    from explainer.model.report import Report
    from explainer.model.verification import Verification

HOW_TO_READ = """Give a log or a notebook: `gradfix ui train.log`. Or run the program here: `gradfix ui -- python train.py`.

`5` browses the rules, `q` quits."""


class Flow(Worker):
    """What happens between the keys and the session; the screens are the application's."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self._reading: Reading | None = None
        self._is_leaving = False

    def pane(self, name: str) -> Any:
        """The screen of that name."""
        raise NotImplementedError

    async def action_show(self, name: str) -> None:
        """Show a screen."""
        raise NotImplementedError

    async def redraw(self) -> None:
        """Draw what shows the state of the program."""
        raise NotImplementedError

    def draw_status(self) -> None:
        """Draw the line of the state."""
        raise NotImplementedError

    async def begin(self) -> None:
        """What the command line asked for: run a command, read a log, or nothing."""
        if self.session.command:
            await self.run_command()
        elif self.session.options.source is not None:
            await self.read(self.session.options.source)

    # Reading.

    async def read(self, source: str) -> None:
        """Read and explain a log, in a thread."""
        stream = self.session.options.stream if source == "-" else None
        reading = self._reading = Reading(source, stream)
        name = "standard input" if source == "-" else source
        await self.pane("finding").show_waiting(f"reading `{name}`")

        def work(_: Live) -> tuple[list[Incident], Explained]:
            incidents = reading.incidents()
            return incidents, self.session.explain(incidents[-1])

        self.start(READ, work, self._has_read)
        self.draw_status()

    async def _has_read(self, result: tuple[list[Incident], Explained] | Failed) -> None:
        self._reading = None
        if isinstance(result, Failed):
            await self.pane("finding").show_fault(result.reason, HOW_TO_READ)
            self.draw_status()
            return
        incidents, explained = result
        self.session.open(explained, incidents)
        await self._show_report()

    async def _show_report(self) -> None:
        await self.pane("finding").draw()
        await self.redraw()

    async def action_failure(self, way: int) -> None:
        """An earlier or later failure of the same log."""
        session = self.session
        at = session.failure + way
        if self.doing or not 0 <= at < len(session.incidents):
            return
        session.failure = at
        self.start(PLAN, lambda _: session.explain(session.incidents[at]), self._has_explained)

    async def _has_explained(self, result: Explained | Failed) -> None:
        if isinstance(result, Failed):
            self.complain(result)
            return
        self.session.open(result)
        await self._show_report()

    async def replan(self) -> None:
        """Plan the edits again: a file of the program has changed."""
        explained = self.session.explained
        if explained is None or self.doing:
            return
        incident = explained.planned.incident

        async def done(result: Explained | Failed) -> None:
            if isinstance(result, Failed):
                self.complain(result)
                return
            self.session.renew(result)
            await self._show_report()

        self.start(PLAN, lambda _: self.session.explain(incident), done)

    # Running.

    async def run_command(self) -> None:
        """Run the command and watch it; explain it where it fails."""
        await self._follow_in_verify("running")
        session = self.session

        def work(live: Live) -> tuple[Run, Explained | None]:
            from explainer.run import run_program

            job = session.job(live.is_stopped)
            run = run_program(job, live.on_output, is_shown=False, on_step=live.on_step)
            return run, session.present(run.report) if run.report is not None else None

        self.start(RUN, work, self._has_run)
        self.draw_status()

    async def _has_run(self, result: tuple[Run, Explained | None] | Failed) -> None:
        verify = self.pane("verify")
        if isinstance(result, Failed):
            await self._show_failed(result)
            return
        run, explained = result
        self.session.run = run
        if explained is None:
            said = (
                "the program ended well"
                if run.status == 0
                else f"it ended with status {run.status}, and nothing that it printed tells why"
            )
            style = "bold $text-success" if run.status == 0 else "bold $text-error"
            verify.end(Content.styled(said, style), f"{run.seconds:.0f} s   $ {self.session.command_line}")
            self.draw_status()
            return
        word = (
            f"failed with status {run.status}"
            if run.status
            else "suspect: it ended with status 0, but it does not train"
        )
        verify.end(
            Content.styled(word, "bold $text-error") + prose("   `1` shows why"),
            f"{run.seconds:.0f} s   $ {self.session.command_line}",
        )
        await self._open_run(explained)

    async def _open_run(self, explained: Explained) -> None:
        self.session.open(explained, [explained.planned.incident])
        await self._show_report()
        await self.action_show("finding")

    async def _follow_in_verify(self, title: str) -> None:
        self.clear_notifications()
        await self.action_show("verify")
        self.pane("verify").begin(title, self.session.command_line)

    async def _show_failed(self, failed: Failed) -> None:
        """Work that gave nothing: it was stopped, or the command is not there."""
        if self._is_leaving:
            self.exit(0)
            return
        hint = "" if failed.is_stopped else "   v asks for another command"
        if not failed.is_stopped:
            self.session.command = ()
        said = (
            Content.styled("stopped", "bold $text-warning")
            if failed.is_stopped
            else styled(failed.reason, "bold $text-error")
        )
        self.pane("verify").end(said, hint)
        if not failed.is_stopped:
            self.complain(failed)
        self.draw_status()

    # Verifying and tracing.

    async def action_verify(self) -> None:
        """Run the program for a few steps under watch; the first time the command is asked for."""
        if self.doing:
            self.notify(f"{self.doing} is on: x stops it", severity="warning")
            return
        if self.session.command:
            await self._verify()
        else:
            self._ask_command("How is the program started?", self._verify_with)

    async def action_trace(self) -> None:
        """Run the program again, each operation watched."""
        if self.doing or self.session.report is None:
            return
        if self.session.command:
            await self._trace()
        else:
            self._ask_command("How is the program started?", self._trace_with)

    def _ask_command(self, question: str, then: Any) -> None:
        from explainer.tui.screens.ask import Prompt

        session = self.session
        guess = remembered_command(session.root) or session.guess_command()
        self.push_screen(
            Prompt(prose(question, "bold"), guess, "enter runs it in the project's folder, escape gives up"), then
        )

    async def _verify_with(self, line: str | None) -> None:
        if self._take_command(line):
            await self._verify()

    async def _trace_with(self, line: str | None) -> None:
        if self._take_command(line):
            await self._trace()

    def _take_command(self, line: str | None) -> bool:
        """Take a command as it was typed, and remember it; whether there is one."""
        if not line:
            return False
        try:
            self.session.command = tuple(shlex.split(line))
        except ValueError as error:
            self.complain(Failed(f"{line}: {error}".lower()))
            return False
        remember_command(self.session.root, line)
        return bool(self.session.command)

    async def _verify(self) -> None:
        await self._follow_in_verify("verifying")
        session = self.session
        applied = session.last

        def work(live: Live) -> Verification:
            from explainer.fix.choice import Choice
            from explainer.repair import prove
            from explainer.verification.verify import verify_command

            job = session.job(live.is_stopped)
            if applied is None:
                return verify_command(job.command, job.root, job.watch, live.on_output, live.on_step)
            choice = Choice(finding=applied.finding, fix=applied.fix)
            return prove(job, session.target(), choice, live.tell, on_output=live.on_output, on_step=live.on_step)

        async def done(result: Verification | Failed) -> None:
            await self._has_verified(result, applied)

        self.start(VERIFY, work, done)
        self.draw_status()

    async def _has_verified(self, proof: Verification | Failed, applied: Applied | None) -> None:
        if isinstance(proof, Failed):
            await self._show_failed(proof)
            return
        from explainer.tui.screens.verify import verdict_of

        if applied is not None:
            applied.proof = proof
        pane = self.pane("verify")
        pane.end(
            verdict_of(
                proof, is_fixed=applied is not None, is_past_known=applied is None or self.session.run is not None
            ),
            f"{proof.seconds:.0f} s   $ {self.session.command_line}",
        )
        pane.show_health(proof, max(self.size.width * 3 // 5 if pane.is_wide else self.size.width, 64) - 4)
        if proof.verdict == GREEN:
            self.clear_notifications()
        elif proof.verdict == RED and applied is not None:
            self.notify("red: u takes the edit back", severity="error", timeout=6)
        await self.redraw()

    async def action_explain_next(self) -> None:
        """Explain what the program failed with in a red verification."""
        doubted = self.session.doubted
        if doubted is None or doubted.proof is None or self.doing:
            return
        session, proof = self.session, doubted.proof

        def work(live: Live) -> Explained | None:
            from explainer.ingest.text import read_text
            from explainer.run import explain_run

            found: Report | None = explain_run(
                list(read_text(proof.output)), proof.processes, session.job(live.is_stopped)
            )
            return (
                session.present(found) if found is not None and (found.findings or found.incident.exceptions) else None
            )

        async def done(result: Explained | Failed | None) -> None:
            if isinstance(result, Failed):
                self.complain(result)
            elif result is None:
                self.notify("it failed without an exception: the verdict says why", severity="warning")
            else:
                await self._open_run(result)

        self.start(PLAN, work, done)

    async def _trace(self) -> None:
        from explainer.model.repair import Run

        await self._follow_in_verify("tracing")
        session = self.session
        report = session.explained.planned if session.explained is not None else None
        run = session.run or Run(status=1, seconds=0.0, report=report)

        def work(live: Live) -> Explained | None:
            from explainer.run import sharpen

            traced = sharpen(session.job(live.is_stopped), run, live.tell, live.on_output)
            return session.present(traced.report) if traced is not run and traced.report is not None else None

        self.start(TRACE, work, self._has_traced)
        self.draw_status()

    async def _has_traced(self, result: Explained | Failed | None) -> None:
        if isinstance(result, Failed):
            await self._show_failed(result)
            return
        verify = self.pane("verify")
        if result is None:
            verify.end(
                prose("the trace saw nothing that was not known, or this failure is none that a trace can tell"), ""
            )
            self.draw_status()
            return
        verify.end(Content.styled("traced: the line is a fact now", "bold $text-success"), "")
        await self._open_run(result)
        self.notify("traced: the lines that it saw stand above the evidence")

    def action_stop(self) -> None:
        """Stop what runs."""
        if self._reading is not None:
            self._reading.stop()
        if self.doing:
            self.live.stop()
            self.notify(
                "what has come so far is explained" if self._reading is not None else f"{self.doing}: ending it",
                timeout=3,
            )

    def leave_now(self) -> None:
        """End what runs, then the interface."""
        if not self.doing:
            self.exit(0)
            return
        self._is_leaving = True
        self.action_stop()
        if self.doing not in (RUN, VERIFY, TRACE):
            self.exit(0)

    def fetch(self) -> None:
        """Show how far the reading is, or what the run said."""
        if self._reading is not None:
            self.pane("finding").show_reading(self._reading)
        if self.doing not in (RUN, VERIFY, TRACE):
            return
        lines, steps = self.live.fetch()
        pane = self.pane("verify")
        last = steps[-1] if steps else pane.last_step
        parts = [f"{self.seconds:.0f} s"]
        if last is not None:
            parts.append(f"step {last.step}")
            if last.memory:
                from explainer.tui.screens.verify import in_bytes

                parts.append(f"memory {in_bytes(last.memory)}")
        pane.feed(lines, steps, "   ".join([*parts, f"$ {self.session.command_line}"]))

    # Fixing.

    async def action_apply(self) -> None:
        """Apply the fix that is shown; an unsafe one after a question."""
        from explainer.fix.choice import DISPLAY
        from explainer.tui.screens.ask import Ask

        session = self.session
        if self.doing in (RUN, VERIFY, TRACE):
            self.notify("a run is on: x stops it", severity="warning")
            return
        fix = session.fix
        if fix is None or not fix.changes:
            await self._apply()
            return
        if fix.applicability == "safe" or session.is_applied(fix):
            await self._apply()
            return
        if fix.applicability == DISPLAY:
            self.notify(
                f"this edit is shown only: {fix.because or 'apply it by hand'}", severity="warning", markup=False
            )
            return
        question = prose(f"`{fix.id}` changes memory, speed or training. Apply it?")
        self.push_screen(Ask(question, fix.because, yes="Apply", no="Leave it"), self._answered_apply)

    async def _answered_apply(self, answer: bool | None) -> None:  # noqa: FBT001 - Textual's way of passing it
        if answer:
            await self._apply()

    async def _apply(self) -> None:
        from explainer.model.journal import Refused

        done = self.session.apply()
        if isinstance(done, Refused):
            self.notify(
                f"{done.reason}{await self._what_to_do(done)}",
                title="not applied",
                severity="warning",
                timeout=8,
                markup=False,
            )
            return
        names = ", ".join(os.path.relpath(one.file, done.record.root) for one in done.record.files)
        self.notify(f"{names} changed; v verifies, u takes it back", title=f"applied {done.fix.id}", markup=False)
        await self.action_show("fix")
        await self.redraw()

    async def _what_to_do(self, refused: Refused) -> str:
        if "has changed since" not in refused.reason:
            return ""
        await self.replan()
        return "; the edits are planned anew for it as it is now"

    async def action_edit_fix(self) -> None:
        """Change the fix before it is applied."""
        from explainer.model.journal import Refused
        from explainer.tui.screens.edit import EditFix
        from explainer.workflow import lines_of, texts_of

        planned = self.session.planned
        if planned is None:
            return
        texts = texts_of(planned[1])
        if isinstance(texts, Refused):
            self.notify(texts.reason, severity="warning", markup=False)
            return
        self.push_screen(EditFix(texts, lines_of(planned[1])), self._edited)

    async def _edited(self, texts: dict[str, str] | None) -> None:
        from explainer.model.journal import Refused

        if texts is None:
            return
        done = self.session.rewrite(texts)
        if isinstance(done, Refused):
            self.notify(done.reason, title="the fix stays as it was planned", severity="warning", markup=False)
        await self.redraw()

    # The editor.

    def _place(self) -> tuple[str, int] | None:
        """The file and line that the editor opens: the guilty one, else the fix's first."""
        session = self.session
        for culprit in session.finding.culprits if session.finding is not None else ():
            path = os.path.join(session.root, culprit.file)
            if os.path.isfile(path):
                return path, culprit.line or 1
        if session.planned is not None:
            from explainer.workflow import lines_of

            for name, line in lines_of(session.planned[1]).items():
                if os.path.isfile(name):
                    return name, line
        return None

    async def action_editor(self) -> None:
        """Open the line in the person's editor; the edits are planned anew where the file was changed."""
        place = self._place()
        if place is None:
            self.notify("no line of this program is known", severity="warning")
            return
        before = _content(place[0])
        try:
            with self.suspend():
                subprocess.run(editor_command(*place), check=False)
        except SuspendNotSupported:
            self.notify(
                f"{place[0]}:{place[1]}: this terminal cannot be lent to an editor", severity="warning", markup=False
            )
            return
        except (OSError, CannotStart, UsageError) as error:
            said = getattr(error, "strerror", None) or str(error)
            self.notify(
                f"{editor_command(*place)[0]}: {said.lower()}; $VISUAL or $EDITOR names another",
                severity="error",
                markup=False,
            )
            return
        self.refresh()
        if _content(place[0]) != before:
            await self.replan()

    def complain(self, failed: Failed) -> None:
        """Say why something gave nothing."""
        self.notify(failed.reason, severity="error", timeout=8, markup=False)


def editor_command(file: str, line: int) -> list[str]:
    """The person's editor at a line: `+LINE FILE`, which vi, emacs, nano and others read, or `--goto` for VS Code."""
    words = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi") or ["vi"]
    if os.path.basename(words[0]) in ("code", "code-insiders", "codium", "cursor"):
        return [*words, "--goto", f"{file}:{line}", *([] if "--wait" in words or "-w" in words else ["--wait"])]
    return [*words, f"+{line}", file]


def _content(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None
