#!/usr/bin/python3
"""coverage.py BUILD: which share of the lines in core, session and recovery the tests of this build have run.

Merges what the lanes left (BUILD/profiles/LANE.profdata) and asks llvm-cov about every program that knows its lines. Lists each file, and
closes with one line for the summary. A folder that does not exist is passed over.
"""

import collections
import json
import pathlib
import subprocess
import sys

FOLDERS = ("daemon/core", "daemon/session", "daemon/recovery")


def programs(build):
    """Those with a map from counters to lines."""
    return [path for path in sorted((build / "bin").iterdir()) if path.is_file() and b"__llvm_covmap" in path.read_bytes()]


def file_summaries(build, merged):
    first, *others = programs(build)
    command = ["llvm-cov-14", "export", "-summary-only", f"-instr-profile={merged}", str(first)]
    command += [word for other in others for word in ("-object", str(other))]
    exported = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(exported)["data"][0]["files"]


def folder_of(name):
    """The folder that a file counts for; None for generated code and headers of others."""
    return next((folder for folder in FOLDERS if f"{folder}/" in name), None)


def main():
    build = pathlib.Path(sys.argv[1])
    profiles = sorted((build / "profiles").glob("*.profdata"))
    if not profiles:
        print("coverage of lines: no lane has left its counts")
        return 1
    merged = build / "merged.profdata"
    subprocess.run(["llvm-profdata-14", "merge", "-o", merged, *profiles], check=True)
    totals = collections.defaultdict(lambda: [0, 0])
    for file in file_summaries(build, merged):
        folder = folder_of(file["filename"])
        if folder is None:
            continue
        lines = file["summary"]["lines"]
        print(f"{lines['percent']:6.1f}%  {lines['covered']:5} of {lines['count']:5}  {folder}/{file['filename'].rpartition('/')[2]}")
        totals[folder][0] += lines["covered"]
        totals[folder][1] += lines["count"]
    shares = [f"{folder} {100 * totals[folder][0] / totals[folder][1]:.1f}%" for folder in FOLDERS if folder in totals]
    print("coverage of lines: " + ", ".join(shares))
    return 0 if shares else 1


if __name__ == "__main__":
    sys.exit(main())
