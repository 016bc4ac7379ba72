"""What changes files: a fix applied, a fix edited before it is, and the person's own editor."""

from __future__ import annotations

import os
import shlex
import subprocess
from typing import TYPE_CHECKING

from textual.app import SuspendNotSupported

from explainer.errors import CannotStart, UsageError
from explainer.tui.flow import Flow
from explainer.tui.widgets.text import prose
from explainer.tui.work import RUN, TRACE, VERIFY, Failed

if TYPE_CHECKING:
    from explainer.fix.choice import Choice
    from explainer.model.journal import Refused
    from explainer.proof import Target
    from explainer.tui.worker.live import Live


class Fixing(Flow):
    """The keys that change what lies in the project's files."""

    _is_looking = False

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
        choice = self.session.to_look
        if choice is not None:
            await self._apply_after_a_look(choice)
        else:
            await self._write()

    async def _apply_after_a_look(self, choice: Choice) -> None:
        """Apply an edit that may falsify gradients once those of the program as it is are known, to hold it against."""
        await self._follow_in_verify("its gradients before the edit")
        session, fix = self.session, self.session.fix

        def work(live: Live) -> Target | None:
            from explainer.proof import with_look

            return session.target and with_look(session.job(live.is_stopped), session.target, choice)

        async def done(result: Target | Failed | None) -> None:
            self._is_looking = False
            if isinstance(result, Failed):
                await self._show_failed(result)
                return
            session.target = result
            self.pane("verify").end(prose("its first gradients are known"), "")
            if session.fix is fix:
                await self._write()

        self._is_looking = True
        self.start(VERIFY, work, done)
        self.draw_status()

    @property
    def is_on_the_way(self) -> bool:
        """Whether the program runs as it is, for gradients to hold the edit against that is written then."""
        return self._is_looking

    async def _write(self) -> None:
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
