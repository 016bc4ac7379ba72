"""Tracebacks as logs hold them: cut, indented, interleaved, with noise between the frames."""

from __future__ import annotations

import pytest

from explainer.ingest.text import read_text

WHOLE = """Traceback (most recent call last):
  File "/home/u/train.py", line 41, in <module>
    main()
  File "/home/u/.venv/lib/python3.11/site-packages/torch/_tensor.py", line 522, in backward
    torch.autograd.backward(
RuntimeError: element 0 of tensors does not require grad
"""
NO_TRACEBACK = {
    "prose": "The run ended with error: see above\nall good\n",
    "a word and a colon": "note: nothing happened\n",
    "a name of a class": "Model: LlamaForCausalLM\nOptimizer: AdamW\n",
    "an epoch": "Epoch 1/3\nDone\n",
}
DAMAGED = {
    "header cut off": (WHOLE.split("\n", 1)[1], 2),
    "header cut in its word": (WHOLE[1:], 2),
    "first frame cut off": ("\n".join(WHOLE.split("\n")[3:]), 1),
    "indented as a block": ("".join(f"    {line}\n" for line in WHOLE.splitlines()), 2),
    "indentation lost": ("".join(f"{line.strip()}\n" for line in WHOLE.splitlines()), 2),
    "blank lines between": (WHOLE.replace("\n", "\n\n"), 2),
    "an ellipsis between": (WHOLE.replace('  File "/home/u/.venv', '...\n  File "/home/u/.venv'), 2),
    "a progress bar before it": (" 33%|███▎      | 1/3 [00:00<00:00,  5.10it/s]" + WHOLE, 2),
    "a warning between": (WHOLE.replace("    main()\n", "    main()\nwandb: syncing\n"), 2),
    "carriage returns": (WHOLE.replace("\n", "\r\n"), 2),
    "coloured by 3.13": (WHOLE.replace("RuntimeError", "\x1b[1;35mRuntimeError\x1b[0m"), 2),
    "a logger's first line": ("ERROR:root:it failed\n" + WHOLE, 2),
    "text after it": (WHOLE + "wandb: run finished\nwandb: bye\n", 2),
    "a log record after it": (WHOLE + "2026-05-01 12:00:00,123 INFO closing\n", 2),
}


@pytest.mark.parametrize("text", NO_TRACEBACK.values(), ids=NO_TRACEBACK.keys())
def test_nothing_to_read(read, text: str) -> None:
    """Ordinary lines make no exception."""
    assert read(text).exceptions == ()


@pytest.mark.parametrize(("text", "frames"), DAMAGED.values(), ids=DAMAGED.keys())
def test_damaged(read, text: str, frames: int) -> None:
    """The exception and its frames are read all the same."""
    (record,) = read(text).exceptions
    assert (record.type, record.message) == ("RuntimeError", "element 0 of tensors does not require grad")
    assert len(record.frames) == frames
    assert record.frames[-1].library == "torch"


def test_end_cut_off(read) -> None:
    """Without its last line a traceback has frames, no type, and says that it is cut."""
    incident = read("\n".join(WHOLE.split("\n")[:4]) + "\n")
    assert incident.is_cut
    assert incident.exceptions[0].type == ""


def test_marked_expression(read) -> None:
    """`^^^^` of Python 3.11 and later marks columns of the code."""
    text = (
        'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    y = g(x) + 1\n        ^^^^\nKeyError: 3\n'
    )
    assert read(text).exceptions[0].frames[0].mark == (4, 8)


def test_repeated_frames(read) -> None:
    """`[Previous line repeated ...]` is no code."""
    text = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    f()\n  [Previous line repeated 994 more times]\nRecursionError: deep\n'
    (record,) = read(text).exceptions
    assert (record.type, record.frames[0].code) == ("RecursionError", "f()")


def test_message_over_several_lines(read) -> None:
    """A message keeps its lines, blank ones too, up to what cannot belong to it."""
    text = WHOLE.replace("element 0 of tensors does not require grad", "first\n  Explanation: second\n\n  third")
    (record,) = read(text + "  5%|▌    | 1/20 [00:01<00:20, 1.0s/it]\n").exceptions
    assert record.message == "first\n  Explanation: second\n\n  third"


def test_interleaved_ranks(read) -> None:
    """Lines of two ranks, line by line: each rank's traceback is whole, and the same failure counts once."""
    zero = [f"[rank0]: {line}" for line in WHOLE.splitlines()]
    one = [f"[rank1]: {line}" for line in WHOLE.splitlines()]
    incident = read("".join(f"{a}\n{b}\n" for a, b in zip(zero, one, strict=True)))
    assert [len(record.frames) for record in incident.exceptions] == [2]
    assert incident.ranks == (0, 1)


def test_a_bare_message(read) -> None:
    """A line with a type that ends like an exception's is one, without frames."""
    (record,) = read("torch._dynamo.exc.Unsupported: call_function\n").exceptions
    assert (record.type, record.from_traceback) == ("torch._dynamo.exc.Unsupported", False)


def test_generated_methods_are_not_the_users() -> None:
    """What `dataclass` writes has `<string>` for its file; so has a program that is given by `python -c`."""
    text = (
        "Traceback (most recent call last):\n"
        '  File "train.py", line 46, in plan\n    return Config(\n'
        '  File "<string>", line 194, in __init__\n'
        '  File "/v/lib/python3.11/site-packages/trl/config.py", line 9, in __post_init__\n    raise ValueError(\n'
        "ValueError: both\n"
    )
    (incident,) = read_text(text)
    assert [one.library for one in incident.exceptions[0].frames] == [None, "python", "trl"]
    (incident,) = read_text(
        'Traceback (most recent call last):\n  File "<string>", line 1, in <module>\nValueError: x\n'
    )
    assert incident.exceptions[0].frames[0].library is None
