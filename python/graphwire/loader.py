"""Loaders of mini-batches: the names of graphwire/_train/loader.py for users."""

from graphwire._train.loader import EdgeLoader, Loader, NodeLoader
from graphwire._train.loader import __doc__ as __doc__
from graphwire._train.single import Sampler, sample

__all__ = ["EdgeLoader", "Loader", "NodeLoader", "Sampler", "sample"]
