#!/usr/bin/env bash
# Wrong usage ends with status 2 and one line that names the error, before any read or write. A correct command that
# fails ends with status 1. A row: the status, a word of the line on stderr, the command.
# shellcheck source=test/integration/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1
printf '0 1\n1 2\n' >e
holds "a graph" "$GRAPHWIRE" import --quiet --from e --out graph

while read -r status word line; do
	[ -n "$status" ] || continue
	read -ra arguments <<<"$line"
	refuses "$status: $line" "$status" "$word" "$GRAPHWIRE" "${arguments[@]}"
done <<'TABLE'
2 out              import --from e
2 --from           import --out made
2 odt              import --from e --out made --format odt
2 SRC:REL:DST      import --edges a:b=e --out made
2 a:b:c:d:e        import --edges a:b:c:d:e=e --out made
2 name             import --edges a:r:=e --out made
2 r/s              import --edges a:r/s:b=e --out made
2 64               import --edges aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:r:b=e --out made
2 testing          import --triples testing=e --out made
2 too.many         import --triples train:x=e --out made
1 absent           import --quiet --triples ./k=1/absent --out made
2 ab               import --from e --delimiter ab --out made
2 comment          import --from e --comment 12345678 --out made
2 src-column.*0    import --from e --src-column 0 --out made
2 4097             import --from e --dst-column 4097 --out made
2 weight           import --from e --weight 0 --out made
1 weight.absent    import --quiet --from e --weight absent --out made
2 time             import --from e --time 0 --out made
1 time.absent      import --quiet --from e --time absent --out made
2 NAME=COLUMN      import --from e --edge-column x --out made
2 a:b              import --from e --edge-column a:b=1 --out made
2 column.0         import --from e --edge-column x=0 --out made
2 10               import --from e --time 1 --time-digits 10 --out made
2 sparse           import --from e --ids sparse --out made
2 many             import --from e --num-nodes many --out made
2 -1               import --from e --num-nodes -1 --out made
2 a/b              import --from e --num-nodes a/b=1 --out made
2 a/b              import --from e --node-type a/b --out made
2 nothing          import --num-nodes a=5 --out made
2 TYPE:NAME        import --from e --node-column x --out made
2 column.0         import --from e --label-column 0 --out made
2 column.0         import --from e --id-column a=0 --out made
2 too.many         import --from e --mask-column a:b=x --out made
2 too.many         import --from e --nodes a:b=e --out made
2 too.many         import --from e --num-nodes a:b=9 --out made
2 SRC:REL:DST      import --from e --edge-time a:b=e.npy --out made
2 SRC:REL:DST      import --edges a:r:b=e --reverse-of a:r --out made
2 SRC:REL:DST      import --edges a:r:b=e --reverse-of a:r:b=e --out made
2 edge             import --edges a:r:b=e --reverse-of a:r/s:b --out made
2 python.-m        import --tables db.json --out made
1 no.node.type     import --quiet --from e --label-column y --out made
2 a:b:c            import --from e --node-feature a:b:c=x.npy --out made
2 NAME=FILE        import --from e --node-feature x.npy --out made
2 a/b              import --from e --node-mask a/b=x.npy --out made
2 SRC:REL:DST      import --from e --edge-feature a:b=x.npy --out made
2 reverse          import --from e --undirected --reverse --out made
2 a/b              import --from e --name a/b --out made
2 0                import --from e --threads 0 --out made
2 257              import --from e --threads 257 --out made
2 nonsense         import --from e --out made --nonsense
2 extra            import --from e --out made extra
2 debian_packages  import apt --out made
2 debian_packages  import apt --help
2 from             import table --out made
2 .npy             import table --from e
1 node-type        import --quiet --from e --num-nodes papers=5 --out made
1 absent           import --quiet --from absent --out made
1 nope             import --quiet --from e --src-column nope --out made
2 kind             generate
2 out              generate rmat
2 grid             generate grid --out made
2 0                generate rmat --scale 0 --out made
2 99               generate rmat --scale 99 --out made
2 x                generate rmat --scale x --out made
2 a/b              generate rmat --weight a/b --out made
2 reserves         generate rmat --weight orig_id --out made
2 itself           generate rmat --time indices --out made
2 reserves         generate rmat --node-time a.times --out made
2 1.5              generate rmat --train-share 1.5 --out made
2 shares           generate rmat --train-share 0.9 --val-share 0.9 --out made
2 -1               generate rmat --features -1 --out made
2 a/b              generate rmat --name a/b --out made
2 reverse          generate rmat --undirected --reverse --out made
2 0                generate rmat --threads 0 --out made
1 graph            generate rmat --scale 4 --quiet --out graph
2 graph            partition
2 num-parts        partition graph --out made
2 out              partition graph --num-parts 2
2 0                partition graph --num-parts 0 --out made
2 65537            partition graph --num-parts 65537 --out made
2 magic            partition graph --num-parts 2 --method magic --out made
2 magic            partition graph --num-parts 2 --objtype magic --out made
2 vol              partition graph --num-parts 2 --method lp --objtype vol --out made
1 --python         partition graph --num-parts 2 --method kaminpar --python ./absent --out made
2 0                partition graph --num-parts 2 --num-trainers-per-machine 0 --out made
2 trainers|pieces  partition graph --num-parts 60000 --num-trainers-per-machine 4 --out made
2 lots             partition graph --num-parts 2 --memory lots --out made
2 x                partition graph --num-parts 2 --seed x --out made
2 SRC:REL:DST:NAME partition graph --num-parts 2 --weight a:b --out made
2 SRC:REL:DST:NAME partition graph --num-parts 2 --time a:b --out made
1 times.can.be     partition graph --num-parts 2 --method random --time absent --out made
2 0                partition graph --num-parts 2 --threads 0 --out made
2 fanouts          partition graph --num-parts 2 --replicate 5% --out made
2 replicate        partition graph --num-parts 2 --fanouts 5 --out made
2 luck             partition graph --num-parts 2 --replicate 5% --by luck --fanouts 5 --out made
2 lots             partition graph --num-parts 2 --replicate lots --fanouts 5 --out made
2 one.part         partition graph --num-parts 1 --replicate 5% --fanouts 5 --out made
2 JSON|folder      replicate
2 rows             replicate graph --fanouts 5
2 fanouts          replicate graph --rows 5%
2 100              replicate graph --rows 101% --fanouts 5
2 x                replicate graph --rows x% --fanouts 5
2 epochs           replicate graph --rows 5% --by epochs --fanouts 5
2 0                replicate graph --rows 5% --by epochs:0 --fanouts 5
2 edge.type        replicate graph --rows 5% --fanouts 5 --fanout 3
1 one.part         replicate graph --rows 5% --fanouts 5
1 absent           replicate absent --rows 5% --fanouts 5
1 absent           partition absent --num-parts 2 --method random --out made
2 graph            verify
2 extra            verify graph extra
2 x                verify graph --part x
2 65536            verify graph --part 65536
2 0                verify graph --threads 0
1 part.9           verify graph --part 9
1 absent           verify absent
2 graph            inspect
2 extra            inspect graph extra
2 0                inspect graph --threads 0
2 deep|shallow     inspect graph --deep --shallow
1 absent           inspect absent
2 part             serve
2 part             serve --part-config graph
2 graph            serve --part 0
2 x                serve --part-config graph --part x --listen 127.0.0.1:0
2 99999            serve --part-config graph --part 0 --listen 127.0.0.1:99999
2 0                serve --part-config graph --part 0 --listen 127.0.0.1:0 --threads 0
2 pigeon           serve --part-config graph --part 0 --listen 127.0.0.1:0 --transport pigeon
2 kqueue           serve --part-config graph --part 0 --listen 127.0.0.1:0 --tcp-driver kqueue
2 always           serve --part-config graph --part 0 --listen 127.0.0.1:0 --prefetch always
2 1000001          serve --part-config graph --part 0 --listen 127.0.0.1:0 --spin 1000001
2 long             serve --part-config graph --part 0 --listen 127.0.0.1:0 --spin long
2 0                doctor --spin 0
2 maybe            serve --part-config graph --part 0 --listen 127.0.0.1:0 --hugepages maybe
2 left             serve --part-config graph --part 0 --listen 127.0.0.1:0 --numa left
2 0                serve --part-config graph --part 0 --listen 127.0.0.1:0 --connections 0
2 soon             serve --part-config graph --part 0 --listen 127.0.0.1:0 --drain soon
2 0                serve --part-config graph --part 0 --listen 127.0.0.1:0 --tensor-lease 0
2 little           serve --part-config graph --part 0 --listen 127.0.0.1:0 --tensor-memory little
2 insecure         serve --part-config graph --part 0 --listen 127.0.0.1:0 --key-file k --insecure
2 extra            serve --part-config graph --part 0 --listen 127.0.0.1:0 extra
1 part.7           serve --part-config graph --part 7 --listen 127.0.0.1:0
1 no.such.feature  serve --part-config graph --part 0 --listen 127.0.0.1:0 --on-disk nix
1 without.--on-disk serve --part-config graph --part 0 --listen 127.0.0.1:0 --disk-cache 2Mi
2 disk-cache       serve --part-config graph --part 0 --listen 127.0.0.1:0 --on-disk nix --disk-cache 1
2 --check          epoch --part-config graph --check
1 on_disk.nix      epoch --part-config graph --on-disk nix
2 server           stat
2 soon             stat 127.0.0.1:1 --timeout soon
2 99999            stat 127.0.0.1:99999
1 127.0.0.1:1      stat 127.0.0.1:1 --timeout 500
2 lots             doctor --bytes lots
2 x                doctor --measure x
2 0                doctor --row 0
2 x                doctor --timeout x
2 pigeon           doctor --transport pigeon
2 extra            doctor extra
2 fanouts          doctor --part-config graph
2 part-config      doctor --fanouts 5
2 server           doctor --part-config graph --fanouts 5 --server 127.0.0.1:1
2 bytes            doctor --part-config graph --fanouts 5 --bytes 1G
2 memory           doctor --memory 1G
2 features         doctor --features feat
2 lots             doctor --part-config graph --fanouts 5 --memory lots
1 one.part         doctor --part-config graph --fanouts 5
2 nonsense         bench nonsense
2 FOLDER           checkpoint --servers 127.0.0.1:1
2 --servers        checkpoint folder
2 rate             checkpoint --servers 127.0.0.1:1 --rate 0 folder
2 FOLDER           restore --servers 127.0.0.1:1
2 JOB              end-job --servers 127.0.0.1:1
2 0                bench latency --row 0
2 pigeon           bench latency --transport pigeon
2 1                bench latency --repeats 1
2 sizes|grow       bench latency --sizes 5,4
2 x                bench latency --sizes x
2 0                bench gather --batch 0
2 pigeon           bench gather --transport pigeon
2 0                bench gather --depth 0
2 x                bench sample --fanouts x
2 99               bench sample --scale 99
2 ten              bench minibatch --fanouts ten
2 maybe            bench minibatch --neighbours maybe
2 pigeon           bench minibatch --transport pigeon
2 pigeon           bench remote --transport pigeon
2 part-config      bench minibatch --servers 127.0.0.1:1
2 part-config      bench remote --servers 127.0.0.1:1
2 kqueue           bench threads --tcp-driver kqueue
2 8                bench update --row 8
2 0                bench threads --threads 0
2 0                bench connections --rows 0
2 0                bench convert --rows 0
2 kqueue           bench load --driver kqueue
2 3                bench load --piece 3
2 0                bench load --files 0
2 nonsense         nonsense
TABLE

# The launcher's list of servers replaces --servers in every command that it starts.
for command in "checkpoint folder" "restore folder --job j" "end-job j"; do
	read -ra arguments <<<"$command"
	refuses "launched: $command" 1 nowhere env GRAPHWIRE_IP_CONFIG="$work/nowhere" "$GRAPHWIRE" "${arguments[@]}"
done

made=$(find . -name 'made*' -o -name '.made*')
if [ -z "$made" ]; then ok "no file is written"; else not_ok "a file is written: $made"; fi

# --quiet: only errors and no warnings, for every command with this option.
silent() { # silent WHAT COMMAND…
	local what=$1 said
	shift
	if said=$("$@" 2>&1) && [ -z "$said" ]; then ok "--quiet: $what prints nothing"; else not_ok "--quiet: $what prints: $said"; fi
}
printf '0 1\n1 2\nx 3\n' >mixed # all ids are read as text, with a warning
mkdir .odd.tmp-1-0              # as a killed run leaves it
silent "generate" "$GRAPHWIRE" generate rmat --scale 4 --quiet --out odd
silent "import" "$GRAPHWIRE" import --quiet --from mixed --out texts
silent "verify" "$GRAPHWIRE" verify --quiet texts
for command in import 'generate rmat' partition replicate verify inspect serve stat doctor bench epoch checkpoint restore end-job; do
	read -ra words <<<"$command"
	case $command:$("$GRAPHWIRE" "${words[@]}" --help) in
	import:*--quiet* | 'generate rmat':*--quiet* | verify:*--quiet*) ;;
	*--quiet*) not_ok "--quiet of $command is not tried here" ;;
	esac
done
said=$("$GRAPHWIRE" import --from mixed --out loud 2>&1)
case $said in *"not a number"*) ok "without it, import warns" ;; *) not_ok "import does not warn: $said" ;; esac
