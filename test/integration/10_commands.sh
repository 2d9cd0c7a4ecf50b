#!/usr/bin/env bash
# Every subcommand: its --help is complete, and an unknown option gives one line.
# shellcheck source=test/integration/lib.sh
. "$(dirname "$0")/lib.sh"

holds "graphwire --version" "$GRAPHWIRE" --version
holds "graphwire --help" "$GRAPHWIRE" --help
mapfile -t commands < <("$GRAPHWIRE" --help | sed -n 's/^  \([a-z]\{3,\}\)  *.*/\1/p')
if [ ${#commands[@]} -lt 5 ]; then
	not_ok "graphwire --help lists its commands (found: ${commands[*]})"
fi
refuses "no command" 2 "help" "$GRAPHWIRE"
refuses "an unknown command" 2 "nonsense" "$GRAPHWIRE" nonsense
refuses "an unknown option in a command's place" 2 "nonsense" "$GRAPHWIRE" --nonsense

# Commands with subcommands.
mapfile -t benchmarks < <("$GRAPHWIRE" bench --help | sed -n 's/^  \([a-z]\{3,\}\)  .*/bench \1/p')
commands+=("${benchmarks[@]}" "import table" "import columns" "import ids")

for command in "${commands[@]}"; do
	read -ra words <<<"$command"
	holds "$command --help" "$GRAPHWIRE" "${words[@]}" --help
	if [ -s "$work/err" ] || ! grep -q "^Usage: graphwire $command" "$work/out" ||
		! grep -q "^  graphwire $command" "$work/out"; then
		not_ok "$command --help shows its usage and an example on stdout"
	else
		ok "$command --help shows its usage and an example"
	fi
	# argp folds lines at 79 columns: an example that it folds cannot be copied from the screen.
	folded=$(awk '/^Examples:/ {in_examples = 1; next} /^$/ {in_examples = 0} in_examples && !/^  /' "$work/out")
	if [ -n "$folded" ]; then not_ok "$command --help folds an example: $folded"; fi
	refuses "$command: an unknown option" 2 "nonsense" "$GRAPHWIRE" "${words[@]}" --nonsense
done

# --quiet: a command that succeeds prints nothing; other output is unchanged.
cd "$work" || exit 1
printf '0\t1\n1\t2\n' >edges.tsv
silent() { # silent COMMAND…: prints nothing with --quiet, and something without it
	"$GRAPHWIRE" "$@" --quiet >said 2>&1
	holds "$1 --quiet succeeds" test $? -eq 0
	holds "$1 --quiet says nothing" test ! -s said
	[ "$1" = verify ] || set -- "$@" --replace
	"$GRAPHWIRE" "$@" >said 2>&1
	holds "$1 says something" test -s said
}
silent generate rmat --scale 6 --out rmat
silent import --from edges.tsv --out pairs
silent verify rmat
quiet=()
for command in "${commands[@]}"; do
	read -ra words <<<"$command"
	help=$("$GRAPHWIRE" "${words[@]}" --help) # the whole text: if the reader ended early, the command would fail
	if grep -q -e '--quiet' <<<"$help"; then quiet+=("$command"); fi
done
holds "no other command has --quiet" test "$(printf '%s,' "${quiet[@]}" | tr ',' '\n' | sort | xargs)" = "generate import verify"
