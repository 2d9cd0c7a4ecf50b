#!/usr/bin/env bash
# The RDMA device is removed in mid-epoch, from the server's host and from the client's. Graphwire releases the device, and
# the epoch goes on over TCP. When the device is back, it is used again. A client with --transport verbs ends with an error
# that names the server.
# shellcheck source=test/slow/faults/lib.sh
. "$(dirname "$0")/lib.sh"
serve_all
train
on_a device_away || not_ok "the server does not release its device"
comes_by tcp
more 10
on_a 'device_back; ends KILL; serve_usual' || not_ok "the server does not come back"
comes_by verbs
trained "a device that is removed from the server's host costs no batch; with a new server it is used again"

train
device_away || not_ok "the client does not release its device"
comes_by tcp
more 10
device_back
comes_by verbs
trained "a device that is removed from the client's host costs no batch, and is used again when it is back"

ends KILL
serve_usual # a new server: the old one has released its device too, and serves over TCP only
train --transport verbs --reconnect 15000
device_away || not_ok "the client does not release its device"
gives_up 'server 10\.0\.3\.[12]:7000: .*RDMA' "without a device, a client with --transport verbs ends with an error that names the server"
device_back
