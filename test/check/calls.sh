#!/usr/bin/env bash
# calls.sh BUILD [ROOT]: checks that source files do not call each other's functions in a circle, unless they are one
# object. Then each object can be read, tested and changed with only the files that it calls. Files are one object if they
# include the same header whose name ends in _private.h (test/check/private.sh), or if they lie in one folder of the third
# level (transport/tcp/client). (test/check/circles.sh checks includes, which do not show calls if one header declares the
# functions of several sources.) The object files of a build name the functions that they define and use. Calls by
# pointers and uses of variables do not count. Prints circles that are not listed in `known`, and listed circles that no
# longer exist.
# calls.sh --self-test: plants circles and checks that they are found.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)

known='' # circles that are allowed, a line for each

circles() { # circles BUILD ROOT: prints the files of each circle that is not one object, a line for each circle
	local object source objects=() private=()
	while IFS= read -r object; do
		source=${object##*.dir/}
		case $source in test/* | examples/*) continue ;; esac
		[ -f "$2/${source%.o}" ] || continue
		objects+=("$object")
		private+=("$2/${source%.o}")
	done < <(find "$1" -path '*.dir/*.c.o' | sort)
	if [ ${#objects[@]} -eq 0 ]; then
		echo "no object lies in $1"
		return
	fi
	{
		grep -HE '^[ \t]*#[ \t]*include[ \t]*"[^"]*_private\.h"' "${private[@]}" | sed "s|^${2%/}/||"
		nm -A -g "${objects[@]}"
	} | awk '
	# Whether the files of a circle are one object.
	function one_object(circle, n, file, i, folder, part, shared, header, all) {
		n = split(circle, file, " ")
		folder = file[1]; sub(/\/[^\/]*$/, "", folder)
		all = split(folder, part, "/") >= 3
		for (i = 2; i <= n && all; i++)
			all = index(file[i], folder "/") == 1
		if (all) return 1
		for (header in headers) {
			all = 1
			for (i = 1; i <= n && all; i++)
				all = (file[i], header) in includes
			if (all) return 1
		}
		return 0
	}
	# Whether b can be reached from a. Marks visited files with this number.
	function reaches(a, b, mark, next_of, n, i) {
		seen[a] = mark
		n = split(calls[a], next_of, " ")
		for (i = 1; i <= n; i++) {
			if (next_of[i] == b) return 1
			if (seen[next_of[i]] != mark && reaches(next_of[i], b, mark)) return 1
		}
		return 0
	}
	/\.c:[ \t]*#[ \t]*include/ {
		file = $0; sub(/\.c:.*/, "", file)
		match($0, /"[^"]*"/); header = substr($0, RSTART + 1, RLENGTH - 2)
		headers[header]; includes[file, header]
		next
	}
	{
		file = $1
		sub(/:[0-9a-f]*$/, "", file); sub(/.*\.dir\//, "", file); sub(/\.c\.o$/, "", file)
		if (!(file in order)) { order[file] = ++count; name[count] = file }
		type = $(NF - 1)
		if (type == "T" || type == "W") home[$NF] = file
		if (type == "U") { user[++uses] = file; used[uses] = $NF }
	}
	END {
		for (i = 1; i <= uses; i++) {
			if (!(used[i] in home)) continue
			to = home[used[i]]
			if (to == user[i] || (user[i], to) in known) continue
			known[user[i], to] = 1
			calls[user[i]] = calls[user[i]] " " to
		}
		for (i = 1; i <= count; i++) {
			if (listed[i] || !reaches(name[i], name[i], ++mark)) continue
			circle = name[i]
			for (j = i + 1; j <= count; j++)
				if (reaches(name[i], name[j], ++mark) && reaches(name[j], name[i], ++mark)) {
					circle = circle " " name[j]
					listed[j] = 1
				}
			if (!one_object(circle)) print circle
		}
	}'
}

# plant ROOT FILE TEXT: makes a source, with its object file where a build would put it, or a header. "@HEADER" in the
# text is an include.
plant() {
	local object="$1/build/x.dir/$2.o"
	mkdir -p "$1/$(dirname "$2")" "$(dirname "$object")"
	sed -E 's/@([^ ]*) /#include "\1"\n/g' <<<"$3" >"$1/$2"
	[[ $2 == *.h ]] || cc -I"$1" -c -o "$object" "$1/$2"
}

self_test() {
	local root failed=0
	root=$(mktemp -d)
	trap 'rm -rf "$root"' RETURN
	while IFS= read -r line; do
		local verdict=${line##*|} planted=${line%|*} found=allowed parts part
		IFS='|' read -ra parts <<<"$planted" # FILE TEXT
		for part in "${parts[@]}"; do
			plant "$root" "${part%% *}" "${part#* }"
		done
		[ -n "$(circles "$root/build" "$root")" ] && found=caught
		if [ "$found" = "$verdict" ]; then
			echo "ok - $planted is $verdict"
		else
			echo "not ok - $planted is $found, not $verdict"
			failed=1
		fi
		rm -rf "${root:?}"/*
	done <<-'PLANTED'
		core/a.c void b(void); void a(void) { b(); }|core/b.c void a(void); void b(void) { a(); }|caught
		core/a.c void b(void); void a(void) { b(); }|core/b.c void c(void); void b(void) { c(); }|server/c.c void a(void); void c(void) { a(); }|caught
		core/a.c void b(void); void a(void) { b(); }|core/b.c void a(void); void b(void) { a(); }|core/c.c void a(void); void c(void) { a(); }|caught
		core/x/o.h void a(void); void b(void);|core/x/a.c @core/x/o.h void a(void) { b(); }|core/x/b.c @core/x/o.h void b(void) { a(); }|caught
		core/x/a.c void b(void); void a(void) { b(); }|core/x/b.c void a(void); void b(void) { a(); }|caught
		core/x/y/a.c void b(void); void a(void) { b(); }|core/x/z/b.c void a(void); void b(void) { a(); }|caught
		core/x/y/a.c void b(void); void a(void) { b(); }|core/x/b.c void a(void); void b(void) { a(); }|caught
		core/o_private.h void a(void); void b(void);|core/a.c @core/o_private.h void a(void) { b(); }|core/b.c void a(void); void b(void) { a(); }|caught
		core/o_private.h void a(void); void b(void);|core/p_private.h void a(void); void b(void);|core/a.c @core/o_private.h void a(void) { b(); }|core/b.c @core/p_private.h void b(void) { a(); }|caught
		core/o_private.h void a(void); void b(void);|core/a.c @core/o_private.h void a(void) { b(); }|core/b.c @core/o_private.h void c(void); void b(void) { a(); c(); }|core/c.c void a(void); void c(void) { a(); }|caught
		core/o_private.h void a(void); void b(void);|core/a.c @core/o_private.h void a(void) { b(); }|core/b.c @core/o_private.h void b(void) { a(); }|allowed
		core/x/y/a.c void b(void); void a(void) { b(); }|core/x/y/b.c void a(void); void b(void) { a(); }|allowed
		core/a.c void b(void); void a(void) { b(); }|core/b.c void c(void); void b(void) { c(); }|core/c.c void c(void) { }|allowed
		core/a.c void b(void (*done)(void)); static void end(void) { } void a(void) { b(end); }|core/b.c void b(void (*done)(void)) { done(); }|allowed
		core/a.c void b(void); int at; void a(void) { b(); }|core/b.c extern int at; void b(void) { at++; }|allowed
		core/a.c void b(void); static void run(void) { } void a(void) { run(); b(); }|core/b.c static void run(void) { } void b(void) { run(); }|allowed
		core/a.c void b(void); void a(void) { b(); }|test/b.c void a(void); void b(void) { a(); }|allowed
	PLANTED
	return $failed
}

if [ "${1:-}" = --self-test ]; then
	self_test
	exit
fi
found=$(circles "${1:-$here/../../build/dev}" "${2:-$here/../..}" | sort)
new=$(comm -23 <(echo "$found") <(sed '/^$/d' <<<"$known" | sort) | sed '/^$/d')
gone=$(comm -13 <(echo "$found") <(sed '/^$/d' <<<"$known" | sort))
if [ -n "$new$gone" ]; then
	[ -n "$new" ] && printf 'a circle: %s\n' "${new//$'\n'/, and }"
	[ -n "$gone" ] && printf 'no circle any more, take it off the list: %s\n' "${gone//$'\n'/, and }"
	echo "not ok - these files call each other, and are not one object"
	exit 1
fi
echo "ok - no file calls another object's file that leads back to it, except $(sed '/^$/d' <<<"$known" | wc -l) circles that are listed"
