#!/usr/bin/env bash
# Every benchmark, small: it succeeds, and prints verified figures with a ceiling, one JSON object per line. An interrupted
# benchmark leaves neither a server nor a folder.
# shellcheck source=test/integration/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1
export TMPDIR=$work/tmp
mkdir tmp

measured() { # measured LINES BENCHMARK ARGUMENT…
	local lines=$1
	shift
	holds "bench $1" "$GRAPHWIRE" bench "$@" --repeats 5 --json lines.json
	if python3 - "$1" "$lines" <<-'CHECK' >why 2>&1; then
		import json, sys
		name, lines = sys.argv[1], [json.loads(line) for line in open("lines.json")]
		assert len(lines) == int(sys.argv[2]), f"{len(lines)} lines"
		for line in lines:
		    assert line["bench"] == name and line["verified"] is True and line["repeats"] >= 5, line
		    assert line["value"] > 0 and line["ceiling"] > 0 and line["unit"] and line["case"], line
		    assert abs(line["ratio"] - line["value"] / line["ceiling"]) < 1e-6 * line["ratio"], line
	CHECK
		ok "bench $1: $lines figures, each with its ceiling"
	else
		not_ok "bench $1: its JSON: $(tail -n 1 why)"
	fi
}
drivers=1 # drivers of TCP: io_uring may be forbidden
"$GRAPHWIRE" bench latency --transport io_uring --rounds 10 --repeats 5 >out 2>&1
if grep -q '^latency' out; then drivers=2; fi
places=$(($(nproc) > 1 ? 2 : 1)) # places of client and server: on two processors, on one
measured $((drivers * (2 * places - 1))) latency --rounds 20
if python3 - $places <<-'CHECK' >why 2>&1; then
	import json, sys
	lines = [json.loads(line) for line in open("lines.json")]
	assert len({line["placement"] for line in lines}) == int(sys.argv[1]), lines
	for line in lines:
	    assert line["placement"] in line["case"] and line["bimodal"] and line["ceiling_bimodal"], line
	    assert line["p50_us"] <= line["p99_us"] and line["ceiling_p99_us"] > 0, line
CHECK
	ok "bench latency says where client and server were"
else
	not_ok "bench latency: where client and server were: $(tail -n 1 why)"
fi
measured $((2 + drivers)) gather --seconds 0.01 --table 1Mi --row 100 --batch 500
measured 6 sample --scale 10 --batches 5 --threads 1
measured 3 sample --scale 10 --batches 5 --threads 2 --weight --hash
"$GRAPHWIRE" generate rmat --scale 10 --out whole --quiet >out 2>&1 && "$GRAPHWIRE" partition whole --num-parts 2 \
	--method random --out halves >out 2>&1
measured 8 sample --part-config halves --batches 5 --threads 1 --fanouts 4,3 --weight
measured 2 minibatch --scale 10 --batches 2 --batch-size 100
measured 3 serve --scale 10 --callers 2 --requests 8 --seeds 4 --loaders 2 --batch-size 50
measured 2 serve --scale 10 --callers 1,3 --requests 12 --seeds 8 --loaders 0 --transport shm
refuses "bench serve: a request of no caller" 2 'callers' "$GRAPHWIRE" bench serve --callers 0
refuses "bench serve: too many callers" 2 'callers' "$GRAPHWIRE" bench serve --callers 1,65
measured 2 links --scale 10 --batches 2 --batch-size 100
[ $drivers -eq 1 ] || measured 2 links --scale 10 --batches 2 --batch-size 100 --drivers --spin 100
refuses "bench links --drivers over shm" 2 "starts its own servers" "$GRAPHWIRE" bench links --drivers --transport shm
measured 3 ids --nodes 1000 --batch 100 --rounds 3
measured 8 convert --rows 300 --columns 13 --rounds 2
measured $((places + 2)) remote --scale 10 --batches 2 --batch-size 100
measured 2 threads --threads 2 --seconds 0.01 --table 1Mi --batch 500
measured $((25 + drivers)) update --rows 1000 --batch 100 --seconds 0.01 --folder "$work"
measured 1 disk --bytes 4Mi --seconds 1 --rows 500 --row-bytes 96 --folder "$work" # the last block is not whole
refuses "bench disk: no row" 1 'less than one row' "$GRAPHWIRE" bench disk --bytes 1Mi --row-bytes 2Mi --folder "$work"
measured 1 load --size 1Mi --folder "$work"
measured $drivers connections --connections 64 --rows 500
measured $((2 + drivers)) gather --seconds 0.01 --table 1Mi --row 100 --batch 500 --run 8
measured 4 remote --scale 10 --batches 2 --batch-size 100 --transport shm

holds "bench latency --matrix" "$GRAPHWIRE" bench latency --matrix --sizes 8,100,4Ki --seconds 0.1 --table 1Mi \
	--repeats 5 --json matrix.json --plot matrix.svg
if python3 - "$drivers" <<-'CHECK' >why 2>&1; then
	import json, re, sys
	import xml.dom.minidom
	lines = [json.loads(line) for line in open("matrix.json")]
	cells = {}
	for line in lines:
	    assert line["bench"] == "latency", line
	    if "missing" in line:
	        assert line["case"] in ("tcp/io_uring", "verbs") and line["missing"], line
	        continue
	    assert line["verified"] is True and line["unit"] == "us", line
	    # The median is that of the repeats' medians; the other quantiles are of all rounds, of which a slow machine has few.
	    assert 0 < line["p50_us"] and 0 < line["p99_us"] <= line["p999_us"] * 1.02, line
	    assert line["rows_per_s"] > 0 and line["rounds"] >= 5, line
	    assert abs(line["gb_per_s"] * 1e9 / line["rows_per_s"] / line["row_bytes"] - 1) < 1e-6, line
	    cells.setdefault(line["transport"], []).append(line["row_bytes"])
	assert all(sizes == [8, 100, 4096] for sizes in cells.values()), cells
	assert {"memory", "shm", "tcp/epoll"} <= set(cells), cells
	named = set(cells) | {line["case"] for line in lines if "missing" in line}
	assert named == {"memory", "shm", "tcp/epoll", "tcp/io_uring", "verbs"}, named
	picture = xml.dom.minidom.parse("matrix.svg")
	assert len(picture.getElementsByTagName("circle")) == 9 * len(cells), "points"
	for element in picture.getElementsByTagName("*"):
	    for _, value in element.attributes.items():
	        assert not re.search(r"\b(nan|inf)", value, re.I), value
CHECK
	ok "bench latency --matrix: every size and transport, or why not; a plot of them"
else
	not_ok "bench latency --matrix: $(tail -n 1 why)"
fi
left=$(ls -A tmp)
if [ -z "$left" ]; then ok "benchmarks leave nothing behind"; else not_ok "benchmarks leave $left"; fi

# Without a name all benchmarks run, which takes minutes, so the test only waits for the first one's lines.
"$GRAPHWIRE" bench --repeats 5 --json all.json >out 2>err </dev/null &
process=$!
started+=("$process")
if within 100 grep -q '"bench":"latency".*"verified":true' all.json; then
	ok "bench --json without a name measures all"
else
	not_ok "bench --json without a name: $(tail -n 1 err)"
fi
kill -TERM "$process"
wait "$process" 2>/dev/null
refuses "bench: no folder for the JSON of all" 1 'absent/x' "$GRAPHWIRE" bench --json absent/x
refuses "bench: a benchmark's option without its name" 2 'rounds' "$GRAPHWIRE" bench --rounds 10
refuses "bench: a name after options" 2 'name comes before' "$GRAPHWIRE" bench --repeats 5 latency
refuses "bench: too few repeats" 2 'repeats' "$GRAPHWIRE" bench sample --repeats 2
refuses "bench: no folder for the plot" 1 'absent/x.svg' "$GRAPHWIRE" bench latency --matrix --plot absent/x.svg
refuses "bench: --plot without --matrix" 2 'needs --matrix' "$GRAPHWIRE" bench latency --plot x.svg
refuses "bench: --sizes without --matrix" 2 'needs --matrix' "$GRAPHWIRE" bench latency --sizes 8,64
refuses "bench: sizes that do not grow" 2 'must grow' "$GRAPHWIRE" bench latency --matrix --sizes 64,8
refuses "bench: an invalid size" 2 'sizes' "$GRAPHWIRE" bench latency --matrix --sizes 8,,64
refuses "bench: rows too wide" 2 '128' "$GRAPHWIRE" bench latency --matrix --sizes 128Ki
refuses "bench: latency --transport shm without --matrix" 2 'needs --matrix' "$GRAPHWIRE" bench latency --transport shm
refuses "bench: runs longer than a table" 1 'no runs' "$GRAPHWIRE" bench gather --table 1Mi --row 64Ki --batch 16 --run 17
refuses "bench: a run of zero rows" 2 'run' "$GRAPHWIRE" bench gather --run 0
refuses "bench: no folder for the JSON" 1 'absent/x' "$GRAPHWIRE" bench latency --rounds 10 --json absent/x
refuses "bench: servers without a graph" 2 'part-config' "$GRAPHWIRE" bench minibatch --servers 127.0.0.1:1

# Interrupted while it makes its graph, and while its servers run. The pause keeps the benchmark from ending.
for moment in whole parts graphwire/key-; do
	"$GRAPHWIRE" bench minibatch --scale 17 --batches 1000000 >out 2>err </dev/null &
	process=$!
	started+=("$process")
	within 100 compgen -G "tmp/*/$moment*" || not_ok "bench never makes $moment"
	children=$(ps -o pid= --ppid "$process")
	kill -TERM "$process"
	if ! within 100 gone "$process"; then not_ok "bench continues after a signal"; fi
	wait "$process"
	for child in $children; do
		within 100 gone "$child" || not_ok "bench leaves process $child"
	done
	left=$(ls -A tmp)
	if [ -z "$left" ]; then ok "interrupted at $moment, bench leaves nothing"; else not_ok "at $moment: $left"; fi
done
