"""`gradfix mcp`: explain, probe, rules, fix and verify for agents, over the Model Context Protocol on standard input and output."""

from __future__ import annotations

import functools
import inspect
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from explainer.errors import GradfixError, UsageError

if TYPE_CHECKING:
    from explainer.catalog.catalog import Catalog
    from explainer.fix.choice import Choice
    from explainer.model.incident import Incident
    from explainer.model.report import Report

INSTRUCTIONS = """gradfix turns a failed PyTorch training run into its root cause and a fix. Give `explain` the traceback or log \
(as text, or a path inside the project); then `fix` for the edits as diffs. Answers are JSON whose field `schema` names their form; \
`confidence` "certain" means proved. Where `findings` is empty, `unknown` says what to run next."""
MAX_LOG = 8 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What the server may do: read inside of `root`; write patches there, run programs there, only where allowed."""

    root: str
    allow_apply: bool = False
    allow_run: bool = False
    knowledge: str | None = None


class Tools:
    """The tools, as plain functions of plain data; each raises `GradfixError` with one line for the agent to act on."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._root = os.path.realpath(bounds.root)
        if not os.path.isdir(self._root):
            raise UsageError(f"--root {bounds.root}: no such folder")

    def explain(
        self,
        log: str | None = None,
        path: str | None = None,
        probe: bool = True,  # noqa: FBT001, FBT002 - tools are called by name
        form: Literal["json", "text"] = "json",
    ) -> dict[str, Any]:
        """Explain a failed PyTorch training run: root cause with evidence, guilty line, what to do and what not.

        Give `log`, the text of the traceback or log, or `path`, a log or .ipynb file inside the project. `probe` looks at the
        packages and GPU of this machine; leave it off for a log from another one. `form` "text" gives the card that a
        terminal would show.
        """
        from explainer.render.json import to_plain

        report = self._report(log, path, probe=probe)
        if form == "text":
            from explainer.render.terminal import Layout, render_terminal

            return {"schema": "gradfix.card/1", "text": render_terminal(report, Layout())}
        return dict(to_plain(report))

    def probe(self) -> dict[str, Any]:
        """The environment of this machine: interpreter, packages, GPUs and their abilities, driver. torch is not imported."""
        from explainer.probe.environment import probe_environment
        from explainer.render.json import to_plain

        return dict(to_plain(probe_environment()))

    def rules(self, action: Literal["list", "show", "search"], words: str = "", top: int = 8) -> dict[str, Any]:
        """Read the rule base of causes: `list` (of the family `words`, or all), `show` the page of the cause with the id `words`.

        `search` finds causes by message, operation, library or symptom; typos are fine.
        """
        from explainer.catalog.prose import page_of
        from explainer.catalog.search import find_cause, search

        catalog = self._catalog()
        if action == "show":
            cause = catalog.cause(find_cause(catalog, words))
            return {"schema": "gradfix.page/1", "id": cause.id, "text": page_of(cause, self._bounds.knowledge)}
        if action == "search":
            names = [one.cause for one in search(catalog, words, min(max(top, 1), 100), self._bounds.knowledge)]
        else:
            names = [one for one in catalog.cause_ids if words in ("", one.partition("/")[0])]
        causes = [catalog.cause(one) for one in names]
        rows = [{"id": one.id, "title": one.title, "summary": one.summary, "kind": one.kind} for one in causes]
        return {"schema": "gradfix.causes/1", "causes": rows}

    def fix(self, log: str | None = None, path: str | None = None, cause: str | None = None) -> dict[str, Any]:
        """The edits of the project's files that cure a failure, as unified diffs, most likely first; nothing is written.

        `applicability` "safe" keeps the mathematics, "unsafe" changes training, memory or speed and says which.
        """
        choices = self._choices(log, path, None, cause)
        return _fixes("shown" if choices else "nothing", choices)

    def apply(
        self, fix: str, log: str | None = None, path: str | None = None, cause: str | None = None
    ) -> dict[str, Any]:
        """Write one edit to the project's files: the one with the id `fix` of what the tool `fix` shows for the same failure.

        `undo` takes it back, byte for byte.
        """
        from explainer.model.journal import Refused
        from explainer.render.record import plain_record
        from explainer.workflow import apply

        choices = self._choices(log, path, fix, cause)
        if not choices:
            raise UsageError(f"no edit {fix!r} for this failure; the tool `fix` lists them")
        chosen = choices[0]
        done = apply(chosen.fix, cause=chosen.finding.cause, root=self._root, command="gradfix mcp")
        if isinstance(done, Refused):
            raise UsageError(f"refused: {done.reason}")
        return {**_fixes("applied", [chosen]), "applied": plain_record(done)}

    def undo(self, patch: str | None = None) -> dict[str, Any]:
        """Take an applied edit of this project back, byte for byte: the last one, or the one with the id `patch`."""
        from explainer.model.journal import APPLIED, Refused
        from explainer.render.record import plain_record
        from explainer.workflow import history, undo

        own = [one for one in history(self._root) if one.state == APPLIED and one.root == self._root]
        found = [one for one in own if patch is None or one.id.startswith(patch)][-1:]
        if not found:
            raise UsageError("no such patch is applied in this project")
        done = undo(found[0])
        if isinstance(done, Refused):
            raise UsageError(f"refused: {done.reason}")
        return {"schema": "gradfix.history/1", "records": [plain_record(done)]}

    async def verify(
        self, command: list[str], steps: int = 3, timeout: float = 600.0, device: str = "auto"
    ) -> dict[str, Any]:
        """Run a training program for a few optimizer steps and judge its losses and gradients: green, red or inconclusive.

        `command` is the program with its arguments, as in ["python", "train.py"]; it runs in the project. Trackers are off,
        saves go elsewhere, the project's files are put back as they were.
        """
        import anyio

        if not self._bounds.allow_run:
            raise UsageError("verify runs programs, and this server may not: start it with `gradfix mcp --allow-run`")
        if not command or not 1 <= steps <= 100_000 or not 1 <= timeout <= 86_400:
            raise UsageError("verify wants a command, 1 to 100000 steps, and a timeout of 1 to 86400 seconds")
        # A process of its own takes signals in its main thread: when the call is given up, it ends what it started and
        # puts the project's files back.
        words = [
            sys.executable,
            "-m",
            "gradfix",
            "verify",
            "--format",
            "json",
            "--root",
            self._root,
            "--steps",
            str(steps),
        ]
        words += ["--timeout", str(timeout), "--device", device, "--", *command]
        async with await anyio.open_process(words, stdin=subprocess.DEVNULL, cwd=self._root) as child:
            told: list[bytes] = []
            try:
                async with anyio.create_task_group() as group:
                    group.start_soon(_take, child.stderr, [])
                    group.start_soon(_take, child.stdout, told)
                await child.wait()
            except BaseException:
                child.terminate()
                with anyio.CancelScope(shield=True):
                    await child.wait()
                raise
        answer: dict[str, Any] = json.loads(b"".join(told) or b"{}")
        if answer.get("schema") == "gradfix.error/1":
            raise UsageError(answer["error"])
        answer["output"] = answer.get("output", "")[-4000:]
        return answer

    def _catalog(self) -> Catalog:
        from explainer.catalog.bundle import load_catalog

        return load_catalog(self._bounds.knowledge)

    def _incident(self, log: str | None, path: str | None) -> Incident:
        """What failed: of a text, or of a file inside the project. Of several failures the last one counts."""
        from explainer.workflow import read_incidents, read_log

        if (log is None) == (path is None):
            raise UsageError("give `log`, the text of the failure, or `path`, a file inside the project: one of them")
        if path is not None:
            return read_log(self._inside(path), stream=None, tracebacks_only=False, on_chunk=None)[-1]
        assert log is not None
        return read_incidents(log[-MAX_LOG:])[-1]

    def _inside(self, path: str) -> str:
        """The real path of a file inside the project; links are followed before it is looked where they lead."""
        real = os.path.realpath(os.path.join(self._root, path))
        if not real.startswith(self._root.rstrip(os.sep) + os.sep):
            raise UsageError(f"{path}: lies outside of the project {self._root}")
        return real

    def _report(self, log: str | None, path: str | None, *, probe: bool) -> Report:
        from explainer.workflow import present

        report = self._planned(log, path, probe=probe)
        return present(report, root=self._root, mask=True, is_bound=True)

    def _planned(self, log: str | None, path: str | None, *, probe: bool) -> Report:
        """The report with its edits. Nothing is written: what a killed gradfix left in the journal stays."""
        from explainer.workflow import explain_incident, plan_report

        incident, catalog, environment = self._incident(log, path), self._catalog(), None
        if probe:
            from explainer.probe.environment import is_from_elsewhere, probe_environment

            environment = None if is_from_elsewhere(incident) else probe_environment()
        return plan_report(explain_incident(incident, environment, catalog), catalog, self._root)

    def _choices(self, log: str | None, path: str | None, fix: str | None, cause: str | None) -> list[Choice]:
        from explainer.fix.choice import list_choices

        return list(list_choices(self._planned(log, path, probe=True), fix=fix, cause=cause))


def _fixes(status: str, choices: list[Choice]) -> dict[str, Any]:
    """Edits in the form of `gradfix fix --format json`."""
    from explainer.render.json import to_plain
    from explainer.render.mask import mask_text

    rows = [
        {"cause": one.finding.cause, "confidence": one.finding.confidence, **to_plain(one.fix), "patch": mask_text(one.fix.patch or "")}
        for one in choices
    ]  # fmt: skip
    return {"schema": "gradfix.fix/1", "status": status, "reason": None, "fixes": rows, "applied": None}


async def _take(stream: Any, into: list[bytes]) -> None:
    """Read a stream to its end."""
    into.extend([part async for part in stream])


def make_server(bounds: Bounds) -> Any:
    """The server with the tools that it may offer: without leave to write there is no `apply` and no `undo`.

    Raises:
        GradfixError: the SDK is not installed.
    """
    try:
        from mcp.types import ToolAnnotations
    except ImportError as error:
        raise GradfixError(
            "gradfix mcp needs the MCP SDK, which is not installed: pip install 'gradfix[mcp]'"
        ) from error
    from explainer import __version__

    tools = Tools(bounds)
    server, fault = _new_server(__version__)

    def offer(function: Callable[..., Any], *, is_reading: bool) -> None:
        hints = {"readOnlyHint": is_reading, "destructiveHint": False, "openWorldHint": False}
        server.tool(annotations=ToolAnnotations.model_validate(hints))(_told(function, fault))

    reading: list[Callable[..., Any]] = [tools.explain, tools.probe, tools.rules, tools.fix]
    writing: list[Callable[..., Any]] = [tools.apply, tools.undo] if bounds.allow_apply else []
    for function in reading:
        offer(function, is_reading=True)
    for function in (tools.verify, *writing):
        offer(function, is_reading=False)
    return server


def _told(function: Callable[..., Any], fault: type[Exception]) -> Callable[..., Any]:
    """A tool whose errors reach the agent as the SDK's own kind, of which alone it passes the text on."""
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def waited(*arguments: Any, **keywords: Any) -> Any:
            try:
                return await function(*arguments, **keywords)
            except GradfixError as error:
                raise fault(str(error)) from error

        return waited

    @functools.wraps(function)
    def called(*arguments: Any, **keywords: Any) -> Any:
        try:
            return function(*arguments, **keywords)
        except GradfixError as error:
            raise fault(str(error)) from error

    return called


def _new_server(version: str) -> tuple[Any, type[Exception]]:
    """A server of the SDK and its error for tools: `MCPServer` from release 2 on, `FastMCP` before."""
    try:
        from mcp.server.mcpserver import MCPServer
        from mcp.server.mcpserver.exceptions import ToolError
    except ImportError:
        from mcp.server.fastmcp import FastMCP
        from mcp.server.fastmcp.exceptions import ToolError

        return FastMCP("gradfix", instructions=INSTRUCTIONS, log_level="CRITICAL"), ToolError
    return MCPServer("gradfix", instructions=INSTRUCTIONS, version=version, log_level="CRITICAL"), ToolError


def serve(bounds: Bounds) -> None:
    """Answer on standard input and output until the client goes."""
    make_server(bounds).run("stdio")
