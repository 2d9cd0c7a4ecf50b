"""Headers of edge lists as tools and people write them: the edges that the program reads are those that plain Python
reads from the columns that a person would take; or the file is refused, and the error says what to do."""

from __future__ import annotations

import csv
import io
import subprocess

import graphwire
import pytest
from conftest import PROGRAM
from graphwire._files import names as _names

# file: (text, delimiter, places of source and destination, options). Line 1 is a header if the places are in a tuple,
# an edge if they are in a list.
RIGHT = {
    "src and dst": ("src,dst\na,b\na,c\n", ",", (0, 1), ()),
    "Gephi": ("Source,Target,Type,Id,Label,Weight\na,b,Directed,0,,1\nb,c,Directed,1,,2\n", ",", (0, 1), ()),
    "DGL's csv": ("src_id,dst_id\n0,1\n0,2\n", ",", (0, 1), ()),
    "turned": ("target,source\n1,0\n2,0\n", ",", (1, 0), ()),
    "turned text": ("Target\tSource\nb\ta\nc\ta\n", "\t", (1, 0), ()),
    "user and item": ("stars,item,user\n5,x,ann\n4,y,bob\n", ",", (2, 1), ()),
    "follower": ("follower;followee\na;b\nc;d\n", ";", (0, 1), ()),
    "u and v": ("u v w\na b 1\nc d 2\n", " ", (0, 1), ()),
    "head and tail": ("id,tail,head\n7,x,y\n8,z,w\n", ",", (2, 1), ()),
    "Neo4j": (":START_ID(Person),since:int,:END_ID(City),:TYPE\na,1990,b,IN\nc,1991,d,IN\n", ",", (0, 2), ()),
    "Neptune": ("~id,~from,~to,~label\ne1,a,b,x\ne2,c,d,x\n", ",", (1, 2), ()),
    "ids of edges": ("edge_id,src,dst\n100,a,b\n101,a,c\n", ",", (1, 2), ()),
    "pandas index": (",src,dst,w\n0,a,b,.5\n1,c,d,.5\n", ",", (1, 2), ()),
    "pandas index, twice": ("Unnamed: 0.1,Unnamed: 0,from,to\n0,0,a,b\n1,1,c,d\n", ",", (2, 3), ()),
    "pandas index, other names": (",left,right\n0,a,b\n1,c,d\n", ",", (1, 2), ()),
    "pandas index, numbers": (",0,1\n0,5,6\n1,7,8\n", ",", (1, 2), ()),
    "times first": ("time,source,target\n5,a,b\n6,a,c\n", ",", (1, 2), ()),
    "camel case": ("w,sourceNodeId,targetNodeId\n1,10,11\n2,11,12\n", ",", (1, 2), ()),
    "capitals": ("FROM_ID;TO_ID;GEWICHT\n1;2;0,5\n2;3;1,5\n", ";", (0, 1), ()),
    "byte order mark": ("\ufeffdst,src\r\n1,2\r\n3,4\r\n", ",", (1, 0), ()),
    "quotes": ('"target","source"\n"b, c","a ""q"""\n"d","a ""q"""\n', ",", (1, 0), ()),
    "old Macintosh": ("source,target\ra,b\rc,d\r", ",", (0, 1), ()),
    "numbered names": ("protein1 protein2 score\np.a p.b 490\np.c p.d 198\n", " ", (0, 1), ()),
    "semicolons, decimal commas": ("1;2;0,5\n2;3;1,5\n", ";", [0, 1], ()),
    "commas, a tab further on": ("1,2,a\tb\n2,3,c\td\n", ",", [0, 1], ()),
    "no header": ("ann,bob\nbob,cid\n", ",", [0, 1], ()),
    "no header, told": ("ann,bob\ncid,dan\n", ",", [0, 1], ("--no-header",)),
    "a header, told": ("left,right\ncid,dan\n", ",", (0, 1), ("--header",)),
    "one end told": ("a,source,b\n1,2,3\n4,5,6\n", ",", (1, 2), ("--src-column", "source", "--dst-column", "b")),
    "numbers, unknown names": ("p,q,r\n1,2,3\n4,5,6\n", ",", (0, 1), ()),
}
# file: (text, options, texts of the error).
REFUSED = {
    "unknown names": ("left,right\nann,bob\ncid,dan\n", (), ("line 1", "--header", "--no-header")),
    "known names that recur": ("u,v\nu,w\nv,w\n", (), ("line 1", "--header", "--no-header")),
    "two sources": ("src,src_id,dst\n1,2,3\n", (), ("--src-column", "--dst-column")),
    "two pairs": ("user,item,from,to\n1,2,3,4\n", (), ("--src-column", "--dst-column")),
    "a number of a row first": ("index,a,b\n0,7,8\n1,8,9\n", (), ("index", "--src-column")),
    "a time first": ("timestamp,a,b\n5,7,8\n6,8,9\n", (), ("timestamp", "--src-column")),
    "a source in the second column": ("x,source\n1,2\n3,4\n", (), ("source", "--src-column")),
    "R's row names": ('"src","dst"\n"1","5","6"\n"2","6","7"\n', (), ("header of 2", "has 3")),
    "decimal commas": ("source,target,weight\n1,2,0,5\n2,3,1,5\n", (), ("header of 3", "has 4")),
    "two delimiters": ("a;b, c;d\nb, c;a;e\n", (), ("--delimiter",)),
    "a first edge of names above numbers": ("bob,ann\n5,bob\n7,ann\n", (), ("line 1", "--no-header")),
    "a line end in a header": ('src,dst,"a\nnote"\n1,2,x\n', (), ("line 1", "quoted field")),
    "a line end behind the ids": ('src,dst,note\n1,2,"hello\n5,6,x"\n3,4,y\n', (), ("line 2", "quoted field")),
    "the same, numbers alone": ('1,2,"hello\n5,6,x"\n3,4,y\n', (), ("line 1", "quoted field")),
    "UTF-16": ("src,dst\n1,2\n".encode("utf-16"), (), ("UTF-16",)),
}
OTHERS = {
    "GraphML": '<?xml version="1.0"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n<graph/>\n</graphml>\n',
    "GEXF": '<gexf version="1.2">\n</gexf>\n',
    "an HTML page": "<!DOCTYPE html>\n<html><body>404 not found</body></html>\n",
    "GML": 'Creator "igraph"\nVersion 1\ngraph\n[\n  node\n  [\n    id 0\n  ]\n]\n',
    "DOT (Graphviz)": "digraph G {\n  a -> b;\n}\n",
    "JSON": '{"source": 1, "target": 2}\n{"source": 2, "target": 3}\n',
    "Turtle": "@prefix x: <http://x.org/> .\nx:a x:r x:b .\n",
    "N-Triples or Turtle": "<http://x/a> <http://x/r> <http://x/b> .\n<http://x/b> <http://x/r> <http://x/a> .\n",
    "Pajek": '*Vertices 2\n1 "a"\n2 "b"\n*Arcs\n1 2\n',
    "DIMACS": "c a road\np sp 3 2\na 1 2 7\na 2 3 8\n",
    "METIS's format": "% a path\n4 3\n2\n1 3\n2 4\n3\n",
    "SQL": "INSERT INTO edges (a, b) VALUES (1, 2);\n",
    "lists of neighbours": "0 1 2 3\n1 2\n2 3 0\n",
}


def imported(folder, text, *words):
    path = folder / "edges"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return subprocess.run([PROGRAM, "import", "--from", path, "--out", folder / "graph", *words], capture_output=True,
                          text=True)


def refused(done, folder, *texts):
    assert done.returncode == 1 and not (folder / "graph").exists(), done.stderr
    error = done.stderr.splitlines()[-1]
    assert all(text in error for text in texts), error


def edges_of(folder):
    with graphwire.open(folder, numpy=True) as graph:
        nodes = range(graph.num_nodes())
        text = "orig_id" not in {feature.name for feature in graph.features if not feature.of_edges}
        names = graph.node_texts(nodes) if text else [str(number) for number in graph.feature("orig_id")[:]]
        return sorted((names[src], names[dst]) for src, dst in zip(*graph.find_edges(slice(None))))


def lines_of(text, delimiter):
    return [[field.strip() for field in row] for row in csv.reader(
        io.StringIO(text.lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n")), delimiter=delimiter)]


@pytest.mark.parametrize("name", RIGHT)
def test_files(name, tmp_path):
    text, delimiter, (src, dst), options = RIGHT[name]
    header = isinstance(RIGHT[name][2], tuple)
    done = imported(tmp_path, text, *options)
    assert done.returncode == 0, done.stderr
    lines = lines_of(text, delimiter)
    assert edges_of(tmp_path / "graph") == sorted((row[src], row[dst]) for row in lines[header:])
    said = f'source = column {src + 1} "{lines[0][src]}", destination = column {dst + 1} "{lines[0][dst]}"'
    assert done.stderr.count(said) == header, done.stderr


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name, tmp_path):
    text, options, texts = REFUSED[name]
    refused(imported(tmp_path, text, *options), tmp_path, *texts)


@pytest.mark.parametrize("name", OTHERS)
def test_other_formats(name, tmp_path):
    refused(imported(tmp_path, OTHERS[name]), tmp_path, name)
    if name in ("N-Triples or Turtle", "JSON"):
        done = subprocess.run([PROGRAM, "import", "--triples", tmp_path / "edges", "--out", tmp_path / "graph"],
                              capture_output=True, text=True)
        refused(done, tmp_path, name)


def test_what_passes_for_other_formats(tmp_path):
    """Names of nodes may be the words of formats; the first edge may have the counts of a METIS file."""
    for number, text in enumerate(("graph node\nnode graph\n", "prefix base\nbase prefix\n", "{a} {b}\n{b} {a}\n",
                                   "[1] [2]\n[2] [1]\n", "dl x\nx dl\n", "c p\np c\n", "4 4\n1 2\n2 3\n3 4\n")):
        folder = tmp_path / str(number)
        folder.mkdir()
        done = imported(folder, text)
        assert done.returncode == 0, done.stderr
        assert edges_of(folder / "graph") == sorted(tuple(line.split()) for line in text.splitlines())


def test_types(tmp_path):
    """The end types of --edges are names of columns; they go before the known names."""
    (tmp_path / "edges.csv").write_text("film_id,user,source\n7,1,web\n8,2,tv\n")
    for etype, expected in (("user:rates:film", [(1, 7), (2, 8)]), ("film:rated_by:user", [(7, 1), (8, 2)])):
        subprocess.run([PROGRAM, "import", "--edges", f"{etype}={tmp_path / 'edges.csv'}", "--out", tmp_path / "graph",
                        "--replace", "--quiet"], check=True)
        with graphwire.open(tmp_path / "graph", numpy=True) as graph:
            assert sorted(map(tuple, zip(*map(list, graph.find_edges(slice(None)))))) == expected
    (tmp_path / "edges.csv").write_text("film_id,person\n7,1\n8,2\n")
    done = subprocess.run([PROGRAM, "import", "--edges", f"user:rates:film={tmp_path / 'edges.csv'}", "--out",
                           tmp_path / "other"], capture_output=True, text=True)
    assert done.returncode == 1 and '"film_id", would be the source' in done.stderr


def test_several_files(tmp_path):
    """A split file has a header in its first piece alone: columns that are not the first two cannot be known."""
    one, two = tmp_path / "1.csv", tmp_path / "2.csv"
    one.write_text("target,source\n1,0\n2,0\n")
    two.write_text("3,1\n4,1\n")
    done = subprocess.run([PROGRAM, "import", "--from", one, "--from", two, "--out", tmp_path / "graph"],
                          capture_output=True, text=True)
    refused(done, tmp_path, "2.csv", "--src-column")
    one.write_text("source,target\n0,1\n0,2\n")
    done = subprocess.run([PROGRAM, "import", "--from", one, "--from", two, "--out", tmp_path / "graph"],
                          capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr.count("source = column 1") == 1, done.stderr
    assert len(edges_of(tmp_path / "graph")) == 4


def test_triples(tmp_path):
    """The words of a small file's first line may recur only in another file of the same import."""
    train, valid = tmp_path / "train", tmp_path / "valid"
    train.write_text("a\tlikes\tb\nb\tlikes\tc\n")
    valid.write_text("c\tlikes\ta\n")
    out = tmp_path / "graph"
    subprocess.run([PROGRAM, "import", "--triples", f"valid={valid}", "--triples", f"train={train}", "--out", out],
                   check=True)
    assert edges_of(out) == [("a", "b"), ("b", "c"), ("c", "a")]
    train.write_text("predicate,object,subject\nlikes,b,a\nhates,d,c\n")
    done = subprocess.run([PROGRAM, "import", "--triples", train, "--out", out, "--replace"], capture_output=True,
                          text=True)
    assert 'head = column 3 "subject", tail = column 2 "object", relation = column 1 "predicate"' in done.stderr
    assert edges_of(out) == [("a", "b"), ("c", "d")]
    train.write_text("left,how,right\na,likes,b\nc,hates,d\n")
    done = subprocess.run([PROGRAM, "import", "--triples", train, "--out", out, "--replace"], capture_output=True,
                          text=True)
    assert done.returncode == 1 and "--no-header" in done.stderr


@pytest.mark.parametrize("name", RIGHT)
def test_python_knows_the_same_names(name):
    """Tables in memory follow the rules of files."""
    text, delimiter, places, options = RIGHT[name]
    if isinstance(places, tuple) and not options and "other names" not in name and "numbers" not in name:
        assert _names.ends(lines_of(text, delimiter)[0]) == places
    else:
        assert options or _names.ends(lines_of(text, delimiter)[0]) is None


def test_python_refuses_the_same_names():
    for name in ("two sources", "two pairs"):
        with pytest.raises(ValueError, match="several columns"):
            _names.ends(REFUSED[name][0].splitlines()[0].split(","))
    assert _names.ends(["film_id", "user", "source"], "user", "film") == (1, 0)
