#!/usr/bin/python3
"""Limits that no compiler checks: files of at most 300 lines, lines of at most 120 (C++ and CMake) or 160 columns, no tabs in C++, headers that
open with their manual, nothing left to do, no path of the machine it was written on."""

import pathlib
import re
import subprocess
import sys

MAX_LINES = 300
# Text that is not ours to cut, and data.
WHOLE = re.compile(r"^LICENSE$|^tests/fuzz/corpus/|\.(golden|bin|seed)$")
LEFT_TO_DO = re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX)\b")
# A home or work folder of whoever wrote it; "~/.config" and the like are fine.
OWN_PATH = re.compile(r"(?<![\w.$}/-])/(?:work|home|root|Users)/\w")
CPP = (".cc", ".h")


def faults_of(path, text):
    lines = text.splitlines()
    if len(lines) > MAX_LINES:
        yield f"{path}: {len(lines)} lines; split it by idea, at most {MAX_LINES}"
    if path.endswith(".h") and not (lines and lines[0].startswith("//")):
        yield f"{path}:1: a header opens with a comment that is its manual: what, thread-safety, ownership, errors"
    width = 120 if path.endswith(CPP) else 160
    for number, line in enumerate(lines, 1):
        if len(line) > width and not path.endswith((".md", ".json")) and "http" not in line:
            yield f"{path}:{number}: {len(line)} columns; at most {width}"
        if path.endswith(CPP) and "\t" in line:
            yield f"{path}:{number}: a tab"
        if LEFT_TO_DO.search(line):
            yield f"{path}:{number}: something left to do; do it, or say in README.md that it is not there yet"
        if OWN_PATH.search(line):
            yield f"{path}:{number}: a path of one particular machine"


def main():
    files = subprocess.run(["git", "-c", "safe.directory=*", "ls-files", "-co", "--exclude-standard"], check=True,
                           capture_output=True, text=True).stdout.splitlines()
    faults = []
    for path in sorted(set(files)):
        if WHOLE.search(path) or not pathlib.Path(path).is_file():
            continue
        try:
            text = pathlib.Path(path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            faults.append(f"{path}: not UTF-8; data belongs under tests/fuzz/corpus")
            continue
        faults.extend(faults_of(path, text))
    print("\n".join(faults))
    print(f"{len(files)} files, {len(faults)} faults")
    return 1 if faults or not files else 0


if __name__ == "__main__":
    sys.exit(main())
