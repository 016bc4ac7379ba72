"""Reads a module of 10,000 lines and plans the fixes of a failure in it, beside `ast.parse` of the same file.

python benchmarks/large_module.py [--lines 10000]
"""

from __future__ import annotations

import argparse
import ast
import pathlib
import random
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from explainer.catalog.bundle import load_catalog
from explainer.ingest.text import read_text
from explainer.workflow import explain_incident, plan_report

LOG = """Traceback (most recent call last):
  File "train.py", line {line}, in <module>
    loss.backward()
  File "/usr/lib/python3.11/site-packages/torch/_tensor.py", line 581, in backward
    torch.autograd.backward(
RuntimeError: {message}
"""
MESSAGES = {
    "in-place write": "one of the variables needed for gradient computation has been modified by an inplace operation: "
    "[torch.FloatTensor [8, 8]], which is output 0 of ReluBackward0, is at version 1; expected version 0 instead.",
    "graph freed": "Trying to backward through the graph a second time (or directly access saved tensors after they have "
    "already been freed).",
    "no graph": "element 0 of tensors does not require grad and does not have a grad_fn",
}


def write_module(path: pathlib.Path, lines: int) -> int:
    """A module of blocks such as model code has, with one training loop at its end; its number of lines."""
    rng = random.Random(0)
    parts = ["import torch", "from torch import nn", "import torch.nn.functional as F", ""]
    number = 0
    while len(parts) < lines - 12:
        number += 1
        width = rng.randrange(8, 64)
        parts += [
            "", "", f"class Block{number}(nn.Module):", f'    """Block {number} of {width} channels."""', "",
            "    def __init__(self, dropout=0.1):", "        super().__init__()", f"        self.norm = nn.LayerNorm({width})",
            f"        self.up = nn.Linear({width}, {4 * width})", f"        self.down = nn.Linear({4 * width}, {width})",
            "        self.act = nn.ReLU()", "        self.dropout = dropout", "",
            "    def forward(self, x, mask=None, cache=None):", "        residual = x", "        x = self.norm(x)",
            "        if mask is not None:", "            x = x.masked_fill(mask, 0.0)", "        h = self.act(self.up(x))",
            "        h = F.dropout(h, self.dropout, self.training)", "        x = self.down(h)",
            "        for step in range(2):", "            x = x + torch.tanh(x) * 0.1", "        count = 0",
            "        count += 1", "        x = residual + x", "        return x", "",
        ]  # fmt: skip
        if number % 20 == 0:
            parts += [
                "    def score(self, x):",
                "        y = torch.relu(self.up(x))",
                "        y += self.up(x)",
                "        return y",
            ]
    parts += [
        "", "", "model = Block1()", "optimizer = torch.optim.AdamW(model.parameters())", "for step in range(10):",
        "    optimizer.zero_grad()", "    loss = model(torch.randn(2, 8)).sum()", "    loss.backward()", "    optimizer.step()",
    ]  # fmt: skip
    path.write_text("\n".join(parts) + "\n")
    return len(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=10_000)
    options = parser.parse_args()
    catalog = load_catalog()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "train.py"
        lines = write_module(path, options.lines)
        start = time.perf_counter()
        ast.parse(path.read_text())
        base = time.perf_counter() - start
        print(f"ast.parse of {lines} lines      {base:6.2f} s")
        for name, message in MESSAGES.items():
            (incident,) = read_text(LOG.format(line=lines - 1, message=message))
            start = time.perf_counter()
            report = plan_report(explain_incident(incident, None, catalog), catalog, folder)
            seconds = time.perf_counter() - start
            edits = sum(bool(fix.patch) for fix in report.findings[0].fixes)
            print(
                f"explain and plan, {name:<15} {seconds:6.2f} s  {seconds / base:5.1f} times  {edits} edits  {len(report.faults)} faults"
            )


if __name__ == "__main__":
    main()
