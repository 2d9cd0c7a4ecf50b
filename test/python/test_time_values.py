"""Times and windows as callers give them: numbers, dates and durations of every library, exact or refused by name."""

from __future__ import annotations

import datetime
import re
import warnings
from fractions import Fraction

import graphwire
import numpy as np
import pytest
import torch
from graphwire._base import times
from shared import imported

SECONDS = {"D": Fraction(86400), "h": Fraction(3600), "m": Fraction(60), "s": Fraction(1), "ms": Fraction(1, 10**3),
           "us": Fraction(1, 10**6), "ns": Fraction(1, 10**9)}
FIRST, LAST = -2**63, 2**63 - 1
UTC = datetime.timezone.utc


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    """a has u and t, b has v; a:r:b has t and x, b:s:b has neither, so that t is that of its source nowhere."""
    path = graphwire.partition_graph(
        {("a", "r", "b"): (np.arange(6) % 3, np.arange(6) % 2), ("b", "s", "b"): (np.arange(4) % 2, np.arange(4) % 2),
         ("a", "q", "a"): (np.arange(3), np.arange(3))},
        "g", 1, tmp_path_factory.mktemp("values") / "g", method="random",
        node_features={"a": {"u": np.arange(3), "w": np.arange(3)}, "b": {"v": np.arange(2) / 2, "k": np.arange(2)}},
        edge_features={("a", "r", "b"): {"t": np.arange(6), "x": np.arange(6) / 2, "word": np.ones((6, 2))}}, time="u")
    with graphwire.open(path, numpy=True) as opened:
        yield opened


def seen(graph, given, seeds=(0, 1), **options):
    """The times of the seeds in a batch."""
    options = {"ntype": "b", "time": "t", **options}
    return graphwire.sample(graph, list(seeds), [2], times=given, **options).seed_times


def test_numbers_of_every_library(graph):
    pd, pa, pl = imported("pandas"), imported("pyarrow"), imported("polars")
    whole = [[3, 4], (3, 4), range(3, 5), np.array([3, 4], np.int8), np.array([3, 4], np.uint64),
             np.array([3, 4], ">i4"), torch.tensor([3, 4]),
             torch.tensor([3, 4], dtype=torch.int32), [torch.tensor(3), np.int16(4)],
             [np.int64(3), 4], pd.Series([3, 4]), pd.Series([3, 4], dtype="Int64"), pd.Index([3, 4]),
             pl.Series([3, 4]), pa.array([3, 4]),
             pa.chunked_array([[3], [4]]), np.arange(9)[3:5], np.array([3, 9, 4])[::2]]
    for given in whole:
        found = seen(graph, given)
        assert found.tolist() == [3, 4] and found.dtype == np.int64, given
    real = [[3.0, 4.5], [3, 4.5], np.array([3, 4.5], np.float32), np.array([3, 4.5], np.float16),
            torch.tensor([3, 4.5], dtype=torch.bfloat16), torch.tensor([3, 4.5], requires_grad=True),
            pd.Series([3, 4.5]), pa.array([3, 4.5])]
    for given in real:
        found = seen(graph, given)
        assert found.tolist() == [3, 4.5] and found.dtype == np.float64, given
    for one in (7, np.int64(7), torch.tensor(7), np.array(7)):
        assert seen(graph, one).tolist() == [7, 7]
    assert seen(graph, [], []).tolist() == []
    assert seen(graph, np.array([-np.inf, np.inf])).tolist() == [-np.inf, np.inf]
    assert seen(graph, [FIRST, LAST]).tolist() == [FIRST, LAST]


@pytest.mark.parametrize("given, error, told", [
    ([1.5, float("nan")], ValueError, "times: the value at position 1 is NaN"),
    (torch.tensor([float("nan"), 1]), ValueError, "times: the value at position 0 is NaN"),
    (np.array([5, 2**63], np.uint64), ValueError, "times: the value at position 1 is above int64"),
    ([5, 2**63], ValueError, "times: 9223372036854775808 at position 1 is no int64"),
    ([2**70, 5], ValueError, "times: 1180591620717411303424 at position 0 is no int64"),
    ([2**53 + 1, 0.5], ValueError, "times: 9007199254740993 at position 0 is not exact as a float64"),
    ([True, False], TypeError, "times: numbers or dates, not True at position 0"),
    (np.array([True, False]), TypeError, "times: numbers or dates, not bool"),
    (torch.tensor([True, False]), TypeError, "times: numbers or dates, not bool"),
    ([1, True], TypeError, "times: numbers or dates, not True at position 1"),
    (["1", "2"], TypeError, "times: numbers or dates, not '1' at position 0"),
    ("12", TypeError, "times: numbers or dates, not "),
    (np.array(["2020", "2021"]), TypeError, "times: numbers or dates, not "),
    ([None, 1], ValueError, "times: the value at position 0 is missing"),
    ([1j, 1], TypeError, "times: numbers or dates, not 1j at position 0"),
    (object(), TypeError, "times: numbers or dates, not <object"),
    ([1, 2, 3], ValueError, "times: 3 for 2 seeds: give one for each, or one for all"),
    ([1], ValueError, "times: 1 for 2 seeds"),
    (np.zeros((2, 1)), ValueError, "times: one dimension, not 2"),
    (np.ma.masked_array([1, 2], [0, 1]), ValueError, "times: a masked array has places without a value"),
    ({"b": [1, 2]}, TypeError, "times: the seeds are of one type"),
    (np.array(["2020", "2021"], "M8[s]"), ValueError, "times: not all times of the graph have a unit"),
    (np.array(["2020", "NaT"], "M8[s]"), ValueError, "times: the value at position 1 is NaT"),
    (np.array([1, 2], "m8[s]"), TypeError, "times: numbers or dates, not durations"),
    ([datetime.timedelta(1)] * 2, TypeError, "times: numbers or dates, not durations"),
    ([datetime.timedelta(1), datetime.date(2020, 1, 1)], TypeError, "times: dates or durations, not both"),
])
def test_what_is_no_time(graph, given, error, told):
    for call in (lambda: seen(graph, given),
                 lambda: graphwire.NodeLoader(graph, [0, 1], [2], ntype="b", time="t", times=given),
                 lambda: graphwire.EdgeLoader(graph, [0, 1], [2], etype="r", time="t", times=given)):
        with pytest.raises(error, match=f"^{re.escape(told)}") as failed:
            call()
        assert "\n" not in str(failed.value)
    if not isinstance(given, dict):
        with pytest.raises(error, match=f"^{re.escape(told)}"):
            graph.neighbours([0, 1], "r", 2, time="t", times=given)


def test_missing_values_of_tables(graph):
    pd, pa = imported("pandas"), imported("pyarrow")
    for given in (pd.Series([1, None], dtype="Int64"), pd.Series([1, None]), pa.array([1, None]),
                  imported("polars").Series([1, None])):
        with pytest.raises(ValueError, match="times: the value at position 1 is NaN"):
            seen(graph, given)
    some = [pd.Timestamp(5), pd.NaT]
    for given in (some, pd.Series(some), pa.array([5, None], pa.timestamp("s"))):
        with pytest.raises(ValueError, match="times: the value at position 1 is NaT"):
            seen(graph, given)


def exact(moments, unit):
    """Numbers of a unit, as Python computes them; None: not all are int64."""
    found = []
    for name, value in moments:
        number = value * SECONDS[name] / SECONDS[unit]
        if number.denominator != 1 or not FIRST < number <= LAST:
            return None
        found.append(int(number))
    return found


def test_dates_are_converted_exactly_or_refused():
    random = np.random.default_rng(1)
    outcomes = set()
    for _ in range(2000):
        name, unit = random.choice(list(SECONDS)), str(random.choice(times.UNITS))
        step = int(random.choice([1, 1, 10, 24, 1000, 86400, 10**9]))
        values = (random.integers(-10**6, 10**int(random.integers(1, 18)), 3) * step).tolist()
        if any(abs(value) >= 2**62 for value in values):
            continue
        wanted = exact([(name, value) for value in values], unit)
        for kind in "Mm":
            given = np.array(values, np.int64).view(f"{kind}8[{name}]")
            until = np.array([0, 5, -5])
            try:
                found = (times.numbers("times", given, 3, unit) if kind == "M" else
                         times.begins("window", np.abs(given), until, unit)).tolist()
            except ValueError as error:
                assert wanted is None and re.match(r"(times|window): .* (no whole number of|too large)", str(error))
            else:
                assert wanted is not None
                assert found == (wanted if kind == "M" else [max(FIRST, time - abs(one))
                                                             for time, one in zip(until.tolist(), wanted)])
        outcomes.add(wanted is None)
    assert outcomes == {True, False}


def test_dates_of_every_library():
    pd, pa, pl = imported("pandas"), imported("pyarrow"), imported("polars")
    moment = datetime.datetime(2024, 2, 29, 12, 30, 1, tzinfo=UTC)
    naive, seconds = moment.replace(tzinfo=None), int(moment.timestamp())
    there = moment.astimezone(datetime.timezone(datetime.timedelta(hours=5)))
    for given in ([naive], [moment], [there], moment, pd.Timestamp(naive), [pd.Timestamp(there)], pd.Series([naive]),
                  pd.Series([there]), pd.DatetimeIndex([there]), pa.array([naive]), pa.array([there]),
                  pl.Series([naive]), pl.Series([moment]), pl.Series([naive], dtype=pl.Datetime("ms", "Europe/Berlin")),
                  np.array([naive], "M8[ns]"), np.datetime64(naive, "s"), [np.datetime64(naive, "ms")],
                  pd.Series([naive]).astype("timestamp[ns][pyarrow]")):
        for unit, factor in (("s", 1), ("ms", 1000), ("ns", 10**9)):
            assert times.numbers("times", given, 1, unit).tolist() == [seconds * factor], given
        with pytest.raises(ValueError, match="no whole number of m, the unit"):
            times.numbers("times", given, 1, "m")
    days = (datetime.date(2024, 2, 29) - datetime.date(1970, 1, 1)).days
    for given in ([datetime.date(2024, 2, 29)], pa.array([datetime.date(2024, 2, 29)]), np.array(["2024-02-29"], "M8")):
        assert times.numbers("times", given, 1, "D").tolist() == [days]
    assert times.numbers("times", np.array(["2024-03"], "M8[M]"), 1, "D").tolist() == [days + 1]
    assert times.numbers("times", np.array([-1, 1], "M8[10ms]"), 2, "us").tolist() == [-10000, 10000]
    for far in (np.array([10**15], "M8[Y]"), np.array([2**62], "M8[s]"), np.array([1], "M8[as]") + 10**17):
        with pytest.raises(ValueError, match=r"too large|no whole number"):
            times.numbers("times", far, 1, "ns")
    for given in (datetime.timedelta(minutes=1), pd.Timedelta(60, "s"), np.timedelta64(1, "m"), [pd.Timedelta(1, "m")],
                  np.array([60], "m8[s]"), 60):
        assert times.begins("window", given, np.array([100]), "s").tolist() == [40]
    for given in (np.timedelta64(1, "M"), np.timedelta64(1)):
        with pytest.raises(ValueError, match="window: a duration"):
            times.begins("window", given, np.array([100]), "s")


def test_windows(graph):
    """They end at the seed's time, and begin exactly their length before it; whole times saturate."""
    random = np.random.default_rng(2)
    for _ in range(300):
        until = random.choice([FIRST, FIRST + 1, -3, 0, 7, LAST - 1, LAST], 4)
        width = random.choice([0, 1, 5, 2**53, LAST - 1, LAST], 4)
        wanted = [max(FIRST, time - one) for time, one in zip(until.tolist(), width.tolist())]
        assert times.begins("window", width, until).tolist() == wanted
    assert times.begins("window", 3, np.array([1.5, np.inf, -np.inf])).tolist() == [-1.5, np.inf, -np.inf]
    assert times.begins("window", np.inf, np.array([1.5, np.inf])).tolist() == [-np.inf, -np.inf]
    assert times.begins("window", [np.inf, 2.0], np.array([5, 5])).tolist() == [FIRST, 3]
    for given, error, told in (
            (-1, ValueError, "window is 0 or more, not -1"), ([1, -2], ValueError, "window is 0 or more, not -2"),
            (float("nan"), ValueError, "window: the value is NaN"),
            ("5", TypeError, "window: a number or a duration, not texts"),
            (True, TypeError, "window: a number or a duration, not bool"),
            (0.5, ValueError, "window: the times are whole numbers, and 0.5 is not"),
            ([1, 2, 3], ValueError, "window: 3 for 2 seeds"),
            (np.datetime64("2020"), TypeError, "window: a number or a duration, not a date"),
            (np.timedelta64(5, "s"), ValueError, "window: not all times of the graph have a unit")):
        with pytest.raises(error, match=f"^{re.escape(told)}"):
            seen(graph, [3, 4], window=given)


@pytest.mark.parametrize("options, error, told", [
    ({"times": [1, 2]}, graphwire.InvalidError, "times needs time="),
    ({"window": 3}, graphwire.InvalidError, "window needs time="),
    ({"pick": "last"}, graphwire.InvalidError, "pick needs time="),
    ({"strict": True}, graphwire.InvalidError, "strict needs time="),
    ({"end": "x"}, graphwire.InvalidError, "end needs time="),
    ({"time": {}, "times": 3}, graphwire.InvalidError, "times needs time="),
    ({"time": "t"}, graphwire.NotFoundError, "times: b has no feature 't': give times, one for each seed"),
    ({"time": {"r": "t", "q": "u.source"}}, graphwire.NotFoundError, "times: the times of edges have several names"),
    ({"time": "t", "times": 3, "pick": "first"}, graphwire.InvalidError, "pick is uniform or last, not 'first'"),
    ({"time": "t", "times": 3, "strict": "yes"}, TypeError, "strict is True or False"),
    ({"time": "none", "times": 3}, graphwire.NotFoundError, "time: no edge type has a feature 'none'; a:q:a has "),
    ({"time": "w", "times": 3}, graphwire.NotFoundError,
     'time: edge type a:r:b: "w" is a feature of the sources, and the parts do not store it with the edges; '
     '"graphwire partition --time w" makes parts that do'),
    ({"time": {"s": "k"}, "times": 3}, graphwire.NotFoundError, 'time: edge type b:s:b: "k" is a feature of the sour'),
    ({"time": {"s": "t"}, "times": 3}, graphwire.NotFoundError, "time: edge type b:s:b has no feature 't'"),
    ({"time": {"r": "t", "a:r:b": "t"}, "times": 3}, graphwire.InvalidError, "time: a:r:b is named twice"),
    ({"time": 3}, TypeError, "time: the name of a feature of edges or of nodes, or {edge type: name}, not 3"),
    ({"time": {"r": 3}}, TypeError, "time: the name of a feature of edges or of nodes"),
    ({"time": "t", "times": 3, "end": "none"}, graphwire.NotFoundError, "end: no edge type has a feature 'none'"),
    ({"time": "t", "times": 3, "weight": "x"}, graphwire.GraphwireError, "edge type a:r:b"),
    ({"time": {"r": "word"}, "times": 3}, graphwire.GraphwireError, 'edge type a:r:b, feature "word"'),
    ({"disjoint": 2}, TypeError, "disjoint is True or False"),
])
def test_names_and_options(graph, options, error, told):
    calls = [lambda: graphwire.sample(graph, [1], [2], ntype="b", **options),
             lambda: graphwire.NodeLoader(graph, [1], [2], ntype="b", **options)]
    for call in calls:
        with pytest.raises(error, match=f"^{re.escape(told)}") as failed:
            call()
        assert "\n" not in str(failed.value)


@pytest.mark.parametrize("of, until", [(one, other) for one in (np.int64, np.int32, np.float64, np.float32)
                                       for other in (np.int64, np.float64)])
def test_times_until_another_are_counted_exactly(of, until):
    """Beside integers and fractions of any size, at the limits of the types and of what float64 holds."""
    random = np.random.default_rng(3)
    edges = [FIRST, FIRST + 1, -2**53 - 1, -2**53, -1, 0, 1, 2**24 + 1, 2**53, 2**53 + 1, 2**62 + 1, LAST - 1, LAST]
    values = {}
    for dtype in {of, until}:
        whole = np.array([one for one in edges if dtype != np.int32 or abs(one) < 2**31])
        near = (whole[:, None] + random.integers(-2, 3, 4)).ravel() if dtype == np.int32 else whole
        some = np.concatenate([near.astype(dtype), random.integers(-9, 9, 40).astype(dtype)])
        values[dtype] = some if dtype in (np.int64, np.int32) else np.concatenate(
            [some, (random.integers(-9, 9, 40) / 4).astype(dtype), np.array([np.inf, -np.inf, 2.0**64], dtype)])
    ascending, asked = np.sort(values[of]), values[until]
    exact = [Fraction(one) if np.isfinite(one) else one for one in ascending.tolist()]
    expected = [sum(one <= (Fraction(at) if np.isfinite(at) else at) for one in exact) for at in asked.tolist()]
    assert times.counts_until(ascending, asked).tolist() == expected


def test_names_of_times(graph):
    """A type's own feature comes first, then that of its sources; the others are drawn uniformly."""
    assert graphwire.sample(graph, [0, 1], [-1], ntype="b", time="u", times=0).num_edges == 6  # r by source 0, all of s
    assert graphwire.sample(graph, [0, 1], [-1], ntype="b", time={"r": "t"}, times=0).num_edges == 5
    assert graphwire.sample(graph, [0, 1], [{"r": -1}], ntype="b", time={"r": "u.source"}, times=1,
                            edge_features={"r": "u.source"}).blocks[0]["r"].data["u.source"].max() == 1
    assert graph.neighbours([0, 1], "r", time="t", times=[4, 0]).offsets.tolist() == [0, 3, 3]
    batch = next(iter(graphwire.NodeLoader(graph, None, [2], ntype="a", time="u.source")))
    assert batch.seed_times.tolist() == [0, 1, 2]
    for call in (lambda: graphwire.NodeLoader(graph, {"a": [0], "b": [1]}, [2], time="t", times=[1, 2]),
                 lambda: graphwire.NodeLoader(graph, {"a": [0], "b": [1]}, [2], time="t", times={"a": [1]}),
                 lambda: graphwire.NodeLoader(graph, {"a": [0]}, [2], time="t", times={"a": [1], "b": [2]})):
        with pytest.raises(graphwire.InvalidError, match=r"^times: "):
            call()
    both = graphwire.sample(graph, {"a": [0], "b": [1, 0]}, [2], time="u", times={"a": [1], "b": [0.5, 2]}, window=3)
    assert both.seed_times["a"].dtype == np.float64 and both.seed_times["b"].tolist() == [0.5, 2]
    assert graphwire.sample(graph, {"a": [0], "b": [1, 0]}, [2], time="u", times=2).seed_times["b"].tolist() == [2, 2]
    assert len(list(graphwire.NodeLoader(graph, {}, [2], time="u"))) == 0
    assert len(list(graphwire.NodeLoader(graph, [], [2], ntype="b", time="t", times=[]))) == 0


def test_units_of_the_graph(tmp_path):
    """Dates become numbers of the columns' unit, seeds' own times too; columns of two units are refused by name."""
    def moments(*seconds, unit):
        return np.array([f"1970-01-01T00:00:{one:02}" for one in seconds], f"M8[{unit}]")

    path = graphwire.partition_graph(
        {("a", "r", "b"): ([0, 1, 2], [0, 0, 0]), ("b", "s", "b"): ([0, 0], [0, 0]), ("a", "q", "a"): ([0], [1])},
        "g", 1, tmp_path / "g", method="random", time=["a:r:b:t", "b:s:b:t", "a:q:a:u"],
        node_features={"a": {"u": moments(1, 2, 3, unit="s")}, "b": {"t": moments(2, unit="ns"), "n": [5]}},
        edge_features={("a", "r", "b"): {"t": moments(1, 2, 3, unit="ms"), "n": [1, 2, 3]},
                       ("b", "s", "b"): {"t": moments(1, 5, unit="s")}})
    with graphwire.open(path, numpy=True) as graph:
        def count(given, time, **options):
            return graphwire.sample(graph, [0], [-1], ntype="b", time=time, times=given, **options).blocks[0]

        for given in (moments(2, unit="s"), moments(2, unit="ns"), 2000, [datetime.datetime(1970, 1, 1, 0, 0, 2)]):
            assert count(given, {"r": "t"})["r"].num_edges == 2
            assert count(given, {"r": "t"}, window=np.timedelta64(0, "s"))["r"].num_edges == 1
            assert graph.neighbours([0], "r", time="t", times=given).edge_ids.tolist() == [0, 1]
        assert len(graph.neighbours([1], "q", time="u", times=moments(1, unit="ns"))) == 1
        assert len(graph.neighbours([1], "q", time="u", times=np.array([999], "M8[ms]") + 1)) == 1
        assert count(None, {"r": "t"})["r"].num_edges == 2, "2 s in ns are 2000 ms"
        with pytest.raises(graphwire.InvalidError, match=r"time: a:r:b has 't' in ms, and b:s:b has 't' in s: "):
            count(2000, "t")
        with pytest.raises(graphwire.InvalidError, match=r"times: .* no whole number of s, the unit"):
            count(np.array([1500], "M8[ms]"), {"s": "t"})
        with pytest.raises(graphwire.InvalidError, match="not all times of the graph have a unit: give plain numbers"):
            count(moments(2, unit="s"), {"r": "n"})
        with pytest.raises(graphwire.InvalidError, match=r"a:r:b has 't' in ms, and a has 'u' in s"):
            graphwire.EdgeLoader(graph, [0], [2], etype="r", negatives=1, negative_end="src", time={"r": "t"},
                                 exist_time="u")
    assert set(times.UNITS) == set(SECONDS)


@pytest.mark.parametrize("seeds, said", [
    ([5, 9], None), ([-3, -1], "before the first"), ([-3, 0], None), ([400, 400], None), ([5000, 10**6], "far after"),
    ([5, 10**6], None), ([np.inf, np.inf], None), ([-np.inf, 1e9], "far after"), ([], None)])
def test_times_that_cannot_be_meant(tmp_path, seeds, said):
    """One warning names both ranges: every seed is before the first time of the edges, or far after the last."""
    path = graphwire.partition_graph((np.arange(9) % 3, np.arange(9) % 4), "g", 1, tmp_path / "g", method="random",
                                     edge_features={"t": np.arange(9), "late": np.arange(9) * 5.0})
    told = f"times: the seeds' times are .* to .*, and the edges' \\('t' of _N:_E:_N\\) 0 to 8: every seed is {said}"
    ids = range(min(len(seeds), 3))
    for call in (lambda graph: graph.neighbours(ids, time="t", times=seeds),
                 lambda graph: graphwire.sample(graph, ids, [2], time="t", times=seeds),
                 lambda graph: graphwire.NodeLoader(graph, ids, [2], time="t", times=seeds, batch_size=1),
                 lambda graph: graphwire.EdgeLoader(graph, ids, [2], time="t", times=seeds)):
        with graphwire.open(path) as graph, warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            call(graph)
            call(graph)
            assert len(found) == (said is not None)
            assert not found or (re.match(told, str(found[0].message)) and found[0].filename == __file__)


def test_seeds_that_name_no_type(graph):
    for loader in (graphwire.NodeLoader, graphwire.EdgeLoader):
        for options in ({}, {"time": "u"}, {"time": "u", "times": {}}, {"time": "u", "times": 3, "window": 1},
                        {"time": "u", "times": {}, "window": {}}):
            assert list(loader(graph, {}, [2], **options)) == [], options
        for options, told in (({"times": {}}, "times needs time="), ({"window": 3}, "window needs time=")):
            with pytest.raises(graphwire.InvalidError, match=f"^{told}"):
                loader(graph, {}, [2], **options)
    with pytest.raises(graphwire.InvalidError, match=r"^times: a has no seeds$"):
        graphwire.NodeLoader(graph, {}, [2], time="u", times={"a": 3})


@pytest.mark.parametrize("option, value", [
    ("times", 3), ("window", 1), ("negatives", 1), ("negative_end", "src"), ("exist_time", False),
    ("ends", ([0], [0]))])
def test_a_type_is_named_once(graph, option, value):
    options = {"time": "t", "times": 3, option: {"r": value, ("a", "r", "b"): value}}
    with pytest.raises(graphwire.InvalidError, match=f"^{option}: a:r:b is named twice$"):
        graphwire.EdgeLoader(graph, {"a:r:b": None}, [2], **options)


def test_lists_for_seeds_by_type(graph):
    for given in ([1], (1, 2), [[1], [2, 3]], np.array([1, 2]), torch.tensor([1])):
        with pytest.raises(graphwire.InvalidError, match=r"^times: the seeds are given by type: give {type: times}$"):
            graphwire.sample(graph, {"a": [0], "b": [1]}, [2], time="u", times=given)


def test_whole_and_real_times_that_are_not_later():
    """Compared exactly, also where whole numbers are not real ones."""
    wholes = [0, -1, 2**53, 2**53 + 1, -2**53 - 1, 2**63 - 1, -2**63]
    reals = [0.0, -0.5, 0.5, 2.0**53, 2.0**53 + 2, -2.0**53, 2.0**63, -2.0**63, -2.0**64, np.inf, -np.inf]
    for first, second in ((wholes, reals), (reals, wholes), (wholes, wholes), (reals, reals)):
        found = times.not_later(np.array(first).repeat(len(second)), np.tile(second, len(first)))
        assert found.tolist() == [x <= y for x in first for y in second]
    assert not times.not_later(np.array([np.nan, np.nan]), np.array([5, 2**63 - 1])).any()
