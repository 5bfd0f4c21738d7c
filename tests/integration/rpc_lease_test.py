"""Leases over the raw protocol: a lifeline by hand and a stock gRPC client, as a hostile client might use them."""

import os
import signal
import sys
import time

import grpc

from rpc_harness import OTHER_UID, Client, Daemon, UbdTest, as_user, main, reason_of

BLOCK = 2 << 20


class Leases(UbdTest):
    def setUp(self):
        self.daemon = Daemon()
        self.lifeline = self.daemon.lifeline()
        self.client = self.daemon.client(self.lifeline.token)

    def tearDown(self):
        self.client.close()
        self.lifeline.close()
        self.daemon.close()

    def acquire(self, **fields):
        return self.client.call("ub.v1.Broker/Acquire", **fields).lease

    def pool(self):
        return self.client.call("ub.v1.Admin/ListPools").pools[0]

    def wait_until(self, what, holds, timeout=10):
        deadline = time.monotonic() + timeout
        while not holds():
            self.assertLess(time.monotonic(), deadline, f"{what}; log:\n{self.daemon.log_text()}")
            time.sleep(0.01)

    def test_acquire_delivers_fds_before_the_answer(self):
        lease = self.acquire(bytes=3 * BLOCK - 1, request_id=1)
        self.assertEqual((lease.pool, lease.block_bytes, lease.page_bytes, lease.access), ("host", BLOCK, 4096, 1))
        self.assertEqual(len(lease.ub_addr), 3)
        self.lifeline.socket.setblocking(False)  # it is there already
        got, first, count, total, fds = self.lifeline.receive_grant()
        self.assertEqual((got, first, count, total, len(fds)), (lease.id, 0, 3, 3, 3))
        self.assertEqual([os.fstat(fd).st_size for fd in fds], [BLOCK] * 3)
        for fd in fds:
            os.close(fd)
        listed = self.client.call("ub.v1.Admin/ListLeases").leases
        self.assertEqual([(l.id, l.blocks, l.bytes) for l in listed], [(lease.id, 3, 3 * BLOCK)])
        self.client.call("ub.v1.Broker/Release", lease=lease.id)
        self.wait_until("3 blocks come back", lambda: self.pool().blocks_free == 32)
        self.refused(grpc.StatusCode.NOT_FOUND, "NO_SUCH_LEASE", self.client.call, "ub.v1.Broker/Release",
                     lease=lease.id)

    def test_same_request_id_gives_one_lease(self):
        first = self.acquire(bytes=BLOCK, request_id=5)
        again = self.acquire(bytes=BLOCK, request_id=5)
        self.assertEqual(first.id, again.id)
        self.assertEqual(self.pool().blocks_leased, 1)

    def test_cancelled_waiter_takes_nothing(self):
        whole = self.acquire(bytes=32 * BLOCK, request_id=1)
        waiting = self.client.future("ub.v1.Broker/Acquire", bytes=BLOCK, request_id=2, wait_ms=60000)
        self.wait_until("a waiter", lambda: self.pool().waiters == 1)
        waiting.cancel()
        self.wait_until("the waiter is forgotten", lambda: self.pool().waiters == 0)
        self.client.call("ub.v1.Broker/Release", lease=whole.id)
        _, _, _, _, fds = self.lifeline.receive_grant()
        for fd in fds:
            os.close(fd)
        self.wait_until("all blocks come back", lambda: self.pool().blocks_free == 32)

    def test_deadlines_that_pass_leave_no_lease_behind(self):
        # Whatever moment the client gives up at, release by request id leaves nothing.
        for i in range(200):
            request = 1000 + i
            try:
                self.client.call("ub.v1.Broker/Acquire", bytes=BLOCK, request_id=request, timeout=0.0001 * (i % 20))
            except grpc.RpcError as error:
                self.assertEqual(error.code(), grpc.StatusCode.DEADLINE_EXCEEDED)
            self.client.call("ub.v1.Broker/Release", request_id=request)
            self.lifeline.socket.setblocking(False)
            try:
                while True:
                    for fd in self.lifeline.receive()[1]:
                        os.close(fd)
            except BlockingIOError:
                pass
        self.wait_until("nothing is leased", lambda: self.pool().blocks_free == 32)

    def test_dead_session_ends_its_calls_and_its_watch(self):
        watch = self.client.call("ub.v1.Broker/Watch", timeout=30)
        self.assertEqual(next(watch).kind, 1)
        self.acquire(bytes=32 * BLOCK, request_id=1)
        waiting = self.client.future("ub.v1.Broker/Acquire", bytes=BLOCK, request_id=2, wait_ms=60000)
        self.wait_until("a waiter", lambda: self.pool().waiters == 1)
        self.lifeline.close()
        with self.assertRaises(grpc.RpcError) as caught:
            waiting.result(timeout=10)
        self.assertEqual(reason_of(caught.exception)[0], "SESSION_ENDED")
        with self.assertRaises(grpc.RpcError) as caught:
            for _ in watch:
                pass
        self.assertEqual(caught.exception.code(), grpc.StatusCode.ABORTED)
        self.assertEqual(reason_of(caught.exception)[0], "SESSION_ENDED")
        self.refused(grpc.StatusCode.UNAUTHENTICATED, "NO_SESSION", self.client.call, "ub.v1.Broker/Ping")
        self.wait_until("its memory comes back", lambda: self.pool().blocks_free == 32)

    def test_share_and_attach_by_ticket_once(self):
        lease = self.acquire(bytes=2 * BLOCK, request_id=1)
        share = self.client.call("ub.v1.Broker/Share", lease=lease.id, access=2, uid=os.getuid())
        self.assertTrue(share.read_only_advisory)  # root cannot be held to it
        with self.daemon.lifeline() as other, self.daemon.client(other.token) as client:
            attached = client.call("ub.v1.Broker/Attach", ticket=share.ticket).lease
            self.assertEqual((attached.id, attached.access), (lease.id, 2))
            _, _, count, _, fds = other.receive_grant()
            self.assertEqual(count, 2)
            for fd in fds:
                os.close(fd)
            self.refused(grpc.StatusCode.NOT_FOUND, "NO_SUCH_TICKET", client.call, "ub.v1.Broker/Attach",
                         ticket=share.ticket)
            # A holder of a share may not release for everybody.
            client.call("ub.v1.Broker/Release", lease=lease.id)
        self.assertEqual(len(self.client.call("ub.v1.Admin/ListLeases").leases), 1)

    def test_foreign_leases_are_not_found(self):
        lease = self.acquire(bytes=BLOCK, request_id=1)
        with self.daemon.lifeline() as other, self.daemon.client(other.token) as client:
            for guess in (lease.id, lease.id + 1, lease.id - 1 or 99):
                self.refused(grpc.StatusCode.NOT_FOUND, "NO_SUCH_LEASE", client.call, "ub.v1.Broker/Release",
                             lease=guess)
        self.assertEqual(self.pool().blocks_leased, 1)

    def test_stolen_token_is_worthless_to_another_user(self):
        os.chmod(self.daemon.dir, 0o755)
        os.chmod(f"{self.daemon.dir}/ubd.sock", 0o666)

        def thief():
            os.execv("/usr/bin/python3", ["python3", __file__, "--thief", self.daemon.dir, self.lifeline.token])

        self.assertEqual(as_user(OTHER_UID, thief), 0)
        self.client.call("ub.v1.Broker/Ping")

    def test_revoke_reaches_the_owner_as_an_event(self):
        watch = self.client.call("ub.v1.Broker/Watch", timeout=30)
        self.assertEqual(next(watch).kind, 1)
        lease = self.acquire(bytes=BLOCK, request_id=1)
        self.client.call("ub.v1.Admin/RevokeLease", lease=lease.id, reason="test")
        event = next(event for event in watch if event.kind == 8)
        self.assertEqual(event.lease, lease.id)
        watch.cancel()

    def test_drain_refuses_and_resumes(self):
        self.client.call("ub.v1.Admin/SetDrain", drain=True)
        self.assertEqual(self.client.call("ub.v1.Admin/GetStatus").state, "draining")
        self.assertTrue(self.client.call("ub.v1.Admin/GetStatus").problem)
        self.refused(grpc.StatusCode.UNAVAILABLE, "DRAINING", self.client.call, "ub.v1.Broker/Acquire", bytes=1,
                     request_id=1)
        self.client.call("ub.v1.Admin/SetDrain", drain=False)
        self.acquire(bytes=1, request_id=2)

    def test_too_many_watches_are_refused(self):
        watches = [self.client.call("ub.v1.Broker/Watch", timeout=60) for _ in range(4)]
        for watch in watches:
            next(watch)
        self.refused(grpc.StatusCode.RESOURCE_EXHAUSTED, "TOO_MANY_WAITERS", self.client.call, "ub.v1.Broker/Watch")
        watches[0].cancel()

        def one_more():
            stream = self.client.call("ub.v1.Broker/Watch", timeout=60)
            try:
                return next(stream).kind == 1
            except grpc.RpcError:
                return False

        self.wait_until("a place is free again", one_more)

    def test_killed_caller_leaves_nothing(self):
        for _ in range(20):
            pid = os.fork()
            if pid == 0:
                os.execv("/usr/bin/python3", ["python3", __file__, "--hoard", self.daemon.dir])
            self.wait_until("the child has its lease", lambda: self.pool().blocks_leased == 8)
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            self.wait_until("its blocks come back", lambda: self.pool().blocks_free == 32)


def thief(runtime_dir, token):
    client = Client(runtime_dir, token)
    for method, fields in (("Ping", {}), ("Acquire", {"bytes": 1, "request_id": 9}), ("Release", {"lease": 1})):
        try:
            client.call(f"ub.v1.Broker/{method}", **fields)
            return 1
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.UNAUTHENTICATED, error
            assert reason_of(error)[0] == "NO_SESSION", error
    return 0


def hoard(runtime_dir):
    from rpc_harness import Lifeline
    protocol = Client(runtime_dir).call("ub.v1.Admin/GetStatus").protocol
    lifeline = Lifeline(runtime_dir, protocol)
    Client(runtime_dir, lifeline.token).call("ub.v1.Broker/Acquire", bytes=8 * BLOCK, request_id=1)
    signal.pause()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--thief"]:
        sys.exit(thief(sys.argv[2], sys.argv[3]))
    if sys.argv[1:2] == ["--hoard"]:
        sys.exit(hoard(sys.argv[2]))
    main()
