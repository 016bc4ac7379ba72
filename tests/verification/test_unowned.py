"""Which trainable parameters without an optimizer a run tells."""

from __future__ import annotations

from explainer.model.verification import IdleAdapter, ProcessReport, Unowned
from explainer.verification.unowned import unowned_of

LEFT = Unowned(model="Net", count=1, names=("base.q_proj.lora_A.reference.weight",))
SWITCHED = IdleAdapter(adapter="policy", instead="reference", file="dpo.py", line=3)


def test_the_adapter_in_the_place_of_the_one_that_trains() -> None:
    """It has gradients since it was put there: the line that did so says more."""
    assert unowned_of([ProcessReport(pid=1, unowned=(LEFT,))]) == (LEFT,)
    assert unowned_of([ProcessReport(pid=1, unowned=(LEFT,), switched_adapters=(SWITCHED,))]) == ()


def test_what_is_left_out_beside_it() -> None:
    """Another part of the model that no optimizer owns is told all the same."""
    more = Unowned(model="Net", count=2, names=(*LEFT.names, "head.weight"))
    assert unowned_of([ProcessReport(pid=1, unowned=(more,), switched_adapters=(SWITCHED,))]) == (more,)
