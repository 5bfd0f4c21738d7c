"""Memory of a client's own over the raw protocol, and what other users see of queues and paths."""

import fcntl
import os
import sys
import time

import grpc

import rpc_queue as q
from rpc_data_harness import DataTest, INVALID, READ_ONLY, READ_WRITE, sealed_memfd
from rpc_harness import OTHER_UID, SMALL_POOL, THIRD_UID, Client, Lifeline, as_user, main
from rpc_queue import RawQueue


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
