"""The commonest messages hold across releases: each has a sample of torch 1.13, 2.0, 2.3 and 2.6, and is recognised.

A sample is what a reproducer printed on that release (`printed/<torch-version>.txt`), or a `[[form.sample]]` of it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

import pytest

from explainer.catalog.bundle import load_catalog
from explainer.catalog.source import read_toml
from explainer.ingest.text import read_text
from explainer.match.signature import SignatureMatch, find_signatures
from explainer.match.utterance import Utterance, log_utterances, utterances_of
from tests.conftest import ROOT

RELEASES = {"1.13": ("1.12", "1.13"), "2.0": ("2.0",), "2.3": ("2.3",), "2.6": ("2.6",)}

# what is printed, in words: the signature, or the cause whose own form it is, and a part of the message
MESSAGES = {
    "a saved activation was modified": ("saved-tensor-modified", "which is output"),
    "a saved leaf was modified": ("saved-tensor-modified", "] is at version"),
    "backward a second time": ("graph-freed", "through the graph a second time"),
    "element 0 without a grad_fn": ("loss-without-graph", "does not have a grad_fn"),
    "an input without requires_grad": ("no-graph/input-does-not-require-grad", "Tensors does not require grad"),
    "an input outside the graph": ("input-unused", "not have been used in the graph"),
    "a node returned NaN": ("backward-returned-nan", "returned nan values in its"),
    "anomaly mode's report": ("anomaly-report", "Error detected in"),
    "a leaf in place": ("inplace/leaf-requires-grad", "a leaf Variable that requires grad"),
    "a view of a leaf in place": ("inplace/view-of-leaf", "a view of a leaf Variable that requires grad"),
    "one of several views in place": ("inplace/multi-output-view", "function that returns multiple views"),
    "a custom Function's view in place": ("inplace/custom-function-view", "created inside a custom Function"),
    "a view made in no_grad": ("inplace/view-made-in-no-grad", "A view was created in no_grad mode"),
    "an inference tensor saved": ("inplace/inference-tensor", "Inference tensors cannot be saved"),
    "an inference tensor in place": ("inplace/inference-tensor", "Inplace update to inference tensor"),
    "an expanded tensor in place": ("inplace/overlapping-memory", "more than one element of the written-to tensor"),
    "input and output overlap": ("inplace/input-output-overlap", "some elements of the input tensor and"),
    "the flag of a non-leaf": ("no-graph/flag-on-non-leaf", "change requires_grad flags of leaf variables"),
    "integers that require grad": ("no-graph/integer-requires-grad", "can require gradients"),
    "numpy of a tensor with grad": ("no-graph/numpy-on-grad-tensor", "Can't call numpy() on Tensor"),
    "the gradient of a non-leaf": ("no-graph/grad-of-non-leaf", "a Tensor that is not a leaf Tensor is being accessed"),
    "a gradient that is None": ("gradient-is-none", "'NoneType' object has no attribute"),
    "a copy of a non-leaf": ("no-graph/deepcopy-of-non-leaf", "support the deepcopy protocol"),
    "a non-leaf in the optimizer": ("no-graph/non-leaf-in-optimizer", "can't optimize a non-leaf Tensor"),
    "an empty parameter list": ("no-graph/empty-parameter-list", "empty parameter list"),
    "a loss with several elements": ("backward/non-scalar-loss", "grad can be implicitly created only for scalar"),
    "a gradient of another shape": ("backward/gradient-shape-mismatch", "Mismatch in shape: grad_output"),
    "an RNN of cuDNN in eval": ("backward/cudnn-rnn-in-eval", "can only be called in training mode"),
    "a product of two dtypes": ("precision/dtype-mismatch", "have the same dtype"),
    "a scalar type refused": ("scalar-type-refused", "expected scalar type"),
    "a target's dtype": ("scalar-type-refused", "Found dtype"),
    "an index of floats": ("scalar-type-refused", "one of the following scalar types"),
    "input and weight of two types": ("precision/dtype-mismatch", "should be the same"),
    "no kernel for the dtype": ("precision/op-not-implemented-for-dtype", "not implemented for '"),
    "the mean of integers": ("precision/op-not-implemented-for-dtype", "mean(): could not infer output dtype"),
    "float16 gradients unscaled": ("precision/unscale-fp16-gradients", "Attempting to unscale FP16 gradients"),
    "no inf checks": ("no-inf-checks", "No inf checks were recorded"),
    "tensors on two devices": ("device/mixed-devices", "found at least two devices"),
    "out of GPU memory": ("device/out-of-memory", "CUDA out of memory"),
    "a device-side assert": ("device/device-side-assert", "device-side assert triggered"),
    "no CUDA at hand": ("device/kernel-unavailable", "Found no NVIDIA driver"),
    "a class out of bounds": ("shape/index-out-of-range", "is out of bounds."),
    "an embedding index out of range": ("shape/index-out-of-range", "index out of range in self"),
    "two batch sizes": ("shape/batch-mismatch", "to match target batch_size"),
    "a target of two dimensions": ("shape/batch-mismatch", "0D or 1D target tensor expected"),
    "a product of two shapes": ("shape/operand-mismatch", "shapes cannot be multiplied"),
    "sizes that do not broadcast": ("sizes-not-broadcastable", "must match the size of tensor b"),
    "sizes that do not join": ("shape/operand-mismatch", "Sizes of tensors must match except in dimension"),
    "a view of strided memory": ("shape/operand-mismatch", "view size is not compatible"),
    "a target of another size": ("target-size-differs", "Using a target size"),
    "a target that must have the size": ("shape/batch-mismatch", "must be the same as input size"),
    "weights of another shape": ("shape/state-dict-mismatch", "Error(s) in loading state_dict"),
    "rows of several lengths": ("trainer/ragged-batch", "expected sequence of length"),
    "samples of several sizes": ("trainer/ragged-batch", "stack expects each tensor to be equal size"),
    "probabilities that are not finite": ("loss-not-finite", "probability tensor contains either"),
    "an input outside 0 and 1": ("nan/bad-input", "input should be between 0 and 1"),
    "a gradient norm that is not finite": ("gradient-norm-not-finite", "is non-finite, so it cannot be clipped"),
    "a segment without inputs that require grad": ("checkpoint/no-input-requires-grad", "None of the inputs have"),
    "a reentrant segment under grad()": ("checkpoint/reentrant-limits", "ompatible with .grad()"),
    "the scheduler before the optimizer": ("optimizer/scheduler-order", "before `optimizer.step()`"),
    "parameters without gradients in DDP": (
        "distributed/unused-parameters",
        "finished reduction in the prior iteration",
    ),
    "a parameter ready twice in DDP": ("distributed/parameter-ready-twice", "mark a variable ready only once"),
    "DDP without gradients": ("ddp-without-gradients", "have any parameter that requires a gradient"),
}


@functools.cache
def printed_matches(prefixes: tuple[str, ...]) -> tuple[SignatureMatch, ...]:
    """The wordings that are recognised in what reproducers printed on a release."""
    catalog = load_catalog()
    names = tuple(f"{prefix}." for prefix in prefixes)
    paths = [path for path in ROOT.glob("knowledge/*/*/*/printed/*.txt") if path.name.startswith(names)]
    incidents = [incident for path in paths for incident in read_text(path.read_text().partition("\n")[2])]
    said = [[*utterances_of(incident), *log_utterances(incident)] for incident in incidents]
    return tuple(match for one in said for match in find_signatures(catalog, one))


def form_samples(name: str, prefixes: tuple[str, ...]) -> Iterator[Utterance]:
    """The samples that a signature, or a cause's own forms, give of a release."""
    path = ROOT / "knowledge" / (f"{name}/cause.toml" if "/" in name else f"signatures/{name}.toml")
    for form in read_toml(str(path), name)["form"]:
        for sample in form.get("sample", ()):
            if sample.get("torch") in prefixes:
                text = " ".join(sample["text"].split())
                kind = form.get("stands", "exception")
                yield Utterance(kind, 0, next(iter(form.get("exceptions", ())), "RuntimeError"), text, text, 4.0)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(("name", "part"), MESSAGES.values(), ids=MESSAGES)
def test_message_of_a_release(catalog, name: str, part: str, release: str) -> None:
    """The release's wording is on file, and its signature or its cause recognises it."""
    prefixes = RELEASES[release]
    printed = {match.signature for match in printed_matches(prefixes) if part in match.utterance.flat}
    samples = [one for one in form_samples(name, prefixes) if part in one.flat]
    for sample in samples:
        assert name in {match.signature for match in find_signatures(catalog, [sample])}, sample.flat
    assert name in printed or samples, "no sample of this release"


def test_fifty_messages_are_followed() -> None:
    """The list holds fifty messages and more, each once."""
    assert len(set(MESSAGES.values())) == len(MESSAGES) >= 50
