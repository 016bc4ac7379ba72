"""Runs healthy training programs under `gradfix run --trace` and `gradfix verify`: neither may find fault with any of them.

    python benchmarks/healthy.py [NAME ...]

The first line of each program of `healthy/` says what it is, what it needs, and how many steps to verify where three are
too few. Needs torch; transformers, peft, trl,
accelerate, lightning and a C++ compiler where there are any.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
PACKAGES = ("torch", "transformers", "peft", "trl", "accelerate", "lightning")


def missing(needs: list[str]) -> list[str]:
    """What a program needs and what is not here."""
    found = {"compiler": shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")}
    return [
        name for name in needs if not found.get(name, importlib.util.find_spec(name) if name != "compiler" else None)
    ]


def judge(command: list[str], folder: str, face: str, *words: str) -> dict:
    """What `gradfix run` or `gradfix verify` says of a command, as JSON."""
    environment = {
        **os.environ, "PYTHONPATH": str(HERE.parent), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "TQDM_DISABLE": "1",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "gradfix", face, "--format", "json", *words, "--", *command],
        capture_output=True, text=True, cwd=folder, env=environment,
    )  # fmt: skip
    try:
        return {**json.loads(done.stdout), "exit": done.returncode, "said": done.stderr}
    except ValueError:
        return {"exit": done.returncode, "said": done.stderr[-2000:]}


def row(path: pathlib.Path, first: str) -> tuple[bool, str]:
    """Whether nothing was held against a program, and its row of the table."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(path, os.path.join(folder, "train.py"))
        words = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"] if "torchrun" in first else []
        command = [sys.executable, *words, "train.py"]
        run = judge(command, folder, "run", "--no-probe", "--trace")
        steps = re.search(r"steps: (\d+)", first)
        verified = judge(command, folder, "verify", "--steps", steps[1] if steps else "3")
    findings = len(run.get("report", {}).get("findings", ()))
    is_silent = run.get("status") == "passed" and run["exit"] == 0 and not findings
    reasons = "; ".join([*verified.get("reasons", ()), *verified.get("notes", ())])
    verdict = verified.get("verdict", "no answer")
    is_fine = is_silent and verdict == "green"
    told = run.get("status", "no answer") + (f", {findings} findings" if findings else "")
    if not is_fine:
        print(f"{path.stem}: {run['exit']} {verified['exit']}\n{run['said'][-1500:]}\n{reasons}", file=sys.stderr)
    return is_fine, f"| {path.stem} | {told} | {verdict} | {reasons} |"


def main(names: list[str]) -> int:
    rows, waiting, wrong = [], [], 0
    start = time.perf_counter()
    for path in sorted((HERE / "healthy").glob("*.py")):
        if names and path.stem not in names:
            continue
        first = path.read_text(encoding="utf-8").partition("\n")[0].strip('"')
        needs = (re.search(r"needs: ([\w ]+)", first) or ["", ""])[1].split()
        lacking = missing(needs)
        if lacking:
            waiting.append(f"| {path.stem} | {', '.join(lacking)} |")
            continue
        is_fine, told = row(path, first)
        wrong += not is_fine
        rows.append(told)
        print(told, file=sys.stderr, flush=True)
    installed = {one.metadata["Name"].lower(): one.version for one in importlib.metadata.distributions()}
    versions = ", ".join(f"{name} {installed[name]}" for name in PACKAGES if name in installed)
    print(f"CPython {platform.python_version()}, {versions}, no GPU.\n")
    print(f"{len(rows)} healthy programs, {wrong} false alarms, in {time.perf_counter() - start:.0f} s.\n")
    print("| program | `gradfix run --trace` | `gradfix verify` | said |\n| --- | --- | --- | --- |")
    print("\n".join(rows))
    if waiting:
        print("\n| not run here | needs |\n| --- | --- |\n" + "\n".join(waiting))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
