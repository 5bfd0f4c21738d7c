"""bench ab, segments and queue, tune: every figure there or null with its reason. How good figures are is for people to judge."""

import os
import shutil
import tempfile

from ubctl_harness import MIB, Daemon, Ubctl, UbdTest, await_true, direct_dir, main

VERDICTS = {"stay with what you have", "measure your workload", "adopt direct"}


class TransferBench(UbdTest):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon()
        cls.ubctl = Ubctl(cls.daemon.dir)
        cls.file = cls.make(16 * MIB + 5)

    @classmethod
    def tearDownClass(cls):
        os.unlink(cls.file)
        cls.daemon.close()

    @classmethod
    def make(cls, size, directory=None):
        fd, path = tempfile.mkstemp(dir=directory or direct_dir(cls.ubctl))
        with open(fd, "wb") as file:
            file.write(os.urandom(size))
        return path

    def tearDown(self):
        await_true(lambda: self.ubctl.pool()["blocks_free"] == 32, "all memory is back")

    def test_ab_has_all_sides_their_cost_and_a_verdict(self):
        report = self.ubctl.json("bench", "ab", "--file", self.file, "--rounds", "2")
        for name in ("direct", "staged", "traditional"):
            side = report[name]
            self.assertEqual((side["rounds"], side["bytes"]), (2, 32 * MIB), side)
            self.assertGreater(side["bytes_per_s"], 0)
            self.assertGreater(side["cpu_s_per_gb"], 0)
            self.assertAlmostEqual(side["cpu_s_per_gb"], side["client_cpu_s_per_gb"] + side["daemon_cpu_s_per_gb"], places=6)
            self.assertLessEqual(side["p50_ns"], side["p99_ns"])
        self.assertEqual((report["direct"]["path"], report["staged"]["path"]), ("direct", "staged"))
        self.assertEqual(report["staged"]["reason"], "forced")
        best = max(report["staged"]["bytes_per_s"], report["traditional"]["bytes_per_s"])
        self.assertAlmostEqual(report["gain"], report["direct"]["bytes_per_s"] / best - 1)
        self.assertIn(report["verdict"], VERDICTS)
        self.assertTrue(report["cold_cache"], report["notes"])
        text = self.ubctl.run("bench", "ab", "--file", self.file, "--rounds", "1").stdout
        self.assertTrue(any(f"\n{verdict}\n" in text for verdict in VERDICTS), text)

    def test_ab_that_would_be_staged_is_no_result(self):
        path = self.make(4 * MIB, "/dev/shm")
        self.addCleanup(os.unlink, path)
        error = self.ubctl.json("bench", "ab", "--file", path, code=1)["error"]
        self.assertEqual((error["reason"], error["details"]["path_reason"]), ("PATH_UNAVAILABLE", "fs-not-trusted"))

    def test_ab_of_a_tiny_file_says_that_it_is_too_small(self):
        path = self.make(1000)
        self.addCleanup(os.unlink, path)
        self.assertIn("too small", self.ubctl.run("bench", "ab", "--file", path).stderr)

    def test_segments_are_each_beside_what_is_expected(self):
        report = self.ubctl.json("bench", "segments", "--quick", "--file", self.file)
        segments = {segment["name"]: segment for segment in report["segments"]}
        self.assertEqual(list(segments), ["memory_write", "device_read", "completion_handling"])
        for segment in segments.values():
            if segment["value"] is None:
                self.assertRegex(segment["verdict"], r"^not measured: .")
                continue
            self.assertGreater(segment["expected"], 0, segment)
            self.assertAlmostEqual(segment["ratio"], segment["value"] / segment["expected"])
            self.assertNotEqual(segment["verdict"], "")
        self.assertIsNotNone(segments["memory_write"]["value"])
        self.assertIsNotNone(segments["device_read"]["value"], segments["device_read"])
        if len(os.sched_getaffinity(0)) > 1:
            completion = segments["completion_handling"]
            self.assertIsNotNone(completion["value"], completion)
            self.assertTrue(0 <= completion["empty_poll_share"] <= 1)
            self.assertGreater(completion["client_cpu"], 0)

    def test_queue_figures_have_their_peers(self):
        report = self.ubctl.json("bench", "queue", "--quick", "--file", self.file)
        figures = {figure["name"]: figure for figure in report["figures"]}
        self.assertEqual(list(figures), ["nop_latency", "ping_pong", "nop_rate", "bare_ring_rate",
                                         "sequential_read", "fio_sequential_read", "sequential_read_cpu", "fio_sequential_read_cpu",
                                         "random_read", "fio_random_read", "random_read_cpu", "fio_random_read_cpu"])
        self.assertEqual([(ratio["name"], ratio["must"]) for ratio in report["ratios"]],
                         [("nop_latency/ping_pong", "<= 3"), ("nop_rate/bare_ring_rate", ">= 0.3"),
                          ("sequential_read/fio_sequential_read", ">= 0.95"),
                          ("sequential_read_cpu/fio_sequential_read_cpu", "<= 1.5"), ("random_read/fio_random_read", ">= 0.85")])
        for name, figure in figures.items():
            if figure["p50_ns"] is None and figure["value"] is None:
                self.assertRegex(figure["note"], r"^not measured: .")
        self.assertGreater(figures["sequential_read"]["value"], 0, figures["sequential_read"])
        if shutil.which("fio"):
            self.assertGreater(figures["fio_random_read"]["value"], 0, figures["fio_random_read"])

    def test_queue_without_fio_says_so(self):
        done = self.ubctl.run("bench", "queue", "--quick", "--json", "--file", self.file, env={**os.environ, "PATH": "/nonexistent"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("not measured: fio is not installed", done.stdout)

    def test_tune_depth_shows_the_curve_and_keeps_the_default_where_nothing_is_gained(self):
        report = self.ubctl.json("tune", "queue-depth", "--file", self.file, "--seconds", "0.02", "--rounds", "1", "--chunk", "64KiB",
                                 "--streams", "3", "--blocks", "1")
        settings = [point["setting"] for point in report["points"]]
        self.assertEqual(settings, sorted(settings))
        self.assertLessEqual({1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, report["start"]}, set(settings))
        self.assertIn("2 x 3 streams x 1 blocks / ", report["start_formula"])
        self.assertIn(report["knee"], settings)
        self.assertEqual(report["default_setting"], 128)
        self.assertEqual(report["nothing_gained"], report["recommended"] == 128)
        self.assertEqual(report["path"], "direct")
        for point in report["points"]:
            self.assertGreater(point["bytes_per_s"], 0)

    def test_tune_chunk_measures_staged_beside_direct(self):
        report = self.ubctl.json("tune", "chunk", "--file", self.file, "--seconds", "0.02", "--rounds", "1")
        self.assertEqual([point["setting"] for point in report["points"]], [4096 * 4 ** i for i in range(7)])
        for point in report["points"]:
            self.assertGreater(point["staged_bytes_per_s"], 0)
        self.assertTrue(any("larger chunks were left out" in note for note in report["notes"]), report["notes"])
        text = self.ubctl.run("tune", "chunk", "--file", self.file, "--seconds", "0.02", "--rounds", "1").stdout
        self.assertIn("<- ", text)
        self.assertTrue(text.endswith("nothing was changed\n"))

    def test_tune_changes_nothing(self):
        before = self.ubctl.json("path", "get")
        self.ubctl.json("tune", "chunk", "--file", self.file, "--seconds", "0.01", "--rounds", "1")
        after = self.ubctl.json("path", "get")
        self.assertEqual((before["policy"], before["min_direct_bytes"]), (after["policy"], after["min_direct_bytes"]))


if __name__ == "__main__":
    main()
