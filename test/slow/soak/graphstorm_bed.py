"""The graph, the configurations and the scores of the GraphStorm runs in graphstorm.sh.

    graphstorm_bed.py graph FOLDER PARTS [TIMES]    users rate items: classes of users, ratings of edges, both learnable
    graphstorm_bed.py scores LOG                    the best scores that a training or an inference printed, as one line
    graphstorm_bed.py above LOG LEAST               status 1 if the test set's score is below

A user has a class, an item a class; users rate mostly items of their class, and the rating says whether the classes are
equal. Features show the classes with noise, those of link prediction with less: ranks of ratings under 100 others learn
slowly.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

USERS, ITEMS, EDGES, CLASSES, WIDTH = 1200, 800, 9000, 4, 16
RATES, RATED = ("user", "rates", "item"), ("item", "rates-rev", "user")
COMMON = """
  gnn: {model_encoder_type: rgcn, fanout: "5,5", num_layers: 2, hidden_size: 32, use_mini_batch_infer: true}
  hyperparam: {dropout: 0., lr: 0.01, num_epochs: 5, batch_size: 256, wd_l2norm: 0, no_validation: false}
  rgcn: {num_bases: -1, use_self_loop: true, sparse_optimizer_lr: 0.01, use_node_embeddings: false}
"""
TASKS = {
    "nc": """  node_classification: {target_ntype: user, label_field: label, num_classes: 4, multilabel: false}""",
    "lp": """  link_prediction:
    num_negative_edges: 16
    num_negative_edges_eval: 50
    train_negative_sampler: uniform
    train_etype: ["user,rates,item"]
    eval_etype: ["user,rates,item"]
    exclude_training_targets: true
    reverse_edge_types_map: ["user,rates,rates-rev,item"]
    lp_loss_func: contrastive
    contrastive_loss_temperature: 0.2
    lp_embed_normalizer: l2_norm
    lp_decoder_type: dot_product""",
    "ec": """  edge_classification:
    target_etype: ["user,rates,item"]
    reverse_edge_types_map: ["user,rates,rates-rev,item"]
    label_field: rating
    num_classes: 2
    multilabel: false
    exclude_training_targets: false""",
}


def masks(random, count):
    part = random.permutation(count) % 10
    return {"train_mask": part < 6, "val_mask": (part >= 6) & (part < 8), "test_mask": part >= 8}


def make(folder, parts, times):
    import dgl
    import dgl.distributed
    import numpy as np
    import torch

    users, items, edges, random = times * USERS, times * ITEMS, times * EDGES, np.random.default_rng(1)
    kinds = {"user": random.integers(0, CLASSES, users), "item": random.integers(0, CLASSES, items)}
    src, dst = random.integers(0, users, 4 * edges), random.integers(0, items, 4 * edges)
    equal = kinds["user"][src] == kinds["item"][dst]
    some = np.flatnonzero(equal | (random.random(4 * edges) < 0.15))[:edges]
    src, dst, equal = src[some], dst[some], equal[some]
    g = dgl.heterograph({RATES: (torch.from_numpy(src), torch.from_numpy(dst)),
                         RATED: (torch.from_numpy(dst), torch.from_numpy(src))}, {"user": users, "item": items})
    for ntype, classes in kinds.items():
        noise = random.standard_normal((len(classes), WIDTH))
        for name, shown in (("feat", 0.7), ("clear", 3)):
            g.nodes[ntype].data[name] = torch.from_numpy((noise + shown * np.eye(WIDTH)[classes]).astype(np.float32))
    columns = {"user": {"label": kinds["user"], **masks(random, users)}}
    for name, rows in columns["user"].items():
        g.nodes["user"].data[name] = torch.from_numpy(rows)
    for name, rows in {"rating": equal.astype(np.int64), **masks(random, len(src))}.items():
        g.edges["rates"].data[name] = torch.from_numpy(rows)
    dgl.distributed.partition_graph(g, "g", parts, f"{folder}/g", part_method="random" if parts > 1 else "metis")
    for task, text in TASKS.items():
        name = "clear" if task == "lp" else "feat"
        basic = f'  basic: {{backend: gloo, node_feat_name: ["user:{name}", "item:{name}"]}}'
        Path(folder, f"{task}.yaml").write_text(f"---\nversion: 1.0\ngsf:\n{basic}{COMMON}{text}\n")


def found_in(log):
    """{name: text} of the last scores in a log. An inference prints no best score, but the one of the test set."""
    text = Path(log).read_text()
    best = dict(re.findall(r"(best_(?:test|val)_score): (.*)", text))
    accuracy = re.findall(r"\| Test accuracy: (.*)", text)
    return best if best or not accuracy else {"test_score": f"{{'accuracy': {accuracy[-1]}}}"}


def scores(log):
    print("; ".join(f"{name} {value.strip()}" for name, value in found_in(log).items()))


def above(log, least):
    """Exits with 1 if the last score of the test set is below."""
    of_test = "".join(value for name, value in found_in(log).items() if "test" in name)
    score = re.search(r": ([0-9.]+)", of_test)
    sys.exit(score is None or float(score[1]) < float(least))


if __name__ == "__main__":
    if sys.argv[1] == "graph":
        make(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]) if sys.argv[4:] else 1)
    elif sys.argv[1] == "scores":
        scores(sys.argv[2])
    else:
        above(sys.argv[2], sys.argv[3])
