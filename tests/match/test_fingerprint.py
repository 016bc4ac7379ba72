"""The fingerprint of a failure: the same under the dirt of real logs, another for another failure."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache

import pytest

from explainer.match.fingerprint import fingerprint, template
from explainer.model.finding import Finding
from explainer.model.incident import ExceptionRecord, Frame, Incident
from tests.conftest import ROOT


def on_rank_three(text: str) -> str:
    return "".join(f"[rank3]: {line}\n" for line in text.splitlines())


def on_two_ranks(text: str) -> str:
    return "".join(f"[rank0]: {line}\n[rank1]: {line}\n" for line in text.splitlines())


def elsewhere(text: str) -> str:
    own = re.compile(r'File "(?!<)(?![^"]*(?:packages|lib/python))(?:[^"]*/)?([^"/]+)"')
    return own.sub(r'File "/mnt/job 17/run_0042/\1"', text)


def further_down(text: str) -> str:
    return re.sub(r'(File "[^"]+", line )(\d+)', lambda found: f"{found[1]}{int(found[2]) + 1040}", text)


DIRT = [on_rank_three, on_two_ranks, elsewhere, further_down]


@pytest.fixture(scope="module")
def recordings() -> dict[str, str]:
    """What the reproducers of the rule base printed under the newest release, by their folder."""
    return {
        str(path.parent.parent.relative_to(ROOT / "knowledge")): path.read_text().partition("\n")[2]
        for path in sorted((ROOT / "knowledge").glob("*/*/*/printed/2.13.0.txt"))
    }


@pytest.fixture(scope="module")
def seen(catalog):
    """Explains a text: the cause and the fingerprint of the failure that ended it."""
    from explainer.ingest.text import read_text
    from explainer.workflow import explain_incident

    @cache
    def look(text: str) -> tuple[str, str | None]:
        report = explain_incident(list(read_text(text))[0], None, catalog)
        return report.findings[0].cause if report.findings else "", report.fingerprint

    return look


@pytest.mark.parametrize("dirty", DIRT, ids=lambda one: one.__name__)
def test_dirt_does_not_count(recordings, seen, dirty) -> None:
    """Rank prefixes, interleaved ranks, folders and line numbers leave the fingerprint of every recording as it is."""
    chosen = list(recordings.items())[DIRT.index(dirty) :: 4]
    assert len(chosen) >= 65
    assert {name: got for name, text in chosen if (got := seen(dirty(text))) != seen(text)} == {}


def test_another_cause_is_another_print(recordings, seen) -> None:
    """No two recordings that are explained by different causes share a fingerprint; every failure has one."""
    causes = defaultdict(set)
    for text in recordings.values():
        cause, print_ = seen(text)
        causes[print_].add(cause)
    assert None not in causes
    assert [found for found in causes.values() if len(found) > 1] == []
    assert len(causes) > 180


def test_releases_word_alike(recordings, seen) -> None:
    """Of the reproducers recorded under releases from 1.12 to 2.13, three of four have one fingerprint under all."""
    same, several = 0, 0
    for name in recordings:
        texts = [path.read_text().partition("\n")[2] for path in (ROOT / "knowledge" / name / "printed").glob("*.txt")]
        if len(texts) > 1:
            several += 1
            same += len({seen(text) for text in texts}) == 1
    assert several > 150
    assert same >= 0.75 * several


ALIKE = {
    "a batch of another size": (
        "mat1 and mat2 shapes cannot be multiplied (4x16 and 32x8)",
        "mat1 and mat2 shapes cannot be multiplied (64x16 and 32x8)",
    ),
    "a tensor of another size": (
        "[torch.FloatTensor [4, 16]], which is output 0 of ReluBackward0, is at version 1; expected version 0 instead.",
        "[torch.FloatTensor [128, 16]], which is output 0 of Relu, is at version 3; expected version 2 instead.",
    ),
    "addresses": ("<Net object at 0x7f3a10c2> is not a Tensor", "<Net object at 0x55d0ab8e9f10> is not a Tensor"),
    "folders": ("[Errno 2] No such file: '/home/a/data/x.json'", "[Errno 2] No such file: '/mnt/b/x.json'"),
    "folders of Windows": (r"cannot open C:\Users\ann\run\x.pt", r"cannot open D:\jobs\x.pt"),
    "seeds": ("bad draw with seed 1234", "bad draw with seed 99"),
    "ranks and devices": ("[Rank 3] lost cuda:3", "[Rank 0] lost cuda:0"),
    "an amount of memory": (
        "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 79.15 GiB",
        "CUDA out of memory. Tried to allocate 1.12 GiB (GPU 3; 15.77 GiB total capacity; 14.20 GiB already allocated)",
    ),
    "patch releases": ("needs torch 2.6.0+cu124", "needs torch 2.6.1+cu124"),
    "advice that is printed or not": ("it failed\nHint: enable anomaly detection", "it failed"),
    "temporary files": ("cannot read /tmp/tmpab12cd9x", "cannot read /tmp/tmpzz81qk0_"),
    "jobs": ("run 123e4567-e89b-12d3-a456-426614174000 failed", "run 00000000-e89b-12d3-a456-42661417ffff failed"),
    "symbolic sizes": ("size (s0) differs", "size (s17) differs"),
}
UNALIKE = {
    "operations": ("which is output 0 of ReluBackward0", "which is output 0 of TanhBackward0"),
    "attributes": ("'Net' object has no attribute 'fc'", "'Net' object has no attribute 'head'"),
    "dtypes": ("expected Float but found Half", "expected Float but found BFloat16"),
    "numbers in names": ("expected float16", "expected float32"),
    "names of layers": ("unexpected key layers.3.weight", "unexpected key layers.3.bias"),
    "file names": ("no such file: /data/a.json", "no such file: /data/b.json"),
}


@pytest.mark.parametrize(("one", "other"), ALIKE.values(), ids=ALIKE.keys())
def test_one_template(one: str, other: str) -> None:
    """What varies from one run to the next is not in the template."""
    assert template(one) == template(other)


@pytest.mark.parametrize(("one", "other"), UNALIKE.values(), ids=UNALIKE.keys())
def test_two_templates(one: str, other: str) -> None:
    """What tells failures apart is."""
    assert template(one) != template(other)


def failure(**changed: str) -> Incident:
    values = {
        "type": "ValueError",
        "message": "bad",
        "file": "/a/train.py",
        "function": "step",
        "code": "f(x)",
        **changed,
    }
    frame = Frame(file=values["file"], line=3, function=values["function"], code=values["code"])
    return Incident(exceptions=(ExceptionRecord(type=values["type"], message=values["message"], frames=(frame,)),))


@pytest.mark.parametrize("part", ["type", "message", "function", "code", "file"])
def test_each_part_counts(part: str) -> None:
    """Another type, message, file, function or line of code is another failure."""
    assert fingerprint(failure(), None) != fingerprint(failure(**{part: "Other"}), None)


def test_the_cause_counts() -> None:
    """So is another cause; the rest of the finding is not looked at."""
    finding = Finding(cause="a/b", title="", summary="", kind="failure", confidence="likely", score=0.5)
    assert len({fingerprint(failure(), None), fingerprint(failure(), finding)}) == 2


NO_FAILURE = {
    "nothing": Incident(),
    "Ctrl-C": Incident(exceptions=(ExceptionRecord(type="KeyboardInterrupt"),)),
    "an exit": Incident(exceptions=(ExceptionRecord(type="SystemExit", message="1"),)),
}


@pytest.mark.parametrize("incident", NO_FAILURE.values(), ids=NO_FAILURE.keys())
def test_no_failure(incident: Incident) -> None:
    """What is no failure has no fingerprint."""
    assert fingerprint(incident, None) is None


def test_cells_and_recursion() -> None:
    """A cell has another number each time it runs; which call of a circle hits the limit is chance."""
    cells = {fingerprint(failure(file=f"/tmp/ipykernel_{n}/{n * 7}.py"), None) for n in (1, 2)}
    circle = {fingerprint(failure(type="RecursionError", message=m, function=m), None) for m in ("a", "b")}
    assert (len(cells), len(circle)) == (1, 1)
