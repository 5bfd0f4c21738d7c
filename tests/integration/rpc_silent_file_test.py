"""Files whose server never answers, offered over the raw protocol: nobody but their own client waits for them."""

import os
import subprocess
import tempfile
import time

from rpc_data_harness import DataTest, INVALID, READ_ONLY, READ_WRITE, sealed_memfd
from rpc_harness import OTHER_UID, Lifeline, main


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


if __name__ == "__main__":
    main()
