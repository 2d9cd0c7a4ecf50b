"""graphwire import --memory: the graph has the same bytes with any limit, and the limit holds."""

import gzip
import re
import resource
import signal
import subprocess

import numpy as np
import pytest
from conftest import PROGRAM, run

NODES = 300


def tree(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def edges_of(seed, count):
    """Some lists are much longer than others, edges repeat, and some are loops."""
    random = np.random.default_rng(seed)
    hubs = random.integers(0, 5, count)
    ends = random.integers(0, NODES, (count, 2))
    ends[:, 1] = np.where(random.random(count) < 0.4, hubs, ends[:, 1])
    return ends, random


def words_of(seed, folder):
    """The arguments of an import of a kind."""
    folder.mkdir()
    count = [0, 1, 900, 2500][seed % 4]
    ends, random = edges_of(seed, count)
    np.save(folder / "edges.npy", ends)
    np.save(folder / "feat.npy", random.standard_normal((count, 3)).astype(np.float32))
    np.save(folder / "w.npy", random.integers(0, 4, count).astype(np.uint8))
    np.save(folder / "when.npy", random.integers(-9, 9, count))
    np.save(folder / "born.npy", random.integers(-9, 9, NODES).astype(np.int32))
    words = ["--num-nodes", NODES, "--edges", f"_N:_E:_N={folder}/edges.npy"]
    flags = {"undirected": seed & 1, "reverse": seed & 2 and not seed & 1, "transpose": seed & 4, "edge-ids": seed & 8}
    words += [f"--{flag}" for flag, is_set in flags.items() if is_set]
    if seed % 3 == 0:
        words += ["--edge-feature", f"feat={folder}/feat.npy", "--edge-feature", f"w={folder}/w.npy", "--weight", "w"]
    if seed % 5 == 0:
        words += ["--edge-feature", f"when={folder}/when.npy", "--time", "when"]
    if seed % 5 == 1:
        words += ["--node-feature", f"born={folder}/born.npy", "--time", "born"]
    return words


def triples_of(seed, folder):
    folder.mkdir()
    ends, random = edges_of(seed, 1500)
    relations = random.integers(0, 40 if seed % 2 else 300, len(ends))
    lines = [f"e{a}\tr{r}\te{b}\n" for (a, b), r in zip(ends, relations)]
    (folder / "train.tsv").write_text("".join(lines))
    return ["--triples", f"train={folder}/train.tsv", *(["--transpose"] if seed % 3 else [])]


@pytest.mark.parametrize("seed", range(16))
def test_bytes_do_not_depend_on_the_limit(seed, tmp_path):
    words = (triples_of if seed >= 12 else words_of)(seed, tmp_path / "input")
    run("import", *words, "--out", tmp_path / "whole", "--quiet")
    expected = tree(tmp_path / "whole")
    for number, limit in enumerate(["1", "10k", "100k"]):
        run("import", *words, "--memory", limit, "--threads", 1 + number, "--out", tmp_path / limit, "--quiet")
        assert tree(tmp_path / limit) == expected, limit


def test_text_ids_and_columns(tmp_path):
    ends, random = edges_of(3, 2000)
    stars = random.integers(1, 6, len(ends))
    (tmp_path / "r.csv").write_text("user,film,stars,at\n" + "".join(
        f"u{a},f{b},{s},{a * 7 % 50}\n" for (a, b), s in zip(ends, stars)))
    words = ["--edges", f"user:rates:film={tmp_path}/r.csv", "--src-column", "user", "--dst-column", "film",
             "--edge-column", "stars=stars", "--weight", "stars", "--time", "at", "--reverse", "--transpose"]
    run("import", *words, "--out", tmp_path / "whole", "--quiet")
    run("import", *words, "--out", tmp_path / "little", "--quiet", "--memory", "5k")
    assert tree(tmp_path / "little") == tree(tmp_path / "whole")


@pytest.mark.parametrize("form", ["numbers", "names", "zipped"])
def test_rows_in_another_order_than_their_nodes(form, tmp_path):
    """Features of sparse ids are by id; those of a list of names that has numbers are by line. A zipped list of edges
    is inflated to a file."""
    ends, random = edges_of(4, 3000)
    ends, rows = ends * 17 + 3, NODES * 17
    if form == "names":
        (tmp_path / "names").write_text("".join(f"{place} name{place}\n" for place in random.permutation(rows)))
    write = gzip.open if form == "zipped" else open
    with write(tmp_path / "edges.tsv", "wt") as file:
        file.writelines(f"{a}\t{b}\n" for a, b in ends)
    np.save(tmp_path / "feat.npy", random.standard_normal((rows, 7)).astype(np.float32))
    np.save(tmp_path / "flag.npy", random.integers(0, 2, rows).astype(np.bool_))
    words = ["--from", tmp_path / "edges.tsv", "--node-feature", f"feat={tmp_path}/feat.npy", "--node-mask",
             f"flag={tmp_path}/flag.npy", *(["--nodes", tmp_path / "names"] if form == "names" else
                                            ["--ids", "compact"])]
    run("import", *words, "--out", tmp_path / "whole", "--quiet")
    for limit in ("1", "5k", "60k"):
        run("import", *words, "--out", tmp_path / limit, "--quiet", "--memory", limit)
        assert tree(tmp_path / limit) == tree(tmp_path / "whole")


def test_errors_are_the_same(tmp_path):
    ends, _ = edges_of(5, 3000)
    np.save(tmp_path / "edges.npy", ends)
    np.save(tmp_path / "w.npy", np.where(np.arange(3000) == 1700, -1, 1).astype(np.float32))
    words = [PROGRAM, "import", "--edges", f"_N:_E:_N={tmp_path}/edges.npy", "--edge-feature", f"w={tmp_path}/w.npy",
             "--weight", "w", "--quiet"]
    said = [subprocess.run([*words, "--out", tmp_path / "out", *more], capture_output=True, text=True)
            for more in ([], ["--memory", "10k"])]
    assert [one.returncode for one in said] == [1, 1]
    assert said[0].stderr == said[1].stderr and "row 1700" in said[0].stderr
    assert not (tmp_path / "out").exists()


def test_runs_and_files_are_printed(tmp_path):
    done = run("generate", "rmat", "--scale", 16, "--edge-factor", 8, "--memory", "8M", "--out", tmp_path / "g")
    said = subprocess.run([PROGRAM, "generate", "rmat", "--scale", "16", "--edge-factor", "8", "--memory", "8M",
                           "--out", tmp_path / "h"], capture_output=True, text=True).stderr
    assert "memory: edges sorted in" in said and "temporary files of" in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["g", "h"], done
    run("generate", "rmat", "--scale", 16, "--edge-factor", 8, "--out", tmp_path / "whole", "--quiet")
    assert tree(tmp_path / "g") == tree(tmp_path / "whole")


def test_blocks_that_stay_in_memory_are_not_announced(tmp_path):
    """Columns of at most 1 MiB are never in files, so the disk need not have room for them."""
    for edge_factor, files in (7, False), (9, True):  # 8 bytes for each of 2^14 nodes' edges
        said = subprocess.run([PROGRAM, "generate", "rmat", "--scale", "14", "--edge-factor", str(edge_factor),
                               "--memory", "64k", "--out", tmp_path / str(edge_factor)], capture_output=True,
                              text=True).stderr
        assert "memory: edges sorted in" in said
        assert ("takes temporary files of up to" in said) is files, said


AMOUNT = r"(\d+(?:\.\d+)? (?:B|KiB|MiB|GiB))"


def text_of(number):
    """As the program prints bytes."""
    unit = 0
    while number >= 1024:
        number, unit = number / 1024, unit + 1
    return f"{number:.3g} " + ("B", "KiB", "MiB")[unit]


def test_passes_are_printed_with_their_bytes(tmp_path):
    """A pass through files names what it reads and writes; in memory, no pass is named."""
    ends, _ = edges_of(6, 200000)
    np.save(tmp_path / "edges.npy", ends)
    np.save(tmp_path / "feat.npy", np.zeros((200000, 3), np.float32))
    words = [PROGRAM, "import", "--edges", tmp_path / "edges.npy", "--num-nodes", str(NODES), "--transpose",
             "--edge-feature", f"feat={tmp_path}/feat.npy"]
    said = {memory: subprocess.run([*words, "--out", tmp_path / memory, "--memory", memory], capture_output=True,
                                   text=True, check=True).stderr for memory in ("100k", "100Mi")}
    found = re.findall(rf"^pass: (.*): {AMOUNT} read and {AMOUNT} written in .*/s", said["100k"], re.M)
    edges = len(ends)
    assert [(what, read, written) for what, read, written in found] == [
        ("input to edges", text_of(edges * 16), text_of(edges * 16)),
        ("lengths of lists", text_of(edges * 16), "0 B"),
        ("edges to runs", text_of(edges * 16), text_of(edges * 24)),
        ("rows to runs", text_of(edges * 20), text_of(edges * 12)),
        ("runs to lists", text_of(edges * 36), text_of(edges * 20)),
        ("lengths of lists", text_of(edges * 16), "0 B"),
        ("edges to runs", text_of(edges * 16), text_of(edges * 24)),
        ("runs to out-lists", text_of(edges * 24), text_of(edges * 12))]
    assert "pass: edges by their ids: " in said["100k"] and "pass:" not in said["100Mi"]


def test_files_are_announced_before_they_are_made(tmp_path):
    """Each step, in the order of the steps, and no file besides; --quiet says nothing."""
    ends, _ = edges_of(7, 200000)
    with gzip.open(tmp_path / "edges.tsv", "wt") as file:
        file.writelines(f"{a}\t{b}\n" for a, b in ends)
    words = [PROGRAM, "import", "--from", tmp_path / "edges.tsv", "--undirected", "--memory", "1"]
    said = subprocess.run([*words, "--out", tmp_path / "g"], capture_output=True, text=True, check=True).stderr
    size = rf"(?:of unknown size|of up to {AMOUNT})"
    found = re.findall(rf"^memory: (.*) takes temporary files {size} in {tmp_path}/?, where .* are free$", said, re.M)
    assert [what for what, _ in found] == [f"{tmp_path}/edges.tsv", "reading", "reversing", "sorting"]
    assert found[1][1] == text_of(len(ends) * 16)
    quiet = subprocess.run([*words, "--quiet", "--out", tmp_path / "h"], capture_output=True, text=True, check=True)
    assert quiet.stderr == ""


def texts_in(folder, texts):
    np.save(folder / "t.offsets.npy", np.cumsum([0] + [len(text) for text in texts]).astype(np.int64))
    np.save(folder / "t.bytes.npy", np.frombuffer(b"".join(texts), np.uint8))
    return folder / "t.offsets.npy"


def test_ids_are_not_written_over_their_input(tmp_path):
    np.save(tmp_path / "ids.npy", np.arange(100) // 2)
    sources = {"ids": tmp_path / "ids.npy", "t": texts_in(tmp_path, [b"a", b"b", b"a"])}
    before = tree(tmp_path)
    for stem, source in sources.items():
        done = subprocess.run([PROGRAM, "import", "ids", "--from", source, "--out", tmp_path / "." / stem],
                              capture_output=True, text=True)
        assert done.returncode == 1 and "is the input; choose another --out" in done.stderr
        assert tree(tmp_path) == before
    for stem in ("", f"{tmp_path}/"):
        done = subprocess.run([PROGRAM, "import", "ids", "--from", sources["ids"], "--out", stem], cwd=tmp_path,
                              capture_output=True, text=True)
        assert done.returncode == 2 and "names no file" in done.stderr
        assert tree(tmp_path) == before


def test_a_full_disk_leaves_no_numbers(tmp_path):
    """The numbers fit, the texts do not."""
    source = texts_in(tmp_path, [bytes([65 + i]) * 50000 for i in range(6)])
    before = tree(tmp_path)

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))

    done = subprocess.run([PROGRAM, "import", "ids", "--from", source, "--out", tmp_path / "out"], preexec_fn=limit,
                          capture_output=True, text=True)
    assert done.returncode == 1 and "File too large" in done.stderr
    assert tree(tmp_path) == before
