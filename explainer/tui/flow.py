"""The way of a repair through the screens: read or run, explain, apply, verify, trace, edit."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from textual.content import Content

from explainer.model.verdict import GREEN, RED
from explainer.tui.session import Applied, Explained, Session
from explainer.tui.settings import remember_command, remembered_command
from explainer.tui.widgets.text import prose, styled
from explainer.tui.work import PLAN, READ, RUN, TRACE, VERIFY, Failed, Worker
from explainer.tui.worker.live import Live
from explainer.tui.worker.reading import Reading

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from explainer.model.incident import Incident
    from explainer.model.repair import Run
    from explainer.model.report import Report
    from explainer.model.verification import Verification
    from explainer.proof import Target

HOW_TO_READ = """Give a log or a notebook: `gradfix ui train.log`. Or run the program here: `gradfix ui -- python train.py`.

`5` browses the rules, `q` quits."""


class Flow(Worker):
    """What happens between the keys and the session; the screens are the application's."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self._reading: Reading | None = None
        self._is_leaving = self._verifies_next = False

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

    @property
    def is_on_the_way(self) -> bool:
        """Whether the work that is on ends with an edit written."""
        return False

    async def begin(self) -> None:
        """What the command line asked for: run a command, read a log, or nothing."""
        if self.session.command:
            await self.run_command()
        elif self.session.options.source is not None:
            await self.read(self.session.options.source)
        self._has_begun = True

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
        from explainer.memory import why_unusable

        why = why_unusable()
        if why is not None:
            self.notify(why, severity="warning", markup=False)
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

        self.start(PLAN, lambda _: self.session.explain(incident, is_new=False), done)

    # Running.

    async def run_command(self) -> None:
        """Run the command and watch it; explain it where it fails."""
        await self._follow_in_verify("running")
        session = self.session

        def work(live: Live) -> tuple[Run, Target, Explained | None]:
            from explainer.proof import target_of
            from explainer.run import run_program

            job = session.job(live.is_stopped)
            run = run_program(job, live.on_output, is_shown=False, on_step=live.on_step)
            return run, target_of(run, job.root), session.present_run(run)

        self.start(RUN, work, self._has_run)
        self.draw_status()

    async def _has_run(self, result: tuple[Run, Target, Explained | None] | Failed) -> None:
        verify = self.pane("verify")
        if isinstance(result, Failed):
            await self._show_failed(result)
            return
        run, target, explained = result
        self.session.run, self.session.target = run, target
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
            else "suspect: it ended with status 0, but does not train as meant"
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
        if self.doing and self.is_on_the_way:
            self._verifies_next = True
            self.notify("the edit is verified as soon as it is written", timeout=3)
            return
        if self.doing:
            self.notify(f"{self.doing} is on: x stops it", severity="warning")
            return
        if self.session.command:
            await self._verify()
        else:
            self._ask_command("How is the program started?", self._verify_with)

    async def _end(self, result: Any, done: Callable[[Any], Awaitable[None]]) -> None:
        was, before = self.is_on_the_way, self.session.last
        await super()._end(result, done)
        if was and not self.doing:
            # Asked for while the edit was still on its way: only where it has been written meanwhile.
            is_wanted, self._verifies_next = self._verifies_next and self.session.last is not before, False
            if is_wanted:
                await self.action_verify()

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
            from explainer.proof import Target, prove
            from explainer.verification.verify import verify_command

            job = session.job(live.is_stopped)
            if applied is None:
                proof = verify_command(job.command, job.root, job.watch, live.on_output, live.on_step)
            else:
                choice = Choice(finding=applied.finding, fix=applied.fix)
                proof = prove(
                    job, session.target or Target(), choice, live.tell, on_output=live.on_output, on_step=live.on_step
                )
            session.note_proof(proof, applied)
            return proof

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
            if found is None or not (found.findings or found.incident.exceptions):
                return None
            return session.remember(session.present(found), way="run")

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
            return session.present_again(traced.report) if traced is not run and traced.report is not None else None

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
        self._verifies_next = False
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

    def complain(self, failed: Failed) -> None:
        """Say why something gave nothing."""
        self.notify(failed.reason, severity="error", timeout=8, markup=False)
