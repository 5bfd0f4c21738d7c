#!/usr/bin/python3
"""Includes point down only, as the layers of the project do. Prints each include that does not, and what the folder may include."""

import pathlib
import re
import subprocess
import sys

# What a folder may include of the project beside itself. Longest prefix wins. "ub/" are the public headers.
WIRE = ("proto/wire/", "ub/units.h", "ub/error.h", "ub/queue_layout.h", "ub/queue_names.h")
CORE = WIRE + ("daemon/core/",)
PROTO = ("ub/v1/", "grpc/health/")
EDGE = CORE + ("daemon/telemetry/", "daemon/memory/")
ALLOWED = {
    "proto/wire/": WIRE,
    "daemon/core/": CORE,
    "daemon/topology/": WIRE,
    "daemon/memory/": CORE + ("daemon/telemetry/", "daemon/topology/"),
    "daemon/telemetry/": CORE + ("daemon/memory/memory.h", "daemon/engine/engine.h"),
    "daemon/config/": CORE + PROTO + ("daemon/memory/memory.h", "daemon/telemetry/", "daemon/session/server.h", "daemon/engine/engine.h"),
    "daemon/service/": CORE + ("daemon/telemetry/",),
    "daemon/engine/": EDGE,
    "daemon/session/": EDGE,
    "daemon/rpc/": EDGE + PROTO + ("daemon/session/", "daemon/engine/engine.h", "daemon/engine/path_choice.h"),
    "daemon/": ("daemon/", "proto/wire/") + PROTO,
    "client/include/": ("ub/",),
    "client/src/": WIRE + PROTO + ("ub/", "client/src/"),
    "client/ubctl/": WIRE + PROTO + ("ub/", "client/src/", "client/ubctl/", "daemon/topology/"),
    "client/examples/": ("ub/",),
    "tests/": ("",),
}
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]((?:daemon|client|proto|ub|grpc/health|tests)/[^">]+)[">]', re.M)


def allowed_for(path):
    prefix = max((p for p in ALLOWED if path.startswith(p)), key=len, default=None)
    return prefix, ALLOWED.get(prefix)


def main():
    files = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "-co", "--exclude-standard", "*.cc", "*.h"],
        check=True, capture_output=True, text=True).stdout.split()
    faults = 0
    for path in sorted(set(files)):
        prefix, allowed = allowed_for(path)
        if allowed is None:
            print(f"{path}: in a folder that tests/lint/check_layers.py does not know; say there what it may include")
            faults += 1
            continue
        if not pathlib.Path(path).exists():
            continue
        for include in INCLUDE.findall(pathlib.Path(path).read_text(encoding="utf-8")):
            if include.startswith(prefix) or include.startswith(tuple(allowed)):
                continue
            print(f"{path}: includes {include}; files in {prefix} may include only {', '.join(allowed)}")
            faults += 1
    print(f"{len(set(files))} files, {faults} includes against the direction of the layers")
    return 1 if faults or not files else 0


if __name__ == "__main__":
    sys.exit(main())
