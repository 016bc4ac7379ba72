"""What the report says of the tensors of the frame that failed."""

from __future__ import annotations

from collections import UserDict, namedtuple
from types import SimpleNamespace
from typing import Any

import pytest

from explainer.live.compare import MAX_TENSORS, compared

torch = pytest.importorskip("torch")


class Untouchable:
    """An object whose property must not be asked."""

    @property
    def secret(self) -> object:
        raise AssertionError("a property was called")


def tensors_of(**held: Any) -> dict[str, str]:
    """What is told of a frame whose locals are these."""

    def fails(batch: Any = None, state: Any = None) -> None:
        raise RuntimeError("the batch", batch, state)

    with pytest.raises(RuntimeError, match="the batch") as failed:
        fails(**held)
    told = compared(failed.value)["tensors"]
    assert isinstance(told, dict)
    return told


@pytest.mark.torch
def test_items_and_attributes_are_named_as_they_are_read() -> None:
    """Of dictionaries, tuples, objects and modules; of a user's dictionary behind its class as well."""
    layer = torch.nn.BatchNorm1d(2)
    labels = torch.zeros(3, dtype=torch.int64)
    assert tensors_of(batch={"labels": labels}) == {"batch['labels']": "[3] int64 on cpu"}
    assert tensors_of(batch=UserDict(labels=labels)) == {"batch['labels']": "[3] int64 on cpu"}
    assert tensors_of(batch=(1, labels)) == {"batch[1]": "[3] int64 on cpu"}
    pair = namedtuple("Pair", "seen taken")  # noqa: PYI024 - as programs write it
    assert tensors_of(batch=pair(1, labels)) == {"batch.taken": "[3] int64 on cpu", "batch[1]": "[3] int64 on cpu"}
    assert tensors_of(state=SimpleNamespace(hidden=labels)) == {"state.hidden": "[3] int64 on cpu"}
    assert tensors_of(state=layer)["state.running_mean"] == "[2] float32 on cpu"


@pytest.mark.torch
def test_nothing_of_the_program_is_called_and_the_list_is_bounded() -> None:
    """Properties stay unasked; a nested tensor, which has no shape, costs nothing but itself; names come before items."""
    assert tensors_of(state=Untouchable()) == {}
    nested = torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)])
    told = tensors_of(batch=[torch.zeros(1)] * (2 * MAX_TENSORS), state=nested)
    assert len(told) == MAX_TENSORS
    assert "state" not in told
    assert next(iter(told)) == "batch[0]"


@pytest.mark.torch
def test_globals_that_the_frame_reads_are_named() -> None:
    """A table of the module is an operand like any other; what the function does not name is not looked at."""
    program = "def fails():\n    raise RuntimeError(TABLE + 1, STATE.mean)\n"
    space: dict[str, Any] = {
        "TABLE": torch.zeros(2),
        "OTHER": torch.zeros(3),
        "STATE": SimpleNamespace(mean=torch.zeros(4)),
    }
    exec(compile(program, "train.py", "exec"), space)
    with pytest.raises(RuntimeError) as failed:
        space["fails"]()
    assert compared(failed.value)["tensors"] == {"TABLE": "[2] float32 on cpu", "STATE.mean": "[4] float32 on cpu"}


@pytest.mark.torch
def test_a_wrapper_of_ours_is_no_frame_of_the_program() -> None:
    """An exception that is looked at where our wrapper of `backward` saw it has not come to the program's frame yet."""
    from explainer.live.last_losses import LastLosses
    from explainer.live.raised import watch

    class Recorder:
        last_losses = LastLosses()

        def note(self, error: BaseException, where: str) -> None:
            seen.append(compared(error))

    seen: list[dict[str, Any]] = []
    loss = torch.zeros(3, requires_grad=True) * 2
    with watch(Recorder()), pytest.raises(RuntimeError, match="implicitly created"):
        loss.backward()
    assert seen[0]["tensors"]["loss"] == "[3] float32 on cpu"


@pytest.mark.torch
def test_a_capture_tells_of_what_broke_it() -> None:
    """The end of a CUDA graph's capture raises for an error inside it: the tensors are those of that one's frame."""

    def breaks(readings: Any) -> None:
        raise RuntimeError("CUDA error: operation not permitted when stream is capturing", readings)

    def captures(said: str) -> None:
        static = torch.zeros(5)
        try:
            breaks(torch.zeros(3))
        except RuntimeError:
            raise RuntimeError(said, static)  # noqa: B904 - as the end of a `with` does

    with pytest.raises(RuntimeError) as failed:
        captures("CUDA error: operation failed due to a previous error during capture")
    assert compared(failed.value)["tensors"] == {"readings": "[3] float32 on cpu"}
    with pytest.raises(RuntimeError) as failed:
        captures("another error")
    assert compared(failed.value)["tensors"] == {"static": "[5] float32 on cpu"}
