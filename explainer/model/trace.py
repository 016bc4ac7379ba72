"""What the tracer saw of a failure: lines of the program, as facts."""

from __future__ import annotations

from dataclasses import dataclass

WRITE = "write"
HIDDEN_WRITE = "hidden-write"
CUT = "cut"
STARVING_CUT = "starving-cut"
STARVING_OFF = "starving-off"
GRAD_OFF = "grad-off"
NOT_FINITE = "not-finite"
FREED = "freed"
PARTED = "parted"
CROSSED = "crossed"
UNOWNED = "unowned"
READ = "read"
INDEX = "index"
DRAWN = "drawn"
CARRIED = "carried"
TAKEN = "taken"
EDGES = "edges"
CONSTANT = "constant"
DEAD_TERM = "dead-term"
EARLY = "early"
MADE = "made"
CLEARED = "cleared"
COUNTED = "counted"
AGAIN = "again"
REDRAWN = "redrawn"
ONCE = "once"
ONCE_MADE = "once-made"
REPLAYED = "replayed"
EXPANDED = "expanded"
JOINED = "joined"
HELD = "held"
STRAYED = "strayed"
ADDED = "added"
SCHEDULED = "scheduled"
IDLE = "idle"
STEPPING = "stepping"
STEPPING_LATER = "stepping-later"
LOST_LEAF = "lost-leaf"
COMBINED = "combined"
CUT_STATE = "cut-state"
DATA_TERM = "data-term"
SAVED_CONSTANT = "saved-constant"

SHARING = "from_numpy"
"""The operation of a hidden write into an array whose memory a tensor shares, as `live.trace.shared` writes it."""

WHOLE = "all"
"""What a joined line takes up, in place of one of two operands: nothing but another network's loss has gone back through it."""

LENDING = "numpy"
"""The operation of a hidden write into an array that has the memory of what a graph computed."""

MADE_ONCE = "traced_once"
"""The fact that what a second backward meets was made once, and named by the operation that takes it up."""

ONCE_IN_STEP = "traced_once_in_step"
"""The fact that no optimizer has stepped between that and the first backward."""

FREED_WHOLE = "traced_freed_whole"
"""The fact that names the backward which has gone through the very same loss in this step."""

STARVED_OF_NUMBER = "traced_starved_of_number"
"""The fact that every cut which starves parameters made one number, as a term of a loss is: by what operation."""

BAD_INPUT = "traced_bad_input"
"""The fact that names what went into the first operation that gave what is not finite."""

LOGARITHM, MINUS_INFINITY = "logarithm", "minus infinity"
OF_DATA = frozenset(("data", LOGARITHM, MINUS_INFINITY))
"""Its values of data: any, such as NumPy made minus infinity of, and minus infinity that came from elsewhere."""

# What autograd's nodes call their own output among what they save.
RESULTS = ("result", "output", "out")


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedLine:
    """A line that wrote, cut, made or freed what failed, and the operation in it.

    `kind` is one of:

    - `write` (of a tensor that backward needs), `hidden-write` (one that autograd does not see: the gradient is wrong
      without an error), `read` (the operation that saved what is written later)
    - `cut` (of the graph), `grad-off` (where grad mode was switched off before one); `starving-cut` and `starving-off`
      where that keeps parameters of an optimizer from training
    - `cut-state` (cuts what each step of a recurrence hands to the next, within one backward)
    - `not-finite` (the first such value), `freed` (the backward that used the graph up), `parted` (where a checkpoint's
      replay differs)
    - `carried` (made what a later step took up with its graph, and nothing before), `taken` (took it up), `constant` (made a
      loss of no tensor at all), `once` (takes up in each step what was made once, with its graph), `once-made` (made that)
    - `joined` (takes up, for a loss, the graph of another network's, which is over), `held` (what a name, `operation`, holds of
      that graph in a running function; `node` is its form, `dict[tensor]`, the line that of the backward in this function)
    - `early` (reads a tensor before it requires grad, whose gradient is asked for), `made` (makes that tensor)
    - `lost-leaf` (computes what the program reads the gradient of, from a leaf that nothing else holds)
    - `dead-term` (leaves a term of a loss without a graph: it trains nothing), `added` (adds the number that such a line
      has read; of these two that is a guess which is right as it stands: a value for a log may be read, and a list be summed up)
    - `data-term` (takes data, for a term of a loss, in the place of an output of the model that nothing reads)
    - `cleared` (throws gradients away before a step uses them, backward after backward)
    - `counted` (a backward whose gradients stay where the one of an `again` line adds the same ones to them)
    - `redrawn` (checkpoints a segment whose replay draws other random numbers than its first pass)
    - `replayed` (gives other values when a checkpointed segment runs again, checkpoints such a segment, or writes what it reads)
    - `saved-constant` (the forward of a custom Function, `operation`, which saves what it computes and is derived twice)
    - `expanded` (makes a tensor whose rows share memory, of which the program writes one)
    - `drawn` (a sample of what the model computes, without the gradient that its distribution could give)
    - `scheduled` (the way to the line, the last of them, that makes a schedule), `idle` (there makes the optimizer of it, which
      never steps), `stepping` (the way to the line that makes the one which trains the same parameters), `stepping-later`
      (likewise, after the schedule was made)
    - `index` (made integers that an operation refused), `crossed` (n values against n in a column), `combined` (n
      values of a layer or the data in a column put to n in a row, each to each), `unowned` (makes an
      optimizer without parameters that train)

    `node` is autograd's name of what it disturbs or computes; `is_guess` marks what the tracer concludes rather than saw;
    `saved` is autograd's name of what a `read` line saved (`self`, `other`, `result`), and `edges` for an `index` line that
    makes buckets of as many edges as the table has rows; `0` or `1` where a `joined` line takes the freed graph up by that operand.
    """

    kind: str
    operation: str
    file: str
    line: int
    function: str | None = None
    node: str | None = None
    says: str = ""
    is_guess: bool = False
    saved: str | None = None

    @property
    def saves_result(self) -> bool:
        """Whether what a `read` line saved is the operation's own result rather than what it read."""
        return self.saved in RESULTS
