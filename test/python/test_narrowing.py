"""Numbers at every entrance of a graph: a value is stored exactly, or rounded as its text means, or refused by its file
and row. The program and from_tables are compared with fractions over random texts."""

from __future__ import annotations

import random
import re
import subprocess
from fractions import Fraction

import graphwire
import numpy as np
import pytest
from conftest import PROGRAM
from graphwire._files import narrow
from graphwire._files import rows as _rows

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")

import pyarrow.parquet  # noqa: E402, F401
from test_tables import partition  # noqa: E402

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$")
NONE = ("NA", "nan", "NULL", "None", "\\N", "N/A", "<NA>")
ENDS = {"src": [0, 1, 2, 3], "dst": [1, 2, 3, 0]}


def nearest(text, kind):
    """The number in the type, rounded once, ties to even."""
    right, ends = Fraction(text), np.finfo(kind)
    if abs(right) > Fraction(float(ends.max)) + Fraction(2) ** (ends.maxexp - ends.nmant - 2):
        return kind(np.inf)
    some = kind(float(right)) if abs(right) < 2**1023 else ends.max * (1 if right > 0 else -1)
    near = [one for one in (np.nextafter(some, kind(-np.inf)), some, np.nextafter(some, kind(np.inf)))
            if np.isfinite(one)]
    bits = f"u{some.itemsize}"
    return min(near, key=lambda one: (abs(Fraction(float(one)) - right), int(one.view(bits)) % 2))


def fits(text, kind):
    """The number in a floating-point type; None if the type does not hold it."""
    if text.strip("+-").lower().startswith("inf"):
        return kind(float(text))
    if not NUMBER.match(text):
        return None
    found, digits = nearest(text, kind), np.finfo(kind).nmant + 1
    if np.isinf(found) or (found == 0 and Fraction(text) != 0):
        return None
    if found == 0 and text.startswith("-"):
        return kind(-0.0)
    plain = "e" not in text.lower()
    return None if plain and abs(Fraction(text)) > 2**digits and Fraction(float(found)) != Fraction(text) else found


def whole(text):
    """The number as int64; None if int64 does not hold it."""
    value = Fraction(text) if NUMBER.match(text) else None
    return int(value) if value is not None and value.denominator == 1 and -2**63 <= value < 2**63 else None


def a_text(draw):
    """A number as programs write it: around the limits of the types, and elsewhere."""
    edge = draw.choice([0, 2**24, 2**24, 2**53, 2**63, 2**64]) * draw.choice([1, -1])
    integer = edge + draw.randint(-3, 3)
    return draw.choice([
        lambda: str(integer), lambda: str(integer), lambda: str(integer), lambda: f"{integer}.0",
        lambda: f"{integer}.5",
        lambda: f"{draw.uniform(-9, 9):.6f}", lambda: f"{draw.uniform(-9, 9):.{draw.randint(0, 20)}e}",
        lambda: f"{draw.randint(1, 9)}e{draw.randint(-60, 60)}", lambda: f"{draw.randint(1, 99)}e-400",
        lambda: f"{draw.randint(1, 99)}e400", lambda: draw.choice(["inf", "-inf", "+1", ".5", "5.", "0.0", "-0"]),
        lambda: f"{draw.randint(1, 9)}{'0' * draw.randint(5, 25)}"])()


def a_column(draw, texts=a_text):
    """Four texts; most columns have only one that may not fit."""
    plain = draw.choice([["1", "2", "3"], ["1", "0.5", "2"], ["1.0", "0.0", "10.0"]])
    column = [*plain, texts(draw)] if draw.random() < 0.8 else [texts(draw) for _ in range(4)]
    draw.shuffle(column)
    return column


def imported(folder, column, *words):
    """What `graphwire import` makes of a column of nodes, by the name of the words; its error text if it refuses."""
    (folder / "edges.csv").write_text("src,dst\n0,1\n1,2\n2,3\n3,0\n")
    (folder / "nodes.csv").write_text("id,v\n" + "".join(f"{row},{text}\n" for row, text in enumerate(column)))
    done = subprocess.run([PROGRAM, "import", "--from", folder / "edges.csv", "--node-table", folder / "nodes.csv",
                           *words, "--out", folder / "g", "--replace", "--quiet"], capture_output=True, text=True)
    if done.returncode:
        assert done.returncode == 1 and done.stderr.count("\n") == 1
        return done.stderr
    with graphwire.open(folder / "g", numpy=True) as graph:
        return graph.feature("x" if "--node-column" in words else "label")[:]


def tabled(folder, column, **roles):
    """What from_tables makes of the same file."""
    (folder / "nodes.csv").write_text("id,v\n" + "".join(f"{row},{text}\n" for row, text in enumerate(column)))
    try:
        with partition(graphwire.from_tables(ENDS, folder / "nodes.csv", **roles), folder / "p") as graph:
            return graph.feature("v" if "features" in roles else "label")[[0, 1, 2, 3]]
    except (ValueError, TypeError) as error:
        assert "\n" not in str(error)
        return str(error)


def expect(found, right, kind, column, first_row):
    """Compares with the right values, which are None if the column is refused; then the error has the row."""
    if right is None:
        assert isinstance(found, str), (column, found)
        assert re.search(rf"nodes\.csv, (line|row) [{first_row}-{first_row + 3}]\b", found), (column, found)
        return
    assert not isinstance(found, str), (column, found)
    assert found.dtype == kind, (column, found.dtype)
    assert found.tobytes() == np.array(right, kind).tobytes(), (column, found, right)


def all_or_none(values):
    values = list(values)
    return None if any(value is None for value in values) else values


def right_floats(column, kind):
    """(values, dtype) of a column of features: floats; integers if that type does not hold them, and int64 does."""
    floats = all_or_none(fits(text, kind) for text in column)
    integers = all_or_none(map(whole, column))
    return (floats, kind) if floats or not integers else (integers, np.int64)


def test_columns_of_the_program(tmp_path):
    """--node-column: float32 that is rounded once; int64 if float32 does not hold the column; or an error."""
    draw, kinds = random.Random(1), []
    for _ in range(100):
        column = a_column(draw)
        right, kind = right_floats(column, np.float32)
        expect(imported(tmp_path, column, "--node-column", "x=v"), right, kind, column, 2)
        kinds.append(None if right is None else kind)
    assert min(map(kinds.count, (None, np.float32, np.int64))) > 2, "each kind occurs"


def test_columns_of_from_tables(tmp_path):
    """The same files: int64 if all values are written as integers, else float64."""
    draw, kinds = random.Random(2), []
    for _ in range(40):
        column = a_column(draw)
        right, kind = all_or_none(whole(text) if re.match(r"-?\d+$", text) else None for text in column), np.int64
        if right is None:
            right, kind = all_or_none(fits(text, np.float64) for text in column), np.float64
        expect(tabled(tmp_path, column, features=["v"]), right, kind, column, 0)
        kinds.append(None if right is None else kind)
    assert min(map(kinds.count, (None, np.float64, np.int64))) > 1, "each kind occurs"


def a_label(draw):
    return draw.choice([lambda: draw.choice(NONE), lambda: draw.choice(["1.0", "7.0", "3e0", "-2", "0.5"]),
                        lambda: str(draw.choice([2**53, 2**63 - 1, 2**63, 2**64 - 1])), lambda: a_text(draw)])()


def test_labels(tmp_path):
    """Labels that are whole numbers in any form are these integers, in the program and in from_tables. One that is
    missing among numbers is refused, and never renumbers the others."""
    draw, same = random.Random(3), 0
    for _ in range(45):
        column = a_column(draw, a_label)
        integers = all_or_none(map(whole, column))
        found, tables = imported(tmp_path, column, "--label-column", "v"), tabled(tmp_path, column, labels="v")
        right, kind = (integers, np.int64) if integers else (all_or_none(fits(text, np.float32) for text in column),
                                                             np.float32)
        expect(found, right, kind, column, 2)
        if any(text in NONE for text in column):
            assert isinstance(tables, str) and re.search(r"nodes\.csv, row [0-3]: column v is missing", tables), column
        if not isinstance(found, str) and not isinstance(tables, str):
            assert np.array_equal(tables.astype(found.dtype), found) and tables.dtype.kind == found.dtype.kind, column
            same += 1
    assert same > 10
    for column in (["a", "NA", "1", "b"], ["NA", "None", "NA", "NULL"]):  # words among words
        names = sorted(set(column))
        for found in (imported(tmp_path, column, "--label-column", "v"), tabled(tmp_path, column, labels="v")):
            assert [names[i] for i in found] == column


@pytest.mark.parametrize("values, right", [
    (pd.Series([1.0, 0.0, 10.0, 2.0]), [1, 0, 10, 2]), (pd.Series([1.0, 0.5, 10.0, 2.0]), [1.0, 0.5, 10.0, 2.0]),
    (pd.Series([1.0, None, 10.0, 2.0]), "row 1: column y is missing"),
    (pd.Series(["1", "0", "NA", "2"]), "row 2: column y is missing"),
    (pd.Series([1, 2, 2**63 + 5, 0], dtype="uint64"), f"row 2: column y is {2**63 + 5}: labels are below 2^63"),
    (pd.Series([1, 2, 2**63 - 1, 0], dtype="uint64"), [1, 2, 2**63 - 1, 0]),
    (pd.Series([1.0, 2.0**63, 3.0, 4.0]), [1.0, 2.0**63, 3.0, 4.0])])
def test_labels_of_frames(values, right, tmp_path):
    tables = graphwire.from_tables(ENDS, pd.DataFrame({"id": [0, 1, 2, 3], "y": values}), labels="y")
    if isinstance(right, str):
        with pytest.raises(ValueError, match=re.escape(right)):
            partition(tables, tmp_path / "g")
        return
    with partition(tables, tmp_path / "g") as graph:
        assert graph.feature("label")[[0, 1, 2, 3]].tolist() == right
        assert graph.feature("label").dtype == np.array(right).dtype


def test_labels_of_several_batches(tmp_path, monkeypatch):
    """The whole column decides whether labels that are floats are integers."""
    monkeypatch.setattr(graphwire._files.table_kinds, "BATCH_ROWS", 2)
    for last, kind in ((3.0, np.int64), (3.5, np.float64)):
        nodes = {"id": [0, 1, 2, 3], "y": [1.0, 2.0, 0.0, last]}
        with partition(graphwire.from_tables(ENDS, nodes, labels="y"), tmp_path / str(last)) as graph:
            assert graph.feature("label")[:].tolist() == nodes["y"] and graph.feature("label").dtype == kind


def test_columns_of_edges(tmp_path):
    """--edge-column and --weight, over several files: one type for a column, and an error has file and line."""
    def made(words, *texts):
        names = [f"{place}.csv" for place in range(len(texts))]
        for name, column in zip(names, texts):
            (tmp_path / name).write_text("src,dst,w,v\n" + "".join(f"{row},{row + 1},{one},1\n"
                                                                  for row, one in enumerate(column)))
        done = subprocess.run([PROGRAM, "import", *(word for name in names for word in ("--from", tmp_path / name)),
                               *words, "--out", tmp_path / "g", "--replace", "--quiet"], capture_output=True, text=True)
        if done.returncode:
            return done.stderr.strip()
        with graphwire.open(tmp_path / "g", numpy=True) as graph:
            etype = graph.etypes[0]
            order = graph.feature("orig_id", etype=etype)[:].argsort()
            found = {name: graph.feature(name, etype=etype)[:][order] for name in ("x", "weight", "v")
                     if any(feature.name == name for feature in graph.features)}
            if "weight" in found:
                drawn = graph.neighbours(np.arange(1, graph.num_nodes()), fanout=1, weight="weight")
                assert len(drawn) == (found["weight"] > 0).sum()
            return found

    both = ["--edge-column", "x=w", "--edge-column", "v=v"]
    found = made(both, ["1", "2"], ["16777217", "4"])
    assert found["x"].dtype == np.int64 and found["x"].tolist() == [1, 2, 16777217, 4]
    assert found["v"].dtype == np.float32
    assert made(both, ["1", "0.1"], ["2"])["x"].tolist() == [1, float(np.float32(0.1)), 2]
    weights = ["--weight", "w"]
    assert made(weights, ["1e-45", "0", "3"])["weight"].tolist() == [float(np.float32(1e-45)), 0, 3]
    assert made(weights, ["16777217", "1"])["weight"].tolist() == [16777217, 1]
    for words, texts, wrong in ((both, (["1"], ["2", "1e400"]), '1.csv, line 3, column 3: "1e400" as x is too large'),
                                (both, (["0.5"], ["2", "16777217"]), '1.csv, line 3, column 3: "16777217" as x is not'),
                                (both, (["nan"],), '0.csv, line 2, column 3: "nan" as x is missing'),
                                (weights, (["1", "1e-50"],), '0.csv, line 3, column 3: "1e-50" as weight is too small'),
                                (weights, (["1"], ["16777217", "-1"]), "1.csv, line 3: weight -1: weights are finite"),
                                (weights, (["inf"],), "0.csv, line 2: weight inf: weights are finite")):
        found = made(words, *texts)
        assert isinstance(found, str) and wrong in found, found


def test_times(tmp_path):
    """--time takes what int64 holds, without a fraction unless --time-digits says how much of it to keep."""
    def made(texts, *words):
        (tmp_path / "e.csv").write_text("src,dst,t\n" + "".join(f"0,{row},{one}\n" for row, one in enumerate(texts)))
        done = subprocess.run([PROGRAM, "import", "--from", tmp_path / "e.csv", "--time", "t", *words, "--out",
                               tmp_path / "g", "--replace", "--quiet"], capture_output=True, text=True)
        if done.returncode:
            return done.stderr
        with graphwire.open(tmp_path / "g", numpy=True) as graph:
            return graph.feature("time", etype=graph.etypes[0])[:].tolist()

    assert made(["5", "-3.000", "9007199254740993"]) == [5, -3, 9007199254740993]
    assert made(["5.19", "-3.999"], "--time-digits", "1") == [51, -39]
    assert 'line 3, column 3: "2.5" as time is a number with further digits: --time-digits' in made(["1", "2.5"])
    assert "line 2" in made(["9223372036854775808"]) and "line 2" in made(["1e400"])


UNITS = {"s": Fraction(10**6), "ms": Fraction(1000), "us": Fraction(1), "ns": Fraction(1, 1000)}


@pytest.mark.parametrize("unit", UNITS)
def test_timestamps(unit, tmp_path):
    """In microseconds, or refused with row and value."""
    draw = random.Random(f"times {unit}")
    for round_ in range(15):
        scale = draw.choice([1, 1000, 10**6])
        values = [draw.randint(-2**62, 2**62) >> draw.randint(0, 60) for _ in range(3)]
        values = [value // scale * scale for value in values] + [draw.choice([0, 1, 2**63 // 1000, -2**63 // 10**6])]
        right = [value * UNITS[unit] for value in values]
        wrong = next((row for row, one in enumerate(right) if one.denominator != 1 or not -2**63 <= one < 2**63), None)
        tables = graphwire.from_tables(pa.table({**ENDS, "t": pa.array(values, pa.timestamp(unit))}), time="t")
        if wrong is not None:
            with pytest.raises(ValueError, match=rf"edges, row {wrong}: column t is {values[wrong]} as timestamp"):
                partition(tables, tmp_path / "wrong")
            continue
        with partition(tables, tmp_path / str(round_)) as graph:
            found = graph.feature("time", etype=graph.etypes[0])[:]
            order = graph.feature("orig_id", etype=graph.etypes[0])[:].argsort()
            assert found[order].tolist() == [int(one) for one in right]


def test_dates(tmp_path):
    tables = graphwire.from_tables(pa.table({**ENDS, "t": pa.array([0, 1, 2, 2**31 - 1], pa.date32())}), time="t")
    with pytest.raises(ValueError, match="edges, row 3: column t is 2147483647 as date32"):
        partition(tables, tmp_path / "g")


DTYPES = ["int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64", "bool"]


def some_values(draw, dtype):
    if dtype == "bool":
        return np.array([draw.random() < 0.5 for _ in range(4)])
    if dtype.startswith("float"):
        return np.array([draw.choice([0.5, -1.25, 3.0]) for _ in range(4)], dtype)
    ends = np.iinfo(dtype)
    near = [0, 1, 2**11 + 1, 2**24 + 1, 2**53, 2**53 + 1, 2**53 + 2, 2**63 - 1, ends.max, ends.min, ends.max - 1]
    return np.array([draw.choice([one for one in near if ends.min <= one <= ends.max]) for _ in range(4)], dtype)


def test_joined_columns(tmp_path):
    """The type that NumPy joins them in holds every value, or the error has column, row and value."""
    draw, kept, refused = random.Random(5), 0, 0
    for _ in range(400):
        parts = {name: some_values(draw, draw.choice(DTYPES)) for name in "abc"[:draw.randint(2, 3)]}
        kind = np.result_type(*parts.values())
        wrong = [(row, name, rows[row]) for name, rows in parts.items() for row in range(4)
                 if Fraction(kind.type(rows[row]).item()) != Fraction(rows[row].item())]
        errors = [lambda row, value, name=name: ValueError(row, name, value) for name in parts]
        try:
            found = narrow.joined(list(parts.values()), errors)
        except ValueError as error:
            assert error.args in wrong
            refused += 1
            continue
        assert not wrong and found.dtype == kind
        assert all(Fraction(found[row, column].item()) == Fraction(rows[row].item())
                   for column, rows in enumerate(parts.values()) for row in range(4))
        kept += 1
    assert min(kept, refused) > 50
    assert narrow.joined([np.zeros(0), np.zeros((0, 2))], errors).shape == (0, 3)
    nodes = {"id": [0, 1, 2, 3], "a": [1, 2**53 + 1, 3, 4], "b": [0.5] * 4}
    tables = graphwire.from_tables(ENDS, nodes, features={"_N": {"f": ["a", "b"]}})
    with pytest.raises(ValueError, match=f"nodes, row 1: column a is {2**53 + 1}, which the type of the joined"):
        partition(tables, tmp_path / "g")


def held(one, kind):
    """Whether the type holds a value, perhaps rounded to a smaller floating-point type."""
    if kind.kind in "iu":
        ends = np.iinfo(kind)
        return bool(np.isfinite(one)) and one.item() == int(one) and ends.min <= int(one) <= ends.max
    with np.errstate(all="ignore"):
        cast = kind.type(one)
    if one.dtype.kind == "f":
        return not np.isfinite(one) or (np.isfinite(cast) and (cast != 0 or one == 0))
    return bool(np.isfinite(cast)) and Fraction(cast.item()) == Fraction(one.item())


def test_narrowing_to_smaller_types():
    """Against plain Python, value by value."""
    draw = random.Random(6)
    for _ in range(2000):
        rows, kind = some_values(draw, draw.choice(DTYPES)), np.dtype(draw.choice(DTYPES[:-1]))
        if rows.dtype.kind == "f" and draw.random() < 0.5:
            rows = np.array([draw.choice([np.nan, np.inf, 1e39, 1e-46, 2.0**63, -2.0**63, 2.0**64, 7.0])], np.float64)
        wrong = [place for place, one in enumerate(rows) if not held(one, kind)]
        try:
            found = narrow.exactly(rows, kind, lambda row, value: ValueError(row, value))
        except ValueError as error:
            assert wrong and error.args[0] == wrong[0], (rows, kind)
            assert np.array_equal(error.args[1], rows[wrong[0]], equal_nan=rows.dtype.kind == "f")
            continue
        assert not wrong and found.dtype == kind, (rows, kind)
        assert np.array_equal(found, rows.astype(kind), equal_nan=kind.kind == "f")


def test_lists_of_numbers(tmp_path):
    """Lists become a type that holds all of their values, or are refused with row and value."""
    draw, refused = random.Random(7), 0
    for _ in range(1000):
        values = [draw.choice([0, 1, -1, 2**53 + 1, 2**53, 2**63, -2**63, 2**64 - 1, 2**64, 10**400, 0.5, 1e300, -2.0])
                  for _ in range(draw.randint(1, 4))]
        try:
            found = _rows.array(values, "x")
        except ValueError as error:
            refused += 1
            row = int(re.match(r"x: row (\d+) is ", str(error)).group(1))
            assert isinstance(values[row], int) and abs(values[row]) > 2**53
            floats, integers = any(isinstance(one, float) for one in values), [one for one in values
                                                                             if isinstance(one, int)]
            assert floats or not (min(integers) >= 0 or max(integers) < 2**63) or max(integers) >= 2**64
            continue
        assert [Fraction(one) for one in found.tolist()] == [Fraction(one) for one in values], (values, found)
    assert 100 < refused < 900
    columns = {"a": [2, 2**53 + 1], "b": [0.5, 1.0]}
    for frame in (pd.DataFrame(columns), pytest.importorskip("polars").DataFrame(columns)):
        with pytest.raises(ValueError, match=f"x: row 1 is {2**53 + 1}"):
            _rows.array(frame, "x")
    with pytest.raises(ValueError, match="labels of the nodes: row 1 is"):
        networkx = pytest.importorskip("networkx")
        graphwire.partition_graph(networkx.Graph([(1, 2**63)]), "g", 1, tmp_path / "g")


def test_two_columns_of_one_mask(tmp_path):
    """The error names both columns and the mask."""
    nodes = {"id": [0, 1, 2, 3], "split": ["train", "val", "test", ""], "other": ["train", "", "", "val"],
             "train_mask": [True, False, True, False]}
    for masks, features, both in ((["split", "other"], [], "other and split"),
                                  (["split", "train_mask"], [], "split and train_mask"),
                                  (["split"], ["train_mask"], "split and train_mask")):
        tables = graphwire.from_tables(ENDS, nodes, masks=masks, features=features)
        with pytest.raises(ValueError, match=f"columns {both} both become the feature 'train_mask'"):
            partition(tables, tmp_path / "g")
    pd.DataFrame({**nodes, "train_mask": [1, 0, 1, 0]}).to_csv(tmp_path / "n.csv", index=False)
    pd.DataFrame(ENDS).to_csv(tmp_path / "e.csv", index=False)
    for words, both in ((["--mask-column", "split", "--mask-column", "other"], "split and other"),
                        (["--mask-column", "split", "--node-column", "val_mask=train_mask"], "split and train_mask"),
                        (["--node-column", "x=id", "--node-column", "x=train_mask"], "id and train_mask")):
        done = subprocess.run([PROGRAM, "import", "--from", tmp_path / "e.csv", "--node-table", tmp_path / "n.csv",
                               *words, "--out", tmp_path / "g"], capture_output=True, text=True)
        assert f"n.csv: columns {both} would both become the feature" in done.stderr


def test_masks_as_programs_write_them(tmp_path):
    """1.0 and 0.0 are flags; an empty word is in no mask: on the command line as in from_tables."""
    for texts, right in ((["1.0", "0.0", "1", "0"], {"v": [1, 0, 1, 0]}),
                         (["train", "", "val", "none"], {"train_mask": [1, 0, 0, 0], "val_mask": [0, 0, 1, 0]})):
        (tmp_path / "e.csv").write_text("src,dst\n0,1\n1,2\n2,3\n3,0\n")
        (tmp_path / "n.csv").write_text("id,v\n" + "".join(f"{row},{one}\n" for row, one in enumerate(texts)))
        subprocess.run([PROGRAM, "import", "--from", tmp_path / "e.csv", "--node-table", tmp_path / "n.csv",
                        "--mask-column", "v", "--out", tmp_path / "g", "--replace", "--quiet"], check=True)
        tables = graphwire.from_tables(ENDS, tmp_path / "n.csv", masks="v")
        with graphwire.open(tmp_path / "g", numpy=True) as one, partition(tables, tmp_path / "p") as other:
            for name, rows in right.items():
                for graph in (one, other):
                    assert graph.feature(name)[[0, 1, 2, 3]].tolist() == rows


def test_steps_of_an_optimizer_that_become_zero(tmp_path):
    """A learning rate or eps above 0 stays above 0 in float32; steps are integers."""
    out = graphwire.partition_graph(([0, 1], [1, 0]), "g", 1, tmp_path / "g", method="random")
    with graphwire.open(out, numpy=True) as graph:
        tensor = graph.create_tensor("t", (2, 1))
        for name in ("lr", "eps"):
            with pytest.raises(graphwire.InvalidError, match=f"{name} is 0 in float32, not 1e-50"):
                tensor.push([0], np.ones((1, 1), np.float32), kind="adagrad", **{"lr": 1.0, name: 1e-50})
        with pytest.raises(ValueError, match=r"steps are integers, not 1\.5"):
            tensor.write_state([0], [1.5], kind="adam", array="step")
        tensor.write_state([0], [3.0], kind="adam", array="step")
        assert tensor.read_state([0], kind="adam", array="step").tolist() == [3]


@pytest.mark.parametrize("names", [("a b", "c"), ("größe", "x/y"), ("c=d", "e"), ("+", "a+20b")])
def test_names_of_types_whose_classes_are_balanced(names, tmp_path):
    """Any text without a colon, in every argument by name; an error has the name as the caller writes it."""
    etype = names[0], "r s", names[1]
    edges = {etype: (np.arange(20) % 5, np.arange(20) % 7)}
    classes = {names[0]: np.arange(5) % 2, names[1]: np.arange(7) % 2}
    features = {etype: {"w ö": np.arange(20)}}
    out = graphwire.partition_graph(edges, "g", 2, tmp_path / "g", method="random", balance_nodes=classes,
                                    edge_features=features, weight=[":".join([*etype, "w ö"])])
    with graphwire.open(out, numpy=True) as graph:
        assert set(graph.ntypes) == set(names)
        for ntype, numbers in classes.items():
            original = graph.feature("orig_id", ntype)
            for kind in (0, 1):
                sizes = [int((numbers[original[np.array(graph.part_range(part, ntype))]] == kind).sum())
                         for part in (0, 1)]
                assert max(sizes) - min(sizes) <= 1, (ntype, kind, sizes)
    with pytest.raises(ValueError, match=re.escape(f"7 rows for 5 nodes of {names[0]}")):
        graphwire.partition_graph(edges, "g", 2, tmp_path / "h", balance_nodes={names[0]: np.zeros(7, int)})
