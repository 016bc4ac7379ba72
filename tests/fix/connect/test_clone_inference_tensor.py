"""What a library made in inference mode is cloned where training uses it."""

from __future__ import annotations

import pathlib
from dataclasses import replace

from explainer.fix.splice import splice
from explainer.model.incident import TENSOR, Fact
from tests.fix.rewriting import best, changed_lines, failed, line_of, write

SOURCE = """codes = trainer.predict(model, loader)
for z, y in zip(codes, labels):
    loss = criterion(probe(z), y)
    loss.backward()
"""


def proposed(folder: pathlib.Path, *tensors: str, source: str = SOURCE) -> list[str]:
    """The lines that the edit writes where the frame held these tensors."""
    program = write(folder, {"train.py": source})
    incident = failed({"train.py": line_of(source, "loss =")}, "Inference tensors cannot be saved for backward.")
    facts = tuple(Fact(name=TENSOR, value=one) for one in tensors)
    proposal = best("clone_inference_tensor", program, incident=replace(incident, facts=facts))
    after = splice(source, proposal.edits) if proposal is not None else source
    assert after is not None
    return changed_lines(source, after)


def test_the_tensor_that_the_program_named(tmp_path: pathlib.Path) -> None:
    """Only the live program knows which one it is."""
    seen = ("z: [8, 4] float32 on cpu in inference mode", "y: [8] int64 on cpu")
    assert proposed(tmp_path, *seen) == ["loss = criterion(probe(z.clone()), y)"]
    assert proposed(tmp_path, "z: [8, 4] float32 on cpu") == []
    assert proposed(tmp_path) == []


def test_the_tensor_that_a_dictionary_or_an_object_holds(tmp_path: pathlib.Path) -> None:
    """The report names it as Python writes it, the source in quotes of its own."""
    source = SOURCE.replace("probe(z), y", 'probe(batch["z"]) + self.bias, y')
    seen = ("batch['z']: [8, 4] float32 on cpu in inference mode", "self.bias: [4] float32 on cpu in inference mode")
    assert proposed(tmp_path, *seen, source=source) == [
        'loss = criterion(probe(batch["z"].clone()) + self.bias.clone(), y)'
    ]


KEPT = """class Rotary:
    def __init__(self):
        self.length, self.cos = 0, None
    def table(self, length):
        if length > self.length:
            angle = torch.arange(length).float()
            self.cos = angle.cos()
        return self.cos[:length]
    def rotate(self, x):
        return self.turn(x, self.table(x.size(0)))
    def turn(self, x, cos):
        return x * cos
"""


def told_line(folder: pathlib.Path, source: str) -> str | None:
    program = write(folder, {"train.py": source})
    facts = (Fact(name=TENSOR, value="cos: [8] float32 on cpu in inference mode"),)
    incident = replace(failed({"train.py": line_of(source, "return x * cos")}, "Inference tensors"), facts=facts)
    proposal = best("clone_inference_tensor", program, incident=incident)
    return proposal.culprit.code if proposal is not None else None


def test_a_table_that_is_kept_is_told_where_it_is_made(tmp_path: pathlib.Path) -> None:
    """Whoever asked first made it for all; what `__init__` makes was no inference tensor."""
    assert told_line(tmp_path, KEPT) == "self.cos = angle.cos()"
    pair = KEPT.replace("self.cos = angle.cos()", "self.cos, self.sin = angle.cos(), angle.sin()")
    pair = pair.replace("return self.cos[:length]", "return self.cos[:length], self.sin[:length]")
    pair = pair.replace(
        "        return self.turn(x, self.table(x.size(0)))",
        "        cos, sin = self.table(x.size(0))\n        return self.turn(x, cos)",
    )
    assert told_line(tmp_path, pair) == "self.cos, self.sin = angle.cos(), angle.sin()"
    early = KEPT.replace("self.length, self.cos = 0, None", "self.cos = torch.ones(4)").replace(
        "            self.cos = angle.cos()\n", ""
    )
    assert told_line(tmp_path, early) == "return x * cos"


ASKED = """import functools
class Bank:
    def __init__(self):
        self._rows = None
    def rows(self):
        if self._rows is None:
            raw = encode(self.ids)
            self._rows = raw / raw.norm()
        return self._rows
class Net:
    def __init__(self):
        self.text = Bank()
    def forward(self, x):
        return self.scale * x @ self.text.rows().T
"""
IN_A_DICTIONARY = ASKED.replace("self._rows = None", "self._rows = {}").replace(
    "if self._rows is None", 'if "a" not in self._rows'
).replace("self._rows = raw", 'self._rows["a"] = raw').replace("return self._rows", 'return self._rows["a"]')  # fmt: skip
BY_DECORATOR = ASKED.replace("    def rows(self):", "    @functools.lru_cache\n    def rows(self):").replace(
    "        if self._rows is None:\n            raw = encode(self.ids)\n            self._rows = raw / raw.norm()\n        return self._rows",
    "        return encode(self.ids)",
)  # fmt: skip


def asked(folder: pathlib.Path, source: str, message: str = "Inference tensors cannot be saved") -> tuple | None:
    """The guilty line and the changed one, where no report can look at what a call gives."""
    program = write(folder, {"train.py": source})
    proposal = best("clone_inference_tensor", program, incident=failed({"train.py": line_of(source, "x @")}, message))
    return proposal and (proposal.culprit.code, changed_lines(source, splice(source, proposal.edits) or ""))


def test_what_a_method_makes_on_demand(tmp_path: pathlib.Path) -> None:
    """A call cannot be looked at: what its method keeps, in an attribute, a dictionary or by a decorator, is told."""
    line = ["return self.scale * x @ self.text.rows().clone().T"]
    assert asked(tmp_path, ASKED) == ("self._rows = raw / raw.norm()", line)
    assert asked(tmp_path, IN_A_DICTIONARY) == ('self._rows["a"] = raw / raw.norm()', line)
    assert asked(tmp_path, BY_DECORATOR) == ("return encode(self.ids)", line)


def test_what_a_method_makes_anew_stays(tmp_path: pathlib.Path) -> None:
    """What is made at each call, or in `__init__`, or fails in other words, is no table of inference mode."""
    anew = ASKED.replace("        if self._rows is None:\n            raw", "        if True:\n            raw")
    assert (
        asked(tmp_path, anew.replace("self._rows = raw /", "rows = raw /").replace("return self._rows", "return rows"))
        is None
    )
    made = ASKED.replace("= None", "= torch.ones(3)").replace("            raw = encode(self.ids)\n", "")
    assert asked(tmp_path, made.replace("self._rows = raw / raw.norm()", "pass")) is None
    assert asked(tmp_path, ASKED, "size mismatch") is None
    two = ASKED.replace("self.text = Bank()", "self.text, self.other = Bank(), Bank()\n        self.other = Bank()")
    assert asked(tmp_path, two.replace("self.scale", "self.other.rows()")) is None
