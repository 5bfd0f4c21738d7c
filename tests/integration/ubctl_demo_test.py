"""demo FILE: every kind of file, a pool that is small, busy or gone, and a consumer that dies."""

import os
import signal
import subprocess
import tempfile
import threading
import time

from ubctl_harness import MIB, Daemon, Hold, Ubctl, UbctlTest, UbdTest, all_free, as_uid, await_true, direct_dir, main, rest_of

MOST_IN_FLIGHT = 4  # chunks that a producer lets pile up
TINY_POOL = 'pool { name: "host" block_size: "2MiB" blocks: 1 page_size: "4KiB" reserve_blocks: 1 lock_pages: OFF }\n'


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(child) for child in file.read().split()]


class Demo(UbctlTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.home = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls):
        cls.home.cleanup()
        super().tearDownClass()

    def tearDown(self):
        await_true(lambda: all_free(self.ubctl), "all memory is back")
        await_true(lambda: self.ubctl.json("sessions")["sessions"] == [], "no session is left")

    def file(self, size, name="file"):
        path = os.path.join(self.home.name, name)
        with open(path, "wb") as file:
            left = size
            while left > 0:
                left -= file.write(os.urandom(min(left, MIB)))
        return path

    def sparse(self, size):
        path = os.path.join(self.home.name, "sparse")
        with open(path, "wb") as file:
            file.truncate(size)
        return path

    def test_files_of_every_size_come_through(self):
        # 32 blocks of 2 MiB: the last is more than the whole pool.
        for size in (0, 1, 4095, 2 * MIB - 1, 2 * MIB, 2 * MIB + 1, 9 * MIB, 150 * MIB + 7):
            report = self.ubctl.json("demo", self.file(size))
            chunks = -(-size // (2 * MIB))
            self.assertTrue(report["ok"], size)
            self.assertEqual((report["bytes"], report["chunks"], report["leases"], report["attaches"]), (size, chunks, chunks, chunks))
            self.assertEqual(report["consumer_hash"], report["file_hash"])
            staged = sum(share["bytes"] for share in report["paths"] if share["path"] == "staged")
            self.assertEqual(report["copies_per_byte"], staged / size if size else None)
            self.assertEqual(report["consumer_copies_per_byte"], 0 if size else None)
            self.assertGreaterEqual(report["rpcs"], 4 * chunks)
            self.assertEqual(sum(share["bytes"] for share in report["paths"]), size)

    def test_whole_chunks_are_read_directly_and_only_a_short_tail_is_staged(self):
        home = direct_dir(self.ubctl)
        with tempfile.NamedTemporaryFile(dir=home) as file:
            file.write(os.urandom(10 * MIB + 7))
            file.flush()
            report = self.ubctl.json("demo", file.name)
        self.assertEqual(report["path"], "direct and staged")
        self.assertEqual([(share["path"], share["reason"], share["bytes"]) for share in report["paths"]],
                         [("direct", "", 10 * MIB), ("staged", "below-min-direct", 7)])
        self.assertFalse(report["served_locally"])
        self.assertGreater(report["cpu_s_per_gb"], 0)
        for way in ("direct", "staged", "traditional"):
            self.assertGreater(report[way]["bytes_per_s"], 0, report)

    def test_file_that_the_daemon_does_not_touch_is_read_here_and_said_so(self):
        with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
            file.write(os.urandom(5 * MIB + 1))
            file.flush()
            report = self.ubctl.json("demo", file.name)
            text = self.ubctl.run("demo", file.name).stdout
        self.assertEqual((report["ok"], report["path"], report["served_locally"], report["copies_per_byte"]), (True, "staged", True, 1))
        self.assertEqual({share["reason"] for share in report["paths"]}, {"fs-not-trusted"})
        self.assertIsNone(report["direct"]["bytes_per_s"])
        self.assertIn("fs-not-trusted", report["direct"]["note"])
        self.assertGreater(report["traditional"]["bytes_per_s"], 0)
        self.assertIn("read by this process", text)

    def test_comparison_is_left_out_when_told_or_when_there_is_nothing_to_measure(self):
        for words in (("--no-compare", self.file(5 * MIB)), (self.file(100),)):
            report = self.ubctl.json("demo", *words)
            self.assertEqual((report["direct"], report["staged"], report["traditional"]), (None, None, None))
            self.assertRegex(report["compare_note"], "^not compared: ")

    def test_hash_is_the_files_own(self):
        # XXH3-128 of the ten bytes, from xxHash itself.
        path = os.path.join(self.home.name, "ten")
        with open(path, "w") as file:
            file.write("0123456789")
        self.assertEqual(self.ubctl.json("demo", path)["consumer_hash"], "e353667619ec664b49655fc9692165fb")

    def test_text_says_ok_and_what_is_advisory(self):
        done = self.ubctl.run("demo", self.file(3 * MIB))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue(done.stdout.endswith("\nOK\n"), done.stdout)
        self.assertRegex(done.stdout, r"read-only +advisory: you are root")

    def test_chunks_may_be_smaller_or_larger_than_a_block(self):
        for chunk, bytes_, leases in (("1MiB", MIB, 9), ("6MiB", 6 * MIB, 2), ("64MiB", 64 * MIB, 1)):
            report = self.ubctl.json("demo", "--chunk", chunk, self.file(9 * MIB))
            self.assertEqual((report["ok"], report["chunk_bytes"], report["leases"]), (True, bytes_, leases))
        self.assertEqual(self.ubctl.json("demo", "--chunk", "65MiB", self.file(1), code=1)["error"]["reason"], "NEVER_SATISFIABLE")

    def test_what_is_no_readable_regular_file_is_named(self):
        fifo = os.path.join(self.home.name, "fifo")
        os.mkfifo(fifo)
        for path, word in ((fifo, "a FIFO"), (self.home.name, "a directory"), ("/dev/zero", "a device"),
                           (self.home.name + "/none", "No such file"), ("/proc/cpuinfo", "grew")):
            done = self.ubctl.run("demo", path)
            self.assertEqual(done.returncode, 1, path)
            self.assertIn(word, done.stderr)
        os.unlink(fifo)

    def test_shrinking_file_is_an_error_not_a_short_hash(self):
        path = self.sparse(8 << 30)
        demo = self.ubctl.start("demo", path)
        await_true(lambda: self.ubctl.json("leases")["leases"] or demo.poll() is not None, "it runs")
        os.truncate(path, 10 * MIB)
        _, errors = rest_of(demo)
        self.assertEqual(demo.returncode, 1)
        self.assertIn("shrank", errors)

    def test_growing_file_is_an_error_not_a_cut(self):
        path = self.file(20 * MIB)
        stop = threading.Event()

        def grow():
            with open(path, "ab") as file:
                while not stop.is_set():
                    file.write(b"x")
                    file.flush()

        writer = threading.Thread(target=grow)
        writer.start()
        done = self.ubctl.run("demo", path)
        stop.set()
        writer.join()
        self.assertEqual(done.returncode, 1)
        self.assertIn("grew", done.stderr)

    def test_killed_consumer_is_said_and_everything_comes_back(self):
        demo = self.ubctl.start("demo", self.sparse(64 << 30))
        await_true(lambda: self.ubctl.json("leases")["leases"], "it runs")
        consumer, = children(demo.pid)
        os.kill(consumer, signal.SIGKILL)
        _, errors = rest_of(demo)
        self.assertEqual(demo.returncode, 1)
        self.assertIn(f"the consumer (pid {consumer}) was killed by signal 9", errors)

    def test_killed_producer_takes_its_consumer_along(self):
        demo = self.ubctl.start("demo", self.sparse(64 << 30))
        await_true(lambda: self.ubctl.json("leases")["leases"], "it runs")
        demo.kill()
        rest_of(demo)

    def test_revoked_chunk_is_an_error(self):
        demo = self.ubctl.start("demo", self.sparse(64 << 30))
        await_true(lambda: self.ubctl.json("leases")["leases"], "it runs")
        consumer, = children(demo.pid)
        os.kill(consumer, signal.SIGSTOP)  # chunks pile up before it, so that the leases are still there when they are revoked
        await_true(lambda: len(self.ubctl.json("leases")["leases"]) == MOST_IN_FLIGHT, "the producer waits for its consumer")
        for lease in self.ubctl.json("leases")["leases"]:
            self.ubctl.run("lease", "revoke", str(lease["id"]))
        os.kill(consumer, signal.SIGCONT)
        _, errors = rest_of(demo)
        self.assertEqual(demo.returncode, 1, errors)

    def test_stopped_consumer_ends_in_a_timeout_that_says_so(self):
        demo = self.ubctl.start("demo", "--timeout", "1s", self.sparse(64 << 30))
        await_true(lambda: self.ubctl.json("leases")["leases"], "it runs")
        consumer, = children(demo.pid)
        start = time.monotonic()
        os.kill(consumer, signal.SIGSTOP)
        _, errors = rest_of(demo)
        self.assertEqual(demo.returncode, 1, errors)
        self.assertIn(f"the consumer (pid {consumer}) handed nothing back within 1s: it is stopped", errors)
        self.assertIn("WAIT_TIMEOUT", errors)
        self.assertLess(time.monotonic() - start, 10)

    def test_busy_pool_is_waited_for_with_a_word(self):
        with Hold(self.ubctl, "64MiB") as all_of_it:
            start = time.monotonic()
            done = self.ubctl.run("demo", "--timeout", "1s", self.file(MIB))
            self.assertEqual(done.returncode, 1)
            self.assertIn("the pool is busy; waiting", done.stderr)
            self.assertIn("WAIT_TIMEOUT", done.stderr)
            self.assertLess(time.monotonic() - start, 5)
            demo = self.ubctl.start("demo", "--timeout", "30s", self.file(MIB))
            self.assertIn("busy", demo.stderr.readline())
            all_of_it.end(signal.SIGTERM)
            out, _ = rest_of(demo)
            self.assertEqual(demo.returncode, 0, out)

    def test_two_demos_share_the_pool(self):
        path = self.file(100 * MIB)
        for demo in [self.ubctl.start("demo", "--timeout", "30s", "--chunk", "16MiB", path) for _ in range(3)]:
            _, errors = rest_of(demo)
            self.assertEqual(demo.returncode, 0, errors)


class OtherPools(UbdTest):
    def test_pool_of_one_block(self):
        with Daemon(TINY_POOL) as daemon, tempfile.NamedTemporaryFile() as file:
            file.write(os.urandom(11 * MIB))
            file.flush()
            report = Ubctl(daemon.dir).json("demo", file.name)
            self.assertEqual((report["ok"], report["leases"], report["most_in_flight"]), (True, 6, 1))

    def test_daemon_that_goes_is_3(self):
        with Daemon() as daemon, tempfile.NamedTemporaryFile() as file:
            file.truncate(64 << 30)
            ubctl = Ubctl(daemon.dir)
            demo = ubctl.start("demo", file.name)
            await_true(lambda: ubctl.json("leases")["leases"], "it runs")
            daemon.stop(signal.SIGKILL)
            _, errors = rest_of(demo)
            self.assertEqual(demo.returncode, 3, errors)

    def test_ordinary_user_gets_enforced_read_only_shares_and_no_unreadable_file(self):
        group = 100  # "users"
        config = 'pool { name: "host" block_size: "2MiB" blocks: 8 page_size: "4KiB" lock_pages: OFF }\nsocket { group: "users" }\n'
        with Daemon(config) as daemon, tempfile.TemporaryDirectory() as home:
            os.chmod(home, 0o755)
            for name, mode in (("open", 0o644), ("secret", 0o600)):
                with open(f"{home}/{name}", "wb") as file:
                    file.write(os.urandom(5 * MIB))
                os.chmod(f"{home}/{name}", mode)
            for uid in (65534, 1001):
                ubctl = Ubctl(daemon.dir, as_uid(uid, group))
                report = ubctl.json("demo", f"{home}/open")
                self.assertEqual((report["ok"], report["read_only_advisory"]), (True, False))
                self.assertIn("Permission denied", ubctl.run("demo", f"{home}/secret").stderr)


class Quickly(UbdTest):
    def test_interrupted_demo_leaves_nothing(self):
        with Daemon() as daemon, tempfile.NamedTemporaryFile() as file:
            file.truncate(64 << 30)
            ubctl = Ubctl(daemon.dir)
            demo = subprocess.Popen([*ubctl.command, "demo", file.name], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                    start_new_session=True)
            await_true(lambda: ubctl.json("leases")["leases"], "it runs")
            os.killpg(demo.pid, signal.SIGINT)
            demo.wait(20)
            await_true(lambda: all_free(ubctl), "all memory is back")


if __name__ == "__main__":
    main()
