"""What the tests of the data path over the raw protocol share: a daemon, one client, its files and its memory."""

import fcntl
import mmap
import os
import tempfile
import time

import grpc

from rpc_harness import SMALL_POOL, Daemon, UbdTest

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
