"""Class indices of another dtype than a classifier of transformers takes for classes."""

from __future__ import annotations

import pathlib
import sys
import types

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from explainer.live import class_target  # noqa: E402
from explainer.live.crash import look  # noqa: E402
from explainer.verification.live_report import facts_of  # noqa: E402

SEVERAL = "_".join(["multi", "label", "classification"])  # a program that spells it asks for it
BERT = {"vocab_size": 16, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}


@pytest.fixture(autouse=True)
def files(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files of the program; other tests in this process name what is sought."""
    found: list[str] = []
    monkeypatch.setattr(class_target, "own_files", lambda: found)
    return found


def told(labels: torch.Tensor, *, classes: int = 3, **given: object) -> str | None:
    """What is told of the labels that a model refused."""
    model = transformers.BertForSequenceClassification(transformers.BertConfig(num_labels=classes, **BERT, **given))
    with pytest.raises(ValueError, match="must be the same as input size") as failed:
        model(input_ids=torch.ones(4, 5, dtype=torch.long), labels=labels)
    return dict(facts_of(look(failed.value))).get("live_class_targets")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int16, torch.uint8])
def test_classes(dtype: torch.dtype) -> None:
    """One whole number for each sample, of a dtype that is not taken for classes."""
    assert told(torch.tensor([0, 2, 1, 2], dtype=dtype)) == str(dtype).removeprefix("torch.")


def test_classes_in_a_column() -> None:
    """A trailing dimension of 1 does not make probabilities of them."""
    assert told(torch.tensor([[0.0], [2.0], [1.0], [2.0]])) == "float32"


def test_fractions() -> None:
    """Fractions are no classes: another loss was meant."""
    assert told(torch.tensor([0.5, 2.0, 1.0, 2.0])) is None


def test_values_below_zero() -> None:
    """Nor are negative numbers."""
    assert told(torch.tensor([-1.0, 2.0, 1.0, 2.0])) is None


def test_rows_of_another_batch() -> None:
    """Rows of labels for fewer samples, or for other classes, have the wrong shape."""
    assert told(torch.ones(3, 3)) is None
    assert told(torch.ones(4, 2)) is None
    assert told(torch.ones(12)) is None


def test_program_that_asks_for_several(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the command names the kind of problem, the rows are missing and the dtype is right."""
    monkeypatch.setattr(sys, "argv", ["train.py", f"--problem-type={SEVERAL}"])
    assert told(torch.tensor([0.0, 2.0, 1.0, 2.0]), problem_type=SEVERAL) is None


def test_file_that_asks_for_several(files: list[str], tmp_path: pathlib.Path) -> None:
    """Nor where a file of the program does."""
    file = tmp_path / "model.py"
    file.write_text(f"PROBLEM = {SEVERAL!r}\n")
    files.append(str(file))
    assert told(torch.tensor([0.0, 2.0, 1.0, 2.0]), problem_type=SEVERAL) is None


def test_own_files(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    """The program's modules are read, not those of libraries or of this package."""
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "own_part", types.SimpleNamespace(__file__=str(tmp_path / "own_part.py")))
    found = class_target.own_files()
    assert str(tmp_path / "own_part.py") in found
    assert torch.__file__ not in found
    assert class_target.__file__ not in found


def test_loss_of_the_program() -> None:
    """A loss that the program calls itself says nothing of a library's choice."""
    with pytest.raises(ValueError, match="must be the same as input size") as failed:
        torch.nn.BCEWithLogitsLoss()(torch.zeros(4, 3), torch.zeros(4))
    assert "live_class_targets" not in dict(facts_of(look(failed.value)))
