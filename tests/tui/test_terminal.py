"""In a real pseudo-terminal: what opens the interface, what the keyboard is, what is left behind, and plain text instead."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable

import pytest

from tests.conftest import PATH

pexpect = pytest.importorskip("pexpect")
GRADFIX = f"{shlex.quote(sys.executable)} -m gradfix"


def spawn(folder, command: str, **variables: str):
    """A shell line in a pseudo-terminal of 24 by 80."""
    env = {**os.environ, "PYTHONPATH": PATH, "TERM": "xterm-256color", "TEXTUAL_ANIMATIONS": "none", **variables}
    line = f"{command}; echo status=$?"
    return pexpect.spawn("bash", ["-c", line], cwd=folder, env=env, timeout=30, encoding="utf-8", dimensions=(24, 80))


def run(folder, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """gradfix without a terminal."""
    env = {**os.environ, "PYTHONPATH": PATH, **variables}
    return subprocess.run(
        [sys.executable, "-m", "gradfix", *words],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )


def test_no_terminal(project) -> None:
    """The plain text of explain, and one line that says why."""
    done = run(project, "ui", "--no-probe", "train.log")
    assert done.returncode == 0
    assert "inplace/cache-updated-in-training" in done.stdout
    assert done.stderr.count("\n") == 1
    assert "here is the plain text instead" in done.stderr


def test_no_terminal_and_a_command(tmp_path) -> None:
    """The program is run and explained as by `gradfix run`; its status is ours."""
    done = run(tmp_path, "ui", "--no-probe", "--", sys.executable, "-c", "raise RuntimeError('x')")
    assert done.returncode == 1
    assert "RuntimeError: x" in done.stderr


def test_wrong_use(project) -> None:
    """Each in one line, with status 2."""
    both = run(project, "ui", "train.log", "--", "python", "train.py")
    nowhere = run(project, "ui", "--root", "/nowhere", "train.log")
    piped = run(project, "ui", "--web", "-")
    for done, said in ((both, "not both"), (nowhere, "no such folder"), (piped, "cannot read a pipe")):
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert said in done.stderr


def test_web_is_not_installed(project) -> None:
    """One line with what to install."""
    code = "import sys, importlib.util as u; f = u.find_spec\nu.find_spec = lambda n, *a: None if n == 'textual_serve' else f(n, *a)\n"
    code += "from explainer.cli.entry import main; sys.exit(main(['ui', '--web', 'train.log']))"
    done = subprocess.run([sys.executable, "-c", code], cwd=project, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, 'gradfix: --web needs textual-serve: pip install "gradfix[web]"\n')


def test_a_dumb_terminal(project) -> None:
    """The plain text, on the terminal."""
    child = spawn(project, f"{GRADFIX} ui --no-probe train.log", TERM="dumb")
    child.expect("here is the plain text instead")
    child.expect("inplace/cache-updated-in-training")
    child.expect("status=0")


def test_without_colour(project) -> None:
    """NO_COLOR shows the interface, with no colour in it."""
    child = spawn(project, f"{GRADFIX} ui --no-probe train.log", NO_COLOR="1")
    child.expect("inplace/cache-updated-in-training")
    said = child.before
    child.send("q")
    child.expect("status=0")
    assert re.findall(r"\x1b\[(?:[\d;]*;)?(?:3[0-8]|4[0-8]|9\d|10\d)(?:;[\d;]*)?m", said + child.before) == []


def test_from_a_pipe(project) -> None:
    """The log comes from the pipe, the keys from the terminal, which is as before afterwards."""
    before = (project / "train.py").read_bytes()
    child = spawn(project, f"cat train.log | {GRADFIX} ui --no-probe -; stty -a | grep -o -- '-\\?icanon'")
    child.expect("inplace/cache-updated-in-training")
    child.send("f")
    child.expect("advice")
    child.send("a")
    child.expect("applied")
    assert (project / "train.py").read_bytes() != before
    child.send("u")
    child.expect("undone")
    assert (project / "train.py").read_bytes() == before
    child.send("q")
    child.expect("[^-]icanon")


def test_a_pipe_whose_writer_goes_on(project) -> None:
    """Quitting asks, does not wait for the writer, and ends."""
    child = spawn(project, f"(echo epoch 1; exec sleep 60) | {GRADFIX} ui --no-probe -; echo left; kill %1 2>/dev/null")
    child.expect("epoch 1")
    child.send("q")
    child.expect("End it and quit")
    child.send("y")
    child.expect(r"\x1b\[\?1049l")  # the alternate screen is left
    child.close(force=True)


def test_the_editor(project) -> None:
    """e lends the terminal to the editor at the line; the edit is planned anew for what it left."""
    (project / "editor.sh").write_text(
        '#!/bin/sh\necho "at $1 of $(basename $2)"; echo "# mine" >> "$2"; read answer\n'
    )
    (project / "editor.sh").chmod(0o755)
    child = spawn(project, f"{GRADFIX} ui --no-probe train.log", VISUAL=str(project / "editor.sh"))
    child.expect("inplace/cache-updated-in-training")
    child.send("e")
    child.expect(r"at \+17 of train.py")
    child.send("\r")
    child.expect("inplace/cache-updated-in-training")
    child.send("f")
    child.expect("advice")
    child.send("a")
    child.expect("applied")
    text = (project / "train.py").read_text()
    assert text.endswith("# mine\n")
    assert "input_pos=None" in text
    child.send("q")
    child.expect("status=0")


def test_a_terminal_that_goes_away(tmp_path) -> None:
    """What runs is ended when the window is closed."""
    (tmp_path / "train.py").write_text("import os, time\nprint('me', os.getpid(), flush=True)\ntime.sleep(60)\n")
    child = spawn(tmp_path, f"{GRADFIX} ui --no-probe -- {shlex.quote(sys.executable)} train.py")
    child.expect(r"me (\d+)")
    runs = f"/proc/{child.match[1]}"
    assert os.path.exists(runs)
    child.ptyproc.fileobj.close()  # `close` would send signals too, and give up where a busy machine is slow to follow them
    child.closed = child.ptyproc.closed = True
    try:
        wait_for(lambda: not os.path.exists(runs) or "Z" in open(f"{runs}/stat").read().rpartition(")")[2].split()[0])
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.ptyproc.wait()


def wait_for(is_so: Callable[[], bool], patience: float = 30.0) -> None:
    """Wait until something is so."""
    end = time.monotonic() + patience
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_web(project) -> None:
    """The browser gets a page from this machine."""
    pytest.importorskip("textual_serve")
    import socket

    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    words = [sys.executable, "-m", "gradfix", "ui", "--no-probe", "--web", "--port", str(port), "train.log"]
    env = {**os.environ, "PYTHONPATH": PATH}
    with subprocess.Popen(
        words, cwd=project, env=env, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as server:
        try:
            assert f"http://localhost:{port}" in server.stderr.readline()
            page = fetch(f"http://localhost:{port}/")
        finally:
            server.terminate()
    assert f"ws://localhost:{port}/ws" in page


def fetch(address: str) -> str:
    """A page, once its server answers."""
    import time

    for _ in range(200):
        try:
            return urllib.request.urlopen(address).read().decode()
        except OSError:
            time.sleep(0.05)
    raise AssertionError("the server does not answer")


def test_what_opening_loads(project) -> None:
    """Neither torch nor pydantic, nor a widget that the first screen does not show."""
    code = (
        "import sys\nfrom explainer.tui.app import GradfixApp\n"
        "heavy = ('torch', 'numpy', 'pydantic', 'markdown_it', 'libcst', 'rapidfuzz', 'textual.widgets._markdown', 'textual.widgets._text_area')\n"
        "print(sorted(set(heavy) & set(sys.modules)))"
    )
    env = {**os.environ, "PYTHONPATH": PATH}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, cwd=project)
    assert done.stdout == "[]\n", done.stderr


def test_explain_without_textual(project) -> None:
    """Everything but the interface works where it is not installed."""
    code = "import sys; sys.modules['textual'] = None\nfrom explainer.cli.entry import main; sys.exit(main(['explain', '--no-probe', 'train.log']))"
    done = subprocess.run([sys.executable, "-c", code], cwd=project, capture_output=True, text=True)
    assert done.returncode == 0


def test_a_terminal_that_goes_without_a_signal(project) -> None:
    """A hang-up that nobody sends on, as under nohup: the interface ends instead of reading nothing for ever."""
    import pty
    import signal
    import time

    child, master = pty.fork()
    if not child:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        os.chdir(project)
        os.environ.update(TERM="xterm-256color", PYTHONPATH=PATH)
        os.execv(sys.executable, [sys.executable, "-m", "gradfix", "ui", "--no-probe", "train.log"])
    seen = b""
    while b"Environment" not in seen:
        seen += os.read(master, 65536)
    os.close(master)
    for _ in range(300):
        if os.waitpid(child, os.WNOHANG)[0]:
            return
        time.sleep(0.1)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    pytest.fail("it is still there")


def test_a_terminal_that_takes_nothing_more(project) -> None:
    """Textual waits for its last drawing to be taken; a signal ends the interface all the same."""
    import fcntl
    import pty
    import signal
    import struct
    import termios
    import time

    code = (
        "import sys, explainer.tui.app as app\napp.GRACE = 1.0\n"
        "from explainer.cli.entry import main\nsys.exit(main(['ui', '--no-probe', 'train.log']))"
    )
    child, master = pty.fork()
    if not child:
        os.chdir(project)
        os.environ.update(TERM="xterm-256color", PYTHONPATH=PATH)
        os.execv(sys.executable, [sys.executable, "-c", code])
    seen = b""
    while b"Environment" not in seen:
        seen += os.read(master, 65536)
    for wide in range(80, 110):  # each size is drawn anew, and nobody reads it
        fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 40, wide, 0, 0))
        time.sleep(0.05)
    os.kill(child, signal.SIGTERM)
    for _ in range(300):
        if os.waitpid(child, os.WNOHANG)[0]:
            os.close(master)
            return
        time.sleep(0.1)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(master)
    pytest.fail("it is still there")
