"""What an idle ubd costs: wake-ups a second, and none of its own threads."""

import glob
import threading
import time

from rpc_harness import SMALL_POOL, Daemon, UbdTest, main
from rpc_queue import RawQueue


def voluntary_switches(pid):
    """Wake-ups so far by thread: {tid: (name, count)}."""
    counts = {}
    for path in glob.glob(f"/proc/{pid}/task/*/status"):
        with open(path) as file:
            fields = dict(line.split(":\t", 1) for line in file.read().splitlines() if ":\t" in line)
        counts[path.split("/")[4]] = (fields["Name"].strip(), int(fields["voluntary_ctxt_switches"]))
    return counts


class Idle(UbdTest):
    SECONDS = 20

    def test_idle_daemon_hardly_wakes_up(self):
        # The look at silent connections, once for each, is over before the measurement starts.
        with Daemon(SMALL_POOL + 'session { handshake_timeout: "1s" }\n') as daemon:
            with daemon.lifeline() as lifeline, daemon.client(lifeline.token) as client:
                # Calls with all kinds of deadlines first: the timers that they leave behind count.
                for i in range(300):
                    client.call("ub.v1.Broker/Ping", timeout=0.5 + i / 100)
                stream = client.call("ub.v1.Broker/Watch", timeout=60)
                next(stream)
                # A queue that was used, then left alone.
                queue = RawQueue(lifeline, client)
                self.assertEqual(queue.run(user_data=1)["user_data"], 1)
                time.sleep(5)
                before = voluntary_switches(daemon.process.pid)
                threading.Event().wait(self.SECONDS)
                after = voluntary_switches(daemon.process.pid)
                stream.cancel()
            woken = {}
            for thread, (name, count) in after.items():
                woken[name] = woken.get(name, 0) + count - before.get(thread, (name, 0))[1]
            print("wake-ups in", self.SECONDS, "s:", {name: n for name, n in woken.items() if n})
            self.assertLessEqual(sum(woken.values()) / self.SECONDS, 3)
            own = {name: n for name, n in woken.items() if n and name.startswith("ubd")}
            self.assertEqual(own, {})


if __name__ == "__main__":
    main()
