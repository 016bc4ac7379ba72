"""The pytest plugin, in pytest runs of its own: a section where it is asked for, and nothing at all where it is not."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from importlib.metadata import entry_points

import pytest

from tests.conftest import PATH, ROOT

HEAD = "import pytest, torch\n"
WRITE = """
def test_write():
    x = torch.ones(2, requires_grad=True).exp()
    x += 1
    x.sum().backward()
"""
QUIET = {
    "an assertion": "def test_it():\n    assert torch.ones(1) == 2\n",
    "an exception of another kind": "def test_it():\n    {}['a']\n",
    "a skip": "def test_it():\n    pytest.skip('element 0 of tensors does not require grad')\n",
    "an expected failure": "@pytest.mark.xfail\ndef test_it():\n    torch.ones(1).backward()\n",
    "an expected exception": "def test_it():\n    with pytest.raises(RuntimeError):\n        torch.ones(1).backward()\n",
}
IMPORTED = """
import sys
def test_a_failure_of_gradients():
    raise RuntimeError("element 0 of tensors does not require grad and does not have a grad_fn")
def test_nothing_is_imported():
    assert [one for one in sys.modules if one.partition(".")[0] == "explainer"] == []
"""


def run(folder, text: str, *words: str) -> subprocess.CompletedProcess[str]:
    """A pytest run of one file; the plugin by its entry point, or by its name where this checkout is not installed."""
    (folder / "test_it.py").write_text(text)
    is_installed = any(one.name == "gradfix" for one in entry_points(group="pytest11"))
    named = () if is_installed else ("-p", "gradfix.pytest_plugin")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *named, *words]
    environment = {**os.environ, "PYTHONPATH": PATH, "OMP_NUM_THREADS": "1", "PYTEST_ADDOPTS": ""}
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)


def test_it_is_off_by_itself(tmp_path) -> None:
    """And then imports nothing of gradfix but its own few lines."""
    done = run(tmp_path, IMPORTED)
    assert "1 failed, 1 passed" in done.stdout
    assert "no-graph/" not in done.stdout


@pytest.mark.parametrize(
    "words",
    [("--gradfix", "--junit-xml=out.xml"), pytest.param(("-o", "gradfix=true", "-n", "1"), marks=pytest.mark.slow)],
    ids="_".join,
)
def test_a_section_in_the_report(tmp_path, words: tuple[str, ...]) -> None:
    """Of the one test that fails as gradfix knows, with cause, line and diff; the workers of xdist send it on."""
    pytest.importorskip("torch")
    if "-n" in words:
        pytest.importorskip("xdist")
    others = "\n".join(case.replace("test_it", f"test_{number}") for number, case in enumerate(QUIET.values()))
    done = run(tmp_path, HEAD + WRITE + others, *words)
    assert "3 failed, 1 passed, 1 skipped, 1 xfailed" in done.stdout
    (section,) = re.findall(r"^-+ gradfix -+\n(.*?)^(?:=====|____|- generated)", done.stdout, re.S | re.M)
    assert "inplace/op-on-saved-tensor  likely" in section
    assert "test_it.py:5" in section
    assert "+    x = x + 1" in section
    if "-n" not in words:
        assert len(ElementTree.parse(tmp_path / "out.xml").findall(".//failure")) == 3


def test_the_entry_point_is_declared() -> None:
    """Under the name that `-p no:gradfix` takes away again."""
    assert (
        '[project.entry-points.pytest11]\ngradfix = "gradfix.pytest_plugin"\n' in (ROOT / "pyproject.toml").read_text()
    )
