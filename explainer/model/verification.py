"""What a run under watch showed: steps, losses, gradients, and the verdict on them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from explainer.model import verdict

GREEN, RED, INCONCLUSIVE = verdict.GREEN, verdict.RED, verdict.INCONCLUSIVE
SAME, DIFFERENT, UNKNOWN = "same", "different", "unknown"
REPORT, TWIN, MEANT = "report", "twin", "meant"
CLIPS_EARLY = "clips gradients before the backward that makes them"  # the rules and an edit know it by these words
CLIPS_SCALED = "clips gradients that still carry GradScaler's factor"  # likewise
WRITES_GIVEN = "writes the gradient that a hook is given, and another branch has the same tensor"  # likewise
LACKS_FACTOR = "goes backward without GradScaler's factor"  # likewise
DROPPED = "reads a column that the Trainer has dropped"  # likewise
MADE_ANEW = "anew for each step, which no optimizer ever trains"  # likewise
STEPS_PAST = "steps an optimizer that Accelerate has not prepared"  # likewise
ADDS_UP = "returns a mean to a Trainer that adds up"  # likewise
IDLE = "adds an adapter that no step trains"  # likewise
SWITCHED = "puts another adapter in the place of one that an optimizer trains, and no step trains that"  # likewise
FROZEN = "loads an adapter for inference whose weights an optimizer was given"  # likewise
CHANGES_NOTHING = "have changed nothing"  # likewise
REDUCES = "reduces gradients in float16, in which they vanish"  # likewise
COMES_LATE = "that came to train in"  # likewise
THAWED = "wraps a module of which more trains by now than DDP averages"  # likewise
BYPASSED = "wraps a module that is called past its wrapper, by which DDP averages nothing"  # likewise
SCHEDULES_IDLE = "schedules an optimizer that never steps"  # likewise
PASSES_OVER = "passes over keys that the model has"  # likewise
GOES_WITHOUT = "was refused the state that it loads, and the program went on without it"  # likewise
_TRAINING = re.compile(r"torch[\\/](?:nn|autograd|optim|amp|_tensor|functional|utils[\\/]checkpoint)\b")
HANDLED = "handled"  # as `live.handled` writes it, which imports nothing of ours
CHECKPOINT, COMPILE, GRAD_SCALER = "checkpoint", "compile", "grad scaler"
SCHEMA = "gradfix.verification/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow:
    """One optimizer step: how many of its parameters had a gradient, how many of these were exactly zero, their norm.

    `norm` is None where a gradient was not finite. `loss` is the mean of the losses that were sent backward since the step
    before, of any optimizer; `seconds` the time since this optimizer's step before, without our looking.
    """

    optimizer: str
    step: int
    parameters: int
    given: int
    zero: int
    norm: float | None
    loss: float | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveStep:
    """An optimizer step as it is told while the program runs: its number from 1, and what was looked at.

    `is_seen` where the gradients were looked at; `norm` is then None where one was not finite. `memory` is the peak in bytes.
    """

    pid: int
    optimizer: str
    step: int
    is_seen: bool = False
    norm: float | None = None
    loss: float | None = None
    seconds: float | None = None
    memory: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterHealth:
    """One parameter over all watched steps: in how many it had a gradient, one that is not zero, one that is not finite.

    `norm` is that of its last gradient; None where it had none, or one that is not finite.
    """

    name: str
    optimizer: str
    trains: bool
    given: int
    moved: int
    bad: int
    shape: tuple[int, ...] = ()
    dtype: str = ""
    device: str = ""
    norm: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleHealth:
    """The trainable parameters of a module over all watched steps.

    How many, and how many of them had a gradient, had only zero ones, had one that is not finite. `norm` is that of their
    last gradients together; None where one is not finite.
    """

    name: str
    parameters: int
    given: int
    zero: int
    bad: int
    norm: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gradient:
    """What is kept of a parameter's first gradient, so that two runs can be compared.

    `values` holds a small one whole; of a large one there are `projections` on fixed pseudo-random directions instead, the
    same ones in every run. Without a gradient (`given` is False) all is zero. `why_not` says why one could not be read.
    """

    name: str
    shape: tuple[int, ...] = ()
    given: bool = True
    norm: float = 0.0
    mean: float = 0.0
    largest: float = 0.0
    values: tuple[float, ...] = field(default=(), repr=False)
    projections: tuple[float, ...] = field(default=(), repr=False)
    why_not: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unowned:
    """Trainable parameters of a model that got gradients and that no optimizer owns, though it owns others of the model.

    `children` are the parts of the model, `whole` those of which it owns nothing where that is all; `empty` the groups
    without a parameter, by number and optimizer. The line made the optimizer. `is_lost` where no module holds them either:
    `names` are then the attributes that are computed from them. `is_plain` where they are attributes, and no Parameters;
    `is_sharded` where they are what FSDP made of those that the optimizer holds.
    """

    model: str
    count: int
    names: tuple[str, ...] = ()
    children: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
    empty: tuple[tuple[str, str], ...] = ()
    file: str | None = None
    line: int | None = None
    function: str | None = None
    is_lost: bool = False
    is_plain: bool = False
    is_sharded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstStep:
    """An optimizer's first completed step: the losses sent backward for it, and its parameters' gradients, in its order."""

    optimizer: str
    losses: tuple[float, ...] = ()
    gradients: tuple[Gradient, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What a process trained on. `memory` is the peak in bytes: of the devices (`memory_of` "device"), else of the process.

    `bf16` says whether a small bfloat16 matmul worked on its GPU; None on a CPU.
    """

    device: str = ""
    name: str = ""
    memory: int | None = None
    memory_of: str = "process"
    bf16: bool | None = None
    tf32: bool = False
    torch: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An exception that a process noted: where it was seen, its traceback as text, and each optimizer's steps so far.

    `where` is `raised`, `printed`, `uncaught`, `thread`, or `handled`: the program was dealing with it while it logged an
    error or called `sys.exit`, which need not be what ended it. `facts` are what the live objects said, by name:
    `live_moved_parameter`, `live_trainable`, `live_grad_enabled`, ... `bases` are the classes that its own derives from.
    """

    type: str
    message: str
    where: str
    text: str = field(default="", repr=False)
    steps: tuple[tuple[str, int], ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    traced: dict[str, Any] = field(default_factory=dict, repr=False)
    bases: tuple[str, ...] = ()

    @property
    def kinds(self) -> frozenset[str]:
        """The names of the classes by which a handler may take it."""
        return frozenset((self.type.rpartition(".")[2], *self.bases))

    @property
    def is_handled(self) -> bool:
        """Whether the program dealt with it by itself."""
        return self.where == HANDLED

    @property
    def is_of_training(self) -> bool:
        """Whether it came through a module, a backward or a step: not a plot or an export that failed."""
        return _TRAINING.search(self.text) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """An optimizer whose last `count` of the `asked` calls of `GradScaler.step` made no step."""

    optimizer: str
    count: int
    asked: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stuck:
    """An optimizer whose `steps` have not moved its weights of a half-precision `dtype`."""

    optimizer: str
    steps: int
    dtype: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfrozen:
    """So many `parameters` that came to train when their optimizer had made `at` steps, and had no gradient in the `steps` since."""

    optimizer: str
    parameters: int
    at: int
    steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NarrowReduction:
    """A line that gave DistributedDataParallel a `hook` whose dtype does not hold the gradients: the `largest` that came back."""

    hook: str
    largest: float
    file: str | None = None
    line: int | None = None
    function: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Misscaled:
    """A line that gave gradients another size than was meant.

    It `clipped` them while a GradScaler's factor was on them, went backward `unscaled` beside losses that have that factor,
    `accumulated` what Accelerate would have divided by the factor, or `stepped` after each of the batches of which Accelerate
    makes one update; or the Trainer `summed` its means.
    """

    kind: str
    factor: float
    file: str | None = None
    line: int | None = None
    function: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlyClip:
    """A line that clipped what was there before each of `steps` steps, and never what these were made with."""

    steps: int
    file: str | None = None
    line: int | None = None
    function: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewed:
    """A line that makes a `kind`, a Parameter or what holds some, for each step: it gets gradients, and no optimizer trains it."""

    kind: str
    file: str | None = None
    line: int | None = None
    function: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooked:
    """A function that is a tensor's hook and changed, in place, a gradient that another branch was given too."""

    file: str | None = None
    line: int | None = None
    function: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unloaded:
    """A `load_state_dict(..., strict=False)` that passed over keys which fit but for a prefix, or for the dots of names.

    `fit` of the `keys` do without it, or with it in front where it `is_added`. `others` are prefixes by which about as many
    fit; `clashes` counts keys that would meet another tensor once all are renamed. Where there is a `separator`, "" too, the
    keys have it in place of the dots of the module's names, or the names in place of those of the keys where it `is_added`.
    """

    module: str
    keys: int
    fit: int
    prefix: str
    separator: str | None = None
    is_added: bool = False
    others: tuple[str, ...] = ()
    clashes: int = 0
    file: str | None = None
    line: int | None = None
    function: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A `load_state_dict` that raised, and a program that trained the module all the same.

    `text` is the traceback down to the line that loads; `prefix` what stands before the keys of a state that fits but for it.
    """

    module: str
    message: str = field(repr=False)
    text: str = field(repr=False)
    prefix: str = ""
    file: str | None = None
    line: int | None = None
    function: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """A column of the training set that the Trainer took out, since `model`'s forward does not name it, and that the loss reads."""

    column: str
    model: str
    file: str | None = None
    line: int | None = None
    function: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A line of the program that ran."""

    file: str | None = None
    line: int | None = None
    function: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsynced:
    """Parameters whose gradients DDP does not average: frozen when it wrapped (`kind` "thawed"), or called past it ("bypassed").

    `sums` is what one of them held before its steps, from the second on, on this rank. The line wrapped the module.
    """

    kind: str
    module: str
    names: tuple[str, ...]
    sums: tuple[float, ...]
    file: str | None = None
    line: int | None = None
    function: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleAdapter:
    """An adapter of PEFT that no step trained; `instead` are those that were active, where it was added and never activated.

    `is_frozen` where these did not train either.
    """

    adapter: str
    instead: str
    is_frozen: bool = False
    file: str | None = None
    line: int | None = None
    function: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleSchedule:
    """A `schedule` of an `optimizer` that never steps, while the one that is `stepping` trains the same parameters.

    The last place of `made_by` makes the schedule, `idle` its optimizer in that same function; `stepping_by` leads to the other
    optimizer's. Both ways begin in one function. `is_later` where that other one was made after the schedule.
    """

    schedule: str
    optimizer: str
    stepping: str
    made_by: tuple[Place, ...]
    idle: Place
    stepping_by: tuple[Place, ...]
    is_later: bool = False

    @property
    def file(self) -> str | None:
        """The file of the line that makes the schedule."""
        return self.made_by[-1].file

    @property
    def line(self) -> int | None:
        """The line that makes the schedule."""
        return self.made_by[-1].line


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessReport:
    """What one process of the run reported. `not_finite` names optimizers whose parameters are not finite at the end.

    `autocast` lists device types and dtypes under which autocast was entered; `uses` holds "checkpoint" where activation
    checkpointing ran, "checkpoint without inputs" where no input of a segment that was to train required grad, and "compile" where torch.compile made code.
    `left_out` numbers the losses, from 0, that were not finite and that no step was made with.
    `last_loss` is "inf", "-inf" or "nan" where the last losses of a run were not finite; else `nan_losses` counts those that a step
    was made with.
    `skipped` names optimizers that GradScaler kept from their last steps.
    `traced` is what the tracer saw by the end, here as in `Failure` as it came: `verification.traced` reads it.
    """

    pid: int
    rank: str | None = None
    is_stopped: bool = False
    steps: tuple[tuple[str, int], ...] = ()
    rows: tuple[StepRow, ...] = ()
    losses: tuple[float, ...] = ()
    left_out: tuple[int, ...] = ()
    parameters: tuple[ParameterHealth, ...] = ()
    modules: tuple[ModuleHealth, ...] = ()
    first: tuple[FirstStep, ...] = ()
    failures: tuple[Failure, ...] = ()
    step_seconds: float | None = None
    not_finite: tuple[str, ...] = ()
    last_loss: str = ""
    nan_losses: int = 0
    skipped: tuple[Skipped, ...] = ()
    unowned: tuple[Unowned, ...] = ()
    misscaled: tuple[Misscaled, ...] = ()
    early_clips: tuple[EarlyClip, ...] = ()
    renewed: tuple[Renewed, ...] = ()
    hooked: tuple[Hooked, ...] = ()
    unloaded: tuple[Unloaded, ...] = ()
    refused: tuple[Refused, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    idle_adapters: tuple[IdleAdapter, ...] = ()
    frozen_adapters: tuple[IdleAdapter, ...] = ()
    switched_adapters: tuple[IdleAdapter, ...] = ()
    stuck: tuple[Stuck, ...] = ()
    unfrozen: tuple[Unfrozen, ...] = ()
    unsynced: tuple[Unsynced, ...] = ()
    narrow_reductions: tuple[NarrowReduction, ...] = ()
    idle_schedules: tuple[IdleSchedule, ...] = ()
    traced: dict[str, Any] = field(default_factory=dict, repr=False)
    dtypes: tuple[str, ...] = ()
    autocast: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    machine: Machine | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GradientDifference:
    """A parameter whose first gradient differs: by how much of its size, and both norms. `rank` where there are several."""

    name: str
    error: float
    norm: float
    norm_meant: float
    rank: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The first step of a run held against another's: of a saved report, or of a twin without what may falsify it.

    `against` is "report", "twin", or "meant" for the twin of the program before an edit.

    `verdict` is "same", "different" or "unknown". `worst` are the gradients that differ most; `tolerance` what was allowed.
    Pairs hold the other run's figure first, then this run's: the loss, peak memory in bytes, seconds a step.
    """

    against: str
    verdict: str
    reasons: tuple[str, ...] = ()
    compared: int = 0
    differing: int = 0
    tolerance: float = 0.0
    worst: tuple[GradientDifference, ...] = ()
    loss: tuple[float | None, float | None] = (None, None)
    memory: tuple[int | None, int | None] = (None, None)
    step_seconds: tuple[float | None, float | None] = (None, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The verdict on a run, why, and what it was read from. `status` is the command's exit status."""

    schema: str = SCHEMA
    verdict: str
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    status: int = 0
    seconds: float = 0.0
    processes: tuple[ProcessReport, ...] = ()
    comparison: Comparison | None = None
    output: str = field(default="", repr=False)
