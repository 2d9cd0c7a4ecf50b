#!/usr/bin/env bash
# Mistakes of users: each ends with one line that names the error, its place and a remedy, and leaves no file half-written.
# shellcheck source=test/integration/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

nothing_written() { # nothing_written WHAT NAME: no file or staging folder of that name
	local found
	found=$(find . -name "$2*" -o -name ".$2*")
	if [ -z "$found" ]; then ok "$1 leaves nothing behind"; else not_ok "$1 leaves something behind: $found"; fi
}

# --- Import. ---
refuses "import: no input file" 1 'absent.tsv' "$GRAPHWIRE" import --quiet --from absent.tsv --out made
refuses "import: no arguments" 2 'out' "$GRAPHWIRE" import
printf '0\t1\n1\tx2 y\n' >bad.tsv
printf '0\t1\n1\t-7\n' >negative.tsv
head -c 4096 /dev/urandom >noise.npy
printf '0\t1\n1\t2\n2\t0\n' | gzip | head -c 20 >cut.tsv.gz
: >empty.tsv
refuses "import: an empty file" 1 'empty.tsv: no edges.*--num-nodes' "$GRAPHWIRE" import --quiet --from empty.tsv --out made
refuses "import: an invalid id" 1 'bad.tsv.*2' "$GRAPHWIRE" import --quiet --from bad.tsv --ids dense --out made
refuses "import: an invalid array" 1 'noise.npy' "$GRAPHWIRE" import --quiet --from noise.npy --out made
refuses "import: a negative id" 1 'negative.tsv.*2' "$GRAPHWIRE" import --quiet --from negative.tsv --ids dense --out made
refuses "import: a gzip file cut short" 1 'cut.tsv.gz' "$GRAPHWIRE" import --quiet --from cut.tsv.gz --out made
printf '0\t4611686018427387904\n' >far.tsv
printf '0\t1\n' >few.tsv
for option in --node-feature --edge-feature; do
	refuses "import: an invalid array of a feature is named ($option)" 1 'feature "color".*noise.npy' \
		"$GRAPHWIRE" import --quiet --from few.tsv $option color=noise.npy --out made
done
printf '0\t1\t2\n1\t0\tnan\n' >weights.tsv
printf 'a\tb\tindices\n0\t1\t2\n' >names.tsv
refuses "import: an id beyond any graph" 1 '4611686018427387905 nodes.*compact' \
	"$GRAPHWIRE" import --quiet --from far.tsv --ids dense --out made
refuses "import: an invalid weight" 1 'weight' "$GRAPHWIRE" import --quiet --from weights.tsv --weight 3 --out made
refuses "import: a feature named like the format's own" 1 'indices.*another' \
	"$GRAPHWIRE" import --quiet --from names.tsv --header --edge-column indices=3 --out made

# A pipe is a valid input only as a text that the user names; not within a folder, and not as an archive.
mkdir chunked
mkfifo pipe.npz pipe.npy chunked/piped.csv chunked/metadata.json
chunks='"num_nodes_per_chunk": [[2]], "node_type": ["n"], "edge_type": ["n:e:n"], "num_edges_per_chunk": [[1]]'
printf '{"graph_name": "g", %s, "edges": {"n:e:n": {"format": {"name": "csv", "delimiter": " "}, "data": ["piped.csv"]}}}' \
	"$chunks" >chunked/other.json
for name in pipe.npz pipe.npy chunked/metadata.json; do
	refuses "import: $name, a pipe" 1 "$name: not a regular file" "$GRAPHWIRE" import --quiet --from "$name" --out made
done
refuses "import: a chunk that is a pipe" 1 'chunked/piped.csv: not a regular file' \
	"$GRAPHWIRE" import --quiet --from chunked/other.json --out made
mkfifo pipe.tsv
printf '0\t1\n' >pipe.tsv &
started+=($!)
holds "import: text from a pipe" "$GRAPHWIRE" import --quiet --from pipe.tsv --out piped-graph
nothing_written "a failed import" made

# --- Generate. ---
refuses "generate: no folder" 2 'out' "$GRAPHWIRE" generate rmat
refuses "generate: scale out of range" 2 '99' "$GRAPHWIRE" generate rmat --scale 99 --out made
refuses "generate: not a number" 2 'lots' "$GRAPHWIRE" generate rmat --scale lots --out made
refuses "generate: a folder that is a file" 1 'bad.tsv' "$GRAPHWIRE" generate rmat --scale 8 --quiet --out bad.tsv/made
refuses "generate: two times" 2 'time: "u": one NAME is enough' "$GRAPHWIRE" generate rmat --time t --time u --out made
refuses "generate: two times of nodes" 2 'one NAME is enough' "$GRAPHWIRE" generate rmat --node-time t --node-time u --out made
refuses "epoch: two times" 2 'one NAME is enough' "$GRAPHWIRE" epoch --part-config graph --time t --time u
nothing_written "a failed generate" made
holds "generate" "$GRAPHWIRE" generate rmat --scale 10 --features 8 --labels 4 --train-share 0.5 --out graph
refuses "generate: the folder exists already" 1 'graph' "$GRAPHWIRE" generate rmat --scale 10 --out graph

# --- Partition. ---
refuses "partition: no graph" 1 'absent' "$GRAPHWIRE" partition absent --num-parts 2 --method random --out made
refuses "partition: no arguments" 2 'graph' "$GRAPHWIRE" partition
refuses "partition: unknown method" 2 'magic' "$GRAPHWIRE" partition graph --num-parts 2 --method magic --out made
refuses "partition: zero parts" 2 '0' "$GRAPHWIRE" partition graph --num-parts 0 --method random --out made
nothing_written "a failed partition" made
holds "partition" "$GRAPHWIRE" partition graph --num_parts 2 --method random --out parts

# --- Damaged parts: every reader names the place. ---
damaged() { # damaged NAME FILE: copies the parts, so that FILE can be damaged
	rm -rf "$1"
	cp -r parts "$1"
	victim=$(find "$1" -path "*$2" | sort | head -n 1)
	[ -n "$victim" ] || not_ok "there is no $2 in the parts"
}
damaged cut feat.npy
truncate -s -100 "$victim"
damaged edited indices.npy
printf '\377' | dd of="$victim" bs=1 seek=4200 conv=notrunc status=none
damaged missing indptr.npy
rm "$victim"
damaged wrongjson rmat.json
head -c 200 "$victim" >"$victim.new" && mv "$victim.new" "$victim"
undigested() { # undigested FILE: removes the digest, so that readers find other errors
	sed -i '/^ "minor": \|^ "json_digest": /d' "$1"
}
damaged renamed rmat.json
sed -i 's|"graph_name": "rmat"|"graph_name": "rmap"|' "$victim"
damaged climbing rmat.json
undigested "$victim"
sed -i 's|"part0/node|"../part0/node|' "$victim"
damaged piped feat.npy
rm "$victim" && mkfifo "$victim"
damaged claiming rmat.json
undigested "$victim"
sed -i 's|"num_parts": 2|"num_parts": 65536|' "$victim"
damaged doubled rmat.json
sed -i 's|"num_parts": 2|"num_parts": 2, "num_parts": 2|' "$victim"
damaged newer rmat.json
sed -i 's|graphwire-1|graphwire-2|' "$victim"
reader() { # reader COMMAND PARTS: the arguments of a command that opens the parts
	case $1 in
	verify) echo "verify $2" ;;
	serve) echo "serve --part-config $2 --part 0 --listen 127.0.0.1:0" ;;
	epoch) echo "epoch --part-config $2" ;;
	esac
}
for command in verify serve epoch; do
	"$GRAPHWIRE" --help | grep -q "^  $command " || continue
	while read -r folder said; do
		read -ra arguments < <(reader "$command" "$folder")
		refuses "$command: $folder parts" 1 "$said" "$GRAPHWIRE" "${arguments[@]}"
	done <<-'FAULTS'
		cut feat
		edited indices
		missing indptr
		wrongjson rmat.json
		renamed rmat.json.*json_digest
		climbing \.\./part0
		piped feat.*regular
		claiming 65536
		doubled num_parts
		newer graphwire-2.*build
		absent absent
	FAULTS
done

# --- Serve and epoch. ---
refuses "serve: a part that does not exist" 1 '7' "$GRAPHWIRE" serve --part-config parts --part 7 --listen 127.0.0.1:0
refuses "serve: not an address" 2 'nowhere' "$GRAPHWIRE" serve --part-config parts --part 0 --listen nowhere:port
refuses "serve: open to all without a key" 1 'key-file.*insecure' \
	"$GRAPHWIRE" serve --part-config parts --part 0 --listen 0.0.0.0:0
refuses "epoch: a server that does not exist" 1 '127.0.0.1:[12]' \
	"$GRAPHWIRE" epoch --part-config parts --servers 127.0.0.1:1,127.0.0.1:2 --timeout 500
refuses "epoch: invalid fanouts" 2 'ten' "$GRAPHWIRE" epoch --part-config parts --fanouts ten
refuses "epoch: an unknown edge type" 1 'nonsense' "$GRAPHWIRE" epoch --part-config parts --fanout nonsense=1,1
refuses "epoch: an unknown node type" 1 'nonsense' "$GRAPHWIRE" epoch --part-config parts --ntype nonsense
for name in features labels mask; do
	refuses "epoch: unknown $name" 1 'nonsense' "$GRAPHWIRE" epoch --part-config parts --$name nonsense
done
