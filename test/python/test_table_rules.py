"""The rules of tables (docs/PYTHON.md, "How tables are read") on random files: `graphwire import` and from_tables give
the edges that were written, or both refuse; frames and Parquet follow the rules for ids."""

from __future__ import annotations

import json
import logging
import random
import re
import subprocess

import graphwire
import pytest
from conftest import PROGRAM
from graphwire import datasets
from graphwire.kge import data
from test_headers import edges_of

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")

import pyarrow.parquet  # noqa: E402, F401

MISSING = ["", "NULL", "\\N", "NA", "nan", "NaN", "None", "<NA>", "null", "N/A"]
DELIMITERS = [",", ";", "\t", "|"]


def ids_of(draw, kind):
    """Ids that a file of this kind may have."""
    return {"numbers": lambda: str(draw.randrange(60)), "sparse": lambda: str(draw.randrange(10**12)),
            "names": lambda: draw.choice("abcdefgh") + draw.choice(["", " x", "-1", "é", "'s"]),
            "padded": lambda: f"{draw.randrange(30):03}",
            "quotes": lambda: draw.choice(['a "b" c', 'x,y', "p;q", "a|b", 'say ""', "NULL"])}[kind]


class File:
    """A random file of edges. text: its bytes. edges: those that readers find; None: all readers refuse it."""

    def __init__(self, draw):
        self.delimiter = draw.choice(DELIMITERS)
        self.kind = draw.choice(["numbers", "numbers", "sparse", "names", "padded", "quotes"])
        make = ids_of(draw, self.kind)
        self.rows = [[make(), make(), str(draw.randrange(9))] for _ in range(draw.randint(2, 30))]
        self.names = draw.choice([["src", "dst", "w"], ["Source", "Target", "Weight"], ["from_id", "to_id", "w"]])
        self.header = self.kind in ("names", "quotes", "padded") or draw.random() < 0.7
        self.all_quoted = self.kind == "quotes" or draw.random() < 0.2
        self.blanks, self.end = draw.random() < 0.4, draw.choice(["\n", "\r\n", "\n", "\r"])
        self.edges = [tuple(row[:2]) for row in self.rows]
        lines = [self.line(row, draw) for row in self.rows]
        self.spoil(draw, lines)
        if self.header:
            lines.insert(0, self.delimiter.join(self.names))
        if draw.random() < 0.2:
            lines.insert(0, "# a comment, with; delimiters")
        if draw.random() < 0.2:
            lines.insert(draw.randint(1, len(lines)), "")
        last = draw.choice(["", self.end, self.end * 2])
        mark = "\ufeff" if draw.random() < 0.3 else ""
        self.text = (mark + self.end.join(lines) + last).encode()

    def line(self, row, draw):
        quoted = ['"' + word.replace('"', '""') + '"' if self.all_quoted else word for word in row]
        return self.delimiter.join(" " * draw.randrange(3) + word + " " * draw.randrange(2) if self.blanks else word
                                   for word in quoted)

    def spoil(self, draw, lines):
        """One fault in a third of the files. Then no reader may find edges."""
        fault = draw.choice(["missing", "fraction", "repeated", "twice", "short", "mark", "spark"] + [None] * 14)
        place = draw.randrange(len(lines))
        row = self.rows[place][:]
        if fault == "missing" and self.kind != "quotes":
            row[draw.randrange(2)] = draw.choice(MISSING)
            lines[place] = self.delimiter.join(row)
        elif fault == "fraction" and self.kind in ("numbers", "sparse"):
            row[draw.randrange(2)] += draw.choice([".0", ".5", "e3"][:2])
            lines[place] = self.delimiter.join(row)
        elif fault == "repeated" and self.header:
            lines.insert(place + 1, self.delimiter.join(self.names))
        elif fault == "twice" and self.header:
            self.names[2] = self.names[draw.randrange(2)]
        elif fault == "short":
            lines[place] = self.line(row[:1], draw)
        elif fault == "mark" and self.header:
            lines[place] = "\ufeff" + lines[place].lstrip()
        elif fault == "spark" and self.delimiter in ",;":
            lines[place] = self.delimiter.join(['"a \\"b\\""', '"c"', "1"])
        else:
            return
        self.edges = None


def by_program(path, out):
    done = subprocess.run([PROGRAM, "import", "--from", path, "--out", out, "--quiet"], capture_output=True, text=True)
    if done.returncode:
        assert done.returncode == 1 and str(path) in done.stderr, done.stderr
        return None, done.stderr.splitlines()[-1]
    return edges_of(out), ""


def by_tables(table, out, named=""):
    """Edges of from_tables, without the step that divides them into parts."""
    out.mkdir()
    try:
        words, _ = graphwire.from_tables(table).write(out)
    except ValueError as error:
        assert named in str(error) and "\n" not in str(error), error
        return None, str(error)
    subprocess.run([PROGRAM, "import", *words, "--out", out / "graph", "--quiet"], check=True, capture_output=True)
    return edges_of(out / "graph"), ""


@pytest.mark.parametrize("seed", range(4))
def test_random_files(seed, tmp_path):
    draw = random.Random(f"rules {seed}")
    refused = 0
    for number in range(14):
        file = File(draw)
        path = tmp_path / f"{number}.{draw.choice(['csv', 'tsv', 'txt'])}"
        path.write_bytes(file.text)
        found, said = by_program(path, tmp_path / f"{number}.program")
        others, also = by_tables(path, tmp_path / f"{number}.tables", str(path))
        assert found == others, (file.text, said, also)
        if file.edges is None or found is not None:  # a file may be refused for two readings
            assert found == (None if file.edges is None else sorted(file.edges)), (file.text, said)
        refused += found is None
    assert refused < 14


@pytest.mark.parametrize("text, words", [
    ("1,2\n3,4\n", ("--no-header",)), ("left,right\nann,bob\n", ("--header",)), ("src,dst\n1,2\n", ()),
    ("p,q\n1,2\n", ()), ("ann,bob\nbob,cid\n", ())])
def test_headers(text, words, tmp_path):
    """header=, and decisions without it."""
    (tmp_path / "e.csv").write_text(text)
    header = {"--no-header": False, "--header": True}.get(words[0]) if words else None
    subprocess.run([PROGRAM, "import", "--from", tmp_path / "e.csv", "--out", tmp_path / "g", *words], check=True)
    found, _ = graphwire.from_tables(tmp_path / "e.csv", header=header).write(tmp_path)
    subprocess.run([PROGRAM, "import", *found, "--out", tmp_path / "h"], check=True)
    assert edges_of(tmp_path / "g") == edges_of(tmp_path / "h")
    with pytest.raises(ValueError, match=r"e\.csv, line 1: .*header=True; if it is an edge, pass header=False"):
        (tmp_path / "e.csv").write_text("left,right\nann,bob\ncid,dan\n")
        graphwire.from_tables(tmp_path / "e.csv")


def test_names_decide_on_headers(tmp_path):
    """A first line that has a column which the arguments name is a header; without a header, columns have numbers."""
    (tmp_path / "e.csv").write_text("left,right,stars\nann,bob,5\ncid,dan,7\n")
    for named in ({"src": "left", "dst": "right"}, {"src": "left", "dst": "right", "features": ["stars"]}):
        found = by_tables_of(tmp_path, graphwire.from_tables(tmp_path / "e.csv", **named))
        assert found == [("ann", "bob"), ("cid", "dan")]
    (tmp_path / "e.csv").write_text("5,1,2\n7,3,4\n")
    found = by_tables_of(tmp_path, graphwire.from_tables(tmp_path / "e.csv", src="2", dst="3", features=["1"]))
    assert found == [("1", "2"), ("3", "4")]


def by_tables_of(tmp_path, tables):
    out = tmp_path / f"made{len(list(tmp_path.iterdir()))}"
    out.mkdir()
    words, _ = tables.write(out)
    subprocess.run([PROGRAM, "import", *words, "--out", out / "graph", "--quiet"], check=True, capture_output=True)
    return edges_of(out / "graph")


def test_files_of_spark(tmp_path):
    """Part files, each with a header, with its columns in any order; or a header in the first alone."""
    folder = tmp_path / "spark"
    folder.mkdir()
    (folder / "_SUCCESS").touch()
    (folder / "part-0.csv").write_text("src,dst,w\n1,2,5\n3,4,6\n")
    (folder / "part-1.csv").write_text("w,dst,src\n7,6,5\n")
    assert by_tables(folder, tmp_path / "a")[0] == [("1", "2"), ("3", "4"), ("5", "6")]
    (folder / "part-1.csv").write_text("5,6,7\n")
    assert by_tables(folder, tmp_path / "b")[0] == [("1", "2"), ("3", "4"), ("5", "6")]
    (folder / "part-1.csv").write_text("5,6\n7,8\n")
    assert "part-1.csv: 2 columns without a header" in by_tables(folder, tmp_path / "c")[1]


@pytest.mark.parametrize("seed", range(3))
def test_frames_have_the_rules_of_files(seed, tmp_path):
    """Whole numbers among floats are integers; what is missing is an error with its row; texts are as they are."""
    draw = random.Random(f"frames {seed}")
    for number in range(8):
        rows = [[draw.randrange(2**draw.choice([4, 20, 52])) for _ in range(2)] for _ in range(draw.randint(2, 20))]
        bad = draw.choice([None, None, None, "missing", 0.5, float("inf"), 2.0**53])
        place = draw.randrange(len(rows))
        columns = {"src": [float(row[0]) for row in rows], "dst": [row[1] for row in rows]}
        if bad is not None:
            columns["src"][place] = None if bad == "missing" else bad
        frame = pd.DataFrame(columns)
        made = {"pandas": frame, "objects": frame.astype(object), "nullable": frame.convert_dtypes(),
                "arrow": pa.table(columns), "polars": pytest.importorskip("polars").DataFrame(columns)}
        pa.parquet.write_table(pa.table(columns), tmp_path / f"{number}.parquet")
        made["parquet"] = tmp_path / f"{number}.parquet"
        expected = sorted((str(src), str(dst)) for src, dst in rows)
        for kind, table in made.items():
            if kind == "nullable" and bad == 2.0**53:
                continue  # pandas made integers of all of them
            found, said = by_tables(table, tmp_path / f"{number} {kind}")
            if bad is None:
                assert found == expected, kind
            else:
                assert found is None and f"row {place}: column src is " in said, (kind, bad, said)
            if kind == "parquet":
                continue
            try:  # partition_graph takes a frame without from_tables too
                graphwire._files.partition._completed(table, None, None, None)
                assert bad is None
            except ValueError as error:
                assert bad is not None and f"row {place} is " in str(error), (kind, bad, error)


def test_a_warning_names_what_was_decided(tmp_path, caplog):
    """No header; blanks around ids; a word among numbers."""
    for text, said in (("1,2\n3,4\n", "no header"), ("src,dst\n1, 2\n", "line 2, column 2: blanks"),
                       ("src,dst\n1,2\nx,3\n", 'line 3: "x" is not a number')):
        (tmp_path / "e.csv").write_text(text)
        caplog.clear()
        with caplog.at_level(logging.WARNING, "graphwire"):
            graphwire.from_tables(tmp_path / "e.csv").write(tmp_path)
        assert [record.getMessage() for record in caplog.records if said in record.getMessage()], said


def random_triples(draw):
    """(bytes of a file of names, its delimiter)."""
    delimiter = draw.choice([",", ";", "\t", "|"])
    words = ["a", "b c", "NULL", "7", "é", "x'y", '"q"', '"a ""b"""', f'"c{delimiter}d"', 'e"f', " g", "", '"h']
    weights = [20] * 5 + [8] * 4 + [4 if delimiter in "|\t" else 1, 8, 1, 1]
    lines = [(" " * draw.randrange(2) + delimiter).join(draw.choices(words, weights, k=3))
             for _ in range(draw.randint(1, 12))]
    if draw.random() < 0.1:
        lines.insert(0, delimiter.join(["head", "relation", "tail"]))
    end = draw.choice(["\n", "\r\n"])
    text = draw.choice(["", "", "\ufeff"]) + end.join(lines) + end * draw.randrange(3)
    return text.encode(), delimiter


def test_triples_of_knowledge_graphs(tmp_path):
    """graphwire.kge reads the triples that `graphwire import --triples` reads, or refuses the file. What import refuses
    is refused."""
    draw, read, path = random.Random("triples"), 0, tmp_path / "train.tsv"
    for number in range(30):
        text, delimiter = random_triples(draw)
        path.write_bytes(text)
        done = subprocess.run([PROGRAM, "import", "--triples", path, "--out", tmp_path / f"{number}", "--no-header",
                               f"--delimiter={delimiter}", "--quiet"], capture_output=True, text=True)
        try:
            found = data.load(tmp_path, "own", "raw_udd_hrt", delimiter=delimiter, files=[path.name])
        except data.DataError as error:
            assert str(path) in str(error)
            tabs = "has a tab" in str(error)  # its dictionaries cannot store it
            assert done.returncode == 1 or tabs or "names of columns" in str(error), (text, error)
            continue
        assert done.returncode == 0, (text, done.stderr)
        names = list(found.entities)
        edges = sorted((names[head], names[tail]) for head, tail in zip(found.train.head, found.train.tail))
        assert edges_of(tmp_path / f"{number}") == edges, text
        read += 1
    assert read > 10


def test_a_damaged_file_of_a_data_set_is_a_value_error(tmp_path):
    (tmp_path / "web.txt.gz").write_bytes(b"\x1f\x8b\x08\x00damaged")
    with pytest.raises(ValueError, match=r"web\.txt\.gz: "):
        datasets.edge_list(tmp_path / "web.txt.gz").partition(1, tmp_path / "g", method="random")


@pytest.mark.parametrize("columns", [["x", "x"], ["", ""]])
def test_two_columns_of_one_name(tmp_path, columns):
    """They are refused where one of them is used, and only there, in text and in memory; import does the same."""
    text = "\n".join([",".join(["src", "dst", *columns]), "1,2,3,4", "2,1,5,6"]) + "\n"
    (tmp_path / "edges.csv").write_text(text)
    table = pa.table([[1, 2], [2, 1], [3, 5], [4, 6]], names=["src", "dst", *columns])
    for number, source in enumerate((tmp_path / "edges.csv", table, table.to_pandas())):
        folder = graphwire.partition_graph(graphwire.from_tables(source), "g", 1, tmp_path / str(number))
        with graphwire.open(folder, numpy=True) as graph:
            assert graph.num_edges() == 2
        with pytest.raises(ValueError, match="two columns have the name"):
            graphwire.partition_graph(graphwire.from_tables(source, time=columns[0]), "g", 1, tmp_path / "no")
    for use, status in (([], 0), (["--edge-column", f"w={columns[0]}"], 1)):
        done = subprocess.run([PROGRAM, "import", "--from", tmp_path / "edges.csv", "--out", tmp_path / "g",
                               "--replace", *use], capture_output=True, text=True)
        assert (done.returncode != 0) == status, done.stderr


def test_values_that_arrow_cannot_have(tmp_path):
    """They are TypeError, and the error names the table or its column."""
    polars = pytest.importorskip("polars")
    for table, where in ((pd.DataFrame({"src": [10**30, 1], "dst": [1, 0]}), "edges: column src: "),
                         ({"src": [10**30, 1], "dst": [1, 0]}, "edges: "),
                         (polars.DataFrame({"src": [1], "dst": [2]}).cast(polars.Int128), "edges: ")):
        with pytest.raises(TypeError, match=f"^{where}"):
            graphwire.partition_graph(graphwire.from_tables(table), "g", 1, tmp_path / "no")


def test_files_without_rows_among_others(tmp_path):
    """A folder may have them, as Spark writes empty partitions. All of them without rows are an error."""
    for number, text in enumerate(("", "1,2\n3,4\n", "\n\n", "5,6\n")):
        (tmp_path / f"part-{number}.csv").write_text(text)
    folder = graphwire.partition_graph(graphwire.from_tables(tmp_path, header=False), "g", 1, tmp_path / "graph")
    assert edges_of(folder) == [("1", "2"), ("3", "4"), ("5", "6")]
    with pytest.raises(ValueError, match=r"part-0\.csv.*no rows"):
        graphwire.from_tables(tmp_path / "part-0.csv")


@pytest.mark.parametrize("value", ["0x10", "-0X1F", "0b1", "0o7", "1_0", "1d", "5f", "--5", "+-5", "5-", "1e", "\u0663",
                                   "0x1p3", "+5", "-0", "007", "1e3", "1E+3", "1.", ".5", "inf", "-Infinity"])
def test_spellings_of_numbers(value, tmp_path):
    """A value of text is a number to from_tables if it is one to the program."""
    path, folder = tmp_path / "edges.csv", tmp_path / "tables"
    path.write_text(f"src,dst,v\n0,1,1\n1,2,{value}\n2,0,3\n")
    folder.mkdir()
    words = ["--from", path, "--edge-column", "v=v", "--out", tmp_path / "out", "--quiet"]
    done = subprocess.run([PROGRAM, "import", *words], capture_output=True, text=True)
    tables = graphwire.from_tables(path, features=["v"])
    if done.returncode:
        assert f'"{value}"' in done.stderr
        with pytest.raises(ValueError, match=re.escape(f"row 1: column v is {value!r}")):
            tables.write(folder)
    else:
        tables.write(folder)


@pytest.mark.parametrize("role, usual, odd", [
    ("features", "1", "x"), ("features", "1.5", "1.5.2"), ("masks", "0", "yes"), ("time", "2020-01-01", "2020-13-01"),
    ("time", "7", "yesterday")])
def test_an_odd_value_is_named(role, usual, odd, tmp_path):
    """One value that is no number or time makes its column text; the error names that value."""
    path, draw = tmp_path / "edges.csv", random.Random(7)
    for rows in (2, 3, 1000):
        row = draw.randrange(1, rows)
        values = ["" if role == "features" and one < row - 1 and rows > 2 else usual for one in range(rows)]
        values[row] = odd
        path.write_text("src,dst,v\n" + "".join(f"{one},0,{value}\n" for one, value in enumerate(values)))
        named = re.escape(f"{path}, row {row}: column v is {odd!r}, which has another type")
        with pytest.raises(ValueError, match=named):
            graphwire.from_tables(path, **{role: "v" if role == "time" else ["v"]}).write(tmp_path)


def texts_of(folder, ntype):
    with graphwire.open(folder, numpy=True) as graph:
        return [str(text) for text in graph.node_texts(list(range(graph.num_nodes(ntype))), ntype)]


def test_lines_of_one_column_that_may_be_comments(tmp_path):
    """A word at once behind the sign looks like a row, and is not left out in silence; in quotes it is a row."""
    for rows, said in (('#a\n"#b"', "line 2: it begins as a comment"), ('"#a"\n"%b"', None), ("# a\nb", None)):
        (tmp_path / "tags.csv").write_text(f"tag\n{rows}\n")
        done = subprocess.run([PROGRAM, "import", "columns", "--from", tmp_path / "tags.csv", "--node-table",
                               "--delimiter", "10", "--header", "--column", "1"], capture_output=True, text=True)
        assert (done.returncode == 0) == (said is None) and (said or "") in done.stderr
        if said is None:
            assert done.stdout.splitlines()[1:] == [row for row in rows.split("\n") if row[:2] != "# "]


@pytest.mark.parametrize("seed", range(24))
def test_a_table_of_one_column(seed, tmp_path):
    """Its values may have blanks, commas and quotes, as csv writes them: in quotes or not, under a name in quotes or
    not. from_database and `graphwire import --node-table` find what was written."""
    draw = random.Random(f"one column {seed}")
    quoted, name = draw.random() < 0.5, draw.choice(["name", "name", "full name"])
    letters = ["a", "é", "7", " ", ",", ";", "|", '"', "\t", "'"]
    keys = list(dict.fromkeys("".join(draw.choices(letters, k=draw.randint(1, 6))).strip() or "x" for _ in range(12)))
    if not quoted:  # a quote at the end of a value that begins without one is a character
        keys = [key for key in keys if not key.startswith(('"', "#", "%"))]
    keys = [key for key in keys if key.upper() not in map(str.upper, MISSING)] + ["é 1, 2"]
    write = [('"' + key.replace('"', '""') + '"') if quoted else key for key in [name, *keys]]
    if name != "name":
        write[0] = f'"{name}"'
    (tmp_path / "names.csv").write_bytes(draw.choice(["\n", "\r\n"]).join(write).encode() + b"\n")
    (tmp_path / "rows.csv").write_text('of,w\n"é 1, 2",1\n')
    description = {"format": "graphwire-tables-1", "tables": {"names": {"source": "names.csv", "key": name}, "rows": {
        "source": "rows.csv", "foreign_keys": {"of": "names"}}}}
    (tmp_path / "db.json").write_text(json.dumps(description))
    graphwire.partition_graph(graphwire.from_database(tmp_path / "db.json"), "g", 1, tmp_path / "g")
    assert texts_of(tmp_path / "g", "names") == keys
    (tmp_path / "edges.csv").write_text('src,dst\n"é 1, 2","é 1, 2"\n')
    done = subprocess.run([PROGRAM, "import", "--from", tmp_path / "edges.csv", "--node-table", tmp_path / "names.csv",
                           "--id-column", name, "--out", tmp_path / "h"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert texts_of(tmp_path / "h", None) == keys
