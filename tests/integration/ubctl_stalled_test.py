"""No daemon, a stopped daemon, and a daemon that has been asked very often."""

import json
import os
import tempfile
import time

from ubctl_harness import Daemon, Ubctl, UbdTest, await_true, main, signal

COMMANDS = [["status"], ["pools"], ["blocks"], ["leases"], ["sessions"], ["watch"], ["top"], ["drain"], ["drain", "--wait"],
            ["lease", "hold", "2MiB"], ["lease", "revoke", "1"], ["bench", "acquire"], ["demo", "/etc/passwd"]]


class NotRunning(UbdTest):
    def test_every_command_says_3_and_where_it_looked(self):
        with tempfile.TemporaryDirectory() as nowhere:
            for command in COMMANDS:
                done = Ubctl(nowhere).run(*command, "--json")
                self.assertEqual(done.returncode, 3, command)
                self.assertEqual(json.loads(done.stdout)["error"]["reason"], "NOT_RUNNING", command)
                self.assertIn(nowhere, done.stderr)

    def test_killed_daemon_leaves_a_stale_socket_that_is_also_3(self):
        with Daemon() as daemon:
            daemon.stop(signal.SIGKILL)
            self.assertEqual(Ubctl(daemon.dir).json("status", code=3)["error"]["reason"], "NOT_RUNNING")


class Stopped(UbdTest):
    def test_twenty_at_once_and_every_command_return_in_time_and_work_after_cont(self):
        with Daemon() as daemon:
            ubctl = Ubctl(daemon.dir)
            os.kill(daemon.process.pid, signal.SIGSTOP)
            try:
                start = time.monotonic()
                stuck = [ubctl.start("status", "--json", "--timeout", "2s") for _ in range(20)]
                for process in stuck:
                    out, errors = process.communicate(timeout=20)
                    self.assertEqual((process.returncode, json.loads(out)["error"]["reason"]), (4, "NOT_ANSWERING"), errors)
                    self.assertNotIn("not running", errors)
                self.assertLess(time.monotonic() - start, 6)
                several = [(command, ubctl.start(*command, "--json", "--timeout", "2s")) for command in COMMANDS]
                for command, process in several:
                    out, errors = process.communicate(timeout=20)
                    self.assertEqual((process.returncode, json.loads(out)["error"]["reason"]), (4, "NOT_ANSWERING"), (command, errors))
                self.assertLess(time.monotonic() - start, 14)
                version = ubctl.run("version", "--timeout", "1s")
                self.assertEqual(version.returncode, 0, "ubctl's own version is known anyway")
            finally:
                os.kill(daemon.process.pid, signal.SIGCONT)
            self.assertEqual(ubctl.json("status")["state"], "serving")
            await_true(lambda: ubctl.json("sessions")["sessions"] == [], "no session of the given-up commands is left")

    def test_default_timeout_is_5_seconds(self):
        with Daemon() as daemon:
            os.kill(daemon.process.pid, signal.SIGSTOP)
            start = time.monotonic()
            done = Ubctl(daemon.dir).run("leases")
            os.kill(daemon.process.pid, signal.SIGCONT)
            self.assertEqual(done.returncode, 4)
            self.assertTrue(4.5 < time.monotonic() - start < 6.5)


class Polled(UbdTest):
    def test_polling_leaves_no_fd_in_the_daemon(self):
        with Daemon() as daemon:
            ubctl = Ubctl(daemon.dir)

            def fds():
                return len(os.listdir(f"/proc/{daemon.process.pid}/fd"))

            ubctl.json("status")
            before = fds()
            for _ in range(15):
                for process in [ubctl.start("status") for _ in range(20)]:
                    process.communicate(timeout=20)
                    self.assertEqual(process.returncode, 0)
            await_true(lambda: fds() <= before + 1, f"back to {before} fds")


if __name__ == "__main__":
    main()
