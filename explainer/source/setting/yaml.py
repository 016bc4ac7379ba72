"""Reads YAML with the place of every key and value, several documents, anchors and tags of others included."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import yaml

from explainer.source.setting.setting import YAML, Document, Path, Setting, Span
from explainer.source.text import TextFile

MAX_NODES = 50_000
_PROPERTIES = re.compile(r"(?:[&!][^\s,\[\]{}]*[ \t]+)*")
_ANCHOR = re.compile(r"&([^\s,\[\]{}]+)")
_MERGE = "tag:yaml.org,2002:merge"


class _Loader(yaml.SafeLoader):
    """Notes where an alias stands in place of a value, and reads values of unknown tags as text or collections."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self.aliases: dict[tuple[int, object], tuple[Span, str]] = {}
        self.weight = 0
        self.weights: dict[int, int] = {}

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()  # type: ignore[no-untyped-call]
            key: object = id(index) if isinstance(index, yaml.Node) else index
            self.aliases[id(parent), key] = ((event.start_mark.index, event.end_mark.index), event.anchor)
            node = super().compose_node(parent, index)
            self._weigh(self.weights.get(id(node), 1))
            return node
        before = self.weight
        self._weigh(1)
        node = super().compose_node(parent, index)
        self.weights[id(node)] = self.weight - before
        return node

    def _weigh(self, size: int) -> None:
        """What the document would hold with its aliases written out: a few lines can stand for billions of values."""
        self.weight += size
        if self.weight > MAX_NODES:
            raise yaml.YAMLError(f"it holds more than {MAX_NODES} values")


def _construct_unknown(loader: _Loader, _: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node, deep=True)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    return f"{node.tag} {node.value}"


_Loader.add_multi_constructor("", _construct_unknown)


def read_yaml(file: TextFile) -> Document:
    """The settings of a YAML file."""
    trees: list[object] = []
    settings: list[Setting] = []
    try:
        loader = _Loader(file.text)
        while loader.check_node():
            node = loader.get_node()
            # Walked first: merge keys are written into the nodes when these become values.
            found = list(_Walk(file, loader, len(trees)).values(node, ()))
            tree = _plain(loader.construct_document(node))
            trees.append(tree)
            settings.extend(replace(one, value=_at(tree, one.path)) for one in found)
    except (yaml.YAMLError, ValueError, TypeError, LookupError) as error:
        return Document(file=file, kind=YAML, fault=f"does not parse: {_reason(error)}")
    except RecursionError:
        return Document(file=file, kind=YAML, fault="does not parse: it is nested too deeply, or holds itself")
    return Document(file=file, kind=YAML, settings=tuple(settings), trees=tuple(trees))


def _at(tree: object, path: Path) -> object:
    for part in path:
        tree = tree[int(part)] if isinstance(tree, list) else tree[part] if isinstance(tree, dict) else None
    return tree


def _reason(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error).partition("\n")[0]
    return f"{problem} (line {mark.line + 1})" if mark else str(problem)


def _plain(value: Any, depth: int = 0) -> object:
    """A loaded value with what anchors share written out, so that one place can be changed without the others."""
    if depth > 200:
        raise RecursionError
    if isinstance(value, dict):
        return {str(key): _plain(one, depth + 1) for key, one in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [_plain(one, depth + 1) for one in value]
    return value


class _Walk:
    """Walks over the nodes of one document."""

    def __init__(self, file: TextFile, loader: _Loader, group: int) -> None:
        self.file = file
        self.loader = loader
        self.group = group
        self.used = {anchor for _, anchor in loader.aliases.values()}

    def values(self, node: yaml.Node | None, path: Path) -> Iterator[Setting]:
        """The settings under a mapping or list."""
        is_flow = bool(getattr(node, "flow_style", False))
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE:
                    name = str(self.loader.construct_object(key))
                    alias = self.loader.aliases.get((id(node), id(key)))
                    yield from self._setting((*path, name), key, value, alias, is_flow=is_flow)
        elif isinstance(node, yaml.SequenceNode):
            for at, value in enumerate(node.value):
                alias = self.loader.aliases.get((id(node), at))
                yield from self._setting((*path, str(at)), None, value, alias, is_flow=is_flow)

    def _setting(
        self, path: Path, key: yaml.Node | None, value: yaml.Node, alias: tuple[Span, str] | None, *, is_flow: bool
    ) -> Iterator[Setting]:
        text = self.file.text
        place = alias[0] if alias else (value.start_mark.index, self._end(value))
        properties = "" if alias else self._properties(place)
        span = (min(place[0] + len(properties), place[1]), place[1])
        where = self._key(key)
        yield Setting(
            path=path,
            value=None,
            raw=text[span[0] : span[1]],
            file=self.file,
            key=where,
            span=span,
            line=self.file.line_of(where[0] if where else span[0]),
            kind=YAML,
            group=self.group,
            hold=self._hold(value, properties, is_alias=alias is not None),
            is_flow=is_flow,
        )
        if alias is None:
            yield from self.values(value, path)

    def _end(self, node: yaml.Node) -> int:
        """Where a value ends; that of a block is not where its parser stops, but the end of its last value."""
        while isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
            last = node.value[-1]
            key: object = id(last[0]) if isinstance(last, tuple) else len(node.value) - 1
            alias = self.loader.aliases.get((id(node), key))
            if alias:
                return alias[0][1]
            node = last[1] if isinstance(last, tuple) else last
        return node.end_mark.index

    def _properties(self, place: Span) -> str:
        found = _PROPERTIES.match(self.file.text, place[0], place[1])
        return found.group() if found else ""

    def _key(self, key: yaml.Node | None) -> Span | None:
        """Where a key stands; None for one with an anchor or tag, which stays as it is."""
        if key is None or self.file.text[key.start_mark.index] in "&!*?":
            return None
        if self.file.text[: key.start_mark.index].rstrip(" \t").endswith("?"):
            return None
        return key.start_mark.index, key.end_mark.index

    def _hold(self, value: yaml.Node, properties: str, *, is_alias: bool) -> str | None:
        if is_alias:
            return None
        anchor = _ANCHOR.search(properties)
        if anchor and anchor.group(1) in self.used:
            return f"other values repeat it through `*{anchor.group(1)}`"
        if isinstance(value, yaml.ScalarNode):
            if value.style in ("|", ">"):
                return "it is a block of text"
            return "it has a tag" if "!" in properties else None
        return None if getattr(value, "flow_style", False) else "it is a block of several lines"
