#!/usr/bin/env bash
# test/slow/rdma/run on a host that it cannot test: wrong options, no program, a peer that cannot be reached, no device. Each
# ends with status 2 and the remedy. `./check verbs` runs it on a device.
# shellcheck source=test/integration/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1
run=$top/test/slow/rdma/run

refuses "an unknown option" 2 '^run: unrecognized arguments: --shrt; run --help' "$run" --shrt
refuses "an abbreviated option" 2 '^run: unrecognized arguments: --link;' "$run" --link
refuses "an unknown step" 2 "^run: argument --only: invalid choice: 'rate'" "$run" --only rate
refuses "a limit that is no number" 2 "^run: argument --limit: invalid int value: 'x'" "$run" --limit x
refuses "a limit that is too short" 2 '^run: --limit: at least 10 seconds' "$run" --limit 1
refuses "a peer without a name" 2 '^run: --peer: a host' "$run" --peer ''
refuses "a peer's device without a peer" 2 '^run: --peer-device and --peer-address need --peer' "$run" --peer-device mlx5_0
refuses "a folder for the report that does not exist" 2 '^run: --out: nowhere cannot be written' "$run" --out nowhere/report.txt
refuses "a folder for working files that does not exist" 2 '^run: --tmp: nowhere cannot be written' "$run" --tmp nowhere
holds "--help" "$run" --help
[ "$(wc -L <out)" -le 80 ] || not_ok "--help has lines above 80 columns"

# stops WHAT PATTERN REMEDY ARGUMENT…: ends with status 2; the report's summary has the finding and its remedy.
stops() {
	local what=$1 pattern=$2 remedy=$3 status
	shift 3
	rm -f report.txt
	timeout 100 "$run" --out report.txt --tmp "$work" "$@" >out 2>err </dev/null
	status=$?
	if [ $status -eq 2 ] && [ ! -s err ] && [ "$(sed -n '/^== summary/,/^0 ok/p' report.txt | grep -c .)" -eq 4 ] &&
		sed -n '/^== summary/,/^0 ok/p' report.txt | grep -A1 -E -- "^not ok - $pattern" | grep -qE -- "^    remedy: .*$remedy" &&
		! compgen -G 'graphwire-rdma.*' >/dev/null; then
		ok "$what"
	else
		not_ok "$what: status $status"
		cat out err
	fi
}
mkdir empty
stops "a folder without a build" 'no program graphwire in empty' 'cmake --preset release' --build empty
stops "a peer that cannot be reached" 'far cannot be reached: .*no route' 'ssh-copy-id' --peer far --ssh 'sh -c "echo no route >&2; exit 255"'
if [ -z "$(ls /sys/class/infiniband 2>/dev/null)" ]; then
	stops "a host without a device" '.*: no RDMA device' 'modprobe' --short
fi
