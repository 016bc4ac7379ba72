"""The rule base is found, loaded, refused with a reason, extended by a user's, searched."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

from explainer.catalog.accelerator import capability_of, describe_gpu
from explainer.catalog.bundle import load_catalog, write_bundle
from explainer.catalog.check import check_rules
from explainer.catalog.place import knowledge_folder
from explainer.catalog.search import search
from explainer.errors import RuleError

CAUSE = """title = "A title"
summary = "S."
since = "0.1.0"

[[form]]
contains = ["my own message"]
pattern = '''my own message (?P<number>\\d+)'''

[[form.sample]]
origin = "reported"
text = "my own message 3"
"""
README = "# A title\n\n" + "\n\n".join(f"## {one}\n\nx" for one in ("What happens", "Why", "How to fix", "Fix safety", "When it is something else", "References"))  # fmt: skip


def own_rules(tmp_path, cause: str = CAUSE, readme: str = README):
    folder = tmp_path / "rules" / "mine" / "own-cause"
    folder.mkdir(parents=True)
    (folder / "cause.toml").write_text(cause)
    (folder / "README.md").write_text(readme)
    (tmp_path / "rules" / "signatures").mkdir()
    return tmp_path / "rules"


def test_ours_is_sound() -> None:
    """Every file of the rule base passes its checks."""
    assert [f"{fault.file}: {fault.message}" for fault in check_rules(knowledge_folder())] == []


BROKEN = {
    "no TOML": ("title = ", "no valid TOML"),
    "an unknown key": (CAUSE + 'colour = "red"\n', "Extra inputs"),
    "a missing key": (CAUSE.replace('summary = "S."\n', ""), "summary"),
    "nothing printed": (CAUSE.split("[[form]]")[0], "what is printed"),
    "a costly pattern": (CAUSE.replace("my own message (?P<number>\\d+)", "(a+)+"), "repeat inside"),
    "a missing signature": (
        CAUSE.replace('since = "0.1.0"', 'since = "0.1.0"\nsignature = ["nowhere"]'),
        "does not exist",
    ),
    "a wrong type": (CAUSE.replace('title = "A title"', "title = 3"), "title"),
}


@pytest.mark.parametrize(("cause", "says"), BROKEN.values(), ids=BROKEN.keys())
def test_broken_rules_are_refused(tmp_path, cause: str, says: str) -> None:
    """A broken rule file is refused with file, key and reason."""
    with pytest.raises(RuleError, match=says) as refused:
        load_catalog(str(own_rules(tmp_path, cause)))
    assert "mine/own-cause" in str(refused.value)


FAULTS = {
    "a sample that does not match": (CAUSE.replace("message 3", "message x"), README, "does not match"),
    "no sample": (CAUSE.split("[[form.sample]]")[0], README, "has no"),
    "keys out of order": ('summary = "S."\n' + CAUSE.replace('summary = "S."\n', ""), README, "out of order"),
    "another heading": (CAUSE, README.replace("# A title", "# Other"), "heading"),
    "a heading too many": (CAUSE, README + "\n\n## More\n", "headings"),
    "a condition of another reader": (CAUSE + '[[evidence]]\nid = "x"\nreads = "message"\nfile = "a"\nsays = "s"\nweight = 1.0\n', README, "knows no file"),
}  # fmt: skip


@pytest.mark.parametrize(("cause", "readme", "says"), FAULTS.values(), ids=FAULTS.keys())
def test_faults_are_found(tmp_path, cause: str, readme: str, says: str) -> None:
    """The checker names what is wrong in a rule or its prose."""
    assert any(says in fault.message for fault in check_rules(str(own_rules(tmp_path, cause, readme))))


def test_a_fault_names_its_line(tmp_path) -> None:
    """A wrong value is reported with the line on which it stands."""
    (fault,) = check_rules(str(own_rules(tmp_path, CAUSE.replace('origin = "reported"', 'origin = "hearsay"'))))
    assert fault.line == 10


def test_a_users_rules_are_added(tmp_path) -> None:
    """A user's folder extends the rules that come with gradfix."""
    catalog = load_catalog(str(own_rules(tmp_path)))
    assert "mine/own-cause" in catalog.cause_ids
    assert "inplace/op-on-saved-tensor" in catalog.cause_ids


def test_rules_cannot_run_code(tmp_path) -> None:
    """A Python file in a user's rules is not executed."""
    rules = own_rules(tmp_path)
    marker = tmp_path / "ran"
    for name in ("conftest.py", "__init__.py", "mine/own-cause/broken.py", "mine/own-cause/cause.py"):
        (rules / name).write_text(f"open({str(marker)!r}, 'w')")
    load_catalog(str(rules))
    assert not marker.exists()


def test_the_bundle_follows_the_rules(tmp_path) -> None:
    """A changed rule makes a new bundle; a cut one is made again."""
    source = tmp_path / "explainer"
    shutil.copytree(os.path.dirname(knowledge_folder()) + "/explainer", source)
    shutil.copytree(knowledge_folder(), tmp_path / "knowledge", ignore=shutil.ignore_patterns(".bundle.json", "*.py"))
    code = "from explainer.catalog.bundle import load_catalog as l; print(len(l().cause_ids))"

    def count() -> int:
        run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
        return int(run.stdout)

    before = count()
    bundle = tmp_path / "knowledge" / ".bundle.json"
    assert json.loads(bundle.read_text())["causes"]
    bundle.write_text(bundle.read_text()[:1000])
    assert count() == before
    folder = tmp_path / "knowledge" / "mine" / "own-cause"
    folder.mkdir(parents=True)
    (folder / "cause.toml").write_text(CAUSE)
    assert count() == before + 1


def test_a_read_only_checkout_works(tmp_path, monkeypatch) -> None:
    """Where the bundle cannot be written the rules are read all the same."""

    def refuse(*_: object) -> None:
        raise PermissionError

    from explainer.catalog import bundle

    monkeypatch.setattr(bundle, "write_bundle", refuse)
    monkeypatch.setattr(bundle, "_read_bundle", lambda _: None)
    assert load_catalog().cause_ids


def test_written_bundles_are_whole(tmp_path) -> None:
    """A bundle holds what the files hold."""
    data = write_bundle(knowledge_folder(), str(tmp_path / "bundle.json"))
    assert json.loads((tmp_path / "bundle.json").read_text()) == data


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        ("modified by an inplace operation relu", "inplace/op-on-saved-tensor"),
        ("inplce opertion activaton", "inplace/op-on-saved-tensor"),
        ("square root gradient zero", "nan/sqrt-at-zero"),
        ("gradscaler unscale fp16", "precision/unscale-fp16-gradients"),
        ("kv cache index_copy_", "inplace/cache-updated-in-training"),
        ("spikingjelly reset_net", "backward/state-carried-across-steps"),
        ("find_unused_parameters", "distributed/unused-parameters"),
    ],
)
def test_search(catalog, words: str, cause: str) -> None:
    """A cause is found by its message, an operation, a library or a symptom, typos included."""
    assert cause in [hit.cause for hit in search(catalog, words, 4)]


def test_search_for_nothing(catalog) -> None:
    """Words that nothing resembles find nothing."""
    assert search(catalog, "zzzzqqqq xxkcd") == []


@pytest.mark.parametrize(
    ("name", "capability", "bf16"),
    [("Tesla T4", "7.5", False), ("NVIDIA A100-SXM4-80GB", "8.0", True), ("Tesla V100-SXM2-32GB", "7.0", False),
     ("NVIDIA GeForce RTX 4090", "8.9", True), ("NVIDIA H100 80GB HBM3", "9.0", True), ("NVIDIA GeForce GTX 1080 Ti", "6.1", False),
     ("NVIDIA RTX A6000", "8.6", True), ("NVIDIA L4", "8.9", True), ("NVIDIA A10G", "8.6", True), ("Tesla P100-PCIE-16GB", "6.0", False),
     ("NVIDIA H200", "9.0", True), ("NVIDIA GeForce RTX 2080 Ti", "7.5", False), ("NVIDIA GeForce RTX 3090", "8.6", True),
     ("A card of tomorrow", None, None)],
)  # fmt: skip
def test_gpus(name: str, capability: str | None, bf16: bool | None) -> None:
    """What a GPU of that name can do."""
    assert capability_of(name) == capability
    assert describe_gpu(name, "a test").bf16 is bf16
