"""Which rank failed first, from the text of one log: the one whose exception is more than an echo of another's failure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from explainer.catalog.catalog import Catalog
from explainer.match.echo import is_echo_chain
from explainer.model.finding import RANK_EVIDENCE, Evidence, Finding
from explainer.model.incident import ExceptionRecord, Incident
from explainer.model.rank import FIRST, VICTIM, RankRow, RankStory, name_ranks

_LAUNCHERS = (
    "ChildFailedError",
    "ProcessExitedException",
    "ProcessRaisedException",
    "CalledProcessError",
    "SignalException",
)
Chain = tuple[ExceptionRecord, ...]


def with_story(incident: Incident, catalog: Catalog) -> Incident:
    """The incident with the story of its ranks, the first one's exceptions in front; as it is where it shows only one rank."""
    if incident.story is not None or len(incident.ranks) < 2:
        return incident
    chains = _chains(incident.exceptions)
    ranked = [one for one in chains if one[0].ranks and not _is_launcher(one)]
    own = [one for one in ranked if not is_echo_chain(one, catalog)]
    echoes = [one for one in ranked if one not in own]
    first = _first(own, incident)
    if first is None:
        return replace(incident, story=_story_of_echoes(echoes, incident))
    rank = _rank_of(first, incident)
    rest = [one for one in chains if one is not first]
    moved = incident if chains[0] is first else replace(incident, exceptions=_joined([first, *rest]))
    return replace(moved, rank=rank, story=_story(first, rank, own, echoes))


def with_common_story(logs: Mapping[str, tuple[int, Incident]], catalog: Catalog) -> dict[str, Incident]:
    """The incidents of logs that hold one rank each, all with the story of the whole; the first failure first."""
    marked = {path: _marked(incident, rank) for path, (rank, incident) in logs.items()}
    failed = [one for one in marked.values() if one.exceptions]
    ranks = tuple(sorted({one.rank for one in failed if one.rank is not None}))
    joined = _joined([chain for one in failed for chain in _chains(one.exceptions)])
    facts = tuple(fact for one in failed for fact in one.facts)
    story = with_story(Incident(exceptions=joined, ranks=ranks, facts=facts), catalog).story
    told = {path: replace(one, story=story) for path, one in marked.items()}
    first = story.first if story is not None else None
    return dict(sorted(told.items(), key=lambda item: (item[1].rank != first, item[1].rank)))


def _marked(incident: Incident, rank: int) -> Incident:
    """An incident of a log that holds one rank; its own lines may count the ranks of the node only."""
    records = tuple(replace(one, rank=rank, ranks=(rank,)) for one in incident.exceptions)
    return replace(incident, exceptions=records, rank=rank, ranks=(rank,))


def _is_launcher(chain: Chain) -> bool:
    return any(one.type.rpartition(".")[2] in _LAUNCHERS for one in chain)


def _chains(records: Sequence[ExceptionRecord]) -> list[Chain]:
    """The exceptions by the chain that they belong to; `parent` counts within the chain."""
    chains: list[list[ExceptionRecord]] = []
    start = 0
    for index, record in enumerate(records):
        if not chains or (record.link is None and record.parent is None):
            chains.append([])
            start = index
        parent = None if record.parent is None else record.parent - start
        chains[-1].append(replace(record, parent=parent))
    return [tuple(one) for one in chains]


def _joined(chains: Sequence[Chain]) -> Chain:
    found: list[ExceptionRecord] = []
    for chain in chains:
        offset = len(found)
        found.extend(replace(one, parent=None if one.parent is None else one.parent + offset) for one in chain)
    return tuple(found)


def _first(own: Sequence[Chain], incident: Incident) -> Chain | None:
    """The chain of the rank that the launcher saw fail first, where that raised something of its own; else the first printed."""
    told = incident.fact("failed_rank")
    named = [one for one in own if any(record.type for record in one)]
    seen = int(told.value) if told is not None and told.value.isdigit() else None
    return next((one for one in named if seen in one[0].ranks), named[0] if named else None)


def _rank_of(chain: Chain, incident: Incident) -> int:
    told = incident.fact("failed_rank")
    ranks = chain[0].ranks
    return int(told.value) if told is not None and told.value in map(str, ranks) else ranks[0]


def _story(first: Chain, rank: int, own: Sequence[Chain], echoes: Sequence[Chain]) -> RankStory:
    alike = [one for one in first[0].ranks if one != rank]
    others = sorted({one for chain in own if chain is not first for one in chain[0].ranks} - {rank, *alike})
    victims = sorted({one for chain in echoes for one in chain[0].ranks} - {rank, *alike, *others})
    parts = []
    if victims:
        parts.append(f"{name_ranks(victims)} lost another rank or waited for one")
    if alike:
        parts.append(f"{name_ranks(alike)} failed alike")
    if others:
        parts.append(f"{name_ranks(others)} failed with something else")
    head = (
        f"rank {rank} failed with an error of its own"
        if victims
        else f"rank {rank} is the first whose failure is printed"
    )
    rows = [_row(rank, FIRST, first), *(_row(one, FIRST, first) for one in alike)]
    rows += [_row(one, VICTIM, chain) for chain in echoes for one in chain[0].ranks if one in victims]
    unique = tuple({one.rank: one for one in reversed(rows)}.values())
    return RankStory(
        first=rank, is_sure=bool(victims) and not others and not alike, reads="log", says=("; ".join([head, *parts]),),
        rows=tuple(sorted(unique, key=lambda one: one.rank)),
    )  # fmt: skip


def _story_of_echoes(echoes: Sequence[Chain], incident: Incident) -> RankStory | None:
    """Every rank that printed something lost another one: one that printed nothing is the one to look for."""
    victims = sorted({one for chain in echoes for one in chain[0].ranks})
    if len(victims) < 2:
        return None
    missing = sorted(set(range(max(victims) + 1)) - set(incident.ranks))
    told = f"{name_ranks(victims)} lost another rank or waited for one"
    silent = f"; {name_ranks(missing)} printed no failure: look there first" if missing else ""
    first = missing[0] if len(missing) == 1 else None
    rows = tuple(_row(one, VICTIM, chain) for chain in echoes for one in chain[0].ranks)
    return RankStory(
        first=first, reads="log", says=(told + silent,), rows=tuple(sorted(rows, key=lambda one: one.rank))
    )


def _row(rank: int, role: str, chain: Chain) -> RankRow:
    named = next((one for one in chain if one.type), chain[0])
    message = named.message.strip().splitlines()
    return RankRow(rank=rank, role=role, what=f"{named.type}: {message[0][:120] if message else ''}")


def with_ranks(findings: tuple[Finding, ...], story: RankStory | None) -> tuple[Finding, ...]:
    """The findings, the first of them with what the ranks say as evidence, and where a rank stood that raised nothing."""
    if story is None or not findings:
        return findings
    first, *rest = findings
    is_first, is_odd = RANK_EVIDENCE
    said = [(is_first, one) for one in story.says] + [(is_odd, one) for one in story.odd]
    told = tuple(Evidence(id=name, reads=story.reads, says=says, weight=0.0) for name, says in said)
    culprits = (story.place, *first.culprits) if story.place is not None else first.culprits
    return (replace(first, evidence=(*first.evidence[:1], *told, *first.evidence[1:]), culprits=culprits), *rest)
