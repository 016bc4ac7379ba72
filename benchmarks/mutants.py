"""Breaks programs that train, in the ways in which people break them, and lets gradfix repair them.

    python benchmarks/mutants.py [--count 100] [--seed 0] [--only NAME,...] [--keep FOLDER]

Each program of `healthy/`, and each `fixed.py` of the rule base, is changed in one place: a write made in place, a keyword or a
method left out, a value detached, grad mode switched off, a loss left unreduced, a second backward, a layer of another width.
What then fails, prints NaN, or gives fewer parameters a gradient goes through `gradfix run --fix --unsafe-fixes`; what comes
out verified is compared with the program as it was, by the gradients of the first step. Not every such mistake has a cure that
a program can know; none may be verified with other gradients. Needs torch, and what the programs import.
"""

from __future__ import annotations

import argparse
import ast
import importlib.metadata
import pathlib
import platform
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from tests.knowledge.repaired import EQUAL, OTHER, SAME, compare, environment, first_gradients, run_gradfix
from tests.knowledge.reproducer import KNOWLEDGE

HERE = pathlib.Path(__file__).resolve().parent
LIBRARIES = ("torch", "transformers", "peft", "trl", "accelerate", "lightning")
TIMEOUT = 90
_METHODS = frozenset(
    {
        "relu",
        "exp",
        "clamp",
        "masked_fill",
        "add",
        "mul",
        "sub",
        "div",
        "sigmoid",
        "tanh",
        "sqrt",
        "abs",
        "neg",
        "clamp_min",
    }
)
_LEFT_OUT = frozenset(
    {
        "clone",
        "detach",
        "float",
        "long",
        "unsqueeze",
        "squeeze",
        "transpose",
        "flatten",
        "contiguous",
        "permute",
        "mean",
        "sum",
    }
    | {"clamp", "clamp_min", "double", "bool", "astype", "requires_grad_", "retain_grad"}
)
_KEYWORDS = frozenset(
    {
        "retain_graph",
        "create_graph",
        "use_reentrant",
        "dtype",
        "collate_fn",
        "drop_last",
        "remove_unused_columns",
        "padding",
    }
    | {
        "keepdim",
        "dim",
        "batch_first",
        "find_unused_parameters",
        "allow_unused",
        "ignore_index",
        "strict",
        "is_trainable",
    }
)
_ACTIVATIONS = frozenset(
    {"ReLU", "SiLU", "ELU", "LeakyReLU", "Hardtanh", "Dropout", "SELU", "Mish", "ReLU6", "Hardswish"}
)
_LOSSES = frozenset(
    {"cross_entropy", "mse_loss", "l1_loss", "smooth_l1_loss", "binary_cross_entropy_with_logits", "nll_loss"}
)
_CRITERIA = frozenset({"CrossEntropyLoss", "MSELoss", "L1Loss", "BCEWithLogitsLoss", "SmoothL1Loss"})
_LAYERS = frozenset({"Linear", "Conv1d", "Conv2d", "LayerNorm", "BatchNorm1d", "BatchNorm2d", "LSTM", "GRU"})


@dataclass(frozen=True, slots=True)
class Mutant:
    """A program with one mistake in it: what kind, in which line, and its text."""

    kind: str
    line: int
    text: str


class Source:
    """The text of a program with its tree, and the edits that break it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = text.splitlines(keepends=True)
        self.tree = ast.parse(text)
        self.parents = {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    def of(self, node: ast.AST) -> str:
        start, end = self.span(node)
        return self.text[start:end]

    def span(self, node: ast.AST) -> tuple[int, int]:
        return self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    def indent(self, node: ast.stmt) -> str:
        return self.lines[node.lineno - 1][: node.col_offset]

    def replaced(self, start: int, end: int, new: str) -> str:
        return self.text[:start] + new + self.text[end:]

    def _at(self, line: int, column: int) -> int:
        before = sum(len(one) for one in self.lines[: line - 1])
        return before + len(self.lines[line - 1].encode()[:column].decode())


Operator = Callable[[Source, ast.AST], Iterator[str]]


def written_in_place(source: Source, node: ast.AST) -> Iterator[str]:
    """`x = x + y` as `x += y`, `x.exp()` as `x.exp_()`, `nn.ReLU()` as `nn.ReLU(inplace=True)`."""
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp) and len(node.targets) == 1:
        sign = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}.get(type(node.value.op))
        target = source.of(node.targets[0])
        if sign and source.of(node.value.left) == target:
            yield source.replaced(*source.span(node), f"{target} {sign}= {source.of(node.value.right)}")
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        start, end = source.span(node)
        base = source.of(node.func.value)
        if node.func.attr in _METHODS and base not in ("torch", "np", "math", "F"):
            at = source.span(node.func)[1]
            yield source.replaced(at, at, "_")
        if node.func.attr in _ACTIVATIONS and base == "nn":
            inner = source.text[source.span(node.func)[1] + 1 : end - 1]
            yield source.replaced(start, end, f"nn.{node.func.attr}({inner}{', ' if inner else ''}inplace=True)")


def keyword_left_out(source: Source, node: ast.AST) -> Iterator[str]:
    """`backward(retain_graph=True)` as `backward()`."""
    if isinstance(node, ast.keyword) and node.arg in _KEYWORDS:
        start, end = source.span(node)
        behind = re.compile(r"\s*,\s*").match(source.text, end)
        before = re.search(r",\s*$", source.text[:start])
        yield source.replaced(start if behind or not before else before.start(), behind.end() if behind else end, "")


def method_left_out(source: Source, node: ast.AST) -> Iterator[str]:
    """`x.detach()` as `x`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _LEFT_OUT:
        base = source.of(node.func.value)
        if base not in ("torch", "np", "math", "F", "nn"):
            yield source.replaced(*source.span(node), base)


def detached(source: Source, node: ast.AST) -> Iterator[str]:
    """`return x` as `return x.detach()`, a loss as a number or as a new tensor."""
    if isinstance(node, ast.Return) and isinstance(node.value, (ast.Call, ast.Name, ast.BinOp)):
        text = source.of(node.value)
        yield source.replaced(
            *source.span(node.value), f"({text}).detach()" if isinstance(node.value, ast.BinOp) else f"{text}.detach()"
        )
    if (
        isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id in ("loss", "total")
    ):
        text = source.of(node.value)
        yield source.replaced(*source.span(node.value), f"({text}).item()")
        yield source.replaced(*source.span(node.value), f"torch.tensor({text})")


def grad_mode_off(source: Source, node: ast.AST) -> Iterator[str]:
    """A function under `@torch.no_grad()`, the run of a model in such a block."""
    if (
        isinstance(node, ast.FunctionDef)
        and not node.decorator_list
        and not node.name.startswith("__")
        and node.name != "main"
    ):
        if any(isinstance(one, ast.Return) and one.value is not None for one in ast.walk(node)):
            start = source.span(node)[0]
            yield source.replaced(start, start, f"@torch.no_grad()\n{source.indent(node)}")
    if (
        isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and node.lineno == node.end_lineno
        and node.col_offset
    ):
        if re.match(r"(?:self\.|model|net|encoder|decoder|body|critic|generator)\w*", source.of(node.value)):
            yield source.replaced(
                *source.span(node), f"with torch.no_grad():\n{source.indent(node)}    {source.of(node)}"
            )


def unreduced(source: Source, node: ast.AST) -> Iterator[str]:
    """A loss with `reduction="none"`."""
    if isinstance(node, ast.Call) and not any(one.arg == "reduction" for one in node.keywords):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in _LOSSES | _CRITERIA:
            end = source.span(node)[1] - 1
            lead = ", " if node.args or node.keywords else ""
            yield source.replaced(end, end, f'{lead}reduction="none"')


def backward_twice(source: Source, node: ast.AST) -> Iterator[str]:
    """A second `loss.backward()` behind the first."""
    if (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and not node.value.args
        and not node.value.keywords
    ):
        if (
            isinstance(node.value.func, ast.Attribute)
            and node.value.func.attr == "backward"
            and not source.indent(node).strip()
        ):
            end = source.span(node)[1]
            yield source.replaced(end, end, f"\n{source.indent(node)}{source.of(node)}")


def other_width(source: Source, node: ast.AST) -> Iterator[str]:
    """A layer that is built for twice the features."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _LAYERS and node.args:
        first = node.args[0]
        if isinstance(first, ast.Constant) and isinstance(first.value, int) and first.value > 1:
            yield source.replaced(*source.span(first), str(first.value * 2))


OPERATORS: dict[str, Operator] = {
    "written in place": written_in_place, "keyword left out": keyword_left_out, "method left out": method_left_out,
    "detached": detached, "grad mode off": grad_mode_off, "unreduced": unreduced, "backward twice": backward_twice,
    "other width": other_width,
}  # fmt: skip


def mutants_of(text: str) -> Iterator[Mutant]:
    """Every program that differs in one such place, and can be read."""
    source = Source(text)
    for node in ast.walk(source.tree):
        for kind, operator in OPERATORS.items():
            for changed in operator(source, node):
                try:
                    ast.parse(changed)
                except SyntaxError:
                    continue
                yield Mutant(kind, getattr(node, "lineno", 0), changed)


def is_broken(program: pathlib.Path, wanted: dict) -> bool:
    """Whether a program fails, prints NaN, or leaves parameters without the gradient that they had."""
    try:
        done = subprocess.run(
            [sys.executable, program.name], cwd=program.parent, env=environment(program.parent), capture_output=True, text=True, timeout=TIMEOUT
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return False
    if done.returncode or re.search(r"\bnan\b", done.stdout, re.IGNORECASE):
        return True
    got = first_gradients(program)
    return isinstance(got, dict) and any(
        name not in got or (wanted[name].any() and not got[name].any()) for name in wanted
    )


def bases() -> list[pathlib.Path]:
    """The programs that train: one file each."""
    return sorted([*(HERE / "healthy").glob("*.py"), *KNOWLEDGE.glob("*/*/*/fixed.py")])


def name_of(path: pathlib.Path) -> str:
    return path.stem if path.parent.name == "healthy" else str(path.parent.relative_to(KNOWLEDGE))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100, help="how many broken programs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="names of programs, by their beginning")
    parser.add_argument(
        "--keep", type=pathlib.Path, help="where broken programs stay that were not repaired as they were"
    )
    options = parser.parse_args()
    chance = random.Random(options.seed)
    chosen = [one for one in bases() if name_of(one).startswith(tuple(options.only.split(",")))]
    chance.shuffle(chosen)
    made: Counter[str] = Counter()
    rows: list[tuple[str, Mutant, str, str, str]] = []
    for path in chosen:
        if len(rows) >= options.count:
            break
        row = one_of(path, chance, made, options.keep)
        if row is not None:
            rows.append(row)
            made[row[1].kind] += 1
            print(row[0], row[1].kind, row[1].line, *row[2:], file=sys.stderr, flush=True)
    report(rows, options.seed)


def one_of(
    path: pathlib.Path, chance: random.Random, made: Counter[str], keep: pathlib.Path | None
) -> tuple[str, Mutant, str, str, str] | None:
    """The first broken program of a base, of the kind that is rarest so far, and how its repair ended; None where all of them run."""
    with tempfile.TemporaryDirectory() as scratch:
        folder, meant = (pathlib.Path(scratch) / name for name in ("project", "meant"))
        for one in (folder, meant):
            one.mkdir()
            shutil.copy(path, one / "train.py")
        wanted = first_gradients(meant / "train.py")
        if isinstance(wanted, str) or not wanted:
            return None
        found = list(mutants_of(path.read_text()))
        chance.shuffle(found)
        for mutant in sorted(found, key=lambda one: made[one.kind])[:4]:
            (folder / "train.py").write_text(mutant.text)
            if not is_broken(folder / "train.py", wanted):
                continue
            answer = run_gradfix(folder, "--fix", "--unsafe-fixes")
            causes = answer.get("report", {}).get("findings") or [{"cause": "nothing"}]
            status = str(answer.get("status", "no answer"))
            likeness, why = compare(folder / "train.py", meant / "train.py") if status == "verified" else ("", "")
            if keep is not None and not likeness.startswith((SAME, EQUAL)):
                kept = keep / f"{name_of(path).replace('/', '-')}-{mutant.kind.replace(' ', '-')}-{mutant.line}"
                (kept / "fixed").mkdir(parents=True, exist_ok=True)
                (kept / "train.py").write_text(mutant.text)
                shutil.copy(path, kept / "fixed" / "train.py")
            return name_of(path), mutant, status, str(causes[0]["cause"]), f"{likeness} {why}".strip()
    return None


def report(rows: list[tuple[str, Mutant, str, str, str]], seed: int) -> None:
    """How the repairs ended by kind, and each that was not verified with the gradients as meant."""
    versions = ", ".join(f"{one} {importlib.metadata.version(one)}" for one in LIBRARIES if is_installed(one))
    print(
        f"# Mutants\n\nCPython {platform.python_version()}, {versions}; CPU; seed {seed}; {time.strftime('%Y-%m-%d')}.\n"
    )
    print("| what was broken | programs | verified | as they were | other gradients |\n| --- | --- | --- | --- | --- |")
    for kind in (*OPERATORS, "all"):
        own = [one for one in rows if kind in (one[1].kind, "all")]
        equal = sum(one[4].startswith((SAME, EQUAL)) for one in own)
        other = sum(one[4].startswith(OTHER) for one in own)
        print(f"| {kind} | {len(own)} | {sum(one[2] == 'verified' for one in own)} | {equal} | {other} |")
    print(
        "\n| program | what was broken | line | ended | first cause | difference |\n| --- | --- | --- | --- | --- | --- |"
    )
    for name, mutant, status, cause, likeness in rows:
        if not likeness.startswith((SAME, EQUAL)):
            print(
                f"| {name} | {mutant.kind} | {mutant.line} | {status} | {cause} | {likeness[:120].replace('|', '/')} |"
            )


def is_installed(name: str) -> bool:
    try:
        return bool(importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return False


if __name__ == "__main__":
    main()
