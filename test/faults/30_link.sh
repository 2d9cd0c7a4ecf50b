#!/usr/bin/env bash
# The link goes down in mid-epoch: up again it costs no batch; down for good it is an error by name at the deadline.
. "$(dirname "$0")/lib.sh"
serve_all
train
on_a 'ip link set eth0 down; pause 1; ip link set eth0 up'
more 10
ip link set eth0 down
pause 1
ip link set eth0 up
more 10
trained "a link that goes down and up, at either host, costs no batch"

train --timeout 3000 --reconnect 3000
on_a 'ip link set eth0 down'
gives_up 15 'server 10\.0\.3\.1:7000: ' "a link that stays down is an error by name, in time"
on_a 'ip link set eth0 up'
