"""A layer's column becomes a row where a traced line puts it to one."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.splice import splice
from explainer.model.incident import Incident
from explainer.model.trace import COMBINED, TracedLine
from tests.fix.rewriting import best, changed_lines, line_of, write

HEAD = "import torch\n\n\ndef forward(self, u, i, x):\n"
# What the tracer says of the last line: the operation, its operands, how many of its name are within, which is the column.
ADDED = ("add", "[32, 1] and [32]", 0, "first")
STAYS = {
    "another operation": ("    return self.bias(u) * self.row(x)\n", [ADDED]),
    "two sums of which either may be it": (
        "    return self.one(self.bias(u) + self.row(x)), self.bias(u) + self.row(i)\n", [ADDED]
    ),
    "a call of the program": ("    return combine(self.bias(u), self.row(x))\n", [ADDED]),
    "a sum in place": ("    total += self.row(x)\n", [ADDED]),
    "a number": ("    return 1 + self.row(x)\n", [ADDED]),
    "one line that is known of two": (
        "    return self.bias(u) + self.row(x)\n", [ADDED, ("mul", "[32, 32] and [32, 1]", 0, "second")]
    ),
}  # fmt: skip
WRITTEN = {
    "a name": ("    return bias + self.row(x)\n", [ADDED], "return bias.squeeze(-1) + self.row(x)"),
    "a sum behind a number of the module": (
        "    return self.mean + bias + row\n", [("add", "[32, 1] and [32]", 1, "first")], "return (self.mean + bias).squeeze(-1) + row"
    ),
    "a call on the right": (
        "    return row * torch.sigmoid(self.gate(x))\n", [("mul", "[32] and [32, 1]", 0, "second")],
        "return row * torch.sigmoid(self.gate(x)).squeeze(-1)",
    ),
    "two columns": (
        "    return row + self.user(u) + self.item(i)\n",
        [("add", "[32] and [32, 1]", 0, "second"), ("add", "[32, 32] and [32, 1]", 1, "second")],
        "return row + self.user(u).squeeze(-1) + self.item(i).squeeze(-1)",
    ),
    "a variance": (
        "    return 0.5 * (log_var + (x - row) ** 2 / log_var.exp())\n",
        [("div", "[32] and [32, 1]", 0, "second"), ("add", "[32, 1] and [32, 32]", 0, "first")],
        "return 0.5 * (log_var.squeeze(-1) + (x - row) ** 2 / log_var.exp().squeeze(-1))",
    ),
    "both sides of a mixture": (
        "    return gate * row + other * (1 - gate)\n",
        [("mul` (characters 11 to 21 of its line)", "[32, 1] and [32]", 0, "first"),
         ("mul` (characters 24 to 42 of its line)", "[32] and [32, 1]", 0, "second")],
        "return gate.squeeze(-1) * row + other * (1 - gate).squeeze(-1)",
    ),
    "a function of torch": (
        "    return torch.add(self.bias(u), row)\n", [ADDED], "return torch.add(self.bias(u).squeeze(-1), row)"
    ),
    "a method": ("    return row.mul(gate)\n", [("mul", "[32] and [32, 1]", 0, "second")], "return row.mul(gate.squeeze(-1))"),
}  # fmt: skip


def edited(folder: pathlib.Path, body: str, told: list[tuple[str, str, int, str]], form: str = "row") -> str:
    """The program after the edit for what the tracer saw on its last line."""
    source = HEAD + body
    program = write(folder, {"model.py": source})
    traced = tuple(
        TracedLine(
            kind=COMBINED, operation=name.partition("`")[0], file="model.py", line=line_of(source, body.strip()),
            says=f"`{name}{'' if '`' in name else '`'} of {shapes}{f', behind {inner} `{name}` more' if inner else ''} ({column} the column of a layer) puts each to each: the loss averages all pairs, and a {form} is meant",
        )
        for name, shapes, inner, column in told
    )  # fmt: skip
    proposal = best("column_of_layer", program, incident=Incident(traced=traced))
    after = splice(source, proposal.edits) if proposal is not None else source
    assert after is not None
    return after


@pytest.mark.parametrize(("body", "told"), STAYS.values(), ids=STAYS)
def test_what_is_not_sure_stays(body: str, told: list[tuple[str, str, int, str]], tmp_path: pathlib.Path) -> None:
    assert edited(tmp_path, body, told) == HEAD + body


@pytest.mark.parametrize(("body", "told", "wanted"), WRITTEN.values(), ids=WRITTEN)
def test_a_column_loses_its_axis(
    body: str, told: list[tuple[str, str, int, str]], wanted: str, tmp_path: pathlib.Path
) -> None:
    """Each operand that was seen to be one, and nothing else of the line."""
    assert changed_lines(HEAD + body, edited(tmp_path, body, told)) == [wanted]


def test_a_row_is_stood_up_beside_columns(tmp_path: pathlib.Path) -> None:
    """Where the labels stand in a column."""
    body = "    return self.bias(u) + self.row(x)\n"
    wanted = ["return self.bias(u) + self.row(x).unsqueeze(-1)"]
    assert changed_lines(HEAD + body, edited(tmp_path, body, [ADDED], "column")) == wanted
