"""The documentation's pages about causes, made from `knowledge/`: plain functions from rules to Markdown."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from explainer.catalog.catalog import Catalog
from explainer.catalog.prose import read_prose
from explainer.catalog.shape import read_shapes
from explainer.render.markdown import code_block, plain
from explainer.render.page import Links, cause_page, to_markdown

FAMILIES = {
    "backward": "What `backward()` and `torch.autograd.grad` refuse.",
    "checkpoint": "Activation checkpointing.",
    "compile": "`torch.compile` and its backends.",
    "device": "Devices, memory, kernels.",
    "distributed": "Several processes: DDP, FSDP, collectives.",
    "inplace": "In-place writes and views.",
    "nan": "NaN and infinite losses and gradients.",
    "no-graph": "A loss or a tensor without an autograd graph.",
    "optimizer": "Optimizers and schedulers.",
    "other": "What is no failure, and what is not in the rule base.",
    "peft": "Adapters and quantized weights.",
    "precision": "Half precision, autocast, gradient scaling.",
    "shape": "Shapes, indices, state dicts.",
    "trainer": "Trainers and their options.",
}


def cause_pages(folder: str, catalog: Catalog) -> Iterator[tuple[str, str]]:
    """The path and the Markdown of each cause's page."""
    for name in catalog.cause_ids:
        cause = catalog.cause(name)
        links = _links(catalog, "../../", has_myths=os.path.isdir(os.path.join(folder, "myths")))
        prose = read_prose(name, folder) or f"# {cause.title}\n"
        blocks = cause_page(cause, prose, read_shapes(name, folder), catalog.messages_of(name), links)
        # The title stands in the heading; the metadata is what the navigation and the search show.
        yield f"causes/{name}.md", f"---\ntitle: {_quoted(cause.title)}\n---\n\n{to_markdown(blocks)}"


def family_pages(catalog: Catalog) -> Iterator[tuple[str, str]]:
    """A page for each family with its causes, and one for all families."""
    rows = ["# Causes", "", f"{len(catalog.cause_ids)} causes in {len(families(catalog))} families.", ""]
    rows += ["| family | causes | about |", "| --- | --- | --- |"]
    for family in families(catalog):
        names = [name for name in catalog.cause_ids if name.startswith(f"{family}/")]
        rows.append(f"| [{family}]({family}/index.md) | {len(names)} | {FAMILIES.get(family, '')} |")
        yield f"causes/{family}/index.md", _family_page(catalog, family, names)
    yield "causes/index.md", "\n".join(rows) + "\n"


def families(catalog: Catalog) -> list[str]:
    """The families, in order."""
    return sorted({name.partition("/")[0] for name in catalog.cause_ids})


def message_page(catalog: Catalog) -> str:
    """Every message of the rule base with the causes that print it."""
    total = sum(len(form.get("sample", ())) for _, form in catalog.forms())
    lines = [
        "# Messages",
        "",
        f"{total} messages as releases print them, each with what causes it. Search for yours.",
        "",
    ]
    for name in (*catalog.signature_names, *(one for one in catalog.cause_ids if catalog.cause(one).forms)):
        signature = catalog.signature(name)
        samples = list(dict.fromkeys(text for form in signature.forms for text in form.samples))
        if not samples:
            continue
        causes = ", ".join(f"[`{cause}`](causes/{cause}.md)" for cause in catalog.causes_of(name))
        title = signature.title[:1].upper() + signature.title[1:]
        lines += [f"## {plain(title)}", "", causes or "Only reports a failure elsewhere.", ""]
        lines += [*code_block("\n\n".join(samples), "text"), ""]
    return "\n".join(lines)


def cell(text: object) -> str:
    """A value in a table: prose whose bars do not end the cell."""
    parts = plain(str(text)).split("`")
    return "`".join(part.replace("|", "\\|") if at % 2 else part for at, part in enumerate(parts)).replace("\n", " ")


def _family_page(catalog: Catalog, family: str, names: Sequence[str]) -> str:
    lines = ["---", f"title: {_quoted(family)}", "---", "", f"# {family}", "", FAMILIES.get(family, ""), ""]
    lines += ["| cause | what happened | kind |", "| --- | --- | --- |"]
    for name in names:
        cause = catalog.cause(name)
        slug = name.partition("/")[2]
        lines.append(f"| [{slug}]({slug}.md) | {cell(cause.title)}. {cell(cause.summary)} | {cause.kind} |")
    return "\n".join(lines) + "\n"


def _links(catalog: Catalog, up: str, *, has_myths: bool) -> Links:
    known = frozenset(catalog.cause_ids)
    return Links(
        cause=lambda name: f"{up}causes/{name}.md" if name in known else None,
        myth=lambda slug: f"{up}myths.md#{slug}" if has_myths else None,
    )


def _quoted(text: str) -> str:
    """`text` as a YAML string."""
    escaped = text.replace("`", "").replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
