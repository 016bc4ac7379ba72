"""A Python that has torch already: it runs a script in a fork of a process that has imported it, in a tenth of the time.

What a script sees is what it would see of an interpreter of its own: its folder, environment, streams and signals, a
`sitecustomize` that is run as it starts, `__main__`, its exit status. Only that torch is imported before it begins. Tests
that are about the start of a program take `sys.executable`; the others are about what it does once it runs.
"""

from __future__ import annotations

import atexit
import functools
import gc
import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid

STREAMS = 3
PATIENCE = 300.0  # seconds in which torch is imported on any machine
ASKED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)


@functools.cache
def python(*modules: str) -> str:
    """The path of a Python that has imported torch and these modules; one is started for all processes of the tests."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID") or uuid.uuid4().hex
    name = hashlib.sha256("-".join([run, *modules]).encode()).hexdigest()[
        :12
    ]  # a socket's path has a hundred characters
    folder = os.path.join(tempfile.gettempdir(), f"python-{name}")
    path, at = os.path.join(folder, "bin", "python"), os.path.join(folder, "socket")
    try:
        os.mkdir(folder)
    except FileExistsError:
        hold(at)
        return path
    os.mkdir(os.path.join(folder, "bin"))
    with open(path, "w") as file:
        file.write(f'#!/bin/sh\nexec "{sys.executable}" -IS "{__file__}" "{at}" "$@"\n')
    os.chmod(path, 0o755)
    # What a trace of calls shows below the script's own frames is what `python -m` has there.
    code = (
        f"space = {{'__name__': 'forked'}}\nexec(compile(open({__file__!r}).read(), '<frozen runpy>', 'exec'), space)\n"
    )
    code += f"space['serve']({at!r}, {['torch', 'torch._dynamo', *modules]!r})"
    server = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/")
    assert server.stdout.readline() == b"ready\n"
    atexit.register(server.stdin.close)
    return path


def hold(at: str) -> None:
    """Keep the server of another process until this one ends; waits until it has begun."""
    end = time.monotonic() + PATIENCE
    holder = socket.socket(socket.AF_UNIX)
    while True:
        try:
            holder.connect(at)
            break
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)
    socket.send_fds(holder, [bytes(8)], list(range(STREAMS)))
    atexit.register(holder.close)


# The side of the command: hands over what it was started with, and ends as the script does.


def ask(at: str, words: list[str]) -> None:
    """Have the script run, pass signals on to it, and end as it has ended."""
    if not words or words[0].startswith("-"):
        os.execv(sys.executable, [sys.executable, *words])
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(at)
        told = [os.getcwd(), str(len(words)), *words, *(f"{name}={value}" for name, value in os.environ.items())]
        data = "\0".join(told).encode(errors="surrogateescape")
        socket.send_fds(server, [len(data).to_bytes(8, "big")], list(range(STREAMS)))
        server.sendall(data)
        for number in ASKED:
            signal.signal(number, lambda number, _: server.send(bytes([number])))
        status = int(server.recv(16) or b"-9")
    if status < 0:
        signal.signal(-status, signal.SIG_DFL) if -status != signal.SIGKILL else None
        os.kill(os.getpid(), -status)
    os._exit(status)


# The side that has torch.


def serve(at: str, modules: list[str]) -> None:
    """Fork for each script that is asked for, until the tests end, by a kill too; what was made for it goes then."""
    import importlib
    import select

    for name in modules:
        importlib.import_module(name)
    base = sys.path[1:]  # "" of `-c`
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(at)
    listener.listen()
    gc.freeze()
    os.write(1, b"ready\n")
    running: dict[int, tuple[int, socket.socket]] = {}  # by the descriptor of the process
    holders: dict[int, socket.socket | None] = {0: None}  # the processes of the tests, the first by this one's input
    while holders:
        asked = {one.fileno(): end for end, (_, one) in running.items()}
        ready, _, _ = select.select([listener, *holders, *running, *asked], [], [])
        for one in ready:
            if one in holders:
                if (gone := holders.pop(one)) is not None:
                    gone.close()
            elif one is listener:
                connection, _ = listener.accept()
                script = receive(connection)
                if not script[2]:
                    holders[connection.fileno()] = connection
                    for stream in script[0]:
                        os.close(stream)
                    continue
                child = os.fork()
                if child == 0:
                    listener.close()
                    for end, (_, other) in running.items():
                        os.close(end)
                        other.close()
                    for other in holders.values():
                        if other is not None:
                            other.close()
                    connection.close()
                    become(script, base)
                for stream in script[0]:
                    os.close(stream)
                running[os.pidfd_open(child)] = (child, connection)
            elif one in running:
                child, connection = running.pop(one)
                os.close(one)
                status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
                try:
                    connection.sendall(str(status).encode())
                except OSError:
                    pass  # who asked has been killed
                connection.close()
            elif one in asked and asked[one] in running:
                child, connection = running[asked[one]]
                for number in connection.recv(16) or [signal.SIGKILL]:
                    os.kill(child, number)
    shutil.rmtree(os.path.dirname(at), ignore_errors=True)


def receive(connection: socket.socket) -> tuple[list[int], str, list[str], dict[str, str]]:
    """The streams, the folder, the words and the environment of a script."""
    size, streams, _, _ = socket.recv_fds(connection, 8, STREAMS)
    data, wanted = b"", int.from_bytes(size, "big")
    while len(data) < wanted and (more := connection.recv(wanted - len(data))):
        data += more
    if not wanted:
        return streams, "", [], {}
    folder, count, *rest = data.decode(errors="surrogateescape").split("\0")
    words, environment = rest[: int(count)], rest[int(count) :]
    return streams, folder, words, dict(one.split("=", 1) for one in environment)


def become(script: tuple[list[int], str, list[str], dict[str, str]], base: list[str]) -> None:
    """Run the script as the main program of this process, and end."""
    import importlib
    import random
    import types

    streams, folder, words, environment = script
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    for number in (*ASKED, signal.SIGINT):
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    is_whole = bool(environment.get("PYTHONUNBUFFERED"))
    sys.stdin = sys.__stdin__ = open(0, closefd=False)
    sys.stdout = sys.__stdout__ = open(1, "w", closefd=False, buffering=1 if os.isatty(1) else -1)
    sys.stderr = sys.__stderr__ = open(2, "w", closefd=False, buffering=1, errors="backslashreplace")
    sys.stdout.reconfigure(write_through=is_whole)
    random.seed()
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()
    path = os.path.abspath(words[0])
    given = [os.path.abspath(one) for one in environment.get("PYTHONPATH", "").split(os.pathsep) if one]
    sys.argv, sys.path[:] = words, [os.path.dirname(path), *given, *base]
    importlib.invalidate_caches()
    sys.modules.pop("sitecustomize", None)
    try:
        importlib.import_module("sitecustomize")
    except ModuleNotFoundError:
        pass
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    main.__file__, main.__builtins__ = path, __builtins__
    leave(run_main(path, vars(main)))


def run_main(path: str, names: dict[str, object]) -> int:
    """Run the script; the status that it ends with."""
    try:
        with open(path, "rb") as file:
            code = compile(file.read(), path, "exec", dont_inherit=True)
        exec(code, names)
    except SystemExit as left:
        if left.code is None or isinstance(left.code, int):
            return (left.code or 0) & 0xFF
        print(left.code, file=sys.stderr)
        return 1
    except BaseException as error:
        trace = error.__traceback__.tb_next  # this frame is not the script's
        sys.last_type, sys.last_value, sys.last_traceback = type(error), error.with_traceback(trace), trace
        sys.excepthook(type(error), error, trace)
        return -signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1
    return 0


def leave(status: int) -> None:
    """Do what Python does at the end of a program, but for taking torch apart: that costs more than most scripts."""
    import threading

    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


if __name__ == "__main__":
    ask(sys.argv[1], sys.argv[2:])
