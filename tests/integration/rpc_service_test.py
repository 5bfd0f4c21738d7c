"""ubd as a service: start, notify protocol, watchdog, passed sockets, reload, stop."""

import os
import signal
import socket
import subprocess
import tempfile
import threading
import time

import grpc

from rpc_harness import SMALL_POOL, UBD, Daemon, UbdTest, main, reason_of


def run_ubd(*arguments, **options):
    return subprocess.run([UBD, *arguments], capture_output=True, text=True, timeout=60, **options)


class CommandLine(UbdTest):
    def test_version(self):
        done = run_ubd("--version")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"^ubd \d+\.\d+\.\d+ \(protocol \d+\)")

    def test_unknown_option_and_stray_word_are_usage_errors_and_start_nothing(self):
        for wrong in (["foo"], ["--no-such"], ["--config"], ["start"]):
            done = run_ubd(*wrong)
            self.assertEqual(done.returncode, 2, wrong)
            self.assertIn("--runtime-dir", done.stderr)
            self.assertEqual(done.stdout, "")

    def test_bad_config_is_exit_2_with_file_and_line(self):
        with tempfile.NamedTemporaryFile("w", suffix=".textproto") as file:
            file.write('pool {\n  name: "a"\n  sise: "2MiB"\n  blocks: 1\n}\n')
            file.flush()
            for extra in ([], ["--check-config"]):
                done = run_ubd("--config", file.name, *extra)
                self.assertEqual(done.returncode, 2)
                self.assertIn(f"{file.name}:3:", done.stderr)
                self.assertIn("sise", done.stderr)

    def test_check_config_prints_the_effective_configuration(self):
        done = run_ubd("--check-config")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("64MiB", done.stdout)
        with tempfile.NamedTemporaryFile("w", suffix=".textproto") as file:
            file.write(done.stdout)
            file.flush()
            again = run_ubd("--config", file.name, "--check-config")
        self.assertEqual(again.stdout, done.stdout)

    def test_absent_config_file_is_exit_2(self):
        done = run_ubd("--config", "/no/such/file")
        self.assertEqual(done.returncode, 2)
        self.assertIn("/no/such/file", done.stderr)


class Start(UbdTest):
    def test_messages_from_start_to_stop(self):
        with Daemon(start=False) as daemon:
            daemon.start()
            daemon.wait_for("STATUS=")
            daemon.wait_for("READY=1")
            self.assertEqual(daemon.client().call("grpc.health.v1.Health/Check").status, 1)
            self.assertEqual(daemon.stop(), 0)
            daemon.wait_for("STOPPING=1")
            self.assertFalse(os.path.exists(f"{daemon.dir}/ubd.sock"))
            self.assertFalse(os.path.exists(f"{daemon.dir}/lifeline.sock"))

    def test_second_daemon_names_the_first_and_harms_nothing(self):
        with Daemon() as daemon:
            before = os.stat(f"{daemon.dir}/ubd.sock").st_ino
            second = run_ubd("--config", daemon.config_path, "--runtime-dir", daemon.dir)
            self.assertEqual(second.returncode, 1)
            self.assertIn(str(daemon.process.pid), second.stderr)
            self.assertEqual(os.stat(f"{daemon.dir}/ubd.sock").st_ino, before)
            self.assertEqual(daemon.client().call("ub.v1.Admin/GetStatus").pid, daemon.process.pid)

    def test_ten_at_once_leave_exactly_one(self):
        with Daemon(start=False) as daemon:
            all_of_them = [subprocess.Popen([UBD, "--config", daemon.config_path, "--runtime-dir", daemon.dir],
                                            stdout=daemon.log, stderr=daemon.log, env=daemon.env) for _ in range(10)]
            daemon.wait_for("READY=1")
            winner = daemon.client().call("ub.v1.Admin/GetStatus").pid
            for process in all_of_them:
                if process.pid != winner:
                    self.assertEqual(process.wait(20), 1)
                else:
                    daemon.process = process
            self.assertIsNone(daemon.process.poll())
            self.assertEqual(daemon.stop(), 0)

    def test_stale_sockets_of_a_killed_daemon_are_replaced(self):
        with Daemon() as daemon:
            daemon.stop(signal.SIGKILL)
            self.assertTrue(os.path.exists(f"{daemon.dir}/ubd.sock"))
            begin = time.monotonic()
            daemon.start()
            daemon.wait_for("READY=1")
            self.assertLess(time.monotonic() - begin, 5)
            self.assertEqual(daemon.client().call("grpc.health.v1.Health/Check").status, 1)

    def test_foreign_file_at_the_socket_path_stays_and_is_named(self):
        with Daemon(start=False) as daemon:
            os.mkdir(daemon.dir, 0o755)
            path = f"{daemon.dir}/ubd.sock"
            with open(path, "w") as file:
                file.write("mine")
            daemon.start()
            self.assertEqual(daemon.process.wait(30), 1)
            self.assertIn(path, daemon.log_text())
            with open(path) as file:
                self.assertEqual(file.read(), "mine")
            self.assertFalse(os.path.exists(f"{daemon.dir}/lifeline.sock"))

    def test_unknown_admin_group_fails_the_start(self):
        with Daemon(SMALL_POOL + 'admin { group: "no-such-group-here" }\n', start=False) as daemon:
            daemon.start()
            self.assertIn(daemon.process.wait(30), (1, 2))
            self.assertIn("no-such-group-here", daemon.log_text())

    def test_stop_while_starting_is_prompt_and_clean(self):
        big = SMALL_POOL.replace("blocks: 32", "blocks: 2048")  # some 4 GiB take seconds to prefault
        with Daemon(big, start=False) as daemon:
            daemon.start()
            daemon.wait_for("STATUS=making")
            begin = time.monotonic()
            self.assertEqual(daemon.stop(), 0)
            self.assertLess(time.monotonic() - begin, 5)
            self.assertFalse(os.path.exists(f"{daemon.dir}/ubd.sock"))
            daemon.write_config(SMALL_POOL)
            daemon.start()
            daemon.wait_for("READY=1")


class Watchdog(UbdTest):
    def test_pings_come_from_answered_checks_and_stop_with_the_daemon(self):
        with Daemon(env={"WATCHDOG_USEC": "1000000"}, start=False) as daemon:
            daemon.start()  # no WATCHDOG_PID: meant for any process
            daemon.wait_for("READY=1")
            for _ in range(3):
                daemon.wait_for("WATCHDOG=1", timeout=3)
            daemon.process.send_signal(signal.SIGSTOP)
            daemon.messages.clear()
            with self.assertRaises(AssertionError):
                for _ in range(3):  # one may have been on its way
                    daemon.wait_for("WATCHDOG=1", timeout=2)
            daemon.process.send_signal(signal.SIGCONT)
            daemon.wait_for("WATCHDOG=1", timeout=5)
            self.assertEqual(daemon.stop(), 0)


class PassedSockets(UbdTest):
    def start_with(self, daemon, sockets, names):
        os.mkdir(daemon.dir, 0o755)
        # By hand: LISTEN_PID must be the pid of the very process that becomes ubd.
        pid = os.fork()
        if pid == 0:
            os.dup2(daemon.log.fileno(), 1)
            os.dup2(daemon.log.fileno(), 2)
            spare = [os.dup(s.fileno()) for s in sockets]
            spare = [os.dup2(fd, 50 + i) for i, fd in enumerate(spare)]
            for i, fd in enumerate(spare):
                os.dup2(fd, 3 + i, inheritable=True)
            env = dict(daemon.env, LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(sockets)), LISTEN_FDNAMES=names)
            os.execve(UBD, [UBD, "--config", daemon.config_path, "--runtime-dir", daemon.dir], env)
        return pid

    def test_both_sockets_are_used_and_left_alone_at_the_end(self):
        with Daemon(start=False) as daemon:
            os.mkdir(os.path.join(daemon.home, "sockets"))
            rpc = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            rpc.bind(f"{daemon.home}/sockets/ubd.sock")
            rpc.listen()
            lifeline = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            lifeline.bind(f"{daemon.home}/sockets/lifeline.sock")
            lifeline.listen()
            pid = self.start_with(daemon, [rpc, lifeline], "ubd.socket:ubd-lifeline.socket")
            daemon.wait_for("READY=1")
            from rpc_harness import Client, Lifeline
            with Client(f"{daemon.home}/sockets") as client:
                status = client.call("ub.v1.Admin/GetStatus")
                self.assertEqual(status.pid, pid)
                with Lifeline(f"{daemon.home}/sockets", status.protocol) as session:
                    self.assertGreater(session.session, 0)
            self.assertFalse(os.path.exists(f"{daemon.dir}/ubd.sock"))
            os.kill(pid, signal.SIGTERM)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
            self.assertTrue(os.path.exists(f"{daemon.home}/sockets/ubd.sock"))
            self.assertTrue(os.path.exists(f"{daemon.home}/sockets/lifeline.sock"))
            rpc.close()
            lifeline.close()

    def test_wrong_socket_is_refused_by_name(self):
        with Daemon(start=False) as daemon:
            internet = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            internet.bind(("127.0.0.1", 0))
            internet.listen()
            pid = self.start_with(daemon, [internet], "strange.socket")
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 1)
            self.assertIn("strange.socket", daemon.log_text())
            internet.close()


class Reload(UbdTest):
    def test_limits_reload_and_the_rest_is_named(self):
        with Daemon(SMALL_POOL) as daemon:
            with daemon.lifeline() as lifeline, daemon.client(lifeline.token) as client:
                daemon.write_config(SMALL_POOL.replace("blocks: 32", "blocks: 16") +
                                    'quota { default_per_session: "2MiB" }\n')
                daemon.process.send_signal(signal.SIGHUP)
                daemon.wait_for("RELOADING=1")
                daemon.wait_for("READY=1")
                self.refused(grpc.StatusCode.INVALID_ARGUMENT, "NEVER_SATISFIABLE", client.call, "ub.v1.Broker/Acquire",
                             bytes=4 << 20, request_id=1)
            self.assertRegex(daemon.log_text(), r"needs_restart=.*blocks")

    def test_bad_config_changes_nothing_and_is_logged(self):
        with Daemon(SMALL_POOL) as daemon:
            daemon.write_config('pool { name: "host" blokcs: 3 }\n')
            daemon.process.send_signal(signal.SIGHUP)
            daemon.wait_for("RELOADING=1")
            daemon.wait_for("READY=1")
            self.assertEqual(daemon.client().call("ub.v1.Admin/GetStatus").state, "serving")
            self.assertIn("blokcs", daemon.log_text())


class Stop(UbdTest):
    def test_streams_are_told_why_and_new_leases_are_refused(self):
        with Daemon(SMALL_POOL + 'shutdown { grace: "3s" }\n') as daemon:
            lifeline = daemon.lifeline()
            client = daemon.client(lifeline.token)
            own = client.call("ub.v1.Broker/Watch", timeout=30)
            everything = client.call("ub.v1.Admin/WatchAll", timeout=30)
            self.assertEqual(next(own).kind, 1)
            self.assertEqual(next(everything).kind, 1)
            # Somebody takes the whole pool, somebody else waits for it: the waiter is told, too.
            client.call("ub.v1.Broker/Acquire", bytes=64 << 20, request_id=1)
            waiting = client.future("ub.v1.Broker/Acquire", bytes=2 << 20, request_id=2, wait_ms=60000, timeout=60)
            while client.call("ub.v1.Admin/GetStatus").waiters == 0:
                pass
            begin = time.monotonic()
            daemon.process.send_signal(signal.SIGTERM)
            for stream in (own, everything):
                kinds = []
                with self.assertRaises(grpc.RpcError) as caught:
                    for event in stream:
                        kinds.append(event.kind)
                self.assertIn(17, kinds)
                self.assertEqual(caught.exception.code(), grpc.StatusCode.UNAVAILABLE)
                self.assertEqual(reason_of(caught.exception)[0], "STOPPING")
                self.assertIn("SIGTERM", caught.exception.details())
            with self.assertRaises(grpc.RpcError) as caught:
                waiting.result()
            self.assertEqual(caught.exception.code(), grpc.StatusCode.UNAVAILABLE)
            self.assertEqual(reason_of(caught.exception)[0], "STOPPING")
            lifeline.close()
            client.close()
            self.assertEqual(daemon.process.wait(20), 0)
            self.assertLess(time.monotonic() - begin, 6)

    def test_client_that_never_goes_is_given_the_grace_and_no_more(self):
        with Daemon(SMALL_POOL + 'shutdown { grace: "1s" }\n') as daemon:
            with daemon.lifeline() as lifeline, daemon.client(lifeline.token) as client:
                stream = client.call("ub.v1.Broker/Watch", timeout=60)
                next(stream)
                begin = time.monotonic()
                self.assertEqual(daemon.stop(), 0)
                self.assertLess(time.monotonic() - begin, 5)

    def test_idle_connections_are_not_waited_for(self):
        with Daemon(SMALL_POOL + 'shutdown { grace: "15s" }\n') as daemon:
            clients = [daemon.client() for _ in range(8)]
            for client in clients:
                client.call("ub.v1.Admin/GetStatus")
            begin = time.monotonic()
            self.assertEqual(daemon.stop(), 0)
            self.assertLess(time.monotonic() - begin, 5)

    def test_interrupt_stops_as_well(self):
        with Daemon() as daemon:
            self.assertEqual(daemon.stop(signal.SIGINT), 0)

    def test_replaced_socket_is_not_removed(self):
        with Daemon() as daemon:
            path = f"{daemon.dir}/ubd.sock"
            os.unlink(path)
            other = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            other.bind(path)
            self.assertEqual(daemon.stop(), 0)
            self.assertTrue(os.path.exists(path))
            other.close()


if __name__ == "__main__":
    main()
