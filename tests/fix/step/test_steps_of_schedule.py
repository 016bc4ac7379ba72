"""A schedule gets the steps that the loops make."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import best, changed_lines, line_of, rewritten, write

HEAD = "from torch.optim.lr_scheduler import OneCycleLR\n"
ASKED = {"asked": "9", "total": "8"}


@pytest.mark.parametrize(
    ("made", "loops", "wanted"),
    [
        ("total_steps=len(loader)", "for e in range(epochs):\n for x in loader:\n  s.step()", "total_steps=epochs * len(loader)"),
        ("total_steps=epochs", "for e in range(epochs):\n for i, x in enumerate(tqdm(loader)):\n  s.step()", "total_steps=epochs * len(loader)"),
        ("epochs=1, steps_per_epoch=len(loader)", "for e in range(epochs):\n for x in loader:\n  s.step()", "epochs=epochs, steps_per_epoch=len(loader)"),
        ("total_steps=len(loader)", "for e in range(1, epochs + 1):\n for x in loader:\n  s.step()", "total_steps=(epochs + 1 - 1) * len(loader)"),
        ("total_steps=8", "for e in range(epochs):\n for i, x in enumerate(loader):\n  if (i + 1) % every == 0:\n   s.step()", "total_steps=epochs * (len(loader) // every)"),
        ("epochs=epochs, steps_per_epoch=n // every", "for e in range(epochs):\n for i in range(0, n, every):\n  s.step()", "epochs=epochs, steps_per_epoch=len(range(0, n, every))"),
        # What the steps depend on is not written.
        ("total_steps=8", "while left:\n for x in loader:\n  s.step()", None),
        ("total_steps=8", "for e in range(epochs):\n for x in loader:\n  if x.any():\n   s.step()", None),
        ("total_steps=8", "for e in range(epochs):\n for a, b in zip(loader, other):\n  s.step()", None),
        # The schedule runs ahead of an optimizer that steps now and then.
        ("total_steps=8", "for i, x in enumerate(loader):\n if i % 2:\n  o.step()\n s.step()", None),
    ],
)  # fmt: skip
def test_loops(tmp_path: pathlib.Path, made: str, loops: str, wanted: str | None) -> None:
    source = f"{HEAD}loader, epochs, every, n = make()\ns = OneCycleLR(o, {made})\n{loops}\n"
    after = rewritten(tmp_path, "steps_of_schedule", source, "s.step()", fields=ASKED)
    assert changed_lines(source, after) == ([f"s = OneCycleLR(o, {wanted})"] if wanted else [])


FUNCTIONS = f"""{HEAD}EPOCHS = 3
def train_epoch(model, batches, opt, sched):
    for x in batches:
        opt.step()
        sched.step()
def build(opt, steps):
    return OneCycleLR(opt, max_lr=0.1, total_steps=steps)
def main():
    train_loader = make()
    sched = build(opt, STEPS)
    for epoch in range(EPOCHS):
        train_epoch(model, train_loader, opt, sched)
main()
"""


def test_functions(tmp_path: pathlib.Path) -> None:
    source = FUNCTIONS.replace("STEPS)", "len(train_loader))")
    after = rewritten(tmp_path, "steps_of_schedule", source, "sched.step()", fields=ASKED)
    assert changed_lines(source, after) == ["sched = build(opt, EPOCHS * len(train_loader))"]


def test_names_that_are_bound_later(tmp_path: pathlib.Path) -> None:
    source = f"{HEAD}s = OneCycleLR(o, total_steps=8)\nloader = make()\nfor x in loader:\n    s.step()\n"
    assert rewritten(tmp_path, "steps_of_schedule", source, "s.step()", fields=ASKED) == source


OPTIONS = f"""{HEAD}def train(args):
    sched = OneCycleLR(opt, max_lr=0.1, total_steps=args.epochs * 4)
    for epoch in range(args.epochs):
        for i in range(5):
            sched.step()
train(parser.parse_args())
"""


def test_options_that_the_caller_has_no_name_for(tmp_path: pathlib.Path) -> None:
    after = rewritten(tmp_path, "steps_of_schedule", OPTIONS, "sched.step()", fields=ASKED)
    assert changed_lines(OPTIONS, after) == ["sched = OneCycleLR(opt, max_lr=0.1, total_steps=args.epochs * 5)"]


def test_the_count_is_told_where_the_loops_cannot_be_counted(tmp_path: pathlib.Path) -> None:
    source = f"{HEAD}s = OneCycleLR(o, total_steps=8)\nwhile left:\n s.step()\n"
    found = best("steps_of_schedule", write(tmp_path, {"train.py": source}), fields=ASKED)
    assert found is not None
    assert not found.edits
    assert found.culprit.line == line_of(source, "total_steps=8")


def test_numbers_that_get_their_names_together(tmp_path: pathlib.Path) -> None:
    source = (
        f"{HEAD}epochs, size = 4, 16\ns = OneCycleLR(o, epochs=epochs, steps_per_epoch=100 // size)\n"
        "for e in range(epochs):\n    for i in range(0, 100, size):\n        s.step()\n"
    )
    after = rewritten(tmp_path, "steps_of_schedule", source, "s.step()", fields=ASKED)
    assert changed_lines(source, after) == [
        "s = OneCycleLR(o, epochs=epochs, steps_per_epoch=len(range(0, 100, size)))"
    ]
