"""RoBERTa's table of positions has rows for those before the first token."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.fix.splice import splice
from explainer.model.incident import Frame
from tests.fix.rewriting import best, changed_lines, failed, write

SOURCE = "from transformers import RobertaConfig, BertConfig\nLENGTH = 48\nconfig = MADE\nmodel(ids)\n"


@pytest.mark.parametrize(
    ("made", "wanted"),
    [
        ("RobertaConfig(max_position_embeddings=LENGTH)", "RobertaConfig(max_position_embeddings=LENGTH + 2)"),
        ("RobertaConfig(max_position_embeddings=48)", "RobertaConfig(max_position_embeddings=50)"),
        ("RobertaConfig(max_position_embeddings=48, pad_token_id=0)", "RobertaConfig(max_position_embeddings=49, pad_token_id=0)"),
        (
            "RobertaConfig(max_position_embeddings=LENGTH, pad_token_id=tokenizer.pad_token_id)",
            "RobertaConfig(max_position_embeddings=LENGTH + tokenizer.pad_token_id + 1, pad_token_id=tokenizer.pad_token_id)",
        ),
        ("RobertaConfig(max_position_embeddings=48, pad_token_id=ids[0])", None),
        ("RobertaConfig(max_position_embeddings=64)", None),  # another table has 48 rows
        ("BertConfig(max_position_embeddings=48)", None),
    ],
)  # fmt: skip
def test_positions(tmp_path: pathlib.Path, made: str, wanted: str | None) -> None:
    source = SOURCE.replace("MADE", made)
    incident = failed({"train.py": 4}, "index 48 is out of bounds for dimension 1 with size 48")
    (record,) = incident.exceptions
    inside = Frame(file="/lib/transformers/models/roberta/modeling_roberta.py", line=9, library="transformers")
    incident = replace(incident, exceptions=(replace(record, frames=(*record.frames, inside)),))
    program = write(tmp_path, {"train.py": source})
    found = best("positions_behind_padding", program, incident=incident, fields={"rows": "48"})
    after = splice(source, found.edits) if found is not None else source
    assert changed_lines(source, after or "") == ([f"config = {wanted}"] if wanted else [])
