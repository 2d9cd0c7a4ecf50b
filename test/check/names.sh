#!/usr/bin/env bash
# names.sh [ROOT]: checks that each name has one meaning, so that a debugger, a profile or a search finds the right thing.
#
#   tags       no struct, union or enum tag is defined in two files;
#   globals    no function or variable that other files can see is defined in two files;
#   functions  no function has the name of another file's function. This includes static functions: a profile shows names
#              without files, so a static function's name contains a word of its file's name.
#   locals     no parameter or local variable has the name of a function of its file or of a function that all files see.
#              The compiler's -Wshadow does not report that.
#
# Prints the names that break a rule, with their places. Without ROOT it first plants violations of each kind, and checks
# that they are found. One exception: vec_*, the lanes in sampler/lanes/wide_*.c, because wide_kernel.h is compiled once with
# the vec_* functions of each width.
set -uo pipefail
cd "$(dirname "$0")/../.." && . test/check/lib.sh

product='core transport sampler protocol metrics tensors client server tools bench cmd include'

ctags=$(command -v ctags-universal || command -v ctags)
if ! "${ctags:-false}" --version 2>/dev/null | grep -q '^Universal Ctags'; then
	not_ok "Universal Ctags is missing"
	exit 1
fi

# definitions ROOT: prints a line for each definition: name, file, line, kind, properties, separated by tabs.
definitions() {
	local folder folders=()
	cd "$1" || return 1
	for folder in $product; do
		[ -d "$folder" ] && folders+=("$folder")
	done
	find "${folders[@]}" -path bench/peers -prune -o -name '*.[ch]' -print | sort |
		"$ctags" --quiet=yes --options=NONE -L - -f - --languages=C --langmap=C:.c.h --kinds-C=sugfvlz --excmd=number --fields=K \
			--fields-C='{properties}'
}

twice() { # twice ROOT: prints "kind name: file:line file:line" for each name with two meanings
	definitions "$1" | awk -F '\t' '
	function note(kind, name, file, line) {
		if ((kind, name, file) in noted) return
		noted[kind, name, file] = 1
		places[kind " " name] = places[kind " " name] " " file ":" line
		count[kind " " name]++
	}
	/^!_TAG/ || $1 ~ /^__anon/ { next }
	$2 ~ /^sampler\/lanes\/wide_[^\/]*\.c$/ && $1 ~ /^vec_/ { next }
	{
		line = $3; sub(/;.*/, "", line)
		is_static = $5 ~ /^properties:(.*,)?static(,|$)/
	}
	$4 == "struct" || $4 == "union" || $4 == "enum" { note("tag", $1, $2, line); next }
	$4 == "local" || $4 == "parameter" { locals[++local_count] = $1 "\t" $2 "\t" line; next }
	!is_static { note("global", $1, $2, line) }
	$4 == "function" {
		note("function", $1, $2, line)
		here[$1, $2] = 1
		if (!is_static && $1 ~ /^gw_/) everywhere[$1] = 1
	}
	END {
		for (key in count) {
			if (count[key] < 2) continue
			split(key, word, " ")
			if (word[1] == "function" && count["global " word[2]] > 1) continue # reported already
			print key ":" places[key]
		}
		for (i = 1; i <= local_count; i++) {
			split(locals[i], word, "\t")
			if ((word[1], word[2]) in here || word[1] in everywhere) print "local " word[1] ": " word[2] ":" word[3]
		}
	}' | sort
}

self_test() {
	local root failed=0
	root=$(mktemp -d)
	trap 'rm -rf "$root"' RETURN
	while IFS='|' read -r one one_text other other_text verdict; do
		mkdir -p "$root/$(dirname "$one")" "$root/$(dirname "$other")"
		printf '%s\n' "$one_text" >"$root/$one"
		printf '%s\n' "$other_text" >"$root/$other"
		local found=allowed
		[ -n "$(twice "$root")" ] && found=caught
		if [ "$found" = "$verdict" ]; then
			echo "ok - $one with \"$one_text\" beside $other with \"$other_text\" is $verdict"
		else
			echo "not ok - $one with \"$one_text\" beside $other with \"$other_text\" is $found, not $verdict"
			failed=1
		fi
		rm "$root/$one" "$root/$other"
	done <<-'PLANTED'
		core/base/x.c|struct cursor { int at; };|client/y.c|struct cursor { int at; };|caught
		core/base/x.h|struct gw_span { int at; };|tools/import/y.h|struct gw_span { int at; };|caught
		bench/x.c|static const struct row { int at; } rows[1];|cmd/y.c|struct row { int at; };|caught
		tools/x.c|enum loop { A };|bench/y.c|struct loop { int at; };|caught
		tools/x.c|union word { int at; };|tools/y.c|void f(void) { struct word { int at; } w; }|caught
		include/graphwire/x.h|enum gw_key { A };|core/graph/y.h|struct gw_key { int at; };|caught
		tools/x.c|void f(int a) { }|bench/y.c|int f(void) { return 0; }|caught
		transport/tcp/x.c|int gw_count;|transport/shm/y.c|int gw_count = 1;|caught
		transport/tcp/x.c|static int begin(void) { return 0; }|transport/verbs/y.c|static void begin(int a) { }|caught
		core/base/x.h|static inline int least(int a) { return a; }|server/y.c|static int least(int a) { return a; }|caught
		client/x.c|static int gw_end(void) { return 0; }|sampler/y.c|int gw_end(void) { return 0; }|caught
		sampler/lanes/wide_four.c|static int add(int a) { return a; }|sampler/lanes/wide_avx2.c|static int add(int a) { return a; }|caught
		sampler/lanes/wide_four.c|static int vec_add(int a) { return a; }|sampler/lanes/wide_avx2.c|static int vec_add(int a) { return a; }|allowed
		core/base/x.h|struct gw_span;|core/base/y.h|struct gw_span { int at; };|allowed
		core/base/x.c|struct { int at; } x_one;|core/base/y.c|struct { int at; } y_one;|allowed
		core/base/x.h|int gw_end(void);|core/base/y.c|int gw_end(void) { return 0; }|allowed
		core/base/x.h|extern int gw_count;|core/base/y.c|int gw_count;|allowed
		core/base/x.c|static int lock;|core/base/y.c|static int lock;|allowed
		core/base/x.c|void f(int run) { }|core/base/y.c|static void run(void) { }|allowed
		core/base/x.c|static void run(void) { } void f(int run) { }|core/base/y.c|int gw_y;|caught
		core/base/x.c|static void run(void) { } void f(void) { int a, run; }|core/base/y.c|int gw_y;|caught
		core/base/x.c|void f(int gw_end) { }|core/base/y.c|void gw_end(void) { }|caught
		tools/x.c|static void run(void) { }|bench/y.c|static void run(void) { }|caught
		server/x.c|static void run(void) { }|cmd/y.c|static void run(int a) { }|caught
		tools/x.c|static void run(void) { }|test/unit/y.c|static void run(void) { }|allowed
		test/unit/x.c|struct bed { int at; };|server/y.c|struct bed { int at; };|allowed
		bench/peers/x.c|int f(void) { return 0; }|bench/y.c|int f(void) { return 0; }|allowed
	PLANTED
	return $failed
}

status=0
[ $# -gt 0 ] || self_test || status=1
if [ "$(definitions "${1:-.}" | wc -l)" -eq 0 ]; then
	not_ok "no definition was found"
	exit 1
fi
found=$(twice "${1:-.}")
if [ -n "$found" ]; then
	echo "$found"
	not_ok "these names stand for two things"
	exit 1
fi
ok "no name stands for two things"
exit $status
