"""lease hold: how it ends, and that nothing stays behind."""

import json
import subprocess
import time

from ubctl_harness import MIB, Daemon, Hold, Ubctl, UbctlTest, UbdTest, all_free, await_true, main, rest_of, signal


class LeaseHold(UbctlTest):
    def tearDown(self):
        await_true(lambda: all_free(self.ubctl), "all memory is back")

    def test_int_term_and_hup_give_the_lease_back_with_0(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with Hold(self.ubctl, "4MiB", "--touch") as hold:
                self.assertEqual(self.ubctl.pool()["blocks_leased"], 2)
                self.assertEqual(hold.end(number), (0, ""))

    def test_int_works_where_the_shell_had_it_ignored(self):
        # As `ubctl lease hold … &` in a script: the shell starts it with INT ignored.
        script = '"$@" & echo $!; wait $!; echo "code $?"'
        shell = subprocess.Popen(["sh", "-c", script, "sh", *self.ubctl.command, "lease", "hold", "2MiB"], stdout=subprocess.PIPE, text=True)
        pid = int(shell.stdout.readline())
        self.assertIn("holding lease", shell.stdout.readline())
        subprocess.run(["kill", "-INT", str(pid)], check=True)
        self.assertEqual(shell.communicate(timeout=20)[0], "code 0\n")

    def test_document_tells_the_grant(self):
        with Hold(self.ubctl, "5MiB", "--pool", "host", "--ttl", "1h") as hold:
            self.assertEqual((hold.grant["bytes"], hold.grant["blocks"], hold.grant["block_bytes"]), (6 * MIB, 3, 2 * MIB))
            self.assertEqual(hold.grant["pid"], hold.process.pid)
            self.assertGreater(hold.grant["ttl_left_ns"], 3599e9 - 5e9)

    def test_revoked_lease_ends_it_with_1_and_the_reason(self):
        with Hold(self.ubctl, "2MiB") as hold:
            done = self.ubctl.run("lease", "revoke", str(hold.grant["lease"]), "--reason", "node goes down")
            self.assertEqual((done.returncode, done.stdout), (0, f"lease {hold.grant['lease']} revoked\n"))
            code, errors = hold.end()
        self.assertEqual(code, 1)
        self.assertIn("was revoked: node goes down", errors)

    def test_revoke_has_a_document(self):
        with Hold(self.ubctl, "2MiB") as hold:
            self.assertEqual(self.ubctl.json("lease", "revoke", str(hold.grant["lease"])), {"lease": hold.grant["lease"], "revoked": True})
            self.assertEqual(hold.end()[0], 1)
        self.assertEqual(self.ubctl.json("lease", "revoke", str(hold.grant["lease"]), code=1)["error"]["reason"], "NO_SUCH_LEASE")

    def test_expired_lease_ends_it_with_1_on_time(self):
        start = time.monotonic()
        with Hold(self.ubctl, "2MiB", "--ttl", "1s") as hold:
            code, errors = hold.end()
        self.assertEqual(code, 1)
        self.assertIn("EXPIRED", errors)
        self.assertLess(abs(time.monotonic() - start - 1), 1)

    def test_full_pool_is_refused_at_once_and_waited_for_on_demand(self):
        with Hold(self.ubctl, "64MiB") as all_of_it:
            error = self.ubctl.json("lease", "hold", "2MiB", code=1)["error"]
            self.assertEqual((error["code"], error["reason"], error["details"]["free"]), ("RESOURCE_EXHAUSTED", "POOL_EMPTY", "0"))
            self.assertEqual(self.ubctl.json("lease", "hold", "2MiB", "--wait", "200ms", code=1)["error"]["reason"], "WAIT_TIMEOUT")
            waiter = self.ubctl.start("lease", "hold", "2MiB", "--wait", "30s")
            await_true(lambda: self.ubctl.pool()["waiters"] == 1, "it waits")
            self.assertEqual(all_of_it.end(signal.SIGTERM)[0], 0)
        self.assertIn("holding lease", waiter.stdout.readline())
        waiter.send_signal(signal.SIGTERM)
        rest_of(waiter)
        self.assertEqual(waiter.returncode, 0)

    def test_interrupted_while_waiting_leaves_no_waiter(self):
        with Hold(self.ubctl, "64MiB"):
            waiter = self.ubctl.start("lease", "hold", "2MiB", "--wait", "30s", "--json")
            await_true(lambda: self.ubctl.pool()["waiters"] == 1, "it waits")
            waiter.send_signal(signal.SIGINT)
            out, _ = rest_of(waiter)
            self.assertEqual((waiter.returncode, json.loads(out)["error"]["code"]), (1, "CANCELLED"))
            await_true(lambda: self.ubctl.pool()["waiters"] == 0, "the waiter is gone")

    def test_killed_holder_leaves_nothing(self):
        with Hold(self.ubctl, "8MiB", "--touch") as hold:
            hold.end(signal.SIGKILL)
        await_true(lambda: all_free(self.ubctl), "reclaimed", timeout=1)


class DaemonGoes(UbdTest):
    def test_hold_ends_with_3(self):
        for number in (signal.SIGTERM, signal.SIGKILL):
            with Daemon() as daemon, Hold(Ubctl(daemon.dir), "2MiB") as hold:
                daemon.stop(number)
                code, errors = hold.end()
                self.assertEqual(code, 3, errors)
                self.assertIn("the daemon went away", errors)


if __name__ == "__main__":
    main()
