#!/usr/bin/python3
"""`ubctl bench acquire` against a real ubd: every figure that it promises is in its document, and was measured where this machine can. The figures
are printed, not judged: the machine may be busy. With UBD_LONG=1 all figures and all samples.

Environment: as rpc_harness.py, and UBCTL.
"""

import json
import os
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "integration"))

from rpc_harness import UBD, Daemon, main

LONG = os.environ.get("UBD_LONG") == "1"
POOL = 'pool { name: "host" block_size: "64MiB" blocks: 4 page_size: "auto" reserve_blocks: 1 }\n'
ALWAYS = ("slot_take_return", "slot_take_return_two_threads", "lease_warm", "lease_cold", "rpc_null", "allocate_populate_pin_4k")
NEEDS_HUGE_PAGES = ("allocate_populate_pin_2m",)
FULL = ("idle_wakeups_per_s", "sessions_1000", "boot_per_gib", "bare_touch_per_gib")


class Bench(unittest.TestCase):
    def test_every_figure_is_there(self):
        with Daemon(POOL) as daemon:
            command = [os.environ["UBCTL"], "--runtime-dir", daemon.dir, "--json", "bench", "acquire", "--ubd", UBD]
            done = subprocess.run([*command, "--full" if LONG else "--quick"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            figures = {figure["name"]: figure for figure in json.loads(done.stdout)["figures"]}
            for figure in figures.values():
                print(figure)
            for name in ALWAYS + (FULL if LONG else ()):
                self.assertIn(name, figures)
                self.assertTrue(figures[name]["p50_ns"] or figures[name]["value"] is not None, name)
            for name in NEEDS_HUGE_PAGES:
                self.assertIn(name, figures)
            self.assertEqual(daemon.stop(), 0)


if __name__ == "__main__":
    main()
