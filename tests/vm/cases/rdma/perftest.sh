#!/bin/bash
# The device is a real one for real tools: perftest and rdma-core's own ping-pong run against themselves.
set -eu
ibv_devinfo -d rxe0 | grep PORT_ACTIVE
ib_write_bw -d rxe0 -F -n 200 -s 65536 >/tmp/server.log 2>&1 &
server=$!
# The server listens when its port is bound; the client is tried until then.
until ss -ltn | grep -q :18515; do kill -0 "$server"; done
ib_write_bw -d rxe0 -F -n 200 -s 65536 192.0.2.1
wait "$server"
ibv_rc_pingpong -d rxe0 -g 1 -n 100 >/tmp/pingpong.log 2>&1 &
server=$!
until ss -ltn | grep -q :18515; do kill -0 "$server"; done
ibv_rc_pingpong -d rxe0 -g 1 -n 100 192.0.2.1
wait "$server"
