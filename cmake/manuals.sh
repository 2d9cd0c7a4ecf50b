#!/bin/sh
# manuals.sh PROGRAM VERSION OUT HEADER…: makes manual pages of all commands (OUT/man1) and of all public functions
# (OUT/man3), and completion for bash (OUT/graphwire.bash). The sources are the --help texts and the headers' comments;
# no page is written by hand. Needs sh and awk. Fails if a command has no help.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
program=$1 version=$2 out=$3
shift 3
rm -rf "$out"
mkdir -p "$out/man1" "$out/man3" "$out/help"

# Prints the words of a help text's list of commands, with their descriptions.
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
	# A form of the command that only the help's text mentions.
	sed -n "s/.*graphwire $command \([a-z][a-z]*\) --help.*/\1/p" "$out/help/graphwire-$command" | sort -u | while read -r word; do
		page "graphwire-$command-$word" "$what: $word" "$command" "$word"
	done
done

# see NAME: the SEE ALSO list: a command and its forms, or all commands.
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
	echo '.BR graphwire (3)' >>"$out/see"
	awk -v name="$name" -v version="$version" -v what="$what" -v see="$out/see" -f "$here/manual_command.awk" "$out/help/$name" \
		>"$out/man1/$name.1"
done <"$out/pages"
# shellcheck disable=SC2046 # names without spaces, in their order
(cd "$out/help" && awk -f "$here/completion.awk" $(sed -n 'p;n' ../pages)) >"$out/graphwire.bash"
awk -v folder="$out/man3" -v version="$version" -f "$here/manual_header.awk" "$@"
rm -r "$out/see" "$out/pages" "$out/help"
