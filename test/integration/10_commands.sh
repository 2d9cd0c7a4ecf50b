#!/usr/bin/env bash
# Every subcommand: --help that helps, and one line for an option it does not know.
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

# Commands with commands of their own.
mapfile -t benchmarks < <("$GRAPHWIRE" bench --help | sed -n 's/^  \([a-z]\{3,\}\)  .*/bench \1/p')
commands+=("${benchmarks[@]}" "import apt")

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
