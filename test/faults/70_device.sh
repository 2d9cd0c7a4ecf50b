#!/usr/bin/env bash
# The RDMA device is taken away in mid-epoch, from the server's host and from the client's: nobody keeps it, the epoch
# goes on over TCP; back again it is used again. A client that will have nothing but RDMA ends with an error by name.
# shellcheck source=test/faults/lib.sh
. "$(dirname "$0")/lib.sh"
serve_all
train
on_a device_away || not_ok "the server lets go of its device"
comes_by tcp
more 10
on_a 'device_back; ends KILL; serve_usual' || not_ok "the server comes back"
comes_by verbs
trained "a device that is taken from the server's host costs no batch; with a new server it is used again"

train
device_away || not_ok "the client lets go of its device"
comes_by tcp
more 10
device_back
comes_by verbs
trained "a device that is taken from the client's host costs no batch, and is used again when it is back"

ends KILL
serve_usual # has let go of its device, too, and goes on over TCP alone
train --transport verbs --reconnect 15000
device_away || not_ok "the client lets go of its device"
gives_up 'server 10\.0\.3\.[12]:7000: .*RDMA' "without a device, a client that was told to use RDMA ends by name"
device_back
