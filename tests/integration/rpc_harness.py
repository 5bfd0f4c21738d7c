"""A real ubd on a private runtime directory, and a stock gRPC client for it: no libub, no generated code.

Environment: UBD (the program), UBD_PROTO_DIR (the project's proto/), UBD_SKIP (exit code for a test that cannot run here).
"""

import array
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

UBD = os.environ["UBD"]
PROTO_DIR = os.environ["UBD_PROTO_DIR"]
OTHER_UID, THIRD_UID = 61001, 61002

SMALL_POOL = 'pool { name: "host" block_size: "2MiB" blocks: 32 page_size: "4KiB" reserve_blocks: 4 lock_pages: OFF }\n'


def load_schema():
    """Message classes by full name, and (input, output, streams) of each method by path, from protoc's descriptor set."""
    with tempfile.NamedTemporaryFile() as out:
        files = ["ub/v1/broker.proto", "ub/v1/admin.proto", "ub/v1/error.proto", "grpc/health/v1/health.proto"]
        subprocess.run(["protoc", "-I", PROTO_DIR, "--include_imports", f"--descriptor_set_out={out.name}", *files],
                       check=True)
        files = descriptor_pb2.FileDescriptorSet.FromString(out.read())
    pool = descriptor_pool.DescriptorPool()
    classes, methods = {}, {}
    factory = message_factory.MessageFactory(pool)
    for file in files.file:
        pool.Add(file)
    for file in files.file:
        for message in file.message_type:
            name = f"{file.package}.{message.name}"
            classes[name] = factory.GetPrototype(pool.FindMessageTypeByName(name))
        for service in file.service:
            for method in service.method:
                path = f"/{file.package}.{service.name}/{method.name}"
                methods[path] = (method.input_type[1:], method.output_type[1:], method.server_streaming)
    return classes, methods


MESSAGES, METHODS = load_schema()


def message(name, **fields):
    return MESSAGES[name](**fields)


class Client:
    """One channel. call("ub.v1.Admin/GetStatus") answers the message or raises grpc.RpcError."""

    def __init__(self, runtime_dir, token=None):
        self.channel = grpc.insecure_channel(f"unix:{runtime_dir}/ubd.sock")
        self.metadata = (("ub-token", token),) if token else ()

    def close(self):
        self.channel.close()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def call(self, method, timeout=10, **fields):
        request, response, streams = METHODS["/" + method]
        kind = self.channel.unary_stream if streams else self.channel.unary_unary
        stub = kind("/" + method, request_serializer=MESSAGES[request].SerializeToString,
                    response_deserializer=MESSAGES[response].FromString)
        return stub(message(request, **fields), timeout=timeout, metadata=self.metadata)

    def future(self, method, timeout=10, **fields):
        request, response, _ = METHODS["/" + method]
        stub = self.channel.unary_unary("/" + method, request_serializer=MESSAGES[request].SerializeToString,
                                        response_deserializer=MESSAGES[response].FromString)
        return stub.future(message(request, **fields), timeout=timeout, metadata=self.metadata)


def reason_of(error):
    """Reason and details of a refused call, from grpc-status-details-bin."""
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            details = MESSAGES["ub.v1.StatusDetails"].FromString(value)
            info = MESSAGES["ub.v1.ErrorInfo"].FromString(details.details[0].value)
            return info.reason, dict(info.metadata)
    return "", {}


class Lifeline:
    """A session by hand, as proto/wire/lifeline.h says."""

    MAGIC = 0x4C42557F

    def __init__(self, runtime_dir, protocol, name=b"test"):
        self.protocol = protocol
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(10)
        self.socket.connect(f"{runtime_dir}/lifeline.sock")
        self.socket.send(struct.pack("=IHHIIiI32s", self.MAGIC, 1, 0, 56, protocol, os.getpid(), 0, name))
        frame, fds = self.receive()
        assert struct.unpack_from("=H", frame, 4)[0] == 2, f"no Welcome but {frame!r}"
        self.session, token = struct.unpack_from("=Q16s", frame, 16)
        self.token = token.hex()
        for fd in fds:
            os.close(fd)

    def receive(self):
        frame, ancillary, _, _ = self.socket.recvmsg(512, socket.CMSG_SPACE(253 * 4), socket.MSG_CMSG_CLOEXEC)
        fds = array.array("i")
        for _, kind, data in ancillary:
            if kind == socket.SCM_RIGHTS:
                fds.frombytes(data[:len(data) - len(data) % fds.itemsize])
        return frame, list(fds)

    def receive_grant(self):
        """(lease, first, count, total, fds) of the next Grant frame."""
        frame, fds = self.receive()
        assert struct.unpack_from("=H", frame, 4)[0] == 4, f"no Grant but {frame!r}"
        lease, _, first, count, total = struct.unpack_from("=QQIII", frame, 16)
        return lease, first, count, total, fds

    def offer(self, number, *fds):
        """An Offer frame with these descriptors, as many as the test likes."""
        frame = struct.pack("=IHHIIQ", self.MAGIC, 7, 0, 24, self.protocol, number)
        socket.send_fds(self.socket, [frame], fds)

    def receive_queue(self):
        """(queue, sq_entries, cq_entries, fds) of the next QueueGrant frame."""
        frame, fds = self.receive()
        assert struct.unpack_from("=H", frame, 4)[0] == 6, f"no QueueGrant but {frame!r}"
        return (*struct.unpack_from("=III", frame, 16), fds)

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()


class Daemon:
    """ubd on a runtime directory of its own, with a fake service manager listening at NOTIFY_SOCKET."""

    def __init__(self, config=SMALL_POOL, arguments=(), env=None, start=True):
        self.home = tempfile.mkdtemp(prefix="ubd-test-")
        os.chmod(self.home, 0o755)
        self.dir = os.path.join(self.home, "run")
        self.config_path = os.path.join(self.home, "ubd.textproto")
        self.write_config(config)
        self.messages = []
        self.manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.manager.bind(os.path.join(self.home, "notify"))
        self.log = open(os.path.join(self.home, "log"), "w+b")
        self.extra = list(arguments)
        self.env = dict(os.environ, NOTIFY_SOCKET=os.path.join(self.home, "notify"), **(env or {}))
        self.process = None
        if start:
            self.start()
            self.wait_for("READY=1")

    def write_config(self, text):
        with open(self.config_path, "w") as file:
            file.write(text)

    def start(self, **popen):
        command = [UBD, "--config", self.config_path, "--runtime-dir", self.dir, *self.extra]
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log, env=self.env, **popen)
        return self

    def wait_for(self, line, timeout=30):
        """Waits until the service manager has got `line` (a prefix), and forgets everything up to it."""
        deadline = time.monotonic() + timeout
        while True:
            for i, got in enumerate(self.messages):
                if got.startswith(line):
                    del self.messages[:i + 1]
                    return got
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.manager], [], [], left)[0]:
                raise AssertionError(f"no {line} in {timeout} s; log:\n{self.log_text()}")
            data, ancillary, _, _ = self.manager.recvmsg(65536, 1024)
            for _, _, fds in ancillary:  # BARRIER=1 passes a pipe and waits until it is closed
                for fd in struct.unpack(f"{len(fds) // 4}i", fds):
                    os.close(fd)
            self.messages += data.decode().splitlines()

    def log_text(self):
        with open(self.log.name, errors="replace") as file:
            return file.read()

    def client(self, token=None):
        return Client(self.dir, token)

    def open_to_all(self):
        """Other users may connect."""
        os.chmod(self.dir, 0o755)
        for name in ("ubd.sock", "lifeline.sock"):
            os.chmod(os.path.join(self.dir, name), 0o666)

    def protocol(self):
        with self.client() as client:
            return client.call("ub.v1.Admin/GetStatus").protocol

    def lifeline(self):
        return Lifeline(self.dir, self.protocol())

    def stop(self, number=signal.SIGTERM, timeout=20):
        if self.process and self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(timeout)

    def close(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.manager.close()
        self.log.close()
        shutil.rmtree(self.home, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, kind, *unused):
        if kind is not None:
            sys.stderr.write(self.log_text())
        self.close()


def as_user(uid, function):
    """Runs `function` in a child that is `uid` and nothing else; its exit status is what function returns (0: fine)."""
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            code = function() or 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


class UbdTest(unittest.TestCase):
    def refused(self, code, reason, call, *arguments, **fields):
        """The call fails with code and reason; answers the details."""
        with self.assertRaises(grpc.RpcError) as caught:
            result = call(*arguments, **fields)
            for _ in result if hasattr(result, "__iter__") else ():
                pass
        self.assertEqual(caught.exception.code(), code, caught.exception.details())
        got, details = reason_of(caught.exception)
        self.assertEqual(got, reason, caught.exception.details())
        return details


def main():
    unittest.main(verbosity=2)
