#!/usr/bin/env bash
# Programs with different versions of the wire protocol meet, over every transport of this host. A program and the next
# version work together both ways, and give the bytes of the parts. Programs that are two versions apart refuse each other
# in one line that names the versions of both, also if the client waited for the server; the servers go on serving clients
# of their own version.
# shellcheck source=test/integration/lib.sh
. "$(dirname "$0")/lib.sh"
built=$(dirname "$GRAPHWIRE")
cmake --build "$built" --target other_protocols >"$work/build.log" 2>&1 || {
	not_ok "the other programs do not build: $(tail -n 1 "$work/build.log")"
	exit 1
}
cd "$work" || exit 1
export XDG_RUNTIME_DIR=$work/runtime
mkdir -m 700 "$XDG_RUNTIME_DIR"

version=$(sed -n 's/^#define WIRE_VERSION \([0-9]*\)u$/\1/p' "$top/transport/tcp/wire.h")
"$GRAPHWIRE" generate rmat --scale 8 --features 4 --out parts --quiet || exit 1

# program VERSION: the program whose newest version this is.
program() {
	case $(($1 - version)) in
	-*) echo "$built/other_protocol_older_$((version - $1))" ;;
	0) echo "$GRAPHWIRE" ;;
	*) echo "$built/other_protocol_newer_$(($1 - version))" ;;
	esac
}

# speaks VERSION: the versions that its program speaks, in words. Versions before 7 speak only their own.
speaks() { (($1 > 7)) && echo "versions $(($1 - 1)) to $1" || echo "version $1"; }

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

# together SERVER CLIENT: programs of these versions work together.
together() {
	local transport
	serve "$(program "$1")"
	for transport in auto tcp shm; do
		holds "$2 reads from $1, --transport $transport" \
			"$(program "$2")" epoch --part-config parts --servers "$address" --transport "$transport" --check
	done
	holds "$2 reads from $1: stat" "$(program "$2")" stat "$address"
	ends
}
for other in $((version - 1)) $((version + 1)); do
	together "$version" "$other"
	together "$other" "$version"
done

# refuse SERVER CLIENT: programs of these versions refuse each other.
refuse() {
	local transport client says
	client=$(program "$2")
	says="speaks protocol $(speaks "$1"), this client $(speaks "$2"); install the same"
	serve "$(program "$1")"
	for transport in auto tcp shm; do
		refuses "$2 meets $1, --transport $transport" 1 "$address.*$says" \
			"$client" epoch --servers "$address" --transport "$transport"
	done
	refuses "$2 meets $1: stat" 1 "$address.*$says" "$client" stat "$address"
	holds "$1 meets $1" "$(program "$1")" epoch --part-config parts --servers "$address" --check
	ends
	# A client that waits for a server: the server that comes has another version.
	: >waits.err # of the client before
	"$client" epoch --servers "$address" --reconnect 100000 >waits.out 2>waits.err </dev/null &
	local waits=$!
	started+=("$waits")
	within 100 grep -q 'waiting for it' waits.err || not_ok "the client does not wait: $(tail -n 1 waits.err)"
	serve "$(program "$1")" "$address"
	wait "$waits"
	holds "$2 waits for a server, and meets $1" test $? -eq 1
	holds "and names both versions" grep -qE "^graphwire epoch: .*$says" waits.err
	ends
}
for other in $((version - 2)) $((version + 2)); do
	refuse "$version" "$other"
	refuse "$other" "$version"
done

# UPGRADING.md has the numbers of this version.
number() { sed -n "s/^#define $1 *\([0-9][0-9]*\).*/\1/p" "$top/$2"; }
row="| $version | $(number HANDSHAKE_VERSION transport/verbs/handshake.h) | $(number GW_SAMPLER_VERSION core/numbers/rng.h) \
| \`graphwire-1\` minor 0 to $(number GW_FORMAT_MINOR core/graph/meta.h), \
\`graphwire-checkpoint-1\` minor 0 to $(number GW_CHECKPOINT_MINOR tensors/checkpoint.h) |"
release=$("$GRAPHWIRE" --version | sed 's/graphwire \([0-9]*\.[0-9]*\)\..*/\1/')
holds "UPGRADING.md has this version's numbers: $release $row" grep -qF "| $release $row" "$top/UPGRADING.md"
