"""The probe reads versions and devices from where they are, says where, and says what it could not read."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from explainer.errors import UnreadableInput
from explainer.ingest.text import read_text
from explainer.model.environment import Environment
from explainer.probe import gpu
from explainer.probe.environment import is_from_elsewhere, probe_environment
from explainer.probe.file import read_environment
from explainer.probe.interpreter import find_interpreter, folders_named_by
from explainer.probe.packages import read_packages, read_torch_build
from explainer.render.json import render_json


def fake_venv(tmp_path, **versions: str):
    """A virtual environment as it looks on disk: metadata folders, a `pyvenv.cfg`, torch's version file."""
    folder = tmp_path / "venv" / "lib" / "python3.10" / "site-packages"
    (folder / "torch").mkdir(parents=True)
    (tmp_path / "venv" / "bin").mkdir()
    (tmp_path / "venv" / "bin" / "python").write_text("")
    (tmp_path / "venv" / "pyvenv.cfg").write_text("home = /usr\nversion = 3.10.4\n")
    for name, version in versions.items():
        (folder / f"{name}-{version}.dist-info").mkdir()
    (folder / "torch" / "version.py").write_text(
        "__version__ = '2.4.0+cu121'\ncuda: Optional[str] = '12.1'\nhip: Optional[str] = None\n"
    )
    return folder


def test_packages(tmp_path) -> None:
    """Versions come from the names of metadata folders, each with its folder."""
    folder = fake_venv(tmp_path, torch="2.4.0+cu121", flash_attn="2.5.8", unrelated="1.0")
    (folder / "triton-2.1.0-py3.10.egg-info").mkdir()
    found = {one.name: (one.version, one.source) for one in read_packages([str(folder)])}
    assert found == {
        "torch": ("2.4.0+cu121", str(folder)),
        "flash-attn": ("2.5.8", str(folder)),
        "triton": ("2.1.0", str(folder)),
    }


def test_torch_build(tmp_path) -> None:
    """CUDA or ROCm as torch was built for."""
    assert {one.name: one.value for one in read_torch_build([str(fake_venv(tmp_path))])} == {
        "cuda_build": "12.1",
        "hip_build": "none",
    }


def test_another_interpreter(tmp_path) -> None:
    """`--python` is asked on disk, without being started."""
    fake_venv(tmp_path, torch="2.4.0")
    environment = probe_environment(str(tmp_path / "venv" / "bin" / "python"))
    assert (environment.python.value, environment.package("torch").version) == ("3.10.4", "2.4.0")


def test_virtual_env(tmp_path, monkeypatch) -> None:
    """VIRTUAL_ENV names the user's environment where gradfix lives in one of its own."""
    fake_venv(tmp_path, torch="2.4.0")
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "venv"))
    assert probe_environment().python.source == "VIRTUAL_ENV"


def test_no_interpreter() -> None:
    """A path that is no interpreter is said to be none."""
    assert find_interpreter("/no/such/python").unread[0].why == "/no/such/python: no such interpreter"


def test_this_interpreter() -> None:
    """Without anything named it is the one that runs gradfix."""
    assert find_interpreter(None).fact.source == sys.executable


TRACEBACK = (
    'Traceback (most recent call last):\n  File "{folder}/torch/_tensor.py", line 1, in backward\n    x\nKeyError: 1\n'
)


def test_the_tracebacks_own_packages(tmp_path) -> None:
    """A traceback that names site-packages of this machine is about those."""
    folder = fake_venv(tmp_path, torch="2.4.0")
    (incident,) = read_text(TRACEBACK.format(folder=folder))
    assert folders_named_by(incident) == ([str(folder)], [])
    assert probe_environment(None, incident).package("torch").version == "2.4.0"
    assert not is_from_elsewhere(incident)


def test_a_log_from_elsewhere() -> None:
    """Site-packages that are not here mean another machine, whose GPU this one does not tell."""
    (incident,) = read_text(TRACEBACK.format(folder="/cluster/env/lib/python3.9/site-packages"))
    assert is_from_elsewhere(incident)


def test_no_gpu(monkeypatch) -> None:
    """Without a device file the driver is not asked, and that is said."""
    monkeypatch.setattr(gpu, "_SIGNS", ())
    monkeypatch.setattr(gpu, "_KFD", "/nowhere")
    assert gpu.read_gpus(0.1).gpus == ()
    assert gpu.read_gpus(0.1).unread[0].what == "nvidia driver"


def test_nvidia_smi_is_the_fallback(tmp_path, monkeypatch) -> None:
    """Where NVML fails, the program answers; its line says where the facts come from."""
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 'Tesla T4, 15360, 7.5, 550.54.15'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(gpu, "_SIGNS", (str(program),))
    found = gpu.read_gpus(2.0)
    (card,) = found.gpus
    assert (card.name, card.memory_mib, card.capability, card.bf16, card.fp16, card.source) == (
        "Tesla T4", 15360, "7.5", False, True, "nvidia-smi")  # fmt: skip
    assert found.facts[0].value == "550.54.15"


def test_amd_topology(tmp_path, monkeypatch) -> None:
    """ROCm devices are read from the kernel; a CPU node is none."""
    for node, text in enumerate(["simd_count 0\ngfx_target_version 0\n", "simd_count 440\ngfx_target_version 90010\n"]):
        (tmp_path / str(node)).mkdir()
        (tmp_path / str(node) / "properties").write_text(text)
    monkeypatch.setattr(gpu, "_SIGNS", ())
    monkeypatch.setattr(gpu, "_KFD", str(tmp_path))
    (card,) = gpu.read_gpus(0.1).gpus
    assert (card.name, card.bf16) == ("AMD gfx90a", True)


def test_a_slow_driver_is_left_out(monkeypatch) -> None:
    """A driver that does not answer in time is named, and the probe goes on."""
    import threading

    from explainer.probe import environment

    release = threading.Event()
    monkeypatch.setattr(environment, "BUDGET", 0.05)
    monkeypatch.setattr(environment, "read_gpus", lambda budget: release.wait(30))
    found = probe_environment()
    release.set()
    assert found.gpus is None
    assert "did not answer" in found.unread[-1].why


def test_visible_devices(monkeypatch) -> None:
    """CUDA_VISIBLE_DEVICES leaves out the others."""
    from explainer.model.environment import Gpu
    from explainer.probe.environment import _visible

    cards = (Gpu(name="a"), Gpu(name="b"))
    assert [one.name for one in _visible(cards, "1")] == ["b"]
    assert _visible(cards, "") == ()
    assert _visible(cards, "GPU-uuid") == cards


def test_written_and_read_again(tmp_path) -> None:
    """What probe writes as JSON, explain reads; the schema holds."""
    import jsonschema

    from explainer.cli.schema import schema_of

    environment = probe_environment()
    path = tmp_path / "env.json"
    path.write_text(render_json(environment))
    jsonschema.validate(json.loads(path.read_text()), schema_of("environment"))
    assert read_environment(str(path)) == environment


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"packages": 3}', '{"schema": "other/1"}'],
    ids=["empty", "cut", "a list", "wrong", "other"],
)
def test_no_environment(tmp_path, text: str) -> None:
    """What is no environment is refused with the reason."""
    path = tmp_path / "env.json"
    path.write_text(text)
    with pytest.raises(UnreadableInput):
        read_environment(str(path))


def test_torch_is_not_imported() -> None:
    """Probing an interpreter that has torch does not import it."""
    code = "import sys; from explainer.probe.environment import probe_environment; probe_environment(); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_defaults_are_empty() -> None:
    """An environment of which nothing is known is valid."""
    assert Environment().package("torch") is None
