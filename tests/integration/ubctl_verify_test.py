"""verify: every byte, by both paths, and nothing left behind."""

import os
import tempfile

from ubctl_harness import Daemon, Ubctl, UbdTest, all_free, as_uid, await_true, direct_dir, main, rest_of, signal

SHARED = 'pool { name: "host" block_size: "2MiB" blocks: 32 page_size: "4KiB" reserve_blocks: 4 lock_pages: OFF }\nsocket { group: "users" }\n'
USERS = 100


class Verify(UbdTest):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(SHARED)
        cls.ubctl = Ubctl(cls.daemon.dir)

    @classmethod
    def tearDownClass(cls):
        cls.daemon.close()

    def setUp(self):
        home = tempfile.TemporaryDirectory(dir=direct_dir(self.ubctl))
        self.addCleanup(home.cleanup)
        self.home = home.name

    def tearDown(self):
        self.assertEqual(os.listdir(self.home), [])
        await_true(lambda: all_free(self.ubctl), "all memory is back")

    def test_every_round_has_a_seed_of_its_own_and_both_paths(self):
        report = self.ubctl.json("verify", "--file", self.home, "--rounds", "4", "--streams", "3")
        self.assertEqual((report["ok"], report["direct"], report["streams"], len(report["rounds"])), (True, True, 3, 4))
        self.assertEqual(len({one["seed"] for one in report["rounds"]}), 4)
        for one in report["rounds"]:
            self.assertTrue(one["ok"])
            self.assertIsNone(one["fault"])
            self.assertGreater(one["direct"], 0)
            self.assertGreater(one["staged"], 0)
            self.assertEqual(one["direct"] + one["staged"], one["transfers"])
        self.assertEqual(report["bytes"], sum(one["bytes"] for one in report["rounds"]))
        self.assertTrue(any("attested direct" in line for line in report["proved"]), report["proved"])
        self.assertTrue(any("durability" in line for line in report["not_proved"]), report["not_proved"])

    def test_seed_does_the_same_again(self):
        rounds = [self.ubctl.json("verify", "--file", self.home, "--seed", "4711", "--rounds", "2")["rounds"] for _ in range(2)]
        self.assertEqual(rounds[0], rounds[1])
        self.assertEqual(rounds[0][0]["seed"], 4711)
        again = self.ubctl.json("verify", "--file", self.home, "--seed", str(rounds[0][1]["seed"]), "--rounds", "1")["rounds"]
        self.assertEqual(again, rounds[0][1:])

    def test_text_ends_with_ok_and_says_what_is_not_proved(self):
        done = self.ubctl.run("verify", "--file", self.home, "--rounds", "1")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue(done.stdout.endswith("\nOK\n"), done.stdout)
        self.assertIn("\nnot proved:\n", done.stdout)
        self.assertRegex(done.stdout, r"\nseed \d+: ")

    def test_file_system_that_is_not_trusted_is_verified_but_not_called_direct(self):
        report = self.ubctl.json("verify", "--file", "/dev/shm", "--rounds", "2")
        self.assertEqual((report["ok"], report["direct"], report["served_locally"]), (True, False, True))
        self.assertEqual(report["why_not_direct"], "fs-not-trusted")
        self.assertEqual(sum(one["direct"] for one in report["rounds"]), 0)
        self.assertIn("the direct path", report["not_proved"][0])

    def test_ordinary_users_verify_in_their_own_directories(self):
        os.chown(self.home, 1001, USERS)
        user = Ubctl(self.daemon.dir, as_uid(1001, USERS))
        self.assertTrue(user.json("verify", "--file", self.home, "--rounds", "2")["ok"])
        other = Ubctl(self.daemon.dir, as_uid(1002, USERS))
        self.assertIn("Permission denied", other.run("verify", "--file", self.home).stderr)

    def test_what_is_no_directory_is_said(self):
        self.assertIn("no directory", self.ubctl.run("verify", "--file", "/etc/passwd").stderr)
        self.assertEqual(self.ubctl.run("verify", "--file", self.home + "/none").returncode, 1)

    def test_too_many_streams_for_the_pool_is_a_typed_error(self):
        error = self.ubctl.json("verify", "--file", self.home, "--streams", "17", "--timeout", "1s", code=1)["error"]
        self.assertEqual(error["reason"], "WAIT_TIMEOUT")

    def test_killed_verify_leaves_no_file_and_no_memory(self):
        verify = self.ubctl.start("verify", "--file", self.home, "--rounds", "100000")
        await_true(lambda: self.ubctl.json("queues")["queues"], "it runs")
        verify.send_signal(signal.SIGKILL)
        rest_of(verify)


if __name__ == "__main__":
    main()
