"""What several tests share: the rule base, installed interpreters, the folder of labelled incidents where it is there."""

from __future__ import annotations

import gc
import glob
import importlib.util
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"
COMPILED = (
    "import torch, torch.distributed, torch.testing, torch._dynamo, accelerate, peft, textual.app, hypothesis\n"
    "from transformers import BertForSequenceClassification, LlamaForCausalLM, PreTrainedTokenizerFast, Trainer"
)
PATH = os.pathsep.join([str(ROOT), str(ROOT / "tests" / "site")])  # the PYTHONPATH of what the tests start


def pytest_configure(config: pytest.Config) -> None:
    """Where the tests are started in the background, Ctrl-C is ignored, and every program that they start would inherit that.

    What the tests' programs do is not remembered, but where a test is about the memory. Their tensors are tiny: a thread
    each, or two test processes fight for the same cores. Cycles are collected seldom, here as there: the rule base and
    torch are many objects that stay, and looking through them all was a fifth of the time of the interface's tests.
    """
    gc.set_threshold(100_000, 50, 1000)
    os.environ["GRADFIX_NO_MEMORY"] = "1"
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, [os.environ.get("PYTHONPATH"), str(ROOT / "tests" / "site")])
    )
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if getattr(config.option, "numprocesses", None) and not hasattr(config, "workerinput"):
        _compile_once()


def _compile_once() -> None:
    """What every process of the tests imports is compiled before they start: in a new environment each would compile it all."""
    found = importlib.util.find_spec("torch")
    if found is not None and found.cached and not os.path.exists(found.cached):
        subprocess.run([sys.executable, "-c", COMPILED], capture_output=True, check=False)


def pytest_sessionfinish() -> None:
    """What pytest looks for at its end, coroutines that nobody awaited, is not among what each process of the tests holds."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _objects_of_the_test():
    """What looks through all objects, for a module's name or its optimizers, finds those of the test: not millions beside them."""
    gc.freeze()
    yield
    gc.unfreeze()


def installed_pythons() -> list[str]:
    """The interpreters 3.10 to 3.13 of this machine, this one first."""
    found = [sys.executable]
    for minor in range(10, 14):
        if minor == sys.version_info.minor:
            continue
        patterns = [
            f"{os.path.expanduser('~')}/.pyenv/versions/3.{minor}.*/bin/python3.{minor}",
            f"/opt/python3.{minor}/bin/python3",
        ]
        candidates = [path for pattern in patterns for path in sorted(glob.glob(pattern))]
        on_path = shutil.which(f"python3.{minor}")
        if not candidates and on_path and subprocess.run([on_path, "-c", ""], capture_output=True).returncode == 0:
            candidates = [on_path]
        found.extend(candidates[-1:])
    return found


@pytest.fixture(scope="session")
def catalog():
    """The rules that come with gradfix."""
    from explainer.catalog.bundle import load_catalog

    return load_catalog()


@pytest.fixture
def read():
    """Reads a text that holds one incident."""
    from explainer.ingest.text import read_text

    def read_one(text: str):
        (incident,) = read_text(text)
        return incident

    return read_one


@pytest.fixture
def explain_log(read, catalog):
    """Explains a text that holds one incident, in a given environment."""
    from explainer.workflow import explain_incident

    def explain_one(text: str, environment=None):
        return explain_incident(read(text), environment, catalog)

    return explain_one


@pytest.fixture(scope="session")
def shared() -> pathlib.Path:
    """The folder of labelled incidents; tests that use it are skipped where it is not there."""
    if not SHARED.is_dir():
        pytest.skip("the labelled incidents are not here")
    return SHARED
