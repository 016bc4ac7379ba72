"""One failure as it was read: exceptions, frames, warnings, metrics and facts of a log or of a live exception."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from explainer.model.rank import RankStory
from explainer.model.trace import TracedLine

SEEN = "seen in the live program: "  # what a line of the log begins with that no program has printed
NAN_STEPS = "{} of {} steps were made with a loss that is NaN"  # what is seen of a run that ended well
_REPEATED = re.compile(r"Caught \w+ in (?:DataLoader worker|replica|pin memory thread)")
_HANDS_ON = ("concurrent/futures/_base.py", "multiprocessing/pool.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One line of a stack.

    `mark` is the half-open column range of `code` that Python pointed at with `^^^^`. `library` names the package that
    owns the file, `"python"` for the standard library, or is None for the user's own code.
    """

    file: str
    line: int | None = None
    function: str | None = None
    code: str | None = None
    mark: tuple[int, int] | None = None
    library: str | None = None
    library_version: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExceptionRecord:
    """One exception of a chain or group.

    `link` says how it hangs on the one before it: "direct_cause", "during_handling", "group_member", "reraised" (a
    DataLoader worker, a replica, a spawned process), or None. `parent` is the index of the group it is a member of.
    `ranks` are all that printed the same; `rank` is the first of them.
    """

    type: str
    message: str = ""
    notes: tuple[str, ...] = ()
    frames: tuple[Frame, ...] = ()
    link: str | None = None
    parent: int | None = None
    rank: int | None = None
    ranks: tuple[int, ...] = ()
    log_line: int | None = None
    is_complete: bool = True
    from_traceback: bool = True

    @property
    def is_handed_on(self) -> bool:
        """Whether it was raised elsewhere, in a worker of a loader or a pool or in a process, and only repeated here."""
        last = self.frames[-1].file.replace("\\", "/") if self.frames else ""
        return self.link == "reraised" or _REPEATED.match(self.message) is not None or last.endswith(_HANDS_ON)


@dataclass(frozen=True, slots=True, kw_only=True)
class WarningRecord:
    """A warning that the log shows: `category` is a Python class name, or "logger" for a library's log call.

    `code` is the source line that Python prints under a warning.
    """

    category: str
    message: str
    file: str | None = None
    line: int | None = None
    code: str | None = None
    library: str | None = None
    log_line: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricRow:
    """One line of training metrics; a value may be nan or inf. `values` are (name, number) as printed."""

    values: tuple[tuple[str, float], ...]
    log_line: int | None = None

    def value(self, *names: str) -> float | None:
        """The first of `names` that the row has, or None."""
        for wanted in names:
            for name, number in self.values:
                if name == wanted:
                    return number
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """Something that the log states about the program or its machine: `trainable_parameters = 0`, `gpu = Tesla T4`."""

    name: str
    value: str
    log_line: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """A line that belongs to no traceback, without prefix and colour."""

    text: str
    number: int | None = None
    rank: int | None = None


RUN = "live_run"
"""The fact that is there where `gradfix run` noted the failure."""
TENSOR = "live_tensor"
"""The fact of one tensor of the frame that failed: `labels: [8, 1] int64 on cpu`."""
MODULE = "live_module"
"""The fact of one module of that frame, where any is on an accelerator: `teacher: cpu`."""
IDLE_OPTIMIZER = "live_idle_optimizer"
"""The fact of the optimizer that a scaler could not step: `SGD: frozen, 16 steps before`."""
TOLD_NO = "told_no"
"""The fact of an option of the command line that was given a word for no."""
LABEL_COLUMN = "live_labels_column"
"""The fact of the columns that can only be the labels, by what a Trainer was given: `eval_dataset: kind -> labels`."""
INPUTS_COLUMN = "live_inputs_column"
"""The fact of the data sets that give a causal model tokens, all of which it is to learn: `train_dataset`."""
BATCH_KEY = "live_batch_key"
"""The fact of the key under which a collator hands over the labels, and where it stands: `tags by /here/rows.py:39`."""
EARLY_CLIP = "live_early_clip"
"""The fact of a line that clips gradients before the backward that makes them: `train.py:12`."""
REFUSED = "live_refused_state"
"""The fact of a state that was refused and trained without: `train.py:41 was refused the state that it loads, and ...`."""
CAUGHT = "caught"
"""The fact of an exception that the program caught itself, in words: `the program caught it 3 times in 4 steps, and ...`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """One failure.

    `exceptions` are in the order in which they happened, so that a chain's origin comes first. `forward_frames` is the
    stack that anomaly mode prints for the forward call, `induced_frames` the one of the call that induced it (double
    backward); `anomaly_node` and `induced_node` name their autograd nodes. `story` tells the ranks of a job apart.
    """

    exceptions: tuple[ExceptionRecord, ...] = ()
    forward_frames: tuple[Frame, ...] = ()
    induced_frames: tuple[Frame, ...] = ()
    anomaly_node: str | None = None
    induced_node: str | None = None
    warnings: tuple[WarningRecord, ...] = ()
    metrics: tuple[MetricRow, ...] = ()
    facts: tuple[Fact, ...] = ()
    traced: tuple[TracedLine, ...] = ()
    log: tuple[LogLine, ...] = field(default=(), repr=False)
    rank: int | None = None
    ranks: tuple[int, ...] = ()
    story: RankStory | None = None
    source: str | None = None
    is_cut: bool = False

    def fact(self, name: str) -> Fact | None:
        """The last fact of that name, or None."""
        return next((fact for fact in reversed(self.facts) if fact.name == name), None)
