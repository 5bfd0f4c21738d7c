"""Callers that flood, never read, send garbage or hang up: the daemon stays small and others are served."""

import os
import resource
import socket
import struct
import time

import grpc

from rpc_harness import SMALL_POOL, Daemon, Lifeline, UbdTest, main

# AddressSanitizer keeps what was freed for a while and pads what is in use: there the bounds only catch growth without end.
MEMORY_FACTOR = 8 if os.environ.get("UBD_SANITIZE") else 1

# Only bounds a failure; how long others really waited is printed.
PATIENCE = 30 * (4 if os.environ.get("UBD_SANITIZE") else 1)

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def literal(name, value):
    """A header field without indexing, without Huffman coding."""
    return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value


def request(stream, path, metadata=()):
    """HEADERS and an empty message of one unary call."""
    headers = b"".join(literal(name, value) for name, value in (
        (b":method", b"POST"), (b":scheme", b"http"), (b":path", path), (b":authority", b"x"),
        (b"content-type", b"application/grpc"), (b"te", b"trailers"), *metadata))
    return frame(1, 4, stream, headers) + frame(0, 1, stream, b"\0" * 5)


def kib_in_use(pid):
    """The daemon's own memory: resident, without what it shares (the pool)."""
    with open(f"/proc/{pid}/status") as file:
        return int(next(line for line in file if line.startswith("RssAnon")).split()[1])


class Offenders:
    """A process of another user that misbehaves, and stays until the block ends."""

    USER = 65534

    def __init__(self, test, misbehave):
        done_read, done_write = os.pipe()
        stay_read, self.stay = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            code = 99
            try:
                os.close(self.stay)
                os.setgroups([])
                os.setresgid(self.USER, self.USER, self.USER)
                os.setresuid(self.USER, self.USER, self.USER)
                misbehave()
                os.write(done_write, b"x")
                os.read(stay_read, 1)
                code = 0
            finally:
                os._exit(code)
        os.close(done_write)
        os.close(stay_read)
        test.assertEqual(os.read(done_read, 1), b"x")
        os.close(done_read)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        os.close(self.stay)
        os.waitpid(self.pid, 0)


class Hostile(UbdTest):
    def setUp(self):
        self.daemon = Daemon()
        self.client = self.daemon.client()
        self.sockets = []

    def tearDown(self):
        for connection in self.sockets:
            connection.close()
        self.client.close()
        self.daemon.close()

    def connect(self):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(10)
        connection.connect(f"{self.daemon.dir}/ubd.sock")
        self.sockets.append(connection)
        return connection

    def send_what_fits(self, connection, data):
        connection.setblocking(False)
        try:
            while data:
                data = data[connection.send(data):]
        except (BlockingIOError, BrokenPipeError, ConnectionResetError):
            pass

    def assert_served(self):
        """Somebody else gets a health check and a lease, at once or when the burst in front of it is worked off."""
        self.assertEqual(self.client.call("grpc.health.v1.Health/Check", timeout=PATIENCE).status, 1)
        with self.daemon.lifeline() as lifeline, self.daemon.client(lifeline.token) as client:
            client.call("ub.v1.Broker/Acquire", bytes=1, request_id=1, timeout=PATIENCE)

    def test_callers_that_never_read_are_cut_off(self):
        if os.geteuid() != 0:
            self.skipTest("needs root to run the offenders as another user: a user's own calls count against each other")
        self.daemon.close()
        self.daemon = Daemon(SMALL_POOL + 'socket { group: "nogroup" }\n')
        self.client = self.daemon.client()
        before = kib_in_use(self.daemon.process.pid)
        with Offenders(self, self.never_reading):
            begin = time.monotonic()
            self.assert_served()
            print("others were served after", round(time.monotonic() - begin, 2), "s")
            print("at most", (kib_in_use(self.daemon.process.pid) - before) >> 10, "MiB")
        # The offenders were cut off one by one; what they took is given back.
        deadline = time.monotonic() + PATIENCE
        while kib_in_use(self.daemon.process.pid) - before > MEMORY_FACTOR * (400 << 10):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.1)
            self.client.call("grpc.health.v1.Health/Check", timeout=PATIENCE)

    def never_reading(self):
        for _ in range(64):
            connection = self.connect()
            calls = b"".join(request(2 * i + 1, b"/ub.v1.Admin/ListBlocks") for i in range(2000))
            self.send_what_fits(connection, PREFACE + frame(4, 0, 0) + calls)

    def test_streams_opened_and_reset_at_once(self):
        before = kib_in_use(self.daemon.process.pid)
        connection = self.connect()
        connection.sendall(PREFACE + frame(4, 0, 0))
        connection.setblocking(False)
        end = time.monotonic() + 3
        stream = 1
        while time.monotonic() < end:
            burst = b""
            for _ in range(100):
                burst += request(stream, b"/ub.v1.Admin/GetStatus") + frame(3, 0, stream, struct.pack(">I", 8))
                stream += 2
            try:
                while burst:
                    burst = burst[connection.send(burst):]
            except BlockingIOError:
                try:
                    while connection.recv(65536):
                        pass
                except BlockingIOError:
                    pass
                self.assertEqual(self.client.call("grpc.health.v1.Health/Check", timeout=PATIENCE).status, 1)
                # The rest of the burst is lost: a broken stream, which the daemon must take as well.
                break
            except OSError:
                break
        self.assert_served()
        self.assertLess(kib_in_use(self.daemon.process.pid) - before, MEMORY_FACTOR * (128 << 10))

    def test_garbage_instead_of_http(self):
        for garbage in (b"\0" * 4096, os.urandom(65536), b"GET / HTTP/1.1\r\n\r\n", PREFACE + os.urandom(4096),
                        PREFACE + frame(1, 4, 1, b"\xff" * 64), PREFACE + frame(9, 0, 1, b"x" * 64)):
            self.send_what_fits(self.connect(), garbage)
        self.assert_served()

    def test_huge_metadata_is_refused(self):
        with self.assertRaises(grpc.RpcError) as caught:
            with self.daemon.client() as offender:
                stub = offender.channel.unary_unary("/grpc.health.v1.Health/Check")
                stub(b"", timeout=5, metadata=(("x", "y" * 30000),))
        self.assertNotEqual(caught.exception.code(), grpc.StatusCode.OK)
        self.assert_served()

    def test_compressed_requests_are_not_unpacked(self):
        before = kib_in_use(self.daemon.process.pid)
        stub = self.client.channel.unary_unary("/grpc.health.v1.Health/Check")
        with self.assertRaises(grpc.RpcError):
            stub(b"\x0a\x80\x80\x80\x20" + b"\0" * (64 << 20), timeout=10, compression=grpc.Compression.Gzip)
        self.assertLess(kib_in_use(self.daemon.process.pid) - before, MEMORY_FACTOR * (32 << 10))
        self.assert_served()

    def test_fds_come_back_after_many_short_connections(self):
        fds = f"/proc/{self.daemon.process.pid}/fd"
        self.assert_served()
        before = len(os.listdir(fds))
        for i in range(1000):
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            connection.settimeout(10)
            connection.connect(f"{self.daemon.dir}/ubd.sock")
            if i % 2:
                connection.send((PREFACE + frame(4, 0, 0) + request(1, b"/ub.v1.Admin/GetStatus"))[:30 + i % 60])
            connection.close()
        deadline = time.monotonic() + 10
        while len(os.listdir(fds)) > before + 4 and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertLessEqual(len(os.listdir(fds)), before + 4)
        self.assert_served()

    def test_refused_versions_are_logged_but_not_each_of_them(self):
        protocol = self.daemon.protocol()
        for _ in range(50):
            with self.assertRaises(AssertionError):
                Lifeline(self.daemon.dir, protocol + 1)
        lines = [line for line in self.daemon.log_text().splitlines() if "refused a client" in line]
        self.assertEqual(len(lines), 1)
        self.assertIn("reason=VERSION_MISMATCH", lines[0])
        self.assertIn(f"pid={os.getpid()}", lines[0])
        self.assertIn(f"client speaks protocol {protocol + 1}", lines[0])
        self.assert_served()

    def test_many_watchers_that_never_read(self):
        before = kib_in_use(self.daemon.process.pid)
        for _ in range(8):
            connection = self.connect()
            calls = b"".join(request(2 * i + 1, b"/ub.v1.Admin/WatchAll") for i in range(256))
            self.send_what_fits(connection, PREFACE + frame(4, 0, 0) + calls)
        with self.daemon.lifeline() as lifeline, self.daemon.client(lifeline.token) as client:
            for i in range(500):
                lease = client.call("ub.v1.Broker/Acquire", bytes=1, request_id=i).lease.id
                client.call("ub.v1.Broker/Release", lease=lease)
                for fd in lifeline.receive()[1]:
                    os.close(fd)
        self.assert_served()
        grown = kib_in_use(self.daemon.process.pid) - before
        print("2048 watchers asked for, 1000 events:", grown, "KiB")
        self.assertLess(grown, MEMORY_FACTOR * (128 << 10))


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    main()
