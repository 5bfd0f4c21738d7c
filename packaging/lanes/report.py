#!/usr/bin/python3
"""report.py BUILD_ROOT: what all lanes ran and skipped.

Reads ctest's reports (lanes/PRESET-LABEL.junit.xml) and, for GoogleTest programs, their own (PRESET/reports/LABEL/*.xml), which know single
tests. Prints the skipped ones with reasons and the totals. With CI=true a test that no lane ran is an error, except label gpu.
"""

import os
import pathlib
import sys
import xml.etree.ElementTree as ElementTree

MAY_SKIP_IN_CI = {"gpu"}


def cases_of_program(report):
    """(name, state, reason) of each test in a GoogleTest report."""
    for case in ElementTree.parse(report).iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        skipped = case.find("skipped")
        if case.get("status") == "notrun":
            continue  # DISABLED_: not a test of this run
        if skipped is not None:
            yield name, "skipped", (skipped.get("message") or skipped.text or "no reason given").strip().splitlines()[-1]
        else:
            yield name, "failed" if case.find("failure") is not None else "passed", ""


def cases_of_lane(junit, programs):
    """The same for a ctest report, with GoogleTest programs opened up."""
    for case in ElementTree.parse(junit).iter("testcase"):
        name = case.get("name")
        status = case.get("status")
        own = programs / f"{name}.xml"
        if own.exists() and own.stat().st_size:
            yield from cases_of_program(own)
            if status == "fail" and not any(state == "failed" for _, state, _ in cases_of_program(own)):
                yield name, "failed", ""  # e.g. a leak reported after the last test
        elif status in ("notrun", "disabled"):
            output = (case.findtext("system-out") or "").strip().splitlines()
            yield name, "skipped", output[-1] if output else "no reason given"
        else:
            yield name, "failed" if status == "fail" else "passed", ""


def main():
    root = pathlib.Path(sys.argv[1])
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    skips = []
    ran = set()
    for junit in sorted((root / "lanes").glob("*.junit.xml")):
        preset, label = junit.name.removesuffix(".junit.xml").split("-", 1)
        for name, state, reason in cases_of_lane(junit, root / preset / "reports" / label):
            counts[state] += 1
            if state == "skipped":
                skips.append((label, name, f"{preset} {label} {name}: {reason}"))
            else:
                ran.add((label, name))
    for _, _, text in skips:
        print("skipped:", text)
    print("single tests: " + ", ".join(f"{count} {state}" for state, count in counts.items()))
    never = [text for label, name, text in skips if label not in MAY_SKIP_IN_CI and (label, name) not in ran]
    if os.environ.get("CI") == "true" and never:
        print("\n".join(["CI may not leave tests out, and no lane ran these:"] + never))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
