"""An opened graph: its ids, edges, features and tensors, draws of edges, and its rows saved to files."""
