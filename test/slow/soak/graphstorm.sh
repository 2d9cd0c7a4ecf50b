#!/usr/bin/env bash
# Trains and applies GraphStorm's models over Graphwire, in one process: node classification, link prediction (under the
# mask of training edges), edge classification, and inference with the saved node classifier; node classification and
# inference without dgl. Then the four tasks over two servers with two trainers each, which deploy/launch.py starts
# (root). The test runs where a python with graphwire, dgl 1.1.3 and graphstorm 0.5.1 is: $GRAPHSTORM_PYTHON, or python.
# Else it is skipped.
cd "$(dirname "$0")/../../.." && . test/check/lib.sh
python=${GRAPHSTORM_PYTHON:-python} bed=$PWD/test/slow/soak/graphstorm_bed.py
launch=$PWD/deploy/launch.py program=${GRAPHWIRE:-$PWD/build/release/graphwire}
export DGLBACKEND=pytorch
if ! run=$("$python" -W ignore -c 'import graphwire, dgl, graphstorm.run, os; print(os.path.dirname(graphstorm.run.__file__))' 2>/dev/null); then
	note "graphstorm: skipped: $python has no graphwire, dgl and graphstorm"
	exit 0
fi
run=${run##*$'\n'} # dgl may print lines when it is imported
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
status=0

# storm NAME SCRIPT WORD…: runs one of GraphStorm's scripts over Graphwire.
storm() {
	local name=$1 script=$2
	shift 2
	if timeout 3600 "$python" -W ignore -m graphwire.dgl "$run/$script" --part-config g/g.json "$@" >"$name.log" 2>&1; then
		echo "ok - graphstorm: $name: $("$python" -W ignore "$bed" scores "$name.log")"
	else
		echo "not ok - graphstorm: $name: $(grep -v '^ *$' "$name.log" | tail -n 1)"
		status=1
	fi
}

"$python" -W ignore -m graphwire.dgl "$bed" graph . 1 >/dev/null || exit 1
storm "node classification" gsgnn_np/gsgnn_np.py --cf nc.yaml --save-model-path model --topk-model-to-save 1
model=$(find model -maxdepth 1 -name 'epoch-*' | head -n 1)
storm "inference of nodes" gsgnn_np/np_infer_gnn.py --inference --cf nc.yaml --restore-model-path "$model" \
	--save-prediction-path predictions
[ -e predictions ] || { echo "not ok - graphstorm: inference of nodes: no predictions"; status=1; }
storm "link prediction" gsgnn_lp/gsgnn_lp.py --cf lp.yaml --num-epochs 15 --save-embed-path embeddings
storm "edge classification" gsgnn_ep/gsgnn_ep.py --cf ec.yaml

# Node classification and inference over the subset of dgl, as where dgl is not installed.
hidden='from graphwire.dgl import __main__, host
host.is_installed = lambda: False
__main__.main()'
without() {
	local name=$1 script=$2
	shift 2
	if timeout 3600 "$python" -W ignore -c "$hidden" "$run/$script" --part-config g/g.json --cf nc.yaml "$@" >"$name.log" 2>&1; then
		echo "ok - graphstorm: $name: $("$python" -W ignore "$bed" scores "$name.log")"
	else
		echo "not ok - graphstorm: $name: $(grep -v '^ *$' "$name.log" | tail -n 1)"
		status=1
	fi
}
without "node classification without dgl" gsgnn_np/gsgnn_np.py --save-model-path modelw --topk-model-to-save 1
model=$(find modelw -maxdepth 1 -name 'epoch-*' | head -n 1)
without "inference without dgl" gsgnn_np/np_infer_gnn.py --inference --restore-model-path "$model" --save-prediction-path predictionsw
[ -e predictionsw ] || { echo "not ok - graphstorm: inference without dgl: no predictions"; status=1; }

# launched NAME SCRIPT WORD…: the same under the launcher, on two hosts that are both this machine, in a network without
# other jobs.
launched() {
	local name=$1 script=$2
	shift 2
	# shellcheck disable=SC2016 # the inner shell expands it
	if HOME=$PWD timeout 3600 unshare --net sh -c 'ip link set lo up && exec "$@"' sh "$python" -W ignore "$launch" --workspace "$PWD" \
		${GRAPHWIRE_BUILD:+--extra_envs "GRAPHWIRE_BUILD=$GRAPHWIRE_BUILD"} \
		--num_trainers 2 --num_servers 1 --num_omp_threads 1 --scheduler local --program "$program" --ip_config ip_config.txt \
		--part_config two/g/g.json "$python $run/$script --part-config two/g/g.json --ip-config ip_config.txt $*" >"$name.log" 2>&1; then
		echo "ok - graphstorm: $name: $("$python" -W ignore "$bed" scores "$name.log")"
	else
		echo "not ok - graphstorm: $name: $(grep -v '^ *$' "$name.log" | tail -n 1)"
		status=1
	fi
}

if [ "$(id -u)" = 0 ]; then
	mkdir two && "$python" -W ignore -m graphwire.dgl "$bed" graph two 2 >/dev/null || exit 1
	printf '127.0.0.1 30050\n127.0.0.1 30051\n' >ip_config.txt
	launched "node classification over two servers" gsgnn_np/gsgnn_np.py --cf nc.yaml --num-epochs 15 \
		--save-model-path models --topk-model-to-save 1
	model=$(find models -maxdepth 1 -name 'epoch-*' | head -n 1)
	launched "inference over two servers" gsgnn_np/np_infer_gnn.py --inference --cf nc.yaml --restore-model-path "$model" \
		--save-prediction-path predictions2
	[ -e predictions2 ] || { echo "not ok - graphstorm: inference over two servers: no predictions"; status=1; }
	launched "link prediction over two servers" gsgnn_lp/gsgnn_lp.py --cf lp.yaml --num-epochs 15
	launched "edge classification over two servers" gsgnn_ep/gsgnn_ep.py --cf ec.yaml
fi
# Link prediction ranks an edge among 100 others; without any training the score would be 0.05.
for least in "node classification over two servers:0.45" "inference over two servers:0.45" "node classification:0.45" \
	"inference of nodes:0.45" "node classification without dgl:0.45" "inference without dgl:0.45" "edge classification:0.6" \
	"link prediction:0.065" "edge classification over two servers:0.6" "link prediction over two servers:0.065"; do
	[ ! -e "${least%:*}.log" ] || "$python" "$bed" above "${least%:*}.log" "${least#*:}" || {
		echo "not ok - graphstorm: ${least%:*} is below ${least#*:}"
		status=1
	}
done
exit $status
