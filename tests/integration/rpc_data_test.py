"""The data path over the raw protocol: offers, queues, files and memory of the client's own, without libub."""

import fcntl
import mmap
import os
import socket
import subprocess
import sys
import tempfile
import time

import grpc

import rpc_queue as q
from rpc_harness import OTHER_UID, SMALL_POOL, THIRD_UID, Client, Daemon, Lifeline, UbdTest, as_user, main
from rpc_queue import RawQueue

INVALID, NOT_FOUND = grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND
BLOCK = 2 << 20
READ_WRITE, READ_ONLY = 1, 2


def sealed_memfd(size, seals=fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW, fill=b"\x5a"):
    fd = os.memfd_create("own", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.write(fd, fill * size)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    return fd


class DataTest(UbdTest):
    CONFIG = SMALL_POOL

    def setUp(self):
        self.daemon = Daemon(self.CONFIG)
        self.lifeline = self.daemon.lifeline()
        self.client = self.daemon.client(self.lifeline.token)
        self.folder = tempfile.TemporaryDirectory(dir=os.environ.get("UBD_TEST_DISK", "/var/tmp"))

    def tearDown(self):
        self.client.close()
        self.lifeline.close()
        self.daemon.close()
        self.folder.cleanup()

    def lease(self, blocks=1):
        """(lease message, mapped memory)"""
        lease = self.client.call("ub.v1.Broker/Acquire", bytes=blocks * BLOCK, request_id=blocks + 100).lease
        _, _, count, _, fds = self.lifeline.receive_grant()
        self.assertEqual(count, blocks)
        mapped = [mmap.mmap(fd, BLOCK) for fd in fds]
        for fd in fds:
            os.close(fd)
        return lease, mapped

    def file(self, content=b"", flags=os.O_RDWR):
        path = os.path.join(self.folder.name, f"f{time.monotonic_ns()}")
        with open(path, "wb") as out:
            out.write(content)
        return os.open(path, flags | os.O_CLOEXEC)

    def open_file(self, fd, number):
        self.lifeline.offer(number, fd)
        return self.client.call("ub.v1.Broker/OpenFile", offer=number)

    def alive(self):
        self.assertEqual(self.client.call("ub.v1.Admin/GetStatus").state, "serving")


class Queues(DataTest):
    def test_nops_come_back_in_any_number(self):
        queue = RawQueue(self.lifeline, self.client)
        for batch in range(20):
            for i in range(64):
                queue.submit(user_data=batch * 64 + i)
            done = [queue.completion() for _ in range(64)]
            self.assertEqual(sorted(c["user_data"] for c in done), list(range(batch * 64, batch * 64 + 64)))
            self.assertTrue(all(c["error"] == q.OK for c in done))
        listed = self.client.call("ub.v1.Admin/ListQueues").queues
        self.assertEqual([(l.id, l.completed, l.in_flight) for l in listed], [(queue.id, 1280, 0)])
        self.assertEqual((listed[0].pid, listed[0].uid, listed[0].state), (os.getpid(), os.getuid(), "open"))

    def test_a_daemon_that_slept_wakes_up(self):
        queue = RawQueue(self.lifeline, self.client)
        for i in range(5):
            end = time.monotonic() + 10
            while queue.word(q.DAEMON_SLEEP) != 1 and time.monotonic() < end:
                time.sleep(0.001)
            self.assertEqual(queue.word(q.DAEMON_SLEEP), 1)
            self.assertEqual(queue.run(user_data=i)["user_data"], i)

    def test_nonsense_is_answered_with_what_is_wrong(self):
        lease, _ = self.lease()
        queue = RawQueue(self.lifeline, self.client)
        self.assertEqual(queue.run(op=99)["error"], q.BAD_ENTRY)
        self.assertEqual(queue.run(op=q.NOP, reserved=1)["error"], q.BAD_ENTRY)
        self.assertEqual(queue.run(op=q.COPY, lease=12345, length=1)["error"], q.NO_SUCH_LEASE)
        here = {"lease": lease.id, "generation": lease.generation, "target_lease": lease.id, "target": lease.generation}
        self.assertEqual(queue.run(op=q.COPY, **dict(here, generation=lease.generation + 1), length=1)["error"],
                         q.STALE_GENERATION)
        self.assertEqual(queue.run(op=q.COPY, **here, offset=BLOCK, length=1)["error"], q.OUT_OF_RANGE)
        self.assertEqual(queue.run(op=q.COPY, **here, offset=(1 << 64) - 1, length=2)["error"], q.OUT_OF_RANGE)
        self.assertEqual(queue.run(op=q.READ, lease=lease.id, generation=lease.generation, target=77, length=1)["error"],
                         q.NO_SUCH_FILE)
        self.assertEqual(queue.run()["error"], q.OK)

    def test_impossible_indices_break_that_queue_only(self):
        good, bad = RawQueue(self.lifeline, self.client), RawQueue(self.lifeline, self.client)
        bad.set_word(q.SQ_TAIL, 1 << 31)
        bad.ring_bell()
        end = time.monotonic() + 10
        while bad.word(q.STATE) != q.BROKEN and time.monotonic() < end:
            time.sleep(0.001)
        self.assertEqual(bad.word(q.STATE), q.BROKEN)
        self.assertEqual(good.run(user_data=5)["user_data"], 5)
        problems = self.client.call("ub.v1.Admin/GetStatus").problem
        self.assertTrue(any("1 queues are broken" in p for p in problems), problems)
        self.client.call("ub.v1.Broker/CloseQueue", queue=bad.id)
        self.refused(NOT_FOUND, "NO_SUCH_QUEUE", self.client.call, "ub.v1.Broker/CloseQueue", queue=bad.id)

    def test_limits_and_required_fields(self):
        refused = lambda reason, field, **fields: self.assertEqual(self.refused(
            INVALID, reason, self.client.call, "ub.v1.Broker/OpenQueue", **fields)["field"], field)
        refused("MISSING_FIELD", "sq_entries")
        refused("BAD_FIELD", "sq_entries", sq_entries=100)
        refused("BAD_FIELD", "cq_entries", sq_entries=64, cq_entries=32)
        for _ in range(64):
            RawQueue(self.lifeline, self.client, entries=2).close()
        details = self.refused(grpc.StatusCode.RESOURCE_EXHAUSTED, "TOO_MANY_QUEUES", self.client.call,
                               "ub.v1.Broker/OpenQueue", sq_entries=2)
        self.assertEqual(details["limit"], "64")

    def test_a_client_that_never_reads_its_lifeline_gets_no_more_queues(self):
        with self.daemon.lifeline() as lifeline, self.daemon.client(lifeline.token) as client:
            def until_refused():
                for _ in range(1000):
                    queue = client.call("ub.v1.Broker/OpenQueue", sq_entries=2).queue
                    client.call("ub.v1.Broker/CloseQueue", queue=queue)
            self.refused(grpc.StatusCode.RESOURCE_EXHAUSTED, "TOO_MANY_WAITERS", until_refused)
        self.alive()


class Files(DataTest):
    def test_bytes_go_to_a_file_and_back(self):
        fd = self.file()
        facts = self.open_file(fd, 1)
        if facts.file == 0:
            self.skipTest(f"the daemon does no I/O on {facts.file_system} ({self.folder.name})")
        self.assertTrue(facts.readable and facts.writable)
        lease, (memory,) = self.lease()
        pattern = os.urandom(BLOCK)
        memory[:] = pattern
        queue = RawQueue(self.lifeline, self.client)
        here = {"lease": lease.id, "generation": lease.generation, "target": facts.file, "length": BLOCK}
        wrote = queue.run(op=q.WRITE, **here)
        self.assertEqual((wrote["error"], wrote["bytes"]), (q.OK, BLOCK))
        self.assertIn(wrote["path"], (1, 2))
        self.assertEqual(queue.run(op=q.FSYNC, target=facts.file)["error"], q.OK)
        self.assertEqual(os.pread(fd, BLOCK, 0), pattern)
        memory[:] = bytes(BLOCK)
        read = queue.run(op=q.READ, **here)
        self.assertEqual((read["error"], read["bytes"]), (q.OK, BLOCK))
        self.assertEqual(memory[:], pattern)
        staged = queue.run(op=q.READ, policy=3, **here)
        self.assertEqual((staged["error"], staged["path"], staged["reason"]), (q.OK, 2, 1))
        counts = {(c.path, c.reason, getattr(c, "from")): c.bytes
                  for c in self.client.call("ub.v1.Admin/GetPath").counts}
        self.assertEqual(counts[("staged", "forced", "file")], BLOCK)
        self.client.call("ub.v1.Broker/CloseFile", file=facts.file)
        self.assertEqual(queue.run(op=q.READ, **here)["error"], q.NO_SUCH_FILE)

    def test_a_read_only_file_is_not_written(self):
        fd = self.file(b"x" * 4096, os.O_RDONLY)
        facts = self.open_file(fd, 1)
        if facts.file == 0:
            self.skipTest(f"the daemon does no I/O on {facts.file_system}")
        lease, _ = self.lease()
        queue = RawQueue(self.lifeline, self.client)
        self.assertEqual(queue.run(op=q.WRITE, lease=lease.id, generation=lease.generation, target=facts.file,
                                   length=4096)["error"], q.READ_ONLY)

    def test_what_is_no_file_is_refused(self):
        pipe = os.pipe()
        pair = socket.socketpair()
        path = os.open(self.folder.name, os.O_PATH | os.O_CLOEXEC)
        folder = os.open(self.folder.name, os.O_RDONLY | os.O_CLOEXEC)
        null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
        for number, fd in enumerate((pipe[0], pair[0].fileno(), path, folder, null), 1):
            self.lifeline.offer(number, fd)
            self.refused(INVALID, "BAD_FILE", self.client.call, "ub.v1.Broker/OpenFile", offer=number)
        for end in pair:
            end.close()
        self.alive()

    def test_offers_that_never_come_or_twice(self):
        self.refused(INVALID, "MISSING_FIELD", self.client.call, "ub.v1.Broker/OpenFile")
        started = time.monotonic()
        with self.assertRaises(grpc.RpcError) as caught:
            self.client.call("ub.v1.Broker/OpenFile", offer=5, timeout=0.5)
        self.assertIn(caught.exception.code(), (NOT_FOUND, grpc.StatusCode.DEADLINE_EXCEEDED))
        self.assertLess(time.monotonic() - started, 5)
        fd = self.file()
        self.lifeline.offer(6, fd)
        self.client.call("ub.v1.Broker/OpenFile", offer=6)
        with self.assertRaises(grpc.RpcError):
            self.client.call("ub.v1.Broker/OpenFile", offer=6, timeout=0.5)

    def test_hostile_offers_end_that_session_only(self):
        fd = self.file()
        for number, fds in ((0, [fd]), (1, []), (1, [fd, fd]), (1, [fd] * 253)):
            with self.daemon.lifeline() as lifeline:
                lifeline.offer(number, *fds)
                self.assertEqual(lifeline.receive(), (b"", []), f"offer {number} with {len(fds)} descriptors")
        self.alive()

    def test_a_flood_of_offers_keeps_the_daemon_small(self):
        status = lambda: self.client.call("ub.v1.Admin/GetStatus")
        before = status().fds_open
        fd = self.file()
        with self.daemon.lifeline() as lifeline:
            for number in range(1, 20001):
                lifeline.offer(number, fd)
            self.assertLess(status().fds_open, before + 200)
        self.alive()


class SilentFileServer(DataTest):
    """A FUSE file whose server never answers: nobody who touches it comes back, not even from close()."""

    def setUp(self):
        super().setUp()
        self.mount = tempfile.TemporaryDirectory()
        os.chmod(self.mount.name, 0o755)
        self.server = subprocess.Popen([os.environ["SILENT_FUSE"], self.mount.name], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, text=True)
        said = self.server.stdout.readline()
        if said != "ready\n":
            self.skipTest(said.strip())

    def tearDown(self):
        self.server.terminate()  # whoever waits for it goes on
        self.server.wait(20)
        self.server.stdin.close()
        self.server.stdout.close()
        super().tearDown()
        self.mount.cleanup()

    def offender(self, offers):
        """A process of another user that offers the file and waits; answers once it has."""
        self.daemon.open_to_all()
        started, alive = os.pipe(), os.pipe()
        protocol = self.daemon.protocol()
        pid = os.fork()
        if pid == 0:
            try:
                fd = os.open(self.mount.name + "/file", os.O_RDONLY | os.O_CLOEXEC)
                os.close(alive[1])
                os.setresuid(OTHER_UID, OTHER_UID, OTHER_UID)
                lifeline = Lifeline(self.daemon.dir, protocol)
                for number in range(1, offers + 1):
                    lifeline.offer(number, fd)
                os.write(started[1], b"o")
                os.read(alive[0], 1)
            finally:
                os._exit(0)
        os.close(alive[0])
        self.addCleanup(os.waitpid, pid, 0)
        self.addCleanup(os.close, alive[1])
        self.assertEqual(os.read(started[0], 1), b"o")

    def test_the_client_is_told_to_read_it_by_itself(self):
        fd = os.open(self.mount.name + "/file", os.O_RDONLY | os.O_CLOEXEC)
        facts = self.open_file(fd, 1)
        self.assertEqual((facts.file, facts.path_reason), (0, 4))
        self.assertTrue(facts.file_system.startswith("fuse"), facts.file_system)
        self.lifeline.offer(2, fd)
        self.refused(INVALID, "BAD_MEMORY", self.client.call, "ub.v1.Broker/RegisterMemory", offer=2, offset=0,
                     bytes=4096, access=READ_WRITE)
        self.alive()

    def test_others_are_served_and_the_daemon_stops_in_time(self):
        self.offender(100)
        for number in range(1, 11):
            facts = self.open_file(self.file(b"x" * 4096), number)
            self.assertNotEqual(facts.file_system, "")
            self.lifeline.offer(100 + number, sealed_memfd(4096))
            self.client.call("ub.v1.Broker/RegisterMemory", offer=100 + number, offset=0, bytes=4096, access=READ_ONLY)
        started = time.monotonic()
        self.assertEqual(self.daemon.stop(), 0)
        self.assertLess(time.monotonic() - started, 12)
        self.daemon.start()  # in the same runtime directory
        self.daemon.wait_for("READY=1")
        with self.daemon.client() as client:
            self.assertEqual(client.call("ub.v1.Admin/GetStatus").state, "serving")


class OwnMemory(DataTest):
    def register(self, fd, number, **fields):
        self.lifeline.offer(number, fd)
        return self.client.call("ub.v1.Broker/RegisterMemory", offer=number, **fields)

    def test_a_memfd_becomes_a_lease_and_is_copied_from(self):
        fd = sealed_memfd(1 << 20)
        own = self.register(fd, 1, offset=0, bytes=1 << 20, access=READ_WRITE).lease
        self.assertEqual((own.pool, own.block_bytes, len(own.ub_addr)), ("own", 1 << 20, 1))
        lease, (memory,) = self.lease()
        queue = RawQueue(self.lifeline, self.client)
        copied = queue.run(op=q.COPY, lease=own.id, generation=own.generation, target_lease=lease.id,
                           target=lease.generation, length=1 << 20)
        self.assertEqual((copied["error"], copied["bytes"]), (q.OK, 1 << 20))
        self.assertEqual(memory[:1 << 20], b"\x5a" * (1 << 20))
        listed = [l for l in self.client.call("ub.v1.Admin/ListLeases").leases if l.pool == "own"]
        self.assertEqual([l.bytes for l in listed], [1 << 20])
        self.client.call("ub.v1.Broker/Release", lease=own.id)
        self.assertEqual(queue.run(op=q.COPY, lease=own.id, generation=own.generation, target_lease=lease.id,
                                   target=lease.generation, length=1)["error"], q.NO_SUCH_LEASE)

    def test_what_cannot_be_registered_is_refused_with_what_it_would_have_to_be(self):
        size = 1 << 20
        unsealed = os.memfd_create("own", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.write(unsealed, b"x" * size)
        sparse = os.memfd_create("own", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(sparse, size)
        fcntl.fcntl(sparse, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
        good = sealed_memfd(size)
        cases = [(unsealed, 0, size), (sparse, 0, size), (self.file(b"x" * size), 0, size),
                 (os.open("/dev/zero", os.O_RDWR | os.O_CLOEXEC), 0, size), (good, size, 4096), (good, 4096, size)]
        for number, (fd, offset, length) in enumerate(cases, 1):
            self.lifeline.offer(number, fd)
            details = self.refused(INVALID, "BAD_MEMORY", self.client.call, "ub.v1.Broker/RegisterMemory",
                                   offer=number, offset=offset, bytes=length, access=READ_WRITE)
            self.assertIn("field", details)
        self.alive()

    def test_it_counts_for_the_quota_and_ends_with_the_session(self):
        self.daemon.write_config(SMALL_POOL + 'quota { default_per_uid: "3MiB" }\n')
        self.daemon.process.send_signal(1)
        self.daemon.wait_for("READY=1")
        self.register(sealed_memfd(2 << 20), 1, offset=0, bytes=2 << 20, access=READ_ONLY)
        self.lifeline.offer(2, sealed_memfd(2 << 20))
        self.refused(grpc.StatusCode.RESOURCE_EXHAUSTED, "QUOTA_EXCEEDED", self.client.call,
                     "ub.v1.Broker/RegisterMemory", offer=2, offset=0, bytes=2 << 20, access=READ_ONLY)
        self.lifeline.close()
        end = time.monotonic() + 10
        with self.daemon.client() as admin:
            while admin.call("ub.v1.Admin/ListLeases").leases and time.monotonic() < end:
                time.sleep(0.01)
            self.assertFalse(admin.call("ub.v1.Admin/ListLeases").leases)


def as_plain_user(runtime_dir, protocol):
    """Runs in a process of another uid than the daemon's and the queue's owner: 0 when all is as it should be."""
    with Client(runtime_dir) as client:
        assert not client.call("ub.v1.Admin/ListQueues").queues
        assert client.call("ub.v1.Admin/GetPath").policy == "prefer-direct"
        try:
            client.call("ub.v1.Admin/SetPath", policy="staged-only")
            return 1
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.PERMISSION_DENIED, error
    with Lifeline(runtime_dir, protocol) as lifeline, Client(runtime_dir, lifeline.token) as client:
        queue = RawQueue(lifeline, client, entries=4)
        assert queue.run(user_data=3)["user_data"] == 3
        listed = client.call("ub.v1.Admin/ListQueues").queues
        assert [(l.id, l.uid) for l in listed] == [(queue.id, os.getuid())], listed
    return 0


class Users(DataTest):
    def test_others_see_their_own_queues_and_may_not_set_the_path(self):
        self.daemon.open_to_all()
        RawQueue(self.lifeline, self.client)
        protocol = str(self.daemon.protocol())
        for uid in (OTHER_UID, THIRD_UID):
            def user():
                os.execv("/usr/bin/python3", ["python3", __file__, "--as-user", self.daemon.dir, protocol])
            self.assertEqual(as_user(uid, user), 0)

    def test_the_path_is_set_and_a_reload_changes_what_the_file_changes(self):
        path = lambda: self.client.call("ub.v1.Admin/GetPath")
        self.refused(INVALID, "MISSING_FIELD", self.client.call, "ub.v1.Admin/SetPath")
        self.refused(INVALID, "BAD_FIELD", self.client.call, "ub.v1.Admin/SetPath", policy="fast")
        self.assertEqual(self.client.call("ub.v1.Admin/SetPath", policy="staged-only").policy, "staged-only")
        self.daemon.write_config(SMALL_POOL + 'path { min_direct_storage: "8KiB" }\nengine { depth: 7 }\n')
        self.daemon.process.send_signal(1)
        self.daemon.wait_for("READY=1")
        self.assertEqual((path().policy, path().min_direct_bytes), ("staged-only", 8192))
        self.assertIn("engine.depth", self.daemon.log_text())
        self.daemon.write_config(SMALL_POOL + "path { policy: DIRECT_ONLY }\n")
        self.daemon.process.send_signal(1)
        self.daemon.wait_for("READY=1")
        self.assertEqual((path().policy, path().min_direct_bytes), ("direct-only", 256 << 10))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--as-user"]:
        sys.exit(as_plain_user(sys.argv[2], int(sys.argv[3])))
    main()
