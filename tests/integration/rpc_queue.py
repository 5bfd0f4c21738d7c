"""A queue by hand, as proto/wire/queue_layout.h says: rings in shared memory, no libub."""

import mmap
import os
import select
import struct
import time

ENTRY = struct.Struct("=BBHIQQIIQQQQ")
COMPLETION = struct.Struct("=QQBBBBBBHQ")
SQ_TAIL, SQ_HEAD, DAEMON_SLEEP, STATE, CQ_TAIL, CQ_HEAD = 256, 320, 324, 328, 384, 448
NOP, READ, WRITE, COPY, FSYNC, CANCEL = range(6)
OK, BAD_ENTRY, NO_SUCH_LEASE, STALE_GENERATION, OUT_OF_RANGE, READ_ONLY, NO_SUCH_FILE = range(7)
OPEN, CLOSED, BROKEN = range(3)


class RawQueue:
    def __init__(self, lifeline, client, entries=64, **fields):
        self.client = client
        self.answer = client.call("ub.v1.Broker/OpenQueue", sq_entries=entries, **fields)
        self.id, self.sq_entries, self.cq_entries, fds = lifeline.receive_queue()
        assert (self.id, self.sq_entries, self.cq_entries) == (
            self.answer.queue, self.answer.sq_entries, self.answer.cq_entries)
        memory, self.event = fds
        self.ring = mmap.mmap(memory, os.fstat(memory).st_size)
        self.memory = memory

    def word(self, offset):
        return struct.unpack_from("=I", self.ring, offset)[0]

    def set_word(self, offset, value):
        struct.pack_into("=I", self.ring, offset, value & 0xFFFFFFFF)

    def submit(self, op=NOP, user_data=0, lease=0, generation=0, target=0, offset=0, length=0, target_offset=0,
               target_lease=0, policy=0, deadline_ms=0, reserved=0):
        tail = self.word(SQ_TAIL)
        ENTRY.pack_into(self.ring, 640 + tail % self.sq_entries * 64, op, policy, reserved, deadline_ms, user_data,
                        lease, generation & 0xFFFFFFFF, target, offset, length, target_offset, target_lease)
        self.set_word(SQ_TAIL, tail + 1)
        self.ring_bell()

    def ring_bell(self):
        os.eventfd_write(self.event, 1)  # whether it sleeps or not: this is no benchmark

    def completion(self, timeout=10):
        """The next one as a dict; None when none comes in time. By looking again, as Python has no futex."""
        end = time.monotonic() + timeout
        head = self.word(CQ_HEAD)
        while self.word(CQ_TAIL) == head:
            if time.monotonic() > end:
                return None
            select.select([], [], [], 0.0005)
        at = 640 + self.sq_entries * 64 + head % self.cq_entries * 32
        names = ("user_data", "bytes", "error", "path", "reason", "flags", "source", "target", "detail", "device_ns")
        values = dict(zip(names, COMPLETION.unpack_from(self.ring, at)))
        self.set_word(CQ_HEAD, head + 1)
        return values

    def run(self, **entry):
        self.submit(**entry)
        return self.completion()

    def close(self):
        for fd in (self.memory, self.event):
            os.close(fd)
        self.ring.close()
