"""The handler that takes an exception, as the source of the program says it."""

from __future__ import annotations

import pathlib
import sys

import pytest

from explainer.live.handler import Handler, handler_of

HEAD = """import contextlib


def fail():
    note()
    raise RuntimeError("it failed")


"""
NONE = {
    "another exception": "try:\n    fail()\nexcept KeyError:\n    pass\n",
    "what stands around a definition": "try:\n    def inner():\n        fail()\nexcept Exception:\n    pass\ninner()\n",
    "a handler's own body": "try:\n    raise KeyError\nexcept Exception:\n    fail()\n",
    "what follows": "try:\n    pass\nexcept Exception:\n    pass\nelse:\n    fail()\n",
    "handed on": "try:\n    try:\n        fail()\n    except RuntimeError as error:\n        raise KeyError from error\nexcept KeyError:\n    pass\n",
    "another context": "with contextlib.nullcontext():\n    fail()\n",
    "another one suppressed": "with contextlib.suppress(OSError):\n    fail()\n",
}
FOUND = {
    "a tuple": ("try:\n    fail()\nexcept (OSError, RuntimeError):\n    print('no', 'file')\n", {"OSError", "RuntimeError"}, "no file"),
    "the second": ("try:\n    fail()\nexcept KeyError:\n    x = 'a'\nexcept RuntimeError:\n    x = 'b'\n", {"RuntimeError"}, "b"),
    "a bare one": ("try:\n    fail()\nexcept:\n    x = f'{1} more'\n", {"BaseException"}, " more"),
    "suppressed": ("with contextlib.suppress(KeyError, RuntimeError):\n    fail()\n", {"KeyError", "RuntimeError"}, ""),
    "of a caller": ("def tries():\n    fail()\n\n\nfor _ in range(1):\n    try:\n        tries()\n    except Exception:\n        pass\n",
                    {"Exception"}, ""),
    "raised again on demand": ("try:\n    fail()\nexcept Exception:\n    if not HEAD:\n        raise\n", {"Exception"}, ""),
}  # fmt: skip
HEAD += "HEAD = True\n"


def found_in(folder: pathlib.Path, body: str) -> Handler | None:
    """What takes the exception of a program that is run."""
    path, seen = folder / "train.py", []
    path.write_text(HEAD + body)

    def note() -> None:
        seen.append(handler_of(sys._getframe(1), "RuntimeError", lambda code: code.co_filename == str(path)))

    try:
        exec(compile(HEAD + body, str(path), "exec"), {"note": note})  # noqa: S102
    except RuntimeError:
        pass
    return seen[0]


@pytest.mark.parametrize("body", NONE.values(), ids=NONE)
def test_nothing_of_the_program_takes_it(tmp_path: pathlib.Path, body: str) -> None:
    assert found_in(tmp_path, body) is None


@pytest.mark.parametrize(("body", "names", "words"), FOUND.values(), ids=FOUND)
def test_the_handler_is_found(tmp_path: pathlib.Path, body: str, names: set[str], words: str) -> None:
    assert found_in(tmp_path, body) == Handler(frozenset(names), words)
