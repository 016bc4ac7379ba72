"""Causes that only a GPU shows: run by hand where there is one, `pytest -m gpu tests/gpu`."""

from __future__ import annotations

import pytest

from explainer.ingest.text import read_text
from explainer.match.rank import rank_causes
from tests.knowledge.reproducer import Runner, Shape, shapes

pytestmark = pytest.mark.gpu
SHAPES = [shape for shape in shapes() if "cuda" in shape.raw.get("needs", ())]


@pytest.fixture(scope="module")
def runner():
    """A server that imports no CUDA itself: each program starts its own."""
    server = Runner()
    yield server
    server.close()


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_on_a_gpu(shape: Shape, runner: Runner, catalog) -> None:
    """`broken.py` fails as its rules say, `fixed.py` ends well."""
    if shape.missing():
        pytest.skip(f"needs {', '.join(shape.missing())}")
    broken = runner.run(shape.folder / "broken.py")
    assert broken.status not in (0, None)
    (incident, *_) = read_text(broken.output)
    findings = rank_causes(incident, None, catalog)
    alike = {one.cause for one in catalog.cause(shape.cause).look_alikes}
    assert findings[0].cause in {shape.cause, *alike}
    fixed = runner.run(shape.folder / "fixed.py")
    assert fixed.status == 0, fixed.output[-2000:]
