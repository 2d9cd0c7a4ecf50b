#!/usr/bin/env bash
# A trainer forks in mid-epoch: parent and child do not disturb each other.
# shellcheck source=test/slow/faults/lib.sh
. "$(dirname "$0")/lib.sh"
serve_all
train --fork-every 30
more 60
trained "forks cost no batch, and children have clients of their own"
