#!/usr/bin/env bash
# The program before the last change of the protocol's version, built from git, meets this one both ways, over every
# transport of this host, and over RDMA in a guest with Soft-RoCE: batches equal the parts. test/integration/31_versions.sh
# compares with programs that this source makes for other versions.
cd "$(dirname "$0")/../../.." && . test/check/lib.sh
change=$(git log -1 --format=%H -G'^#define WIRE_VERSION +[0-9]+u' -- transport/tcp/wire.h)
older=$PWD/build/versions/older
if [ "$(cat "$older/.commit" 2>/dev/null)" != "$change^" ]; then
	rm -rf "$older" && mkdir -p "$older" && git archive "$change^" | tar -x -C "$older" && echo "$change^" >"$older/.commit" || exit 1
fi
(cd "$older" && cmake --preset release -DGRAPHWIRE_PYTHON:BOOL=OFF && cmake --build build/release --target graphwire-cmd) \
	>build/versions/log 2>&1 || {
	not_ok "the older program does not build: $(tail -n 1 build/versions/log)"
	exit 1
}
old=$older/build/release/graphwire new=$PWD/build/release/graphwire
build release graphwire-cmd >/dev/null || exit 1
work=$(mktemp -d -p "$PWD/build/versions") # a guest does not see /tmp
# shellcheck disable=SC2317 # the trap calls it
finish() { rm -rf "$work"; }
trap finish EXIT
"$new" generate rmat --scale 10 --features 8 --labels 4 --out "$work/whole" --quiet &&
	"$new" partition "$work/whole" --num-parts 2 --method random --out "$work/parts" >/dev/null || exit 1
cat >"$work/pairs" <<'PAIRS'
# pairs OLD NEW PARTS ADDRESS TRANSPORT...: each program serves the other.
old=$1 new=$2 parts=$3 address=$4 status=0
shift 4
folder=$(mktemp -d)
export XDG_RUNTIME_DIR=$folder
umask 077
head -c 32 /dev/urandom >"$folder/key"
for pair in "$old $new older" "$new $old newer"; do
	set -- "$pair" "$@"
	read -r server client which <<<"$1"
	shift
	pids='' servers=''
	for part in 0 1; do
		"$server" serve --part-config "$parts" --part $part --listen "$address:0" --threads 1 --key-file "$folder/key" \
			>"$folder/$which-$part.log" 2>&1 </dev/null &
		pids="$pids $!"
		until grep -q '^serving part' "$folder/$which-$part.log"; do
			kill -0 $! || { cat "$folder/$which-$part.log"; exit 1; }
			sleep 0.1
		done
		servers=$servers,$(sed -n 's/^serving part .* at \([^ ]*\): .*/\1/p' "$folder/$which-$part.log")
	done
	for transport; do
		if "$client" epoch --part-config "$parts" --servers "${servers#,}" --key-file "$folder/key" --check \
			--transport "$transport" >"$folder/out" 2>&1; then
			echo "ok - the $which program serves, over $transport"
		else
			echo "not ok - the $which program serves, over $transport: $(tail -n 1 "$folder/out")"
			status=1
		fi
	done
	kill $pids
	wait $pids
done
rm -rf "$folder"
exit $status
PAIRS
status=0
bash "$work/pairs" "$old" "$new" "$work/parts" 127.0.0.1 auto tcp shm || status=1
[ -n "${VERSIONS_HERE:-}" ] && exit $status
deploy/packages.sh guest || exit 1
test/slow/guest/run -n versions -t 1200 -- bash "$work/pairs" "$old" "$new" "$work/parts" 10.0.3.1 verbs auto |
	sed -n 's/^\(ok\|not ok\) - /\1 - in a guest: /p'
[ "${PIPESTATUS[0]}" -eq 0 ] || status=1
exit $status
