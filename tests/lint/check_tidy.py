#!/usr/bin/python3
"""check_tidy.py BUILD: clang-tidy-14 with the repository's .clang-tidy over the project's sources, two at a time.

A source whose text, project headers, flags and checks are those of an earlier clean run is passed over (BUILD/tidy-cache holds the hashes). UBD_TIDY
says which sources: "core" (default; the parts without gRPC, whose headers take long to parse) or "all".
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

FAST = ("proto/wire/", "daemon/core/", "daemon/memory/", "daemon/session/", "daemon/config/", "daemon/service/", "daemon/telemetry/")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)
DROP = re.compile(r"-Winvalid-pch|-fpch-.*|-fno-canonical-system-headers")
ROOT = pathlib.Path.cwd()


def project_closure(source):
    """The source and every header of the project that it reaches."""
    seen, todo = set(), [source]
    while todo:
        path = todo.pop()
        if path in seen or not path.is_file():
            continue
        seen.add(path)
        for include in INCLUDE.findall(path.read_text(encoding="utf-8")):
            todo += [ROOT / include, ROOT / "client/include" / include, path.parent / include]
    return sorted(seen)


def plain_command(entry):
    """The compile command without its precompiled header, which another compiler may have made."""
    words, out, skip = entry["command"].split(), [], False
    for word in words:
        if skip:
            skip = False
            if not word.endswith("cmake_pch.hxx"):
                out += ["-include", word]
            continue
        if word == "-include":
            skip = True
        elif not DROP.fullmatch(word):
            out.append(word)
    return " ".join(out)


def digest(entry):
    state = hashlib.sha256()
    for part in [(ROOT / ".clang-tidy").read_bytes(), entry["command"].encode()]:
        state.update(part)
    for path in project_closure(pathlib.Path(entry["file"])):
        state.update(path.read_bytes())
    return state.hexdigest()


def check(entry, database):
    run = subprocess.run(["clang-tidy-14", "--quiet", "-p", str(database), "--extra-arg=-Wno-unknown-warning-option", entry["file"]],
                         capture_output=True, text=True)
    return entry, run.returncode, run.stdout


def main():
    build = pathlib.Path(sys.argv[1])
    cache = build / "tidy-cache"
    cache.mkdir(exist_ok=True)
    everything = os.environ.get("UBD_TIDY", "core") == "all"
    wanted = []
    for entry in json.loads((build / "compile_commands.json").read_text()):
        relative = os.path.relpath(entry["file"], ROOT)
        if relative.startswith(FAST) or (everything and relative.startswith(("daemon/", "client/"))):
            entry["command"] = plain_command(entry)
            wanted.append(entry)
    if not wanted:
        print("found no sources to check")
        return 1
    (cache / "compile_commands.json").write_text(json.dumps(wanted))
    todo = [(entry, digest(entry)) for entry in wanted]
    todo = [(entry, key) for entry, key in todo if not (cache / key).exists()]
    faults = 0
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as workers:
        keys = {entry["file"]: key for entry, key in todo}
        for entry, code, output in workers.map(lambda item: check(item[0], cache), todo):
            if code == 0:
                (cache / keys[entry["file"]]).touch()
            else:
                faults += 1
                print(output)
    print(f"{len(wanted)} sources, {len(todo)} of them new, {faults} with faults; fix them or, where a check is wrong, say why with NOLINT")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
