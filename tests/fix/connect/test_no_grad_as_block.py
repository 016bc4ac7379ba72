"""Grad mode that is switched off and on by hand becomes a block where a way out leaves it off."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = """import torch
from torch import nn
net = nn.Linear(4, 3)
x = torch.randn(2, 4)
"""
RIGHT = {
    "no other way out": """def evaluate(rows):
    torch.set_grad_enabled(False)
    total = sum(net(row).sum().item() for row in rows)
    torch.set_grad_enabled(True)
    return total
""",
    "switched on before each return": """def evaluate(rows, limit):
    torch.set_grad_enabled(False)
    if limit == 0:
        torch.set_grad_enabled(True)
        return 0.0
    total = net(rows).sum().item()
    torch.set_grad_enabled(True)
    return total
""",
    "switched on in a finally": """def evaluate(rows):
    torch.set_grad_enabled(False)
    try:
        return net(rows).sum().item()
    finally:
        torch.set_grad_enabled(True)
""",
    "a generator": """def scores(rows):
    torch.set_grad_enabled(False)
    for row in rows:
        if row.isnan().any():
            return
        yield net(row)
    torch.set_grad_enabled(True)
""",
    "an attack in between": """def attack(rows):
    torch.set_grad_enabled(False)
    if len(rows):
        torch.set_grad_enabled(True)
        rows = rows.clone().requires_grad_(True)
        net(rows).sum().backward()
    else:
        return rows
    torch.set_grad_enabled(True)
    return rows + rows.grad
""",
    "a break of an inner loop": """def evaluate(rows):
    torch.set_grad_enabled(False)
    for row in rows:
        if row.isnan().any():
            break
        net(row)
    torch.set_grad_enabled(True)
""",
    "a return of an inner function": """def evaluate(rows):
    torch.set_grad_enabled(False)
    def score(row):
        return net(row)
    total = sum(score(row) for row in rows)
    torch.set_grad_enabled(True)
    return total
""",
    "a switch of another library": """import paddle as frame


def evaluate(rows):
    frame.set_grad_enabled(False)
    if not len(rows):
        return 0
    frame.set_grad_enabled(True)
""",
}
WRONG = {
    "an early return in a loop": (
        """def evaluate(loader, limit):
    net.eval()
    torch.set_grad_enabled(False)
    total = 0.0
    for at, rows in enumerate(loader):
        if at == limit:
            return total  # enough

        total += net(rows).sum().item()
    torch.set_grad_enabled(True)
    return total
""",
        """def evaluate(loader, limit):
    net.eval()
    with torch.no_grad():
        total = 0.0
        for at, rows in enumerate(loader):
            if at == limit:
                return total  # enough

            total += net(rows).sum().item()
    return total
""",
    ),
    "a raise": (
        """def check(rows):
    torch.set_grad_enabled(False)
    score = net(rows).sum()
    if score.isnan():
        raise ValueError("bad rows")
    torch.set_grad_enabled(True)
    return score.item()
""",
        """def check(rows):
    with torch.no_grad():
        score = net(rows).sum()
        if score.isnan():
            raise ValueError("bad rows")
    return score.item()
""",
    ),
    "a continue of the training loop": (
        """for epoch in range(4):
    net(x).sum().backward()
    torch.set_grad_enabled(False)
    if epoch % 2:
        continue
    print(net(x).sum().item())
    torch.set_grad_enabled(True)
""",
        """for epoch in range(4):
    net(x).sum().backward()
    with torch.no_grad():
        if epoch % 2:
            continue
        print(net(x).sum().item())
""",
    ),
    "one return of two forgets it": (
        """def evaluate(rows, quick):
    torch.set_grad_enabled(False)
    score = net(rows).sum().item()
    if quick:
        return score
    more = net(rows * 2).sum().item()
    torch.set_grad_enabled(True)
    return score + more
""",
        """def evaluate(rows, quick):
    with torch.no_grad():
        score = net(rows).sum().item()
        if quick:
            return score
        more = net(rows * 2).sum().item()
    return score + more
""",
    ),
    "the last return forgets it": (
        """class Judge:
    def score(self, rows, quick):
        torch.set_grad_enabled(False)
        if quick:
            score = net(rows[:1]).sum().item()
            torch.set_grad_enabled(True)
            return score
        return net(rows).sum().item()
""",
        """class Judge:
    def score(self, rows, quick):
        with torch.no_grad():
            if quick:
                score = net(rows[:1]).sum().item()
                return score
            return net(rows).sum().item()
""",
    ),
    "a mode that was kept": (
        """def evaluate(rows):
    was_on = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    if rows is None:
        return '''none
of them'''
    total = net(rows).sum().item()
    torch.set_grad_enabled(was_on)
    return total
""",
        """def evaluate(rows):
    was_on = torch.is_grad_enabled()
    with torch.no_grad():
        if rows is None:
            return '''none
of them'''
        total = net(rows).sum().item()
    return total
""",
    ),
}


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_what_is_switched_on_again_stays(tmp_path, source: str) -> None:
    """Grad mode that comes on again on every way, or lines that are no block, are left alone."""
    assert rewritten(tmp_path, "no_grad_as_block", HEAD + source) == HEAD + source


@pytest.mark.parametrize(("source", "wanted"), WRONG.values(), ids=WRONG)
def test_a_way_out_ends_the_block(tmp_path, source: str, wanted: str) -> None:
    """The lines between the switches become a block; a second time nothing is left to do."""
    after = rewritten(tmp_path, "no_grad_as_block", HEAD + source)
    assert after == HEAD + wanted
    assert rewritten(tmp_path, "no_grad_as_block", after) == after


@pytest.mark.parametrize(
    ("imports", "switch", "block"),
    [
        ("import torch as t", "t.set_grad_enabled", "with t.no_grad():"),
        ("from torch import no_grad, set_grad_enabled", "set_grad_enabled", "with no_grad():"),
        ("from torch import set_grad_enabled", "set_grad_enabled", None),
    ],
)
def test_a_block_as_the_file_imports_it(tmp_path, imports: str, switch: str, block: str | None) -> None:
    """The block is written by the names that the file has; one that has none for it stays."""
    source = f"""{imports}


def evaluate(net, rows):
    {switch}(False)
    if rows is None:
        return None
    score = net(rows).item()
    {switch}(True)
    return score
"""
    after = rewritten(tmp_path, "no_grad_as_block", source)
    assert changed_lines(source, after)[:1] == ([block] if block else [])


CAUGHT = """def evaluate(rows):
    torch.set_grad_enabled(False)
    total = score(net(rows))
    torch.set_grad_enabled(True)
    return total
for rows in (x, x):
    CALL
    net(x).sum().backward()
"""


@pytest.mark.parametrize(
    ("call", "is_cured"),
    [
        ("try:\n        evaluate(rows)\n    except ValueError:\n        pass", True),
        ("try:\n        evaluate(rows)\n    finally:\n        print(rows)", False),
        ("evaluate(rows)", False),
    ],
)
def test_an_exception_that_a_caller_catches(tmp_path, call: str, is_cured: bool) -> None:
    """It leaves grad mode off as a `return` does; where nobody catches it nothing comes behind it."""
    source = HEAD + CAUGHT.replace("CALL", call)
    after = rewritten(tmp_path, "no_grad_as_block", source, "backward")
    wanted = ["with torch.no_grad():", "total = score(net(rows))"]
    assert [one.strip() for one in changed_lines(source, after)] == (wanted if is_cured else [])


QUICK = """def quick(net, rows):
    net.eval()
    torch.set_grad_enabled(False)
    for at, row in enumerate(rows):
        net(row)
        if at == 3:
            {way}return at
    torch.set_grad_enabled(True)
    net.train()
    return len(rows)
loss = net(x).sum()
loss.backward()
"""


@pytest.mark.parametrize("way", ["", "net.train()\n            "], ids=["left out", "there"])
def test_a_return_puts_the_mode_back_as_the_other_way_does(tmp_path, way: str) -> None:
    """A return that is past the switch is past `net.train()`, too: with grad mode alone the net would train without dropout."""
    source = HEAD + QUICK.format(way=way)
    after = rewritten(tmp_path, "no_grad_as_block", source, "loss.backward()")
    assert after.count("net.train()\n") == 2
    assert after == HEAD + QUICK.format(way="net.train()\n            ").replace(
        "    torch.set_grad_enabled(False)\n", "    with torch.no_grad():\n"
    ).replace("    torch.set_grad_enabled(True)\n", "").replace(
        "    for at, row in enumerate(rows):\n        net(row)\n        if at == 3:\n            net.train()\n            return at\n",
        "        for at, row in enumerate(rows):\n            net(row)\n            if at == 3:\n                net.train()\n                return at\n",
    )
