"""The data path over the raw protocol: offers, queues, files and memory of the client's own, without libub."""

import os
import socket
import time

import grpc

import rpc_queue as q
from rpc_data_harness import BLOCK, DataTest, INVALID, NOT_FOUND, READ_ONLY
from rpc_harness import main
from rpc_queue import RawQueue


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


if __name__ == "__main__":
    main()
