"""`gradfix mcp`: a real client of the official SDK, over standard input and output."""

from __future__ import annotations

import glob
import json
import os
import pathlib
import subprocess
import sys
import time
from typing import Any

import pytest

from explainer.errors import UsageError
from explainer.integrations.mcp_server import Bounds, Tools
from tests import forked
from tests.conftest import PATH, ROOT

PROGRAM = """import torch

model = torch.nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    h = torch.relu(model(torch.randn(4, 3)))
    h += 1
    optimizer.zero_grad()
    h.sum().backward()
    optimizer.step()
"""
MESSAGE = (
    "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation:"
    " [torch.FloatTensor [4, 2]], which is output 0 of ReluBackward0, is at version 1; expected version 0 instead."
)
LOG = f"""Traceback (most recent call last):
  File "train.py", line 9, in <module>
    h.sum().backward()
  File "/usr/lib/python3.11/site-packages/torch/_tensor.py", line 581, in backward
    torch.autograd.backward(
{MESSAGE}
"""


@pytest.fixture
def project(tmp_path: pathlib.Path, monkeypatch) -> pathlib.Path:
    """A project that fails, its log, and beside it what is not the agent's."""
    monkeypatch.setenv("GRADFIX_STATE_DIR", str(tmp_path / "state"))
    root = tmp_path / "project"
    root.mkdir()
    (root / "train.py").write_text(PROGRAM)
    (root / "train.log").write_text(LOG)
    (tmp_path / "secret.py").write_text("password = 'hunter2'\n" * 9)
    (tmp_path / "secret.log").write_text(LOG)
    (root / "link.log").symlink_to(tmp_path / "secret.log")
    return root


def talk(
    root: pathlib.Path, options: list[str], calls: list[tuple[str, dict[str, Any]]]
) -> tuple[list[str], list[Any]]:
    """Start the server, list its tools, call some: their names, and for each call its answer, or its error as text."""
    anyio, mcp = pytest.importorskip("anyio"), pytest.importorskip("mcp")
    from mcp.client.stdio import stdio_client

    server = mcp.StdioServerParameters(
        command=sys.executable, args=["-m", "gradfix", "mcp", "--root", str(root), *options],
        env={**os.environ, "PYTHONPATH": PATH},
    )  # fmt: skip

    async def main() -> tuple[list[str], list[Any]]:
        async with stdio_client(server) as streams, mcp.ClientSession(*streams) as session:
            await session.initialize()
            names = [one.name for one in (await session.list_tools()).tools]
            return names, [_answer(await session.call_tool(name, given)) for name, given in calls]

    return anyio.run(main)


def _answer(result: Any) -> Any:
    plain = result.model_dump(by_alias=True)
    text = plain["content"][0]["text"]
    return text if plain.get("isError") else json.loads(text)


def test_an_agent_reads(project) -> None:
    """Explain, fix as a diff, the rules, the environment; without leave nothing is written and nothing is run."""
    names, (report, card, fixes, page, found, environment, refused) = talk(
        project, [],
        [("explain", {"path": "train.log", "probe": False}), ("explain", {"log": LOG, "probe": False, "form": "text"}),
         ("fix", {"path": "train.log"}), ("rules", {"action": "show", "words": "op-on-saved-tensor"}),
         ("rules", {"action": "search", "words": "inplce relu"}), ("probe", {}),
         ("verify", {"command": ["touch", "ran"]})],
    )  # fmt: skip
    assert sorted(names) == ["explain", "fix", "probe", "rules", "verify"]
    assert (report["schema"], report["findings"][0]["cause"]) == ("gradfix.report/1", "inplace/op-on-saved-tensor")
    assert report["findings"][0]["culprits"][0]["file"] == "train.py"
    assert "inplace/op-on-saved-tensor" in card["text"]
    assert "-    h += 1\n+    h = h + 1\n" in fixes["fixes"][0]["patch"]
    assert page["text"].startswith("# An activation was overwritten")
    assert "inplace/op-on-saved-tensor" in [one["id"] for one in found["causes"]]
    assert environment["python"]["value"].startswith("3.")
    assert "gradfix mcp --allow-run" in refused
    assert (project / "train.py").read_text() == PROGRAM
    assert sorted(one.name for one in project.iterdir()) == ["link.log", "train.log", "train.py"]


@pytest.mark.torch
def test_an_agent_repairs(project) -> None:
    """With leave: applied, green, undone byte for byte."""
    pytest.importorskip("torch")
    run = ("verify", {"command": [forked.python(), "train.py"], "steps": 2})
    names, (done, green, undone, nothing) = talk(
        project, ["--allow-apply", "--allow-run"],
        [("apply", {"path": "train.log", "fix": "out-of-place"}), run, ("undo", {}), ("undo", {})],
    )  # fmt: skip
    assert {"apply", "undo"} <= set(names)
    assert green["verdict"] == "green"
    assert (done["status"], done["applied"]["files"]) == ("applied", ["train.py"])
    assert undone["records"][0]["state"] == "undone"
    assert "no such patch is applied" in nothing
    assert (project / "train.py").read_text() == PROGRAM


def test_an_agent_that_leaves(project) -> None:
    """A call that is given up ends the program, and puts back what it had changed."""
    anyio, mcp = pytest.importorskip("anyio"), pytest.importorskip("mcp")
    from mcp.client.stdio import stdio_client

    mark = project.parent / "started"
    (project / "slow.py").write_text(
        "import pathlib, sys, time\npathlib.Path('train.log').write_text('')\npathlib.Path(sys.argv[1]).touch()\ntime.sleep(120)\n"
    )
    server = mcp.StdioServerParameters(
        command=sys.executable, args=["-m", "gradfix", "mcp", "--root", str(project), "--allow-run"],
        env={**os.environ, "PYTHONPATH": PATH},
    )  # fmt: skip

    async def main() -> None:
        async with stdio_client(server) as streams, mcp.ClientSession(*streams) as session:
            await session.initialize()
            async with anyio.create_task_group() as group:
                group.start_soon(session.call_tool, "verify", {"command": [sys.executable, "slow.py", str(mark)]})
                while not mark.exists():
                    await anyio.sleep(0.05)
                group.cancel_scope.cancel()

    anyio.run(main)
    for _ in range(200):
        if (project / "train.log").read_text() == LOG and not _is_running(str(mark)):
            return
        time.sleep(0.05)
    raise AssertionError("the program runs on, or the project is not what it was")


def _is_running(word: str) -> bool:
    """Whether a process has that word on its command line."""
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            words = pathlib.Path(path).read_bytes().split(b"\0")
        except OSError:
            continue
        if word.encode() in words and b"slow.py" in words:
            return True
    return False


OUTSIDE = {
    "a path above": "../secret.log",
    "a link that leads out": "link.log",
    "an absolute path": "/etc/hostname",
    "the root itself": ".",
}


@pytest.mark.parametrize("path", OUTSIDE.values(), ids=OUTSIDE)
def test_nothing_outside_of_the_root_is_read(project, path: str) -> None:
    """Refused, by name."""
    with pytest.raises(UsageError, match="lies outside of the project"):
        Tools(Bounds(root=str(project))).explain(path=path)


def test_a_log_cannot_make_it_read(project) -> None:
    """A log that names a file elsewhere gets no line of it shown."""
    secret = project.parent / "secret.py"
    log = LOG.replace('"train.py", line 9', f'"{secret}", line 1').replace("    h.sum().backward()\n", "")
    report = Tools(Bounds(root=str(project))).explain(log=log, probe=False)
    assert report["findings"][0]["culprits"]
    assert "hunter2" not in json.dumps(report)


def test_what_is_asked_in_vain_is_said(project) -> None:
    """One line that an agent can act on."""
    tools = Tools(Bounds(root=str(project), allow_apply=True))
    with pytest.raises(UsageError, match="one of them"):
        tools.explain()
    with pytest.raises(UsageError, match="no edit 'nothing-such'"):
        tools.apply(fix="nothing-such", path="train.log")
    with pytest.raises(UsageError, match="no such folder"):
        Tools(Bounds(root=str(project / "none")))
    assert tools.explain(log="nothing went wrong here", probe=False)["unknown"]["why"]


def test_without_the_sdk(tmp_path) -> None:
    """One line with what to install, and exit status 2."""
    (tmp_path / "mcp.py").write_text("raise ImportError('no mcp')\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    done = subprocess.run([sys.executable, "-m", "gradfix", "mcp"], capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "gradfix: gradfix mcp needs the MCP SDK, which is not installed: pip install 'gradfix[mcp]'\n"
