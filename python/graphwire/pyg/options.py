"""Arguments of PyTorch Geometric's loaders and samplers that are older words; those that graphwire.pyg does not have,
each refused by its name; and those that have no effect, which one warning names."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from torch_geometric.sampler import NegativeSampling
from torch_geometric.sampler.base import SubgraphType

from graphwire._base import checks
from graphwire._base.caller import level_of_the_caller

# Arguments that torch's DataLoader and PyG's loaders use for worker processes, and the values that ask for nothing.
OF_WORKERS = {"num_workers": (0,), "persistent_workers": (False,), "prefetch_factor": (None,),
              "worker_init_fn": (None,), "multiprocessing_context": (None,), "timeout": (0,), "in_order": (True,),
              "share_memory": (False,), "is_sorted": (False,)}


def kind_of(subgraph_type: Any, directed: bool) -> SubgraphType:
    """The kind of subgraph that both arguments ask for. Warns of directed=False, as PyG does."""
    if checks.flag("directed", directed):
        word = subgraph_type.value if isinstance(subgraph_type, SubgraphType) else subgraph_type
        return SubgraphType(checks.choice("subgraph_type", word, [one.value for one in SubgraphType]))
    warnings.warn("directed=False is deprecated: use subgraph_type='induced'", UserWarning,
                  stacklevel=level_of_the_caller())
    return SubgraphType.induced


def negatives_of(neg_sampling: Any) -> NegativeSampling | None:
    """neg_sampling in each of PyG's forms. Raises ValueError."""
    try:
        return NegativeSampling.cast(neg_sampling)
    except (ValueError, TypeError) as error:
        raise ValueError(f"neg_sampling: {error}") from None


def check_direction(sample_direction: str) -> None:
    """Raises NotImplementedError for draws along the edges."""
    if checks.choice("sample_direction", sample_direction, ("forward", "backward")) == "backward":
        raise NotImplementedError('sample_direction="backward": graphwire.pyg does not have this kind of sampling; '
                                  "reverse the edges of the data")


def without_effect(given: Mapping[str, Any]) -> None:
    """Warns once of all arguments that are given and have no effect."""
    named = [name for name, usual in OF_WORKERS.items() if name in given and given[name] not in usual]
    if named:
        warnings.warn(f"graphwire.pyg: the library's own threads sample, so {', '.join(named)} "
                      f"{'has' if len(named) == 1 else 'have'} no effect", UserWarning,
                      stacklevel=level_of_the_caller())
