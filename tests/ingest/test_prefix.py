"""Prefixes of launchers and loggers come off; what only looks like one stays."""

from __future__ import annotations

import pytest

from explainer.ingest.prefix import read_lines

KEPT = {
    "a frame": '  File "train.py", line 3, in <module>',
    "a list": "[1, 2, 3] is not a tensor",
    "an ipython link": "[<ipython-input-3-ab12>](https://localhost:8080/#) in <cell line: 1>()",
    "a metric row": "{'loss': 1.2, 'grad_norm': 0.5}",
    "a fairseq row": "| epoch 027 | loss 6.343 | nll_loss 4.984",
    "a warning": "/usr/lib/python3/x.py:10: UserWarning: careful",
    "a box": "│   12 │   loss.backward()                │",
    "an exception": "ValueError: expected 3: got 4",
    "numbered source": "     12 x = 1",
}


@pytest.mark.parametrize("text", KEPT.values(), ids=KEPT.keys())
def test_kept(text: str) -> None:
    """A line without a prefix is what it was."""
    (line,) = read_lines([(1, text)])
    assert (line.text, line.rank, line.stamped) == (text, None, False)


STRIPPED = {
    "torchrun rank": ("[rank3]: ", 3),
    "torchrun default": ("[default5]:", 5),
    "mpirun": ("[1,7]<stderr>:", 7),
    "rank and glog": ("[rank1]:[E626 06:24:44.903881913 ProcessGroupNCCL.cpp:616] ", 1),
    "ray worker": ("(RayTrainWorker pid=1234, ip=10.0.0.2) ", None),
    "ray main": ("(pid=77) ", None),
    "kubectl": ("[pod/train-0/main] ", None),
    "cri": ("2026-05-01T12:00:00.123456789Z stderr F ", None),
    "iso": ("2026-05-01 12:00:00,123 ", None),
    "iso dash level": ("2026-05-01 12:00:00,123 - trainer - ERROR - ", None),
    "bracketed iso": ("[2026-05-01 12:00:00,123] ", None),
    "syslog": ("May  1 12:00:00 node-7 train[4242]: ", None),
    "glog": ("W1026 03:51:31.222000 2521679 site-packages/torch/distributed/elastic/api.py:908] ", None),
    "c++ warning": ("[W python_anomaly_mode.cpp:104] ", None),
    "transformers": ("[ERROR|trainer.py:123] 2026-05-01 12:00:00,123 >> ", None),
    "logging": ("ERROR:root:", None),
    "loguru": ("2026-05-01 12:00:00.123 | ERROR    | pkg.mod:func:12 - ", None),
}


@pytest.mark.parametrize(("prefix", "rank"), STRIPPED.values(), ids=STRIPPED.keys())
def test_stripped(prefix: str, rank: int | None) -> None:
    """The prefix is gone, the indentation after it stays, the rank is known."""
    (line,) = read_lines([(1, f'{prefix}  File "a.py", line 1, in f')])
    assert (line.text, line.rank) == ('  File "a.py", line 1, in f', rank)


def test_srun_labels_count_only_where_most_lines_have_them() -> None:
    """`0: ` is a rank under `srun -l`, and text elsewhere."""
    labelled = read_lines([(1, "0: Traceback (most recent call last):"), (2, " 1: x"), (3, "0: KeyError: 3")])
    assert [(line.rank, line.text) for line in labelled] == [
        (0, "Traceback (most recent call last):"),
        (1, "x"),
        (0, "KeyError: 3"),
    ]
    plain = read_lines([(1, "0: not a rank"), (2, "a"), (3, "b"), (4, "c")])
    assert plain[0].text == "0: not a rank"


def test_learned_from_the_header() -> None:
    """A prefix that nobody knows is learned from what stands before the traceback's header, numbers left open."""
    lines = read_lines(
        [
            (1, "<<job 7>> # Traceback (most recent call last):"),
            (2, '<<job 8>> #   File "a.py", line 1, in f'),
            (3, "other"),
        ]
    )
    assert [line.text for line in lines] == [
        "Traceback (most recent call last):",
        '  File "a.py", line 1, in f',
        "other",
    ]
    assert lines[0].stream != lines[1].stream


def test_quoted_mail() -> None:
    """`> ` comes off where every line has it."""
    lines = read_lines([(1, "> Traceback (most recent call last):"), (2, '>   File "a.py", line 1'), (3, "> KeyError")])
    assert lines[1].text == '  File "a.py", line 1'
