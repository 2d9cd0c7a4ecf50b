#!/bin/sh
# manuals.sh PROGRAM VERSION OUT HEADER…: writes the manual pages and the completion for bash.
#
#   PROGRAM COMMAND --help ─▶ OUT/man1, OUT/graphwire.bash     a page for each command
#   comments of HEADER…    ─▶ OUT/man3                         a page for each public function
#   docs/man7              ─▶ OUT/man7                         concepts: the only pages that are written by hand
#
# Needs sh, sed and awk. Fails if a command prints no help.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
program=$1 version=$2 out=$3
shift 3
rm -rf "$out"
mkdir -p "$out/man1" "$out/man3" "$out/man7" "$out/help"

# Prints the commands that a help text lists, each with its description.
listed() { sed -n '/^Examples:/q; s/^  \([a-z][a-z]*\)  *\([^ ].*\)/\1 \2/p' "$1"; }

page() { # page NAME WHAT COMMAND…
	name=$1 what=$2
	shift 2
	"$program" "$@" --help >"$out/help/$name"
	printf '%s\n%s\n' "$name" "$what" >>"$out/pages"
}

page graphwire 'a distributed graph service for training graph neural networks'
listed "$out/help/graphwire" | while read -r command what; do
	page "graphwire-$command" "$what" "$command"
	listed "$out/help/graphwire-$command" | while read -r word more; do
		page "graphwire-$command-$word" "$more" "$command" "$word"
	done
	# Forms of the command that its help mentions only in prose.
	sed -n "s/.*graphwire $command \([a-z][a-z]*\) --help.*/\1/p" "$out/help/graphwire-$command" | sort -u | while read -r word; do
		page "graphwire-$command-$word" "$what: $word" "$command" "$word"
	done
done

# Prints the related pages: of a command, its forms; of graphwire, all commands.
see() { # see NAME
	sed -n 'p;n' "$out/pages" | awk -v name="$1" '
		$0 != name && (name == "graphwire" ? $0 !~ /^graphwire-.*-/ : index($0, name "-") == 1 || index(name, $0 "-") == 1) {
			text = $0
			gsub(/-/, "\\-", text)
			printf ".BR %s (1),\n", text
		}'
}
while read -r name && read -r what; do
	see "$name" >"$out/see"
	printf '.BR graphwire (3),\n.BR graphwire (7)\n' >>"$out/see"
	awk -v name="$name" -v version="$version" -v what="$what" -v see="$out/see" -f "$here/manual_command.awk" "$out/help/$name" \
		>"$out/man1/$name.1"
done <"$out/pages"
# shellcheck disable=SC2046 # names without spaces, in this order
(cd "$out/help" && awk -f "$here/completion.awk" $(sed -n 'p;n' ../pages)) >"$out/graphwire.bash"
awk -v folder="$out/man3" -v version="$version" -f "$here/manual_header.awk" "$@"
for concept in "$here"/../docs/man7/*.7; do
	sed "s/@VERSION@/$version/" "$concept" >"$out/man7/${concept##*/}"
done
rm -r "$out/see" "$out/pages" "$out/help"
