#!/usr/bin/python3
"""failures.py JUNIT: why the failed tests of a lane failed, short enough for a log that keeps only its end.

Of each failed test: what ctest says, the lines about failed checks, and the last lines of its output. Long lines are cut, and of what a daemon
logged for audit only the end is shown.
"""

import sys
import xml.etree.ElementTree as ElementTree

CHECKS, AROUND, LAST, AUDITS, WIDTH, TESTS = 5, 8, 60, 10, 300, 6
SIGNS = (": Failure", "FAILED:", "[  FAILED  ]", "ERROR: AddressSanitizer", "WARNING: ThreadSanitizer", "runtime error:", "Traceback", "AssertionError")


def short(line):
    return line if len(line) <= WIDTH else line[:WIDTH] + " ..."


def without_trail(lines):
    audits = [number for number, line in enumerate(lines) if " audit " in line]
    dropped = set(audits[:-AUDITS])
    return [line for number, line in enumerate(lines) if number not in dropped]


def excerpt(lines):
    """The first failed checks with what follows them, then the end."""
    shown, tail = [], max(0, len(lines) - LAST)
    hits = [number for number, line in enumerate(lines[:tail]) if any(sign in line for sign in SIGNS)]
    end = 0
    for number in hits[:CHECKS]:
        if number >= end:
            shown += lines[max(number, end):min(number + AROUND, tail)] + ["..."]
            end = number + AROUND
    return shown + lines[tail:]


def main():
    failed = [case for case in ElementTree.parse(sys.argv[1]).iter("testcase") if case.get("status") == "fail"]
    for case in failed[:TESTS]:
        message = (case.find("failure").get("message") or "") if case.find("failure") is not None else ""
        print(f"--- {case.get('name')}: failed {message}".rstrip())
        for line in excerpt(without_trail((case.findtext("system-out") or "").splitlines())):
            print("    " + short(line))
    if len(failed) > TESTS:
        print("--- and: " + ", ".join(case.get("name") for case in failed[TESTS:]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
