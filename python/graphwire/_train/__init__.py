"""Mini-batches: loaders, seeds, what the ranks agree on, and the batch."""
