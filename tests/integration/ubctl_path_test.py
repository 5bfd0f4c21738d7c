"""queues, path get and set, and what transfers say of their path."""

import os
import tempfile

from ubctl_harness import MIB, Daemon, Ubctl, UbdTest, as_uid, await_true, direct_dir, main, rest_of, signal

QUEUE_KEYS = {"session", "id", "pid", "uid", "name", "state", "policy", "depth", "waiting", "in_flight", "oldest_ns", "unread",
              "submitted", "completed", "failed", "bytes", "polls", "empty_polls", "sleeps"}
READABLE = 'pool { name: "host" block_size: "2MiB" blocks: 32 page_size: "4KiB" reserve_blocks: 4 lock_pages: OFF }\nsocket { group: "users" }\n'
USERS = 100


class Paths(UbdTest):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(READABLE)
        cls.ubctl = Ubctl(cls.daemon.dir)

    @classmethod
    def tearDownClass(cls):
        cls.daemon.close()

    def setUp(self):
        self.addCleanup(self.ubctl.run, "path", "set", "prefer-direct")

    def counts(self):
        return {(count["path"], count["reason"]): count["transfers"] for count in self.ubctl.json("path", "get")["counts"]}

    def file(self, size=8 * MIB, directory=None):
        file = tempfile.NamedTemporaryFile(dir=directory or direct_dir(self.ubctl))
        file.write(os.urandom(size))
        file.flush()
        self.addCleanup(file.close)
        return file.name

    def test_policy_is_shown_and_set(self):
        self.assertEqual(self.ubctl.json("path", "get")["policy"], "prefer-direct")
        for policy in ("staged-only", "direct-only", "prefer-direct"):
            self.assertEqual(self.ubctl.json("path", "set", policy)["policy"], policy)
            self.assertIn(policy, self.ubctl.run("path", "get").stdout.splitlines()[0])

    def test_unknown_policy_is_a_usage_error(self):
        done = self.ubctl.run("path", "set", "fastest")
        self.assertEqual(done.returncode, 2)
        self.assertIn("direct-only", done.stderr)
        self.assertEqual(self.ubctl.json("path", "get")["policy"], "prefer-direct")

    def test_only_admins_set_it(self):
        user = Ubctl(self.daemon.dir, as_uid(1001, USERS))
        self.assertEqual(user.json("path", "get")["policy"], "prefer-direct")
        self.assertEqual(user.json("path", "set", "staged-only", code=1)["error"]["reason"], "NOT_ADMIN")
        self.assertEqual(self.ubctl.json("path", "get")["policy"], "prefer-direct")

    def test_policy_decides_the_path_of_the_demo_and_is_counted(self):
        path = self.file()
        before = self.counts()
        report = self.ubctl.json("demo", "--no-compare", path)
        self.assertEqual((report["path"], report["copies_per_byte"]), ("direct", 0))
        self.ubctl.json("path", "set", "staged-only")
        report = self.ubctl.json("demo", "--no-compare", path)
        self.assertEqual((report["path"], report["copies_per_byte"], report["ok"]), ("staged", 1, True))
        self.assertEqual([share["reason"] for share in report["paths"]], ["forced"])
        after = self.counts()
        self.assertEqual(after[("direct", "")] - before.get(("direct", ""), 0), 4)
        self.assertEqual(after[("staged", "forced")] - before.get(("staged", "forced"), 0), 4)

    def test_direct_only_fails_where_direct_cannot_be(self):
        self.ubctl.json("path", "set", "direct-only")
        error = self.ubctl.json("demo", "--no-compare", self.file(directory="/dev/shm"), code=1)["error"]
        self.assertEqual((error["reason"], error["details"]["path_reason"]), ("PATH_UNAVAILABLE", "fs-not-trusted"))

    def test_queues_are_listed_while_they_live_and_to_those_who_may_see_them(self):
        self.assertEqual(self.ubctl.json("queues"), {"queues": []})
        self.assertTrue(self.ubctl.run("queues").stdout.endswith("\nnone\n"))
        bench = self.ubctl.start("bench", "ab", "--file", self.file(), "--seconds", "60", "--depth", "3")
        seen = []
        await_true(lambda: seen.extend(self.ubctl.json("queues")["queues"]) or seen, "the bench's queue")
        self.assertEqual(set(seen[0]), QUEUE_KEYS)
        self.assertEqual((seen[0]["pid"], seen[0]["uid"], seen[0]["name"], seen[0]["depth"]), (bench.pid, 0, "ubctl-bench", 4))
        self.assertEqual(Ubctl(self.daemon.dir, as_uid(1001, USERS)).json("queues"), {"queues": []})
        bench.send_signal(signal.SIGKILL)
        rest_of(bench)
        await_true(lambda: self.ubctl.json("queues")["queues"] == [], "its queues are gone")
        await_true(lambda: self.ubctl.pool()["blocks_free"] == 32, "its memory is back")

    def test_top_shows_the_path_and_what_it_moves(self):
        self.ubctl.json("demo", "--no-compare", self.file())
        done = self.ubctl.run("top", "--count", "2", "--interval", "50ms")
        self.assertRegex(done.stdout, r"\npath prefer-direct  transfers \d+\.\d/s  data .*/s  direct \d+%")
        pictures = self.ubctl.json("top", "--count", "2", "--interval", "50ms")
        self.assertEqual([picture["transfers_per_s"] for picture in pictures], [None, 0])
        self.assertEqual(pictures[0]["path"]["policy"], "prefer-direct")


if __name__ == "__main__":
    main()
