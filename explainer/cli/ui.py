"""`gradfix ui`: opens the interface, in the terminal or a browser; plain text where the terminal cannot show it."""

from __future__ import annotations

import gc
import importlib.util
import os
import shlex
import sys
from dataclasses import dataclass

from explainer.cli.screen import is_terminal
from explainer.errors import UsageError

_WEB_DRIVER = "TEXTUAL_DRIVER"  # set by textual-serve in the process that it serves


@dataclass(frozen=True, slots=True, kw_only=True)
class UiOptions:
    """The options of `gradfix ui`; `command` is what stands behind `--`."""

    file: str | None
    command: tuple[str, ...] = ()
    root: str | None = None
    steps: int = 3
    timeout: float = 600.0
    probe: bool = True
    env: str | None = None
    knowledge: str | None = None
    mask: bool = True
    web: bool = False
    port: int = 8000


def run_ui(options: UiOptions) -> int:
    """Open the interface; its exit status, or that of the plain text instead."""
    if options.file is not None and options.command:
        raise UsageError("ui takes a FILE or a command behind --, not both")
    if options.root is not None and not os.path.isdir(options.root):
        raise UsageError(f"--root {options.root}: no such folder")
    source = options.file
    if source is None and not options.command and not options.web and not _is_served() and not is_terminal(sys.stdin):
        source = "-"
    if options.web:
        return _serve(options, source)
    why_not = _why_no_interface(source)
    if why_not is not None:
        print(f"gradfix: {why_not}: here is the plain text instead", file=sys.stderr)
        return _plain(options, source)
    return _open(options, source)


def _is_served() -> bool:
    return bool(os.environ.get(_WEB_DRIVER))


def _why_no_interface(source: str | None) -> str | None:
    """Why this terminal cannot show the interface; None where it can. NO_COLOR it obeys by itself."""
    if _is_served():
        return None
    if importlib.util.find_spec("textual") is None:
        return "textual is not installed (pip install textual)"
    if os.environ.get("TERM", "dumb") in ("", "dumb", "unknown"):
        return "TERM names no terminal that can show an interface"
    if not is_terminal(sys.stderr):  # Textual draws on standard error
        return "standard error is no terminal"
    if source == "-" or not is_terminal(sys.stdin):
        return None if _has_keyboard() else "there is no terminal to read keys from"
    return None


def _has_keyboard() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


def _open(options: UiOptions, source: str | None) -> int:
    stream = None if _is_served() else _take_keyboard()
    if source == "-" and stream is None and not _is_served():
        raise UsageError("- reads a pipe, and standard input is a terminal: give a log, or pipe one in")
    # Until the first screen stands next to nothing is thrown away; the application collects again from then on.
    gc.disable()
    # What the program prints is to be seen as it is printed; a pipe would keep it back.
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    from explainer.tui.app import GradfixApp
    from explainer.tui.session import Options

    app = GradfixApp(
        Options(
            root=os.path.realpath(options.root or os.getcwd()),
            source=source,
            stream=stream,
            command=options.command,
            probe=options.probe,
            env=options.env,
            knowledge=options.knowledge,
            mask=options.mask,
            steps=options.steps,
            timeout=options.timeout,
        )
    )
    status = 1
    try:
        status = app.run() or app.return_code or 0
    finally:
        app.end_work()
        _leave_a_stuck_reader(status)
    return status


def _leave_a_stuck_reader(status: int) -> None:
    """End the process where Textual's reader of keys does not: of a terminal that has gone it reads the end for ever."""
    import threading

    for reader in threading.enumerate():
        if reader.name == "textual-input":
            reader.join(2.0)
            if reader.is_alive():
                os._exit(status)


def _take_keyboard() -> int | None:
    """Where standard input is no terminal: its descriptor under another number, and the terminal in its place."""
    if is_terminal(sys.stdin):
        return None
    piped = os.dup(0)
    keyboard = os.open("/dev/tty", os.O_RDWR)
    os.dup2(keyboard, 0)
    os.close(keyboard)
    return piped


def _plain(options: UiOptions, source: str | None) -> int:
    """What `explain` or `run` prints."""
    if options.command:
        from explainer.cli.run import RunOptions, run_and_explain

        return run_and_explain(
            RunOptions(
                command=options.command,
                fix=False,
                unsafe=False,
                trace=False,
                keep_unproved=False,
                dry_run=False,
                steps=options.steps,
                timeout=None,
                report_dir=None,
                root=options.root,
                format="text",
                probe=options.probe,
                knowledge=options.knowledge,
            )
        )
    if source is None:
        raise UsageError("there is nothing to explain: give a log, or a command behind --")
    from explainer.cli.explain import run_explain
    from explainer.cli.options import ExplainOptions

    return run_explain(
        ExplainOptions(
            files=(source,),
            probe=options.probe,
            env=options.env,
            knowledge=options.knowledge,
            root=options.root,
            mask=options.mask,
        )
    )


def _serve(options: UiOptions, source: str | None) -> int:
    """Serve the interface to a browser on this machine."""
    if source == "-":
        raise UsageError("--web cannot read a pipe: give a log, or a command behind --")
    if importlib.util.find_spec("textual_serve") is None:
        raise UsageError('--web needs textual-serve: pip install "gradfix[web]"')
    from textual_serve.server import Server

    print(f"gradfix: http://localhost:{options.port} (Ctrl-C ends it)", file=sys.stderr, flush=True)
    Server(shlex.join(_again(options)), host="localhost", port=options.port, title="gradfix").serve()
    return 0


def _again(options: UiOptions) -> list[str]:
    """The command that opens the same interface without --web."""
    words = [sys.executable, "-m", "gradfix", "ui", "--steps", str(options.steps), "--timeout", str(options.timeout)]
    for name, value in (("--root", options.root), ("--env", options.env), ("--knowledge", options.knowledge)):
        words += [name, value] if value is not None else []
    words += [] if options.probe else ["--no-probe"]
    words += [] if options.mask else ["--no-mask"]
    words += [options.file] if options.file is not None else []
    return [*words, "--", *options.command] if options.command else words
