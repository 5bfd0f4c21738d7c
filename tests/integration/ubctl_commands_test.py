"""Every command of ubctl, plain and with --json, against a daemon that answers."""

import json
import os
import subprocess
import tempfile

from ubctl_harness import MIB, UBCTL, Daemon, Hold, Ubctl, UbctlTest, UbdTest, await_true, main, rest_of, signal

POOL_KEYS = {"name", "kind", "block_bytes", "page_bytes", "numa_node", "blocks_total", "blocks_free", "blocks_leased",
             "blocks_cached", "blocks_draining", "blocks_recycling", "blocks_retired"}
LEASE_KEYS = {"id", "pool", "bytes", "blocks", "generation", "holders", "age", "in_flight"}


class Commands(UbctlTest):
    def test_listings_have_a_header_no_trailing_spaces_and_one_document(self):
        for command, header in (("pools", "POOL "), ("blocks", "BLOCK "), ("leases", "LEASE "), ("sessions", "SESSION ")):
            done = self.ubctl.run(command)
            self.assertEqual((done.returncode, done.stderr), (0, ""), command)
            self.assertTrue(done.stdout.lstrip().startswith(header), done.stdout)
            for line in done.stdout.splitlines():
                self.assertEqual(line, line.rstrip(), command)
            document = self.ubctl.json(command)
            self.assertEqual(list(document), [command])
        self.assertTrue(self.ubctl.run("leases").stdout.endswith("\nnone\n"))

    def test_pools_document_has_the_keys_that_monitoring_needs(self):
        pool = self.ubctl.pool()
        self.assertLessEqual(POOL_KEYS, set(pool))
        self.assertEqual((pool["block_bytes"], pool["page_bytes"], pool["blocks_total"], pool["numa_node"]), (2 * MIB, 4096, 32, None))

    def test_leases_document_names_its_holder(self):
        with Hold(self.ubctl, "3MiB") as hold:
            lease, = self.ubctl.json("leases")["leases"]
            self.assertLessEqual(LEASE_KEYS, set(lease))
            self.assertEqual((lease["id"], lease["bytes"], lease["blocks"]), (hold.grant["lease"], 4 * MIB, 2))
            self.assertEqual([(h["pid"], h["uid"], h["access"]) for h in lease["holders"]], [(hold.process.pid, 0, "rw")])
            self.assertIsInstance(lease["age"], float)
            self.assertIn(f"pid {hold.process.pid} uid 0 rw", self.ubctl.run("leases").stdout)
            held = [block for block in self.ubctl.json("blocks", "--pool", "host")["blocks"] if block["state"] == "leased"]
            self.assertEqual([block["lease"] for block in held], [lease["id"]] * 2)
            session, = self.ubctl.json("sessions")["sessions"]
            self.assertEqual((session["pid"], session["leases"], session["bytes"]), (hold.process.pid, 1, 4 * MIB))
            self.assertEqual(hold.end(signal.SIGTERM)[0], 0)

    def test_unknown_pool_is_a_typed_error_and_still_one_document(self):
        error = self.ubctl.json("blocks", "--pool", "nosuch", code=1)["error"]
        self.assertEqual((error["code"], error["reason"]), ("NOT_FOUND", "NO_SUCH_POOL"))
        error = self.ubctl.json("lease", "hold", "1TiB", code=1)["error"]
        self.assertEqual(error["reason"], "NEVER_SATISFIABLE")
        error = self.ubctl.json("lease", "revoke", "4711", code=1)["error"]
        self.assertEqual((error["code"], error["reason"]), ("NOT_FOUND", "NO_SUCH_LEASE"))

    def test_status_says_what_is_wrong_first_and_that_isolation_is_advisory_for_root(self):
        done = self.ubctl.run("status")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout.splitlines()[0], r"^ubd \S+ is serving(, no problems|; problems:)$")
        self.assertIn("advisory for you", done.stdout)
        status = self.ubctl.json("status")
        self.assertEqual((status["pid"], status["state"], status["isolation_advisory"]), (self.daemon.process.pid, "serving", True))

    def test_version_names_both_sides(self):
        version = self.ubctl.json("version")
        self.assertEqual(version["ubctl"], version["daemon"])
        self.assertTrue(version["compatible"])
        self.assertIn("\nubd   ", self.ubctl.run("version").stdout)

    def test_drain_refuses_grants_and_off_resumes_them(self):
        self.addCleanup(self.ubctl.run, "drain", "--off")
        self.assertEqual(self.ubctl.json("drain"), {"draining": True, "leases_left": 0})
        self.assertEqual(self.ubctl.json("lease", "hold", "2MiB", code=1)["error"]["reason"], "DRAINING")
        self.assertIn("ubctl drain --off", self.ubctl.run("status").stdout)
        self.assertEqual(self.ubctl.json("drain", "--off")["draining"], False)
        with Hold(self.ubctl, "2MiB") as hold:
            self.assertEqual(hold.end(signal.SIGINT)[0], 0)

    def test_drain_wait_returns_when_the_last_lease_is_gone(self):
        self.addCleanup(self.ubctl.run, "drain", "--off")
        with Hold(self.ubctl, "2MiB") as first, Hold(self.ubctl, "2MiB") as second:
            drain = self.ubctl.start("drain", "--wait", "--json")
            self.assertIn("waiting for 2 leases", drain.stderr.readline())
            first.end(signal.SIGTERM)
            self.assertIsNone(drain.poll())
            second.end(signal.SIGTERM)
            out, _ = rest_of(drain)
        self.assertEqual((drain.returncode, json.loads(out)), (0, {"draining": True, "leases_left": 0}))

    def test_drain_wait_that_is_interrupted_says_that_draining_goes_on(self):
        self.addCleanup(self.ubctl.run, "drain", "--off")
        with Hold(self.ubctl, "2MiB"):
            drain = self.ubctl.start("drain", "--wait", "--json")
            drain.stderr.readline()
            drain.send_signal(signal.SIGINT)
            out, errors = rest_of(drain)
            self.assertEqual((drain.returncode, json.loads(out)["error"]["code"]), (1, "CANCELLED"))
            self.assertIn("drain --off", errors)

    def test_watch_document_is_one_array_closed_by_a_signal(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            watch = self.ubctl.start("watch", "--json")
            first = watch.stdout.readline() + watch.stdout.readline()
            with Hold(self.ubctl, "2MiB") as hold:
                hold.end(signal.SIGTERM)
            # The hold's end is an event, so all before it are there too.
            seen = first
            while "SESSION_CLOSED" not in seen:
                seen += watch.stdout.readline()
            watch.send_signal(number)
            rest, _ = rest_of(watch)
            self.assertEqual(watch.returncode, 0)
            kinds = [event["kind"] for event in json.loads(seen + rest)]
            self.assertEqual(kinds[0], "WATCHING")
            self.assertLess(kinds.index("GRANTED"), kinds.index("RELEASED"))

    def test_plain_watch_has_a_line_per_event(self):
        watch = self.ubctl.start("watch")
        self.assertRegex(watch.stdout.readline(), r"^TIME +EVENT +LEASE +SESSION")
        self.assertIn("WATCHING", watch.stdout.readline())
        watch.send_signal(signal.SIGHUP)
        rest_of(watch)
        self.assertEqual(watch.returncode, 0)

    def test_top_draws_plainly_without_a_terminal(self):
        with Hold(self.ubctl, "6MiB") as hold:
            done = self.ubctl.run("top", "--count", "2", "--interval", "50ms")
            self.assertEqual(done.returncode, 0)
            self.assertNotIn("\x1b", done.stdout)
            self.assertEqual(done.stdout.count("POOL  USE"), 2)
            self.assertIn(str(hold.process.pid), done.stdout)
            pictures = self.ubctl.json("top", "--count", "2", "--interval", "50ms")
        self.assertEqual([picture["granted_per_s"] for picture in pictures], [None, 0])
        self.assertEqual(pictures[0]["sessions"][0]["bytes"], 6 * MIB)

    def test_bench_acquire_measures_or_says_why_not(self):
        report = self.ubctl.json("bench", "acquire", "--quick")
        figures = {figure["name"]: figure for figure in report["figures"]}
        self.assertEqual(list(figures), ["slot_take_return", "slot_take_return_two_threads", "lease_warm", "lease_cold", "rpc_null",
                                         "allocate_populate_pin_4k", "allocate_populate_pin_2m", "reclaim_after_kill"])
        for name in ("slot_take_return", "lease_warm", "lease_cold", "rpc_null"):
            self.assertGreater(figures[name]["p50_ns"], 0, figures[name])
            self.assertGreaterEqual(figures[name]["p99_ns"], figures[name]["p50_ns"])
        if not os.environ.get("UBD_SANITIZE"):  # shadow memory faults on its own
            self.assertEqual(figures["lease_warm"]["page_faults"], 0)
        for figure in figures.values():
            if figure["p50_ns"] is None:
                self.assertRegex(figure["note"], r"^not measured: .")
        self.assertIn("lease_cold/rpc_null", [ratio["name"] for ratio in report["ratios"]])
        await_true(lambda: self.ubctl.pool()["blocks_free"] == 32, "the bench's memory is back")

    def test_completion_offers_pools_leases_and_commands(self):
        with tempfile.NamedTemporaryFile("w", suffix=".bash") as script, Hold(self.ubctl, "2MiB") as hold:
            script.write(self.ubctl.run("completion", "bash").stdout)
            script.flush()

            def complete(*words):
                quoted = " ".join(f"'{word}'" for word in ("ubctl", *words))
                ask = (f"source {script.name}; ubctl() {{ '{UBCTL}' \"$@\"; }}; COMP_WORDS=({quoted}); "
                       f"COMP_CWORD={len(words)}; _ubctl; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
                done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, timeout=20)
                self.assertEqual(done.stderr, "")
                return done.stdout.split()

            where = ("--runtime-dir", self.daemon.dir)
            self.assertEqual(complete("pool"), ["pools"])
            self.assertEqual(complete(*where, "lease", ""), ["hold", "revoke", "--runtime-dir", "--timeout", "--json", "--help"])
            self.assertEqual(complete(*where, "blocks", "--pool", ""), ["host"])
            self.assertIn(str(hold.grant["lease"]), complete(*where, "lease", "revoke", ""))
            self.assertEqual(complete("--runtime-dir", "/nonexistent", "blocks", "--pool", ""), [], "silent without a daemon")


class DaemonGoes(UbdTest):
    def test_watch_closes_its_array_and_says_3(self):
        for number in (signal.SIGTERM, signal.SIGKILL):
            with Daemon() as daemon:
                watch = Ubctl(daemon.dir).start("watch", "--json")
                seen = watch.stdout.readline() + watch.stdout.readline()
                daemon.stop(number)
                rest, errors = rest_of(watch)
                self.assertEqual(watch.returncode, 3, errors)
                self.assertEqual(json.loads(seen + rest)[0]["kind"], "WATCHING")

    def test_top_leaves_with_3(self):
        with Daemon() as daemon:
            top = Ubctl(daemon.dir).start("top", "--interval", "1h")
            top.stdout.readline()
            daemon.stop(signal.SIGKILL)
            rest_of(top)
            self.assertEqual(top.returncode, 3)


if __name__ == "__main__":
    main()
