#!/usr/bin/env bash
# Runs the scripts of test/integration with the release build's program (test/integration/lib.sh). Most scripts wait more
# than they compute, so twice as many run at once as there are processors. The longest scripts start first.
cd "$(dirname "$0")/../.." && . test/check/lib.sh
longest='45_bench 40_quickstart 37_service 38_doctor 25_files 32_restarts 33_shortages'
builders='27_wide.sh 31_versions.sh 40_quickstart.sh' # build in build/release
logs=build/check/integration

one() { # one SCRIPT
	local name=${1##*/} start=$SECONDS status
	local command=(timeout -k 10 600 bash "$1")
	[[ " $builders " = *" $name "* ]] && command=(locked release "${command[@]}")
	"${command[@]}" >"$logs/$name.log" 2>&1
	status=$?
	# A script that died before it could report a failed test counts as one failed test.
	if [ $status -ne 0 ] && ! grep -q '^not ok - ' "$logs/$name.log"; then
		not_ok "$1 ended early, with status $status" >>"$logs/$name.log"
	fi
	echo "$1: $((SECONDS - start)) s" >>"$logs/$name.log"
	return $((status != 0))
}

if [ "${1:-}" = --one ]; then
	one "$2"
	exit
fi
build release || exit 1
export GRAPHWIRE=$PWD/build/release/graphwire
mkdir -p "$logs"
rm -f "$logs"/*.log
first=$(for name in $longest; do echo "test/integration/$name.sh"; done)
rest=$(printf '%s\n' test/integration/[0-9]*.sh | grep -vxF "$first")
xargs -P "$((2 * $(nproc)))" -n 1 bash "$0" --one <<<"$first"$'\n'"$rest"
status=$?
cat "$logs"/*.log
exit $status
