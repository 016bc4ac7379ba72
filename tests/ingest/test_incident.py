"""One log to incidents: what belongs together, what is an echo, what is another failure, what else a log states."""

from __future__ import annotations

import pytest

from explainer.ingest.text import read_text

FAILED = 'Traceback (most recent call last):\n  File "train.py", line {line}, in step\n    loss.backward()\n{what}\n'
KEY = FAILED.format(line=3, what="KeyError: 'x'")
VALUE = FAILED.format(line=9, what="ValueError: no")
ROW = "{'loss': 0.5, 'grad_norm': 0.1, 'learning_rate': 2e-05}\n"

ONE_INCIDENT = {
    "a cascade": KEY + VALUE,
    "an echo after it": KEY + "ERROR: something\nKeyError: 'x'\n",
    "rows before it": ROW + ROW + KEY,
    "rows after it": KEY + ROW,
    "the same again after rows": "",
    "no failure": ROW + "done\n",
}


@pytest.mark.parametrize("text", ONE_INCIDENT.values(), ids=ONE_INCIDENT.keys())
def test_one_incident(text: str) -> None:
    """A failure with its cascade, echoes and metrics is one incident."""
    assert len(list(read_text(text))) == 1


def test_independent_failures() -> None:
    """Two failures with training between them are two incidents."""
    first, second = read_text(KEY + ROW + VALUE)
    assert (first.exceptions[0].type, second.exceptions[0].type) == ("KeyError", "ValueError")


def test_an_echo_adds_nothing(read) -> None:
    """A bare line that repeats the exception is dropped."""
    assert len(read(KEY + "some text\nKeyError: 'x'\n").exceptions) == 1


WORKER = """Traceback (most recent call last):
  File "/p/train.py", line 5, in <module>
    for batch in loader:
RuntimeError: Caught IndexError in DataLoader worker process 0.
Original Traceback (most recent call last):
  File "/p/data.py", line 9, in __getitem__
    return self.items[index]
IndexError: list index out of range
"""


def test_a_worker_raises_again(read) -> None:
    """The worker's own exception comes first, its messenger after it."""
    assert [(record.type, record.link) for record in read(WORKER).exceptions] == [
        ("IndexError", None),
        ("RuntimeError", "reraised"),
    ]


ANOMALY = """/e/lib/python3.10/site-packages/torch/autograd/__init__.py:200: UserWarning: Error detected in SqrtBackward0. Traceback of forward call that caused the error:
  File "/p/train.py", line 12, in <module>
    y = model(x)
  File "/p/model.py", line 7, in forward
    return torch.sqrt(x)
 (Triggered internally at ../torch/csrc/autograd/python_anomaly_mode.cpp:114.)
  Variable._execution_engine.run_backward(  # Calls into the C++ engine to run the backward pass
Traceback (most recent call last):
  File "/p/train.py", line 13, in <module>
    y.sum().backward()
RuntimeError: Function 'SqrtBackward0' returned nan values in its 0th output.
"""


def test_anomaly_mode(read) -> None:
    """The forward stack is kept apart from the exception's."""
    incident = read(ANOMALY)
    assert incident.anomaly_node == "SqrtBackward0"
    assert [frame.code for frame in incident.forward_frames] == ["y = model(x)", "return torch.sqrt(x)"]
    assert [frame.line for frame in incident.exceptions[0].frames] == [13]


def test_forward_stack_without_its_warning(read) -> None:
    """A log cut above the forward stack still gives it."""
    incident = read(ANOMALY.split("\n", 1)[1])
    assert [frame.line for frame in incident.forward_frames] == [12, 7]


FOLDED = {
    "json": '{"error": "Traceback (most recent call last):\\n  File \\"a.py\\", line 1, in f\\n    g()\\nKeyError: 3"}\n',
    "python repr": "failed with 'Traceback (most recent call last):\\n  File \"a.py\", line 1, in f\\n    g()\\nKeyError: 3\\n'\n",
    "twice escaped": '"Traceback (most recent call last):\\\\n  File \\\\"a.py\\\\", line 1, in f\\\\n    g()\\\\nKeyError: 3"\n',
    "bare": 'Traceback (most recent call last):\\n  File "a.py", line 1, in f\\n    g()\\nKeyError: 3\n',
}


@pytest.mark.parametrize("text", FOLDED.values(), ids=FOLDED.keys())
def test_folded_into_one_line(read, text: str) -> None:
    """A traceback inside a string is unfolded."""
    (record,) = read(text).exceptions
    assert (record.type, record.message, record.frames[0].code) == ("KeyError", "3", "g()")


NO_METRICS = {
    "code": "loss = criterion(output, target)",
    "prose": "The loss is computed in forward",
    "a file name": "saved loss_curve.png",
    "a config": "loss_type: focal",
}
METRICS = {
    "trainer": ("{'loss': 1.4596, 'grad_norm': nan, 'learning_rate': 4.5e-06, 'epoch': 0.66}", "nan"),
    "trainer 5": ("{'loss': '1.4596', 'grad_norm': 'nan', 'learning_rate': '4.5e-06'}", "nan"),
    "fairseq": ("| epoch 027 | loss 1.4596 | nll_loss 4.984 | gnorm nan | clip 0%", "nan"),
    "megatron": (" iteration 10/ 100 | lm loss: 1.4596E+00 | loss scale: 65536.0 | grad norm: nan |", "nan"),
    "tqdm": ("Epoch 1:  50%|█████     | 5/10 [00:01<00:01, loss=1.4596, grad_norm=nan]", "nan"),
    "print": ("epoch 1 step 20 loss: 1.4596 grad_norm: nan", "nan"),
    "mmcv": ("Epoch [1][50/100] lr: 1e-4, loss: 1.4596, grad_norm: 0.39 (nan)", "nan"),
}


@pytest.mark.parametrize("text", NO_METRICS.values(), ids=NO_METRICS.keys())
def test_no_metrics(read, text: str) -> None:
    """A line that only speaks of a loss is no row."""
    assert read(text + "\n").metrics == ()


@pytest.mark.parametrize(("text", "norm"), METRICS.values(), ids=METRICS.keys())
def test_metrics(read, text: str, norm: str) -> None:
    """Every trainer's row gives loss and gradient norm under one name."""
    (row,) = read(text + "\n").metrics
    assert row.value("loss") == 1.4596
    assert str(row.value("grad_norm_last", "grad_norm")) == norm


FACTS = {
    "peft": ("trainable params: 0 || all params: 6755201024 || trainable%: 0.0", "trainable_parameters", "0"),
    "lightning": ("Trainable params: 124 M", "trainable_parameters", "124"),
    "trainer": ("  Number of trainable parameters = 4,194,304", "trainable_parameters", "4194304"),
    "unsloth count": (
        "Trainable parameters = 41,943,040/8,000,000,000 (0.52% trained)",
        "trainable_parameters",
        "41943040",
    ),
    "unsloth card": (
        "   \\\\   /|    Tesla T4. Num GPUs = 1. Max memory: 14.741 GB. Platform: Linux.",
        "gpu",
        "Tesla T4",
    ),
    "unsloth bf16": ("\\        /    Bfloat16 = FALSE. FA [Xformers = 0.0.29. FA2 = False]", "bf16", "FALSE"),
    "unsloth versions": (
        "O^O/ \\_/ \\    Torch: 2.6.0+cu124. CUDA: 7.5. Triton: 3.2.0",
        "version:torch",
        "2.6.0+cu124",
    ),
    "requirements": ("transformers==4.46.1", "version:transformers", "4.46.1"),
    "env command": ("- `transformers` version: 4.46.1", "version:transformers", "4.46.1"),
    "a card": ("Using GPU: NVIDIA A100-SXM4-80GB", "gpu", "NVIDIA A100-SXM4-80GB"),
    "arguments": ("TrainingArguments(bf16=False, fp16=True, seed=42)", "fp16", "True"),
    "a flag": ("python train.py --fp16 --lr 1e-4", "fp16", "--fp16"),
    "exit code": ("  exitcode  : -9 (pid: 123)", "exit_code", "-9"),
    "steps": (" 12%|#2        | 3/24 [00:01<00:09,  2.2it/s]", "steps_done", "3"),
    "steps of hours": ("steps:  90%|######### | 900/1000 [112:07<12:10,  7.4s/it]", "steps_done", "900"),
    "an epoch": ("Epoch 0: 100%|##########| 20/20 [00:00<00:00, 131.52it/s]", "steps_done", "20"),
    "steps with their loss": ("100%|##########| 20/20 [00:00<00:00, 131.52it/s, loss=0.3]", "steps_done", "20"),
    "frozen adapter": (
        "base_model.model.layers.0.q_proj.lora_A.default.weight: False",
        "adapter_requires_grad",
        "False",
    ),
}


@pytest.mark.parametrize(("text", "name", "value"), FACTS.values(), ids=FACTS.keys())
def test_facts(read, text: str, name: str, value: str) -> None:
    """What logs state of program and machine."""
    assert read(text + "\n").fact(name).value == value


@pytest.mark.parametrize(
    "text",
    [
        "Map: 100%|##########| 48/48 [00:00<00:00, 9432.47 examples/s]",
        "Map (num_proc=4):  50%|#####     | 24/48 [00:00<00:00, 9432.47 examples/s]",
        "model.safetensors:  50%|#####     | 24/48 [00:00<00:00, 94.47MB/s]",
        "Evaluating:  50%|#####     | 24/48 [00:00<00:00, 9.47it/s]",
        "100%|##########| 64/64 [00:00<00:00, 812.11it/s]",
        "windows: 100%|##########| 64/64 [00:00<00:00, 812.11it/s]",
    ],
)
def test_bars_that_count_no_step(read, text: str) -> None:
    """Data, files, evaluations; and what has gone to its end without a word of training."""
    assert read(text + "\n").fact("steps_done") is None


def test_what_does_not_train_is_not_what_trains(read) -> None:
    """Lightning counts both, one line below the other."""
    assert read("Trainable params: 3\nNon-trainable params: 0\n").fact("trainable_parameters").value == "3"


def test_warnings(read) -> None:
    """A warning has its file, line and library, and its source line is no part of it."""
    text = (
        "/e/lib/python3.10/site-packages/torch/utils/checkpoint.py:61: UserWarning: None of the inputs have requires_grad=True."
        " Gradients will be None\n  warnings.warn(\n"
    )
    (warning,) = read(text).warnings
    assert (warning.line, warning.library, warning.message) == (
        61,
        "torch",
        "None of the inputs have requires_grad=True. Gradients will be None",
    )


def test_versions_from_paths(read) -> None:
    """A path tells the interpreter's version, and an egg its library's."""
    text = 'Traceback (most recent call last):\n  File "/e/lib/python3.8/site-packages/torch-1.9.0-py3.8-linux.egg/torch/x.py", line 1, in f\n    g()\nKeyError: 1\n'
    incident = read(text)
    assert (incident.fact("version:python").value, incident.fact("version:torch").value) == ("3.8", "1.9.0")
