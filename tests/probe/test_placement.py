"""Which devices a watched program gets."""

from __future__ import annotations

import pytest

from explainer.errors import UsageError
from explainer.probe import placement
from explainer.probe.gpu import read_gpus
from explainer.probe.placement import by_freedom, place

ORDER = ("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
FREE = {
    "no GPU": ([], ()),
    "one": ([10], ()),
    "the first is as free as any": ([79_500, 80_000], ()),
    "the second is freer": ([2_000, 80_000], (("CUDA_VISIBLE_DEVICES", "1,0"), ORDER)),
    "the third is freest": ([2_000, 9_000, 80_000], (("CUDA_VISIBLE_DEVICES", "2,1,0"), ORDER)),
}
VISIBLE = {
    "the first of those visible": ("cuda:0", "2,3", (("CUDA_VISIBLE_DEVICES", "2"),)),
    "the second": ("cuda:1", "2,3", (("CUDA_VISIBLE_DEVICES", "3"),)),
    "by its long name": ("cuda:1", "GPU-a, GPU-b", (("CUDA_VISIBLE_DEVICES", "GPU-b"),)),
    "all of them": ("cuda", "2,3", ()),
    "the user's own choice": ("auto", "2,3", ()),
    "none": ("cpu", "2,3", (("CUDA_VISIBLE_DEVICES", ""), ("HIP_VISIBLE_DEVICES", ""))),
}
REFUSED = {
    "another word": ("gpu", "0", "there are auto, cpu, cuda and cuda:N"),
    "a number too large": ("cuda:2", "0,1", "2 visible on this machine, counted from 0"),
    "none visible": ("cuda", "", "no GPU is visible"),
    "hidden": ("cuda:0", "-1", "no GPU is visible"),
}


@pytest.mark.parametrize(("choice", "visible", "says"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(choice: str, visible: str, says: str) -> None:
    """A device that is not there is named before the program starts."""
    with pytest.raises(UsageError, match=says):
        place(choice, {"CUDA_VISIBLE_DEVICES": visible})


@pytest.mark.parametrize(("choice", "visible", "variables"), VISIBLE.values(), ids=VISIBLE.keys())
def test_among_those_visible(choice: str, visible: str, variables: placement.Variables) -> None:
    """Numbers count what the program would see, as torch does."""
    assert place(choice, {"CUDA_VISIBLE_DEVICES": visible}) == variables


@pytest.mark.parametrize(("free", "variables"), FREE.values(), ids=FREE.keys())
def test_the_freest_comes_first(free: list[int], variables: placement.Variables) -> None:
    """None is hidden, so that a launcher finds as many as before."""
    assert by_freedom(free) == variables


def test_a_machine_without_gpus() -> None:
    """`auto` changes nothing there."""
    if read_gpus(1.0).gpus:
        pytest.skip("this machine has GPUs")
    assert place("auto", {}) == ()
    with pytest.raises(UsageError, match="no GPU is visible"):
        place("cuda:0", {})
