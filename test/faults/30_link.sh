#!/usr/bin/env bash
# The link goes down in mid-epoch: up again it costs no batch; down for good it is an error by name at the deadline.
#
# Soft-RoCE of Linux 6.1 may receive nothing any more once its interface has been down, and retries for ever, so that
# only silence tells: the client goes on over TCP, and the devices are made again for the scenarios that follow.
# shellcheck source=test/faults/lib.sh
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
gives_up 'server 10\.0\.3\.1:7000: ' "a link that stays down is an error by name"
on_a 'ip link set eth0 up; ends KILL; device_away; device_back' || not_ok "the other host's device is made again"
ends KILL
if ! { device_away && device_back; }; then not_ok "the device is made again"; fi
