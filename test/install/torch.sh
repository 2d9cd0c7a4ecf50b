#!/bin/bash
# torch.sh: in an environment with torch and torch_geometric, in /opt/venv: from a PyG graph in memory to a served one, and a
# knowledge graph's first model. Prints a line for each.
set -uo pipefail
cd "$(mktemp -d)" || exit 1
export PATH=/opt/venv/bin:$PATH
status=0
does() { # does WHAT COMMAND…
	if "${@:2}" >out 2>&1; then
		echo "ok - $1"
	else
		echo "not ok - $1"
		tail -n 5 out
		status=1
	fi
}
cat >pyg.py <<'P'
import graphwire, torch
from torch_geometric.data import Data
data = Data(x=torch.rand(300, 8), edge_index=torch.randint(0, 300, (2, 2000)), y=torch.randint(0, 3, (300,)))
graph = graphwire.pyg.from_pyg(data)
batch = next(iter(graphwire.NodeLoader(graph, None, [4, 3], features="x", labels="y", batch_size=32)))
assert batch.x.shape[1] == 8 and len(batch.y) == 32, (batch.x.shape, batch.y)
P
does "from_pyg" python pyg.py
mkdir kg
python - <<'P'
import random
random.seed(1)
lines = [f"e{random.randrange(60)}\tr{random.randrange(3)}\te{random.randrange(60)}\n" for _ in range(900)]
for name, part in (("train", lines[:800]), ("valid", lines[800:850]), ("test", lines[850:])):
    open(f"kg/{name}.txt", "w").writelines(part)
P
does "gwke_train" gwke_train --model_name TransE_l2 --dataset kg --data_path kg --format raw_udd_hrt --data_files train.txt valid.txt \
	test.txt --batch_size 64 --neg_sample_size 16 --hidden_dim 8 --gamma 10 --lr 0.1 --max_step 20 --log_interval 10 --test
exit $status
