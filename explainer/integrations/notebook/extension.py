"""The IPython extension: a card below the traceback of a failed cell, and `%gradfix` to go on from it."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from explainer.errors import GradfixError, UsageError
from explainer.integrations.notebook.session import Ran, Session, as_notebook, as_script, changed_cells, placed
from explainer.integrations.sighting import recall_here

if TYPE_CHECKING:
    from explainer.fix.choice import Choice
    from explainer.model.report import Report
    from explainer.source.notebook import Notebook

HELP = """%gradfix                the last failure again
%gradfix apply [FIX]    put the fixed cell into the next one; FIX is the id of another edit
%gradfix trace          run the failed cell again, each operation watched
%gradfix verify [STEPS] run the cells of this session, the fixed one among them, for a few steps in another process"""
MAX_MODULES = 40
_loaded: list[Extension] = []


@dataclass(frozen=True, slots=True)
class Failed:
    """The last failure that was explained: its cell, the program it is part of, the report with its edits, and as shown."""

    cell: Ran
    cells: list[Ran]
    notebook: Notebook
    planned: Report
    report: Report

    @property
    def choices(self) -> list[Choice]:
        """The edits that cure it, first of the session's cells."""
        from explainer.fix.choice import list_choices

        return sorted(list_choices(self.planned), key=lambda one: not changed_cells(one.fix, self.notebook))


class Extension:
    """What is known of one shell's session."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._session = Session()
        self._folder = tempfile.TemporaryDirectory(prefix="gradfix-notebook-")
        self._numbers: dict[str, int] = {}
        self._last: Failed | None = None
        self._is_quiet = False
        history = getattr(getattr(shell, "history_manager", None), "input_hist_raw", [])
        for number, text in enumerate(history):
            self._remember(Ran(number=number, text=text))

    def _remember(self, cell: Ran) -> None:
        """Keep a cell, and the name of the file that IPython makes up for it."""
        self._session.add(cell)
        self._numbers[self._file_of(cell.text)] = cell.number

    def _file_of(self, text: str) -> str:
        try:
            code = self._shell.transform_cell(text)
        except SyntaxError:
            return ""
        return str(self._shell.compile.get_code_name(text, code, self._shell.execution_count))

    def after_cell(self, result: Any) -> None:
        """Explain a cell that failed; IPython has shown the traceback by now."""
        number, info = result.execution_count, result.info
        if self._is_quiet or number is None or info is None:
            return
        error = result.error_in_exec
        cell = Ran(
            number=number,
            text=info.raw_cell,
            cell_id=getattr(info, "cell_id", None),
            has_failed=error is not None or result.error_before_exec is not None,
        )
        self._session.add(cell)
        # Not before the cell has run: a name that IPython numbers holds the number that the cell had then.
        self._shell.execution_count, now = number, self._shell.execution_count
        try:
            self._numbers[self._file_of(cell.text)] = number
        finally:
            self._shell.execution_count = now
        if isinstance(error, Exception):
            self._answer(lambda: self._explain(cell, error))

    def _answer(self, work: Callable[[], None]) -> None:
        """Do what was asked for; whatever goes wrong with us is one line."""
        try:
            work()
        except GradfixError as error:
            print(f"gradfix: {error}", file=sys.stderr)
        except Exception as error:  # the outermost frame: the user's cell is over, and its traceback is what counts
            if os.environ.get("GRADFIX_DEBUG"):
                raise
            print(f"gradfix: internal error: {type(error).__name__}: {error}", file=sys.stderr)

    def _explain(self, cell: Ran, error: BaseException, before: Failed | None = None) -> None:
        """Show the card of a failure whose cause is known, and keep it; nothing for any other. `before` is the same, untraced."""
        found = self._find(cell, error)
        if found.report.findings:
            seen = before.report.seen if before is not None else None
            report = recall_here(found.report, way="notebook") if before is None else replace(found.report, seen=seen)
            self._last = replace(found, report=report)
            self._show(self._last)

    def _find(self, cell: Ran, error: BaseException) -> Failed:
        """The report of a failure of a cell, with the edits of the session's cells, else of the modules beside the notebook."""
        from explainer.catalog.bundle import load_catalog
        from explainer.workflow import explain_incident, plan_report, present, read_incidents

        cells = self._session.cells(cell)
        notebook = as_notebook(cells, self._folder.name)
        catalog = load_catalog(None)
        incident = placed(read_incidents(error)[-1], notebook, self._numbers)
        report = explain_incident(incident, None, catalog)
        planned = plan_report(report, catalog, os.path.dirname(notebook.path))
        if not any(fix.changes for finding in planned.findings for fix in finding.fixes):
            unplaced = replace(report, incident=replace(incident, source=None))
            beside = plan_report(unplaced, catalog, os.getcwd(), _modules_here())
            planned = beside if any(fix.changes for one in beside.findings for fix in one.fixes) else planned
        shown = present(planned, root=os.path.dirname(notebook.path), mask=True)
        return Failed(cell=cell, cells=cells, notebook=notebook, planned=planned, report=shown)

    def _show(self, failed: Failed) -> None:
        """The card: HTML where the front end shows it, else text."""
        from IPython.display import display

        from explainer.render.html import render_html
        from explainer.render.terminal import Layout, render_terminal

        is_terminal = type(self._shell).__name__ == "TerminalInteractiveShell"
        is_coloured = is_terminal and sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        hint = self._hint(failed)
        text = render_terminal(failed.report, Layout(is_coloured=is_coloured)) + f"\n{hint}"
        if is_terminal:
            print(f"\n{text}")
            return
        page = (
            render_html(failed.report) + f"<p><small><code>{hint.replace('   ', '</code> · <code>')}</code></small></p>"
        )
        display({"text/plain": text, "text/html": page}, raw=True)

    def _hint(self, failed: Failed) -> str:
        """What to type next, of what there is to do."""
        has_edit = any(changed_cells(one.fix, failed.notebook) for one in failed.choices)
        return "   ".join([*(["%gradfix apply"] if has_edit else []), "%gradfix trace", "%gradfix verify"])

    def magic(self, line: str) -> None:
        """`%gradfix [apply [FIX] | trace | verify [STEPS]]`."""
        words = shlex.split(line)
        name, rest = (words[0], words[1:]) if words else ("show", [])
        known = {"show": self._again, "apply": self._apply, "trace": self._trace, "verify": self._verify}
        if name not in known or len(rest) > (name in ("apply", "verify")):
            print(HELP)
            return
        self._answer(lambda: known[name](*rest))

    def _failed(self) -> Failed:
        if self._last is None:
            raise UsageError("no cell has failed yet in a way that gradfix knows")
        return self._last

    def _again(self) -> None:
        self._show(self._failed())

    def _choose(self, failed: Failed, wanted: str | None) -> Choice:
        """The edit that was named, else the first one of a cell."""
        found = [one for one in failed.choices if wanted in (None, one.fix.id)]
        if not found:
            names = ", ".join(dict.fromkeys(one.fix.id for one in failed.choices)) or "none"
            raise UsageError(f"there is no such edit; those of this failure: {names}")
        return found[0]

    def _apply(self, wanted: str | None = None) -> None:
        """Put the fixed cell into the next one; no file changes."""
        failed = self._failed()
        choice = self._choose(failed, wanted)
        changed = changed_cells(choice.fix, failed.notebook)
        if not changed:
            raise UsageError(f"`{choice.fix.id}` edits a module, not a cell; its diff is in the card")
        self._shell.set_next_input("\n\n".join(changed[number] for number in sorted(changed)), replace=False)
        names = ", ".join(f"In[{number}]" for number in sorted(changed))
        then = "" if failed.cell.number in changed else f"; after it run In[{failed.cell.number}] again"
        print(
            f"{choice.fix.title}\nthe next cell is {names} with the fix `{choice.fix.id}` ({choice.fix.applicability}){then}"
        )
        if choice.fix.because:
            print(f"note: {choice.fix.because}")

    def _trace(self) -> None:
        """Run the failed cell again under the tracer, and explain what comes."""
        from explainer.integrations.tracing import trace

        failed, error = self._failed(), None
        self._is_quiet = True
        try:
            with trace() as seen:
                result = self._shell.run_cell(failed.cell.text, store_history=False)
                error = result.error_in_exec
                result.raise_error()
        except Exception as raised:  # the cell's own, which IPython has shown
            if raised is not error:
                raise
        finally:
            self._is_quiet = False
        self._numbers[self._file_of(failed.cell.text)] = failed.cell.number
        if error is not None:
            self._explain(failed.cell, error, before=failed)
        if not seen.lines:
            print("gradfix: the trace saw no line in this cell; what failed may have been computed in an earlier one")
        for one in seen.lines:
            print(f"traced: {self._place(one.file)}, line {one.line}: {one.says}")

    def _place(self, file: str) -> str:
        number = self._numbers.get(file)
        return f"Cell In[{number}]" if number is not None else file

    def _verify(self, steps: str = "3") -> None:
        """Run the session's cells, the fixed one among them, from their beginning in another process, for a few steps."""
        if not steps.isdigit() or not 1 <= int(steps) <= 100_000:
            raise UsageError(f"%gradfix verify {steps}: a number of optimizer steps is wanted")
        from explainer.render.verification import render_verification
        from explainer.verification.verify import Watch, verify_command

        failed = self._failed()
        changed = changed_cells(failed.choices[0].fix, failed.notebook) if failed.choices else {}
        path = os.path.join(self._folder.name, "session.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(as_script(failed.cells, changed))
        names = ", ".join(f"In[{one.number}]{' (fixed)' * (one.number in changed)}" for one in failed.cells)
        print(f"running {names} from the beginning, in another process; magics and shell commands are left out")
        # The notebook's own folder comes first on the path, as in its kernel; the script's is none of the program's.
        start = f"import runpy, sys; sys.path.insert(0, ''); runpy.run_path({path!r}, run_name='__main__')"
        proof = verify_command((sys.executable, "-c", start), os.getcwd(), Watch(steps=int(steps)))
        print(render_verification(proof, is_coloured=False).strip("\n"))


def _modules_here() -> list[str]:
    """The files of the modules that the session has imported from its working directory."""
    from explainer.source.place import is_inside

    here = os.path.realpath(os.getcwd())
    files = [getattr(one, "__file__", None) for one in list(sys.modules.values())]
    found = [os.path.realpath(one) for one in files if isinstance(one, str) and one.endswith(".py")]
    return [one for one in dict.fromkeys(found) if is_inside(one, here)][:MAX_MODULES]


def load(shell: Any) -> None:
    """Take part in a shell's cells; a second call changes nothing."""
    if _loaded:
        return
    extension = Extension(shell)
    _loaded.append(extension)
    shell.events.register("post_run_cell", extension.after_cell)
    shell.register_magic_function(extension.magic, "line", "gradfix")


def unload(shell: Any) -> None:
    """Take no more part."""
    if _loaded:
        shell.events.unregister("post_run_cell", _loaded.pop().after_cell)
        shell.magics_manager.magics["line"].pop("gradfix", None)
