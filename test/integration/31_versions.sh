#!/usr/bin/env bash
# Two programs with different versions of the wire protocol meet. Each client refuses the other program's server in one
# line that names both versions, over every transport of this host, and also if it waited for the server. The servers
# go on serving clients of their own version.
# shellcheck source=test/integration/lib.sh
. "$(dirname "$0")/lib.sh"
built=$(dirname "$GRAPHWIRE")
other=$built/other_protocol
cmake --build "$built" --target other_protocol >"$work/build.log" 2>&1 || {
	not_ok "the other program does not build: $(tail -n 1 "$work/build.log")"
	exit 1
}
cd "$work" || exit 1
export XDG_RUNTIME_DIR=$work/runtime
mkdir -m 700 "$XDG_RUNTIME_DIR"

version=$(sed -n 's/^#define WIRE_VERSION \([0-9]*\)u$/\1/p' "$top/transport/tcp/wire.h")
"$GRAPHWIRE" generate rmat --scale 8 --features 4 --out parts --quiet || exit 1

# serve PROGRAM [ADDRESS]: starts a server, and waits until it is ready: $server, $address.
serve() {
	: >server.log
	"$1" serve --part-config parts --part 0 --listen "${2:-127.0.0.1:0}" >server.log 2>&1 </dev/null &
	server=$!
	started+=("$server")
	within 100 grep -q '^serving part' server.log || not_ok "the server is not ready: $(tail -n 1 server.log)"
	address=$(sed -n 's/^serving part .* at \([^ ]*\): .*/\1/p' server.log)
}
ends() {
	kill "$server"
	wait "$server"
}

# meets SERVER ITS_VERSION CLIENT ITS_VERSION
meets() {
	local transport says="speaks protocol version $2, this client version $4; install the same"
	serve "$1"
	for transport in auto tcp shm; do
		refuses "$4 meets $2, --transport $transport" 1 "$address.*$says" \
			"$3" epoch --servers "$address" --transport "$transport"
	done
	refuses "$4 meets $2: stat" 1 "$address.*$says" "$3" stat "$address"
	holds "$2 meets $2" "$1" epoch --part-config parts --servers "$address" --check
	ends
	# A client that waits for a server: the server that comes has another version.
	: >waits.err # of the client before
	"$3" epoch --servers "$address" --reconnect 100000 >waits.out 2>waits.err </dev/null &
	local waits=$!
	started+=("$waits")
	within 100 grep -q 'waiting for it' waits.err || not_ok "the client does not wait: $(tail -n 1 waits.err)"
	serve "$1" "$address"
	wait "$waits"
	holds "$4 waits for a server, and meets $2" test $? -eq 1
	holds "and names both versions" grep -qE "^graphwire epoch: .*$says" waits.err
	ends
}
meets "$GRAPHWIRE" "$version" "$other" 99
meets "$other" 99 "$GRAPHWIRE" "$version"

# UPGRADING.md has the numbers of this version.
number() { sed -n "s/^#define $1 *\([0-9][0-9]*\).*/\1/p" "$top/$2"; }
row="| $version | $(number HANDSHAKE_VERSION transport/verbs/handshake.h) | $(number GW_SAMPLER_VERSION core/numbers/rng.h) \
| \`graphwire-1\` minor 0 to $(number GW_FORMAT_MINOR core/graph/meta.h), \
\`graphwire-checkpoint-1\` minor 0 to $(number GW_CHECKPOINT_MINOR tensors/checkpoint.h) |"
release=$("$GRAPHWIRE" --version | sed 's/graphwire \([0-9]*\.[0-9]*\)\..*/\1/')
holds "UPGRADING.md has this version's numbers: $release $row" grep -qF "| $release $row" "$top/UPGRADING.md"
