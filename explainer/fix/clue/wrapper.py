"""The statements that wrap a module for several ranks, of which a run has seen that they average less than was meant."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from explainer.fix.codemod import Context
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name


class Wrap(NamedTuple):
    """`model = DistributedDataParallel(net)`: the statement, the name that it binds, and the call."""

    file: SourceFile
    statement: ast.Assign
    name: str
    call: ast.Call

    @property
    def module(self) -> ast.expr:
        """What is wrapped."""
        return self.call.args[0]


def seen_wraps(words: str, context: Context) -> Iterator[Wrap]:
    """Those that the log names, by file and line, before these words."""
    seen = re.compile(rf"(\S+):(\d+) {re.escape(words)}")
    places = (found.groups() for one in context.incident.log if (found := seen.search(one.text)))
    for path, line in dict.fromkeys(places):
        for file in context.program.parsed():
            is_it = file.path.replace("\\", "/").rpartition("/")[2] == path
            statement = context.program.at(file.path, int(line)) if is_it else None
            if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                name, call = dotted_name(statement.targets[0]), statement.value
                if name is not None and isinstance(call, ast.Call) and call.args:
                    yield Wrap(file, statement, name, call)
