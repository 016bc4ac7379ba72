"""Which calls make the owner of some settings."""

from __future__ import annotations

import pathlib

import pytest

from explainer.source.setting.owner import calls_of_owner
from tests.fix.rewriting import write

OWNERS = ("TrainingArguments", "SFTConfig", "AutoModel.from_pretrained")
OTHERS = {
    "a class of the program": "class SFTConfig:\n    pass\nSFTConfig(1)\n",
    "a method of another class": "from transformers import AutoTokenizer\nAutoTokenizer.from_pretrained('x')\n",
    "a name that ends so": "from lib import OwnTrainingArguments\nOwnTrainingArguments(1)\n",
    "the class itself": "from transformers import TrainingArguments\nparse(TrainingArguments)\n",
}
OWN = {
    "imported": "from trl import SFTConfig\nSFTConfig(1)\n",
    "under another name": "import transformers as hf\nhf.TrainingArguments(1)\n",
    "a method": "from transformers import AutoModel\nAutoModel.from_pretrained('x')\n",
    "inherited": "import trl\nclass Mine(trl.SFTConfig):\n    pass\nclass Ours(Mine):\n    pass\nOurs(1)\n",
}


@pytest.mark.parametrize(
    ("source", "number"),
    [*((one, 0) for one in OTHERS.values()), *((one, 1) for one in OWN.values())],
    ids=[*OTHERS, *OWN],
)
def test_calls_of_owners(source: str, number: int, tmp_path: pathlib.Path) -> None:
    """By the qualified name, through the classes of the program."""
    program = write(tmp_path, {"train.py": source})
    assert len(list(calls_of_owner(OWNERS, program))) == number
