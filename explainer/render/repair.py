"""How a repair ended, as text: what was applied, how it was proved, how to take it back."""

from __future__ import annotations

from explainer.model.incident import Incident
from explainer.model.repair import FAILED, REFUSED, SUSPECT, UNFIXED, UNPROVED, VERIFIED, Repair
from explainer.model.report import Report
from explainer.render.visible import visible


def render_repair(done: Repair) -> str:
    """The lines that stand below the card; empty where nothing was tried."""
    if done.status == FAILED:
        return ""
    lines = [""]
    if done.status == SUSPECT and done.report is not None:
        seen = [line.text for line in done.report.incident.log if line.text.startswith("seen in the live program")]
        lines += [f"suspect: the program ended with status 0, but {one.partition(': ')[2]}" for one in seen]
        if not seen and done.report.incident.warnings:
            lines.append(
                "suspect: the program ended with status 0, but a warning of it tells that it trains otherwise than meant"
            )
    if done.status == VERIFIED:
        lines.append("verified: the program trains with this change")
        lines += [visible(line) for one in done.applied for line in one.patch.splitlines()]
        lines += _what_now(done)
    elif done.status == UNPROVED and done.applied:
        lines.append("kept without proof: the verification was inconclusive")
        lines += _what_now(done)
    elif any(one.verdict != REFUSED for one in done.rounds):
        tried = sum(1 for one in done.rounds if one.verdict != REFUSED)
        lines.append(f"not repaired: {tried} tried, none was proved; the project's files are as they were")
    elif done.rounds:
        lines.append(f"not repaired: {done.rounds[0].reasons[0]}")
    elif done.status == UNFIXED:
        lines.append("not repaired: no edit of this program is known to be right; its files are as they were")
    if done.verification is not None and done.status != VERIFIED:
        lines += [f"  {reason}" for reason in done.verification.reasons]
    return "\n".join(lines) + "\n"


def _what_now(done: Repair) -> list[str]:
    if done.is_rehearsed:
        return ["a dry run, in a copy: nothing was changed here; without --dry-run the change is made"]
    return [f"take it back: gradfix undo {one.record}" for one in done.applied]


def empty_report() -> Report:
    """The report of a run that did not fail."""
    return Report(incident=Incident())
