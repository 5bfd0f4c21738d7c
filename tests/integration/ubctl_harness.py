"""ubctl as an operator's shell runs it, against a real ubd. Environment: UBCTL (the program), and what rpc_harness needs."""

import json
import os
import signal
import subprocess
import tempfile
import threading
import unittest
import time

from rpc_harness import Daemon, UbdTest, main  # noqa: F401: tests take them from here

UBCTL = os.environ["UBCTL"]
MIB = 1 << 20


def as_uid(uid, *groups):
    """A prefix that runs a command as `uid` with these supplementary groups alone."""
    extra = [f"--groups={','.join(map(str, groups))}"] if groups else ["--clear-groups"]
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", *extra]


class Ubctl:
    """Commands to one daemon. `prefix` stands before each, e.g. as_uid(1001)."""

    def __init__(self, runtime_dir, prefix=()):
        self.command = [*prefix, UBCTL, "--runtime-dir", runtime_dir]

    def run(self, *words, timeout=60, **options):
        return subprocess.run([*self.command, *words], capture_output=True, text=True, timeout=timeout,
                              stdin=subprocess.DEVNULL, **options)

    def start(self, *words, **options):
        return subprocess.Popen([*self.command, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                stdin=subprocess.DEVNULL, **options)

    def json(self, *words, code=0):
        """The document; the exit code must be `code`, and nothing else may be on stdout."""
        done = self.run(*words, "--json")
        if done.returncode != code:
            raise AssertionError(f"{words}: exit {done.returncode}, wanted {code}: {done.stderr}")
        return json.loads(done.stdout)

    def pool(self):
        return self.json("pools")["pools"][0]


class UbctlTest(UbdTest):
    """One daemon for all tests of the class."""

    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon()
        cls.ubctl = Ubctl(cls.daemon.dir)

    @classmethod
    def tearDownClass(cls):
        cls.daemon.close()


class Hold:
    """`lease hold` in the background, with its document."""

    def __init__(self, ubctl, *words):
        self.process = ubctl.start("lease", "hold", "--json", *words)
        self.text = ""
        while self.text.rstrip()[-1:] != "}" or self.text.count("{") != self.text.count("}"):
            line = self.process.stdout.readline()
            if not line:
                raise AssertionError(f"lease hold {words}: {self.process.stderr.read()}")
            self.text += line
        self.grant = json.loads(self.text)

    def end(self, number=None, timeout=20):
        """(exit code, stderr) after `number`, or by itself."""
        if number is not None:
            self.process.send_signal(number)
        rest, errors = rest_of(self.process, timeout)
        assert rest == "", f"a second document: {rest}"
        return self.process.returncode, errors

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        if not self.process.stdout.closed:
            self.process.kill()
            rest_of(self.process)


def rest_of(process, timeout=20):
    """(stdout, stderr) of a process from which lines were read; communicate() would miss what was read ahead."""
    timer = threading.Timer(timeout, process.kill)
    timer.start()
    out, errors = process.stdout.read(), process.stderr.read()
    process.wait()
    timer.cancel()
    process.stdout.close()
    process.stderr.close()
    return out, errors


def await_true(condition, what, timeout=10):
    """For states of other processes, which tell nobody when they change."""
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout} s: {what}")
        time.sleep(0.02)


def direct_dir(ubctl):
    """A directory on a file system that can do direct transfers, as ubd says."""
    for directory in (tempfile.gettempdir(), "/var/tmp", os.getcwd()):
        if ubctl.json("verify", "--file", directory, "--rounds", "1", "--streams", "1")["direct"]:
            return directory
    raise unittest.SkipTest("no file system here that ubd trusts and that can do direct I/O (ext4, xfs, ...)")


def all_free(ubctl):
    pool = ubctl.pool()
    return pool["blocks_free"] == pool["blocks_total"] and ubctl.json("leases") == {"leases": []}


__all__ = ["MIB", "UBCTL", "Daemon", "Hold", "Ubctl", "UbdTest", "all_free", "as_uid", "await_true", "direct_dir", "main", "rest_of", "signal"]
