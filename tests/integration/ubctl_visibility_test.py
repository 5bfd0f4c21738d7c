"""Who sees and may do what: two ordinary users, root, and one whom the socket keeps out."""

from ubctl_harness import Daemon, Hold, Ubctl, UbdTest, as_uid, main, rest_of, signal

GROUP = 100  # "users"
CONFIG = ('pool { name: "host" block_size: "2MiB" blocks: 16 page_size: "4KiB" lock_pages: OFF }\n'
          'socket { mode: "0660" group: "users" }\n')


class Visibility(UbdTest):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(CONFIG)
        cls.root = Ubctl(cls.daemon.dir)
        cls.users = [Ubctl(cls.daemon.dir, as_uid(uid, GROUP)) for uid in (65534, 1001)]

    @classmethod
    def tearDownClass(cls):
        cls.daemon.close()

    def test_users_see_their_own_leases_and_root_sees_all(self):
        with Hold(self.users[0], "4MiB") as nobody, Hold(self.users[1], "2MiB") as other:
            ids = [hold.grant["lease"] for hold in (nobody, other)]
            for user, own in zip(self.users, ids):
                self.assertEqual([lease["id"] for lease in user.json("leases")["leases"]], [own])
                self.assertEqual(len(user.json("sessions")["sessions"]), 1)
                shown = {block["lease"] for block in user.json("blocks")["blocks"] if block["state"] == "leased"}
                self.assertEqual(shown, {own, None}, "whose block it is, is not told")
                self.assertEqual(user.json("pools")["pools"][0]["blocks_leased"], 3, "pool figures are for everybody")
            self.assertEqual(sorted(lease["id"] for lease in self.root.json("leases")["leases"]), sorted(ids))
            self.assertEqual(len(self.root.json("sessions")["sessions"]), 2)

    def test_foreign_and_absent_leases_cannot_be_told_apart(self):
        with Hold(self.users[0], "2MiB") as hold:
            foreign = self.users[1].json("lease", "revoke", str(hold.grant["lease"]), code=1)["error"]
            absent = self.users[1].json("lease", "revoke", "999999", code=1)["error"]
            self.assertEqual((foreign["code"], foreign["reason"]), ("NOT_FOUND", "NO_SUCH_LEASE"))
            self.assertEqual(foreign["message"].replace(str(hold.grant["lease"]), "N"), absent["message"].replace("999999", "N"))
            self.assertEqual(self.users[0].run("lease", "revoke", str(hold.grant["lease"])).returncode, 0, "one's own may be revoked")
            self.assertEqual(hold.end()[0], 1)

    def test_drain_is_for_admins(self):
        for user in self.users:
            self.assertEqual(user.json("drain", code=1)["error"]["reason"], "NOT_ADMIN")
        self.assertEqual(self.root.json("status")["state"], "serving")

    def test_watch_shows_no_events_of_others(self):
        watch = self.users[1].start("watch")
        watch.stdout.readline(), watch.stdout.readline()
        with Hold(self.users[0], "2MiB") as hold:
            hold.end(signal.SIGTERM)
        with Hold(self.users[1], "2MiB") as own:
            own.end(signal.SIGTERM)
        seen = ""
        while "RELEASED" not in seen:
            seen += watch.stdout.readline()
        watch.send_signal(signal.SIGTERM)
        rest_of(watch)
        self.assertNotIn("65534", seen)
        self.assertIn("1001", seen)

    def test_isolation_is_enforced_for_users_and_advisory_for_root(self):
        self.assertEqual([user.json("status")["isolation_advisory"] for user in (*self.users, self.root)], [False, False, True])
        self.assertIn("enforced for you", self.users[0].run("status").stdout)

    def test_user_outside_the_group_is_told_path_and_group(self):
        outsider = Ubctl(self.daemon.dir, as_uid(65534))
        for command in (["status"], ["lease", "hold", "2MiB"], ["watch"]):
            done = outsider.run(*command)
            self.assertEqual(done.returncode, 1, command)
            self.assertIn("SOCKET_ACCESS", done.stderr)
            self.assertIn(self.daemon.dir, done.stderr)
            self.assertIn("users", done.stderr)


if __name__ == "__main__":
    main()
