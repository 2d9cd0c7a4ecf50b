#!/usr/bin/env bash
# An R-GCN over Graphwire, with DGL's layers and without dgl, reaches the accuracy of DGL 1.1.3: five seeds of
# test/adapters/rgcn.py each, in one process and over two servers (bench/peers/dgl_seeds.py). If $RGCN_SCRIPT is
# rgcn/experimental/entity_classify_dist.py of DGL 1.1.3, that script runs too. The test needs root, for namespaces.
cd "$(dirname "$0")/../../.." && . test/check/lib.sh && . test/check/venv.sh
[ "$(id -u)" = 0 ] || { note "rgcn: skipped: hosts in namespaces need root"; exit 0; }
python_ready
extras_ready || exit 1
PYTHONPATH=$beside/dgl:$beside/extras dgl_ready || { note "rgcn: skipped: DGL 1.1.3 has no wheel for this Python"; exit 0; }
export PYTHONPATH=$beside/extras GRAPHWIRE=${GRAPHWIRE:-$PWD/build/release/graphwire}
status=0
found=$(mktemp)
trap 'rm -f "$found"' EXIT

# seeds WHAT ARGUMENT…: two_hosts.sh's namespaces are seen by this run alone.
seeds() {
	local what=$1
	shift
	# shellcheck disable=SC2016 # the inner shell expands it
	if unshare -m sh -c 'mkdir -p /run/netns && mount -t tmpfs tmpfs /run/netns && exec "$@"' sh \
		"$venv/bin/python" -W ignore bench/peers/dgl_seeds.py rgcn --dgl "$beside/dgl" --check "$@" >"$found" 2>&1; then
		ok "rgcn: $what"
	else
		not_ok "rgcn: $what"
		status=1
	fi
	grep -v '^{' "$found" | tail -n 8
}

for hosts in 1 2; do
	seeds "rgcn.py over $hosts server(s)" --hosts $hosts
	[ -z "${RGCN_SCRIPT:-}" ] || seeds "DGL's script over $hosts server(s)" --hosts $hosts --script "$RGCN_SCRIPT"
done
exit $status
