"""Runs programs in forks of one process that has imported torch already. Standard library and torch only.

    python server.py [MODULE ...]

Reads one JSON request a line, `{"script": path, "timeout": seconds}`, and answers with one line: exit status, what the
program printed, and the gradients of what it trains. Each program gets a process of its own, its folder as working
directory, and the traceback that Python itself would print.
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import signal
import sys
import tempfile
import time
import traceback
from typing import Any


def main(modules: list[str]) -> None:
    """Import, then serve until the input ends."""
    for name in modules:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
    print("ready", flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(run(request["script"], request["timeout"])), flush=True)


def run(script: str, timeout: float) -> dict[str, Any]:
    """The program in a child of this process."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as report:
        child = os.fork()
        if child == 0:
            os.setsid()
            _be_program(script, output.fileno(), report.fileno())
        status = _wait(child, timeout)
        output.seek(0)
        report.seek(0)
        return {
            "status": status,
            "output": output.read().decode("utf-8", "replace"),
            "gradients": json.loads(report.read() or b"null"),
        }


def _wait(child: int, timeout: float) -> int | None:
    """The exit status as a shell gives it; None where the program had to be killed."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def _be_program(script: str, output: int, report: int) -> None:
    """Become `python broken.py`; never returns."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.chdir(os.path.dirname(script))
    sys.path[0] = os.path.dirname(script)
    sys.argv = [script]
    steps: dict[int, dict[str, Any]] = {}
    _watch_steps(steps)
    status = 0
    try:
        names = runpy.run_path(script, run_name="__main__")
        os.pwrite(report, json.dumps(gradients_of(names, steps)).encode(), 0)
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException as error:  # the program's own failure, whatever it is: printed as Python prints it
        status = 1
        _print_failure(error, script)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _print_failure(error: BaseException, script: str) -> None:
    """The traceback from the program's first line on, without the frames of this file."""
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        frame = one.__traceback__
        while frame is not None and frame.tb_frame.f_code.co_filename != script:
            frame = frame.tb_next
        one.__traceback__ = frame or one.__traceback__
        one = one.__cause__ or one.__context__
    traceback.print_exception(type(error), error, error.__traceback__)


def _watch_steps(steps: dict[int, dict[str, Any]]) -> None:
    """Note at each optimizer step which parameters have a finite, and which a non-zero gradient."""
    from torch.optim.optimizer import register_optimizer_step_pre_hook

    def note(optimizer: Any, *_: Any) -> None:
        for number, group in enumerate(optimizer.param_groups):
            for parameter in group["params"]:
                _note(steps, parameter, f"optimizer {id(optimizer)} group {number}")

    register_optimizer_step_pre_hook(note)


def _note(steps: dict[int, dict[str, Any]], parameter: Any, group: str) -> None:
    gradient = parameter.grad
    seen = steps.setdefault(
        id(parameter), {"group": group, "trains": False, "finite": True, "given": False, "moves": False}
    )
    seen["trains"] |= bool(parameter.requires_grad)
    if gradient is None:
        return
    values = gradient.coalesce().values() if gradient.is_sparse else gradient
    values = values.to_local() if hasattr(values, "to_local") else values
    seen["given"] = True
    seen["finite"] &= bool(values.isfinite().all())
    seen["moves"] |= bool((values != 0).any())


def gradients_of(names: dict[str, Any], steps: dict[int, dict[str, Any]]) -> list[dict[str, Any]]:
    """What is known of each parameter: of those that an optimizer stepped, else of those that the program's names hold."""
    if not any(seen["given"] for seen in steps.values()):
        for name, value in names.items():
            for parameter in _leaves(value):
                _note(steps, parameter, name)
    return [seen for seen in steps.values() if seen["trains"]]


def _leaves(value: Any) -> list[Any]:
    import torch

    if isinstance(value, torch.nn.Module):
        return list(value.parameters())
    if isinstance(value, torch.Tensor) and value._base is None and value.requires_grad and value.is_leaf:
        return [value]
    if isinstance(value, (list, tuple)):
        return [leaf for one in value for leaf in _leaves(one)]
    return []


if __name__ == "__main__":
    main(sys.argv[1:])
