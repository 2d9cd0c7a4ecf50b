#!/usr/bin/env bash
# The link goes down in mid-epoch. If it comes up again, no batch is lost. If it stays down, the trainer ends at its
# deadline with an error that names the server.
#
# Once its interface has been down, Soft-RoCE of Linux 6.1 may receive nothing any more and retry for ever. Silence is then
# the only sign, and the client goes on over TCP. For the next scenarios the devices are created again.
# shellcheck source=test/slow/faults/lib.sh
. "$(dirname "$0")/lib.sh"
serve_all
train --timeout 30000
on_a 'ip link set eth0 down; pause 1; ip link set eth0 up'
more 10
ip link set eth0 down
pause 1
ip link set eth0 up
more 10
trained "a link that goes down and up, at either host, costs no batch"

train --timeout 30000 --reconnect 30000
on_a 'ip link set eth0 down'
gives_up 'server 10\.0\.3\.1:7000: ' "a link that stays down is an error that names the server"
on_a 'ip link set eth0 up; ends KILL; device_away; device_back' || not_ok "the other host's device cannot be created again"
ends KILL
if ! { device_away && device_back; }; then not_ok "the device cannot be created again"; fi
