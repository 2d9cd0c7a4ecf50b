"""Knowledge graph embeddings, trained through the servers' rows; DGL-KE's commands and flags.

    python -m graphwire.kge train --model_name TransE_l2 --dataset FB15k-237 --hidden_dim 400 --gamma 19.9 --lr 0.25 …

docs/KGE.md has the guide. The parts: data (files), models and losses (torch), batches (drawn in C), store (rows in the
servers), training (a client's steps), ranking (figures), outputs (what is left), commands and their flags.
"""
