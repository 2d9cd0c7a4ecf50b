"""Knowledge graph embeddings with DGL-KE's commands and flags; the servers store the rows.

    python -m graphwire.kge train --model_name TransE_l2 --dataset FB15k-237 --hidden_dim 400 --gamma 19.9 --lr 0.25 …

docs/KGE.md is the guide. The modules:

commands, flags    the commands and their options
data, sources      datasets: their files, and how missing files are fetched
dictionaries       the numbers of names, stored with each model
models, losses     score functions and losses, in torch
batches            batches of triples, drawn by the C library
store              rows in the servers
training, client   one step, and one client of a training job
ranking, evaluate  ranks of triples, and the figures of a saved model
outputs            the files of a training
"""

from graphwire._base.requirements import need

need("graphwire.kge", "torch")
