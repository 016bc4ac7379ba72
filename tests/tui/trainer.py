"""A program that reports as `live/` does in a watched process, without torch: `trainer.py FILE` reads FILE as the outcome.

FILE holds a word: "trains", "overflows", "fails" or "never ends"; anything else is looked up in it line by line.
"""

from __future__ import annotations

import json
import os
import sys
import time

LOSSES = (4.2, 3.1, 2.7)


def main() -> None:
    options = json.loads(os.environ["GRADFIX_LIVE"])
    outcome = open(sys.argv[1]).read()
    print("epoch 1", flush=True)
    losses = [*LOSSES[:2], float("nan")] if "overflows" in outcome else list(LOSSES)
    rows = [
        {
            "optimizer": "0 SGD",
            "step": at,
            "parameters": 4,
            "given": 4,
            "zero": 0,
            "norm": 1.0 + at,
            "loss": loss,
            "seconds": 0.01,
        }
        for at, loss in enumerate(losses)
    ]
    steps = os.path.join(options["folder"], "7.steps")
    with open(steps, "a") as file:
        for row in rows:
            told = {key: row[key] for key in ("optimizer", "norm", "loss", "seconds")}
            file.write(
                json.dumps({"pid": 7, "step": row["step"] + 1, "is_seen": True, "memory": 50 << 20, **told}) + "\n"
            )
    if "never ends" in outcome:
        while True:
            time.sleep(0.05)
    if "fails" in outcome:
        raise RuntimeError("grad can be implicitly created only for scalar outputs")
    owned = {
        "optimizer": "0 SGD",
        "trains": True,
        "shape": [4, 4],
        "dtype": "torch.float32",
        "device": "cpu",
        "given": 3,
        "moved": 3,
        "bad": 0,
        "norm": 2.0,
    }
    report = {
        "pid": 7,
        "steps": {"0 SGD": 3},
        "rows": rows,
        "losses": losses,
        "stopped": True,
        "dtypes": ["float32"],
        "step_seconds": 0.01,
        "parameters": {
            name: owned for name in ("Net.first.weight", "Net.first.bias", "Net.second.weight", "Net.second.bias")
        },
        "machine": {"device": "cpu", "name": "a processor", "memory": 50 << 20},
    }
    with open(os.path.join(options["folder"], "7.json"), "w") as file:
        json.dump(report, file)


main()
