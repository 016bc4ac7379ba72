"""The fix of every cause that has an edit turns `broken.py` into `fixed.py`, byte for byte, and touches nothing that is right."""

from __future__ import annotations

import functools
import pathlib
import shutil

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import make_patch
from explainer.model.report import Report
from explainer.source.program import Program, read_program
from explainer.workflow import explain_incident, plan_report
from tests.knowledge.reproducer import KNOWLEDGE, Shape, shapes

# Shapes whose cause has an edit that does not reach this one, with the reason.
BY_HAND: dict[str, str] = {
    "shape/batch-mismatch/one-side-flat": "how the predictions are laid out is seen in the live tensor",
    "backward/state-carried-across-steps/batch-written-in-place": "that the write reaches the data only a trace tells",
    "inplace/cache-updated-in-training/filled-in-training": "which line fills the cache only a trace tells",
    "precision/dtype-mismatch/sampled-beside-autocast": "the dtypes of the operands are seen in the live program",
    "shape/index-out-of-range/classes-of-a-part": "which class was refused, of how many, the live program says",
    "no-graph/all-parameters-frozen/frozen-for-the-other": "that it was thawed before only a run tells",
    "trainer/api-version/override-under-accumulation": "that the batches' losses are summed is seen once the parameter is there",
    "shape/operand-mismatch/label-among-features": "that the label is among the features is seen in the live batch",
    "precision/target-dtype/rows-of-several-classes": "how many classes a row names is seen in the live target",
    "shape/batch-mismatch/ctc-batch-first": "it is edited by the shapes of the live tensors",
    "backward/gradcheck-failed/float32-inputs": "the dtype of the inputs is the check's own",
    "backward/bad-arguments/empty-inputs": "which names the filter should match is the author's to say",
    "backward/cudnn-rnn-in-eval/plain": "it runs on a GPU: tests/gpu",
    "backward/gradient-shape-mismatch/parameter-resized-through-data": "the new parameter belongs into its module and optimizer as well",
    "backward/hook-contract/hook-changes-the-shape": "a mask instead of a selection is another formula",
    "checkpoint/frozen-segment/plain": "nothing before the segment trains: it is called plainly, which the author decides",
    "distributed/sharded-parameter-lifecycle/layer-run-alone": "the part's work moves into the forward of the whole, which the author shapes",
    "distributed/sharded-parameter-lifecycle/tied-weights": "which modules make one unit is the author's to say",
    "distributed/sharded-parameter-lifecycle/weight-used-outside-forward": "the term moves into the forward, which the author shapes",
    "distributed/collective-timeout/rank-works-alone": "how long a rank may work alone, or where all do, is the author's to say",
    "distributed/collective-timeout/uneven-batches": "the tail is dropped or shadowed, which trains on other data",
    "distributed/mode-unsupported/comm-hook-returns-tensor": "the hook is the author's to write",
    "distributed/mode-unsupported/no-sync-under-zero": "the accumulation moves into a configuration that the program does not have",
    "checkpoint/bad-arguments/saved-tensors-read-twice": "its line asks for the non-reentrant form already; the cure is in the custom backward",
    "compile/donated-buffer/plain": "the edit keeps the buffers; that the losses may become one sum is the author's to say",
    "compile/mutation-unsupported/aliased-inputs": "which of two names keeps the memory is the author's to say",
    "compile/mutation-unsupported/captured-buffer": "the buffer becomes an argument, and its new value a result",
    "compile/mutation-unsupported/vmap-slice-assignment": "the slices are joined, or the buffer is made of a batched tensor",
    "device/out-of-memory/long-sequence": "which end of an input is cut is the author's to say",
    "compile/cudagraph-overwrite/kept-output": "it runs on a GPU: tests/gpu",
    "compile/recompile-limit/counter-in-the-module": "the counter becomes a tensor, and so does all that reads it",
    "trainer/no-pad-token/classification-head": "without a tokenizer the padding token is the author's choice",
    "nan/all-labels-ignored/trainer-rows": "the loss is the library's; which end of a row is cut is the author's choice",
    "no-graph/non-leaf-in-optimizer/computed-parameter": "a tied decoder needs another forward",
    "distributed/parameter-ready-twice/used-outside-forward": "the second output has to be made in the forward, and its users follow",
    "backward/derivative-not-implemented/custom-op": "the formula of the derivative is the author's",
    "backward/derivative-not-implemented/op-without-derivative": "a formula with a derivative is the author's to choose",
    "backward/derivative-not-implemented/weight-argument": "what the weights are to learn from is the author's to say",
    "device/meta-tensor-not-materialised/lazy-module": "the dummy input of the first forward is the author's to choose",
    "device/mixed-devices/plain": "no recording: it needs two devices",
    "device/mixed-devices/plain-attribute": "no recording: it needs two devices",
    "shape/index-out-of-range/offset-of-a-batch": "which line made the index only a trace tells",
    "nan/learning-rate-divergence/policy-outputs": "which learning rate is low enough only a run tells",
    "nan/learning-rate-divergence/trainer-rows": "which learning rate is low enough only a run tells",
    "nan/bad-input/missing-target": "whether a sample is left out or filled is the author's to say",
    "nan/bad-input/nan-in-rows-outside-the-loss": "what stands for a missing reading is the author's to say",
    "nan/bad-input/target-outside-0-and-1": "the scale of the data is known where they are made",
    "nan/ill-conditioned-linear-algebra/equal-singular-values": "a tie is broken by noise, or the formula changed",
    "nan/ill-conditioned-linear-algebra/singular-covariance": "how much is added decides the logarithm of the determinant",
    "optimizer/option-conflict/tied-weight-in-two-groups": "which group keeps the tied weight is the author's choice",
    "optimizer/sparse-gradient/dense-in-sparse-adam": "its optimizers stand in a list",
    "peft/weights-shape-mismatch/other-base": "which base the adapter was trained on stands beside the adapter",
    "precision/scaler-misuse/optimizer-without-gradients": "the optimizer is built too early; where it belongs is not local",
    "shape/index-out-of-range/token-id": "the number of rows comes from the tokenizer",
    "shape/operand-mismatch/longer-than-the-position-table": "the text or the table: which one is wrong is the author's to say",
    "shape/operand-mismatch/mask-of-the-longest-text": "how long the text and the mask are the live program says",
    "shape/operand-mismatch/odd-skip-connection": "padding, cropping or interpolation: a choice of the model",
    "shape/state-dict-mismatch/class-count": "which layers are left out is the author's to say",
    "shape/state-dict-mismatch/optimizer-state": "the order of the parameters is known from the run that saved the state",
    "checkpoint/recompute-mismatch/python-random": "the draw moves out of the segment, into what calls it",
    "checkpoint/recompute-mismatch/table-cached-in-another-dtype": "which dtype the table is kept in is the author's choice",
    "checkpoint/use-cache-conflict/cache-extended-by-recomputation": "a cache of the program's own, not a setting",
    "trainer/ragged-batch/default-collate": "what stands for the padding, and how it is masked, is the author's to say",
    "trainer/ragged-batch/plain": "without a tokenizer the padding token is the author's choice",
    "nan/log-of-zero/scores-as-probabilities": "whether the refused values are finite the live program says",
    "shape/operand-mismatch/statistics-of-channels": "the shapes are those of the live program",
    "trainer/columns-removed/plain": "the columns are renamed, which only the author can do",
}


# Programs that hold a fault in code that they do not run.
UNREACHED = {
    "inplace/patched-model-outside-its-trainer/eval-mode-norm/fixed.py": "the decode-time norm, replaced in training"
}


@functools.cache
def rules(shape: Shape) -> list[dict]:
    """The fix rules of the shape's cause that have a codemod."""
    return [rule for rule in shape.raw.get("fix", ()) if rule.get("codemod")]


# A rule that is only shown points at a line.
EDITED = [shape for shape in shapes() if any(rule["applicability"] != "display" for rule in rules(shape))]
CODEMODS = sorted({rule["codemod"] for shape in shapes() for rule in rules(shape)})
FIXED = [shape.folder / "fixed.py" for shape in shapes() if (shape.folder / "fixed.py").exists()]


def recording(shape: Shape) -> str:
    """What the shape printed on the newest release that was recorded."""
    found = sorted(
        (shape.folder / "printed").glob("*.txt"), key=lambda path: [int(one) for one in path.stem.split(".")]
    )
    return found[-1].read_text().partition("\n")[2] if found else ""


def planned(shape: Shape, program: pathlib.Path, folder: pathlib.Path, catalog, read) -> Report:
    """The report of the shape's failure, planned in a project that holds `program` as `broken.py`."""
    shutil.copy(program, folder / "broken.py")
    report = explain_incident(read(recording(shape)), None, catalog)
    return plan_report(report, catalog, str(folder))


@pytest.mark.parametrize("shape", EDITED, ids=lambda shape: shape.name)
def test_fix_makes_the_fixed_program(shape: Shape, tmp_path: pathlib.Path, catalog, read) -> None:
    """The first edit of the cause's own finding gives `fixed.py`; a second time nothing is left to do."""
    if shape.name in BY_HAND:
        pytest.skip(BY_HAND[shape.name])
    report = planned(shape, shape.folder / "broken.py", tmp_path, catalog, read)
    assert report.faults == ()
    (finding,) = [one for one in report.findings if one.cause == shape.cause]
    edits = [fix for fix in finding.fixes if fix.patch]
    assert edits, "no codemod proposes anything"
    (change,) = edits[0].changes
    assert change.after.decode() == (shape.folder / "fixed.py").read_text()
    again = planned(shape, shape.folder / "fixed.py", tmp_path, catalog, read)
    (finding,) = [one for one in again.findings if one.cause == shape.cause]
    twice = [fix for fix in finding.fixes if fix.patch and fix.id == edits[0].id]
    assert [fix.patch for fix in twice] == []


@functools.cache
def right_program(path: pathlib.Path) -> Program:
    """Read once for all codemods, as one explanation does."""
    return read_program(str(path.parent), [str(path)])


@pytest.mark.parametrize("name", CODEMODS)
def test_right_programs_stay(name: str) -> None:
    """Without a failure a codemod changes nothing in any program that is right."""
    changed = {}
    for path in FIXED:
        program = right_program(path)
        for proposal in find_codemod(name)(Context(program=program)):
            patch = make_patch(proposal.edits, program.files, program.root)
            if str(path.relative_to(KNOWLEDGE)) not in UNREACHED:
                changed[str(path.relative_to(KNOWLEDGE))] = patch if isinstance(patch, str) else patch.diff
    assert changed == {}
