"""How often `certain`, `likely` and `possible` were right on a folder of labelled incidents.

    python benchmarks/calibration.py FOLDER [--misses]

An incident is a JSON file with `log` (lines), `cause`, `accept` (other causes that count) and `knowable`.
"""

from __future__ import annotations

import argparse
import collections
import json
import pathlib

from explainer.catalog.bundle import load_catalog
from explainer.ingest.text import read_text
from explainer.workflow import explain_incident

BINS = (0.0, 0.2, 0.4, 0.62, 0.8, 0.95, 1.01)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--misses", action="store_true")
    options = parser.parse_args()
    catalog = load_catalog()
    right, total = collections.Counter(), collections.Counter()
    right_bin, total_bin = collections.Counter(), collections.Counter()
    top1 = top3 = count = confident = decidable = 0
    for path in sorted(options.folder.glob("*.json")):
        case = json.loads(path.read_text())
        (incident, *_) = read_text("\n".join(case["log"]) + "\n")
        findings = explain_incident(incident, None, catalog).findings
        wanted = {case["cause"], *case.get("accept", ())}
        is_unknown = case["cause"] == "other/unknown"
        first = findings[0] if findings else None
        is_sure = first is not None and first.confidence != "possible"
        is_right = first is not None and first.cause in wanted
        hit = (not is_sure or is_right) if is_unknown else is_right
        count += 1
        top1 += hit
        top3 += hit or any(one.cause in wanted for one in findings[:3])
        if case.get("knowable") == "text" and not is_unknown:
            decidable += 1
            confident += is_sure
        if first is not None:
            total[first.confidence] += 1
            right[first.confidence] += is_right
            place = next(index for index in range(len(BINS) - 1) if BINS[index] <= first.score < BINS[index + 1])
            total_bin[place] += 1
            right_bin[place] += is_right
        if options.misses and not hit:
            print(f"  {case['id']}: want {case['cause']}, got {first and first.cause} ({first and first.confidence})")
    print(f"{count} incidents: top-1 {top1 / count:.1%}, top-3 {top3 / count:.1%}")
    print(
        f"answered with confidence: {confident} of {decidable} that the text decides ({confident / max(decidable, 1):.1%})"
    )
    for name in ("certain", "likely", "possible"):
        print(f"{name:<9} right {right[name]:3d} of {total[name]:3d} ({right[name] / max(total[name], 1):.1%})")
    for place in range(len(BINS) - 1):
        if total_bin[place]:
            share = right_bin[place] / total_bin[place]
            print(
                f"score {BINS[place]:.2f} to {min(BINS[place + 1], 1):.2f}: right {right_bin[place]:3d} of {total_bin[place]:3d} ({share:.1%})"
            )


if __name__ == "__main__":
    main()
