"""What a stock gRPC client, which knows only the proto files, gets from a running ubd."""

import os

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from rpc_harness import OTHER_UID, Daemon, UbdTest, as_user, main, reason_of

INVALID = grpc.StatusCode.INVALID_ARGUMENT


class StockClient(UbdTest):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon()
        cls.client = cls.daemon.client()

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.daemon.close()

    def test_status_has_version_state_and_pid(self):
        status = self.client.call("ub.v1.Admin/GetStatus")
        self.assertEqual(status.state, "serving")
        self.assertEqual(status.pid, self.daemon.process.pid)
        self.assertRegex(status.version, r"^\d+\.\d+\.\d+$")
        self.assertGreater(status.protocol, 0)
        self.assertGreater(status.boot_ns, 0)
        self.assertGreater(status.uptime_ns, status.boot_ns)
        self.assertEqual(status.runtime_dir, self.daemon.dir)
        self.assertGreater(status.fds_limit, status.fds_open)
        self.assertTrue(status.isolation_advisory)  # this test is root

    def test_pools_add_up(self):
        pools = self.client.call("ub.v1.Admin/ListPools").pools
        self.assertEqual(len(pools), 1)
        pool = pools[0]
        self.assertEqual((pool.name, pool.kind, pool.block_bytes, pool.blocks_total), ("host", "host", 2 << 20, 32))
        self.assertEqual(pool.page_bytes, 4096)
        self.assertEqual(pool.blocks_free + pool.blocks_leased + pool.blocks_cached + pool.blocks_draining +
                         pool.blocks_recycling, pool.blocks_total)

    def test_blocks_by_pool_and_unknown_pool(self):
        blocks = self.client.call("ub.v1.Admin/ListBlocks", pool="host").blocks
        self.assertEqual(len({block.ub_addr for block in blocks}), 32)
        self.refused(grpc.StatusCode.NOT_FOUND, "NO_SUCH_POOL", self.client.call, "ub.v1.Admin/ListBlocks", pool="no")

    def test_health_check(self):
        for service in ("", "ub.v1.Broker", "ub.v1.Admin"):
            self.assertEqual(self.client.call("grpc.health.v1.Health/Check", service=service).status, 1)
        with self.assertRaises(grpc.RpcError) as caught:
            self.client.call("grpc.health.v1.Health/Check", service="no.such.Service")
        self.assertEqual(caught.exception.code(), grpc.StatusCode.NOT_FOUND)

    def test_health_watch_starts_with_the_present_state(self):
        watch = self.client.call("grpc.health.v1.Health/Watch", service="")
        self.assertEqual(next(watch).status, 1)
        watch.cancel()
        unknown = self.client.call("grpc.health.v1.Health/Watch", service="no.such.Service")
        self.assertEqual(next(unknown).status, 3)
        unknown.cancel()

    def test_reflection_lists_the_services_and_finds_a_symbol(self):
        request, response = reflection_messages()
        stub = self.client.channel.stream_stream("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
                                                 request_serializer=request.SerializeToString,
                                                 response_deserializer=response.FromString)
        asked = iter([request(list_services=""), request(file_containing_symbol="ub.v1.Broker")])
        listed, found = list(stub(asked, timeout=10))
        names = {service.name for service in listed.list_services_response.service}
        self.assertLessEqual({"ub.v1.Broker", "ub.v1.Admin", "grpc.health.v1.Health"}, names)
        file = descriptor_pb2.FileDescriptorProto.FromString(
            found.file_descriptor_response.file_descriptor_proto[0])
        self.assertEqual(file.name, "ub/v1/broker.proto")

    def test_broker_calls_without_a_session_are_refused(self):
        for method in ("Ping", "Acquire", "Release", "Share", "Attach", "Watch", "OpenQueue", "CloseQueue", "OpenFile",
                       "CloseFile", "RegisterMemory"):
            self.refused(grpc.StatusCode.UNAUTHENTICATED, "NO_SESSION", self.client.call, f"ub.v1.Broker/{method}")
        with self.daemon.client(token="00" * 16) as client:
            self.refused(grpc.StatusCode.UNAUTHENTICATED, "NO_SESSION", client.call, "ub.v1.Broker/Ping")
        with self.daemon.client(token="zz") as client:
            self.refused(grpc.StatusCode.UNAUTHENTICATED, "NO_SESSION", client.call, "ub.v1.Broker/Ping")

    def test_missing_fields_are_never_zero(self):
        with self.daemon.lifeline() as lifeline, self.daemon.client(lifeline.token) as client:
            def refused(reason, field, method, **fields):
                details = self.refused(INVALID, reason, client.call, f"ub.v1.Broker/{method}", **fields)
                self.assertEqual(details["field"], field)

            refused("MISSING_FIELD", "bytes", "Acquire", request_id=1)
            refused("BAD_FIELD", "bytes", "Acquire", request_id=1, bytes=0)
            refused("MISSING_FIELD", "request_id", "Acquire", bytes=1)
            refused("MISSING_FIELD", "lease", "Release")
            refused("MISSING_FIELD", "lease", "Share", access=2, uid=1)
            refused("MISSING_FIELD", "access", "Share", lease=1, uid=1)
            refused("MISSING_FIELD", "uid", "Share", lease=1, access=2)
            refused("MISSING_FIELD", "ticket", "Attach")
            refused("BAD_FIELD", "ticket", "Attach", ticket=b"short")
        self.assertEqual(self.refused(INVALID, "MISSING_FIELD", self.client.call, "ub.v1.Admin/SetDrain")["field"],
                         "drain")
        self.assertEqual(self.client.call("ub.v1.Admin/GetStatus").state, "serving")

    def test_unknown_enum_value_is_refused(self):
        with self.daemon.lifeline() as lifeline, self.daemon.client(lifeline.token) as client:
            # lease = 1, access = 77, uid = 0, as a client with a newer proto would send it.
            raw = client.channel.unary_unary("/ub.v1.Broker/Share", request_serializer=bytes)
            with self.assertRaises(grpc.RpcError) as caught:
                raw(b"\x08\x01\x10\x4d\x18\x00", timeout=10, metadata=client.metadata)
            self.assertEqual(caught.exception.code(), INVALID)
            self.assertEqual(reason_of(caught.exception)[0], "BAD_FIELD")
            with self.assertRaises(grpc.RpcError) as caught:
                raw(b"\xff\xff\xff", timeout=10, metadata=client.metadata)
            self.assertIn(caught.exception.code(), (grpc.StatusCode.INTERNAL, INVALID))

    def test_oversized_request_is_refused_and_the_connection_lives(self):
        with self.assertRaises(grpc.RpcError) as caught:
            self.client.call("grpc.health.v1.Health/Check", service="x" * (1 << 20))
        self.assertEqual(caught.exception.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
        self.assertEqual(self.client.call("grpc.health.v1.Health/Check").status, 1)

    def test_plain_user_may_look_but_not_drain(self):
        os.chmod(self.daemon.dir, 0o755)
        os.chmod(f"{self.daemon.dir}/ubd.sock", 0o666)

        def user():
            os.execv("/usr/bin/python3", ["python3", __file__, "--as-user", self.daemon.dir])

        self.assertEqual(as_user(OTHER_UID, user), 0)


def as_plain_user(runtime_dir):
    """Runs in a process of another uid: 0 when all is as it should be."""
    from rpc_harness import Client
    client = Client(runtime_dir)
    status = client.call("ub.v1.Admin/GetStatus")
    assert status.state == "serving" and not status.isolation_advisory, status
    assert not client.call("ub.v1.Admin/ListLeases").leases
    assert not client.call("ub.v1.Admin/ListSessions").sessions
    assert len(client.call("ub.v1.Admin/ListPools").pools) == 1
    try:
        client.call("ub.v1.Admin/SetDrain", drain=True)
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.PERMISSION_DENIED, error
        assert reason_of(error)[0] == "NOT_ADMIN", error
        return 0
    return 1


def reflection_messages():
    """Request and response of grpc.reflection.v1alpha, as much of them as this test uses."""
    file = descriptor_pb2.FileDescriptorProto(name="r.proto", package="grpc.reflection.v1alpha", syntax="proto3")
    string, bytes_, message = 9, 12, 11

    def add(name, *fields):
        added = file.message_type.add(name=name)
        for field, number, kind, repeated, type_name in fields:
            added.field.add(name=field, number=number, type=kind, label=3 if repeated else 1,
                            type_name=type_name and f".grpc.reflection.v1alpha.{type_name}")

    add("Request", ("file_containing_symbol", 4, string, False, None), ("list_services", 7, string, False, None))
    for name in ("file_containing_symbol", "list_services"):
        field = next(f for f in file.message_type[0].field if f.name == name)
        field.oneof_index = 0
    file.message_type[0].oneof_decl.add(name="message_request")
    add("Service", ("name", 1, string, False, None))
    add("Services", ("service", 1, message, True, "Service"))
    add("Files", ("file_descriptor_proto", 1, bytes_, True, None))
    add("Response", ("file_descriptor_response", 4, message, False, "Files"),
        ("list_services_response", 6, message, False, "Services"))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    factory = message_factory.MessageFactory(pool)
    return tuple(factory.GetPrototype(pool.FindMessageTypeByName(f"grpc.reflection.v1alpha.{name}"))
                 for name in ("Request", "Response"))


if __name__ == "__main__":
    import sys
    if sys.argv[1:2] == ["--as-user"]:
        sys.exit(as_plain_user(sys.argv[2]))
    main()
