"""The program `gradfix`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from explainer.cli.failure import error_object, fail, wants_json
from explainer.errors import GradfixError

_GONE = "the current folder has been deleted: change to another one"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status; every error is one line on standard error."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _run(words)
    except GradfixError as error:
        return fail(_GONE if _is_folder_gone() else str(error), 2, is_json=wants_json(words))
    except KeyboardInterrupt:
        if wants_json(words):
            print(error_object("interrupted", 130))
        return 130
    except BrokenPipeError:
        # The reader has gone (`| head`): nothing is left to say, and Python must not try to flush again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except Exception as error:  # the outermost frame: a fault of ours is one line too
        if os.environ.get("GRADFIX_DEBUG"):
            raise
        message = f"internal error: {type(error).__name__}: {error} (GRADFIX_DEBUG=1 shows where)"
        return fail(_GONE if _is_folder_gone() else message, 2, is_json=wants_json(words))


def _is_folder_gone() -> bool:
    """Whether the folder that the command runs in has been deleted: whatever failed then failed for that."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def _run(words: list[str]) -> int:
    if words[:1] == ["explain"]:
        from explainer.cli.quick import parse_quickly

        options = parse_quickly(words[1:])
        if options is not None:
            from explainer.cli.explain import run_explain

            return run_explain(options)
    if words[:1] == ["ui"]:
        from explainer.cli.quick import parse_ui_quickly

        interface = parse_ui_quickly(words[1:])
        if interface is not None:
            from explainer.cli.ui import run_ui

            return run_ui(interface)
    from explainer.cli.app import run_app

    return run_app(words)
