"""The law of time for a batch of relational.py, computed from the tables alone.

A batch's trees are those of its seeds, users at their times. Hop 1 draws events of the seeds; hop 2 the user and the
item of each of these events; hop 3, where there is one, events of these items. A list is the events of one node in one
tree.
The law of each list, at the seed's time, for a fanout of k:

    last      the last k events that are not later; of equal times any
    uniform   min(k, count) different events that are not later
    any       min(k, count) different events

Figures of laws are counted, not asserted. A batch that names edges that do not exist ends the program.
"""
from __future__ import annotations

import numpy as np

KINDS = ("users", "items")  # of the ends of events
SHIFT = 32  # the place of a node in a key; below it are seconds


class Batch:
    """picks, ends: {kind: (tree, node, event) of each edge}: edges from events to nodes, and from nodes to events."""

    def __init__(self):
        self.picks = {kind: [[], [], []] for kind in KINDS}
        self.ends = {kind: [[], [], []] for kind in KINDS}

    def add(self, what, kind, tree, node, event):
        for all_of, some in zip(what[kind], (tree, node, event)):
            all_of.append(np.asarray(some, np.int64))

    def done(self):
        for what in (self.picks, self.ends):
            for kind in KINDS:
                what[kind] = tuple(np.concatenate(some) if some else np.empty(0, np.int64) for some in what[kind])
        return self


class Tables:
    """of: {kind: the node of each event}. seconds: the time of each event."""

    def __init__(self, user, item, seconds):
        self.of, self.seconds = {"users": user, "items": item}, seconds
        self.keys, self.begins = {}, {}
        for kind, node in self.of.items():
            self.keys[kind] = np.sort(node << SHIFT | seconds)
            self.begins[kind] = np.searchsorted(self.keys[kind], np.arange(node.max() + 2) << SHIFT)
        self.users = len(self.begins["users"]) - 1

    def range_of(self, kind, nodes, until):
        """(first, end): the places among the kind's keys of the nodes' events that are not later than `until`."""
        begins = self.begins[kind][nodes]
        if until is None:
            return begins, self.begins[kind][nodes + 1]
        return begins, np.searchsorted(self.keys[kind], nodes << SHIFT | until, "right")


def flat(first, counts):
    """The places of all ranges, one range after the other."""
    return np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())


def existing(tables, batch, trees):
    for what in (batch.picks, batch.ends):
        for kind, (tree, node, event) in what.items():
            if not np.array_equal(tables.of[kind][event], node) or (len(tree) and tree.max() >= trees):
                raise SystemExit(f"edges of {kind} in a batch are not those of the graph")


def lists_of(batch, kind, seeds, tables, hops):
    """(tree, node) of each list of a kind, and the hop that draws it."""
    if kind == "users":
        return np.arange(len(seeds)), seeds, 0
    tree, _, event = batch.picks["users"] if hops > 2 else (np.empty(0, np.int64),) * 3
    pairs = np.unique(tree << SHIFT | tables.of["items"][event])
    return pairs >> SHIFT, pairs & (1 << SHIFT) - 1, 2


def drawn(tables, batch, kind, law, seeds, seconds, fanouts):
    """The figures of the lists of a kind."""
    tree, node, event = batch.picks[kind]
    list_tree, list_node, hop = lists_of(batch, kind, seeds, tables, len(fanouts))
    order = np.argsort(list_tree << SHIFT | list_node)
    list_tree, list_node = list_tree[order], list_node[order]
    names, wanted = list_tree << SHIFT | list_node, tree << SHIFT | node
    place = np.searchsorted(names, wanted)
    known = place < len(names)
    known[known] = names[place[known]] == wanted[known]
    first, end = tables.range_of(kind, list_node, None if law == "any" else seconds[list_tree])
    counts = np.minimum(end - first, fanouts[hop] if len(names) else 0)
    found = np.bincount(place[known], minlength=len(names))
    exact = found == counts
    apart, repeats = np.unique(np.stack([place, event]), axis=1, return_counts=True)
    exact[apart[0][(repeats > 1) & (apart[0] < len(names))]] = False
    if law == "last":
        mine = exact[place.clip(max=max(0, len(names) - 1))] & known
        picked = np.sort(place[mine] << SHIFT | tables.seconds[event[mine]])
        last = tables.keys[kind][flat((end - counts)[exact], counts[exact])] & (1 << SHIFT) - 1
        at = np.repeat(np.flatnonzero(exact), counts[exact])
        exact[at[picked != (at << SHIFT | last)]] = False
    return {"picks": len(event), "later": int((tables.seconds[event] > seconds[tree]).sum()), "lists": len(names),
            "exact": int(exact.sum()), "elsewhere": int((~known).sum())}


def figures(tables, batch, law, seeds, seconds, fanouts):
    """{picks: edges from events; later: those later than their tree's seed; lists; exact: lists that follow the law;
    elsewhere: picks of nodes that are in no list; ends: edges from the users and items of hop 2; missing: those that
    lack or repeat}. seeds, seconds: int64, [trees]."""
    existing(tables, batch, len(seeds))
    every = {"picks": 0, "later": 0, "lists": 0, "exact": 0, "elsewhere": 0, "ends": 0, "missing": 0}
    for kind in KINDS:
        for name, count in drawn(tables, batch, kind, law, seeds, seconds, fanouts).items():
            every[name] += count
        tree, _, event = batch.picks["users"]
        own = tree << SHIFT | event
        got = batch.ends[kind][0] << SHIFT | batch.ends[kind][2]
        every["ends"] += len(got)
        every["missing"] += len(np.setxor1d(own, got)) + len(got) - len(np.unique(got))
    return every


def equal_picks(batch, seeds):
    """Seeds 2i and 2i + 1 are equal: how many pairs have equal picks."""
    tree, _, event = batch.picks["users"]
    own = [frozenset(some) for some in np.split(event[np.argsort(tree, kind="stable")],
                                                np.cumsum(np.bincount(tree, minlength=len(seeds)))[:-1])]
    return sum(a == b for a, b in zip(own[::2], own[1::2]))
