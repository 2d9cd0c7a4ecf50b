"""Loaders of mini-batches: the names of graphwire/_train/loader.py for users."""

from graphwire._train.loader import EdgeLoader, Loader, NodeLoader, Sampler, sample
from graphwire._train.loader import __doc__ as __doc__

__all__ = ["EdgeLoader", "Loader", "NodeLoader", "Sampler", "sample"]
