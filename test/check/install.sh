#!/usr/bin/env bash
# Tests the installed files from a user's view:
#
#   here       manual pages and completion of all commands; pkg-config and CMake find the moved tree; the unit
#   in roots   the tutorial's commands (test/install/tour.sh), each in a root with Debian's essential packages only: the bundle in
#              Debian 12 and 11; the .deb in Debian 12 with the .deb's dependencies; INSTALL.md's commands, typed as they
#              are there, in Debian 12 with the packages that it names
#
# The roots (roots.sh) are kept in build/install. Without root they are skipped with a note; in CI that is a failure. If
# the mirror cannot be reached, or the machine forbids namespaces, the script prints a note everywhere. `./check soak`
# does the same in other releases.
# shellcheck disable=SC2317 # functions that `holds` calls
cd "$(dirname "$0")/../.." && . test/check/lib.sh
folder=$PWD/build/install
release=$PWD/build/release
run=$(mktemp -d)
trap 'rm -rf "$run"' EXIT
trap 'exit 130' INT TERM
status=0

# holds WHAT COMMAND…
holds() {
	local what=$1
	shift
	if "$@" >"$run/out" 2>&1 </dev/null; then
		ok "install: $what"
	else
		not_ok "install: $what"
		tail -n 5 "$run/out"
		status=1
	fi
}

# --- The installed files. ---

deploy/packages.sh install || note "the packages of the purpose install are missing"
mkdir -p "$folder"
build release >"$run/log" 2>&1 || { cat "$run/log"; not_ok "release does not build"; exit 1; }
rm -rf "$release/package"
holds "the bundle, for glibc 2.28" build release bundle
grep '^bundle:' "$run/out"
holds "the .deb" locked release env -C "$release" cpack -G DEB -B "$release/package"
version=$(build/release/graphwire --version | cut -d ' ' -f 2)
bundle=$release/graphwire-$version-linux-$(uname -m).tar.gz
deb=$(ls "$release"/package/*.deb)
holds "the .deb is of this version" test "$(dpkg-deb -f "$deb" Version)" = "$version"
tree=$run/elsewhere # moved after it was installed
cmake --install "$release" --prefix "$run/tree" >/dev/null && mv "$run/tree" "$tree"
library=$(dirname "$(find "$tree" -name libgraphwire.so)")

# --- Manual pages and completion. ---

every_page() {
	local command function concept missing=0
	for command in $("$tree/bin/graphwire" --help | sed -n 's/^  \([a-z][a-z]*\)  .*/\1/p'); do
		[ -s "$tree/share/man/man1/graphwire-$command.1" ] || { echo "no page of $command"; missing=1; }
	done
	for function in $(nm -D --defined-only "$library/libgraphwire.so" | sed -n 's/.* T \(gw_[a-z0-9_]*\)@.*/\1/p'); do
		[ -s "$tree/share/man/man3/$function.3" ] || { echo "no page of $function"; missing=1; }
	done
	for concept in graphwire graphwire-sampling graphwire-transports; do
		grep -q "Graphwire $version" "$tree/share/man/man7/$concept.7" || { echo "no page of $concept"; missing=1; }
	done
	[ -n "${command:-}" ] && [ -n "${function:-}" ] && return "$missing"
}
holds "every command, every function and every concept has a page" every_page

# Checks that each option of serve's --help is in its manual page.
page_tells() {
	local option
	"$tree/bin/graphwire" serve --help | grep -oE '^      --[a-z-]+' | tr -d ' ' >"$run/options"
	sed -n 's/^\.B \(.*\)/\1/p' "$tree/share/man/man1/graphwire-serve.1" | sed 's/\\-/-/g; s/=.*//' >"$run/documented"
	while read -r option; do
		grep -qx -- "$option" "$run/documented" || { echo "the page lacks $option"; return 1; }
	done <"$run/options"
	[ "$(wc -l <"$run/options")" -gt 10 ]
}
holds "a page has every option" page_tells
if command -v groff >/dev/null; then
	formatted() {
		local page
		for page in "$tree"/share/man/man[137]/*; do
			(cd "$tree/share/man" && groff -man -Tutf8 -wall -z "$page") 2>>"$run/warnings" || return 1
		done
		! grep . "$run/warnings"
	}
	holds "groff has no complaint" formatted
fi

# completes LINE WORDS: checks that the completion of LINE's last word offers WORDS.
completes() {
	local -a COMP_WORDS=() COMPREPLY=()
	local word COMP_CWORD
	for word in ${1//=/ = }; do COMP_WORDS+=("$word"); done
	[ "${1: -1}" != ' ' ] && [ "${1: -1}" != '=' ] || COMP_WORDS+=('')
	[ "${1: -1}" != '=' ] || unset 'COMP_WORDS[-1]'
	COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
	# shellcheck source=/dev/null
	. "$tree/share/bash-completion/completions/graphwire"
	compopt() { :; }
	_graphwire
	[ "${COMPREPLY[*]}" = "$2" ] || { echo "\"$1\" becomes \"${COMPREPLY[*]}\""; return 1; }
}
holds "completion of a command" completes 'graphwire par' partition
holds "of one of its commands" completes 'graphwire bench mini' minibatch
holds "of an option" completes 'graphwire serve --part-' --part-config=
holds "of a value" completes 'graphwire serve --pin=' 'node core off'
holds "of a value's beginning" completes 'graphwire serve --transport=v' verbs
holds "of nothing, for what does not exist" completes 'graphwire serve --pin=x' ''

# --- Programs that use the library. ---

"$tree/bin/graphwire" generate rmat --scale 10 --features 8 --out "$run/graph" >/dev/null 2>&1
minibatch=$tree/share/doc/graphwire/examples/minibatch.c
by_pkg_config() { # by_pkg_config OUT
	export PKG_CONFIG_PATH=$library/pkgconfig
	# shellcheck disable=SC2046 # flags
	cc "$minibatch" $(pkg-config --cflags --libs graphwire) -o "$1"
}
by_cmake() {
	cmake -S test/install/consumer -B "$run/consumer" -DCMAKE_PREFIX_PATH="$tree" -DEXAMPLE="$minibatch" &&
		cmake --build "$run/consumer"
}
same_batches() {
	LD_LIBRARY_PATH=$library "$run/minibatch" "$run/graph" >"$run/one" && "$run/consumer/minibatch" "$run/graph" >"$run/two" &&
		grep -q 'mini-batches, [1-9]' "$run/one" && cmp "$run/one" "$run/two"
}
holds "pkg-config finds the tree where it was moved to" by_pkg_config "$run/minibatch"
holds "so does CMake" by_cmake
holds "both programs sample the same" same_batches
holds "the library exports its own names alone" sh -c \
	"! nm -D --defined-only '$library/libgraphwire.so' | grep -v ' gw_[a-z0-9_]*@@GRAPHWIRE_0\$' | grep -v ' A GRAPHWIRE_0\$'"

# --- The unit. ---

if command -v systemd-analyze >/dev/null; then
	sed "s#^ExecStart=graphwire#ExecStart=$tree/bin/graphwire#" "$tree/lib/systemd/system/graphwire@.service" \
		>"$run/graphwire@.service"
	verified() { # without systemd-analyze's errors about other units
		systemd-analyze verify --man=no "$run/graphwire@.service" >"$run/verify" 2>&1
		! grep -i graphwire "$run/verify"
	}
	holds "systemd-analyze has no complaint" verified
else
	note "no systemd-analyze here: the unit was not verified"
fi

# --- Roots. ---

. test/check/roots.sh
[ "$why" = "needs root" ] && [ "${CI:-}" = true ] && { not_ok "install: the roots need root"; status=1; }

# tour ROOT NAME PROGRAM EXAMPLE [VARIABLE=VALUE]
tour() {
	local log=$run/$1.log
	inside "$1" env ${5:+"$5"} bash /opt/tour/tour.sh "$2" "$3" "$4" >"$log" 2>&1 || status=1
	cat "$log"
	grep -q '^not ok' "$log" && status=1
	grep -q '^ok - .*what its card lacks' "$log" || { not_ok "$2: the tour did not come to its end"; status=1; }
}

if [ -n "$why" ]; then
	note "no tour in empty roots: $why"
	exit $status
fi
# The names of the packages that the .deb depends on; dpkg checks that the dependencies are satisfied.
needed=$(dpkg-deb -f "$deb" Depends | sed 's/([^)]*)//g; s/ //g')
suites=()
for suite in bookworm bullseye; do
	if reached "$suite"; then suites+=("$suite"); else note "the mirror has no $suite, or cannot be reached: no tour there"; fi
done
made=()
names=()
make() { # make NAME SUITE PACKAGES
	root "$@" >"$run/$1.made" 2>&1 &
	made+=($!)
	names+=("$1")
}
for suite in "${suites[@]}"; do
	case $suite in
	bookworm)
		make bookworm bookworm "$needed"
		make build bookworm "$(packages_of build deb),apt"
		;;
	*) make "$suite" "$suite" '' ;;
	esac
done
for i in "${!made[@]}"; do
	wait "${made[i]}" || { not_ok "install: no root of ${names[i]}"; tail -n 3 "$run/${names[i]}.made"; exit 1; }
done

inner=/opt/$(basename "$bundle" .tar.gz)
cp "$run/minibatch" "$run/older"
"$release/older_glibc" 2.28 "$run/older" >/dev/null # as if it had been compiled there
for suite in "${suites[@]}"; do
	unpack "$suite" "$suite-bare" && tar -C "$run/$suite/opt" -xzf "$bundle" && cp test/install/tour.sh "$run/$suite/opt/tour" &&
		cp "$run/older" "$run/$suite/opt/tour/minibatch"
	tour "$suite" "the bundle in $suite" "$inner/bin/graphwire" /opt/tour/minibatch "LD_LIBRARY_PATH=$inner/lib"
	rm -rf "${run:?}/$suite"
	[ "$suite" = bookworm ] || continue
	unpack full "$suite-full"
	cp test/install/tour.sh "$run/full/opt/tour"
	cp "$deb" "$run/full/opt/tour/graphwire.deb"
	cp "$run/minibatch" "$run/full/opt/tour/minibatch"
	holds "the .deb is installed" inside full dpkg -i /opt/tour/graphwire.deb
	tour full "the .deb in $suite" graphwire /opt/tour/minibatch
	holds "the .deb is removed" inside full dpkg -r graphwire
	holds "and leaves nothing" sh -c "! find '$run/full/usr' -name '*graphwire*' | grep ."
	unpack build build-full && checkout build
	# Without optimization, the commands take a third of the time; the step build compiles with it.
	printf '#!/bin/sh\nexec /usr/bin/cc "$@" -O0\n' >"$run/build/usr/local/bin/cc" && chmod +x "$run/build/usr/local/bin/cc"
	holds "INSTALL.md's commands, with the packages that it names" inside build bash /opt/graphwire/test/install/typed.sh \
		'From source' 'A Debian package' 'A bundle'
	holds "a build without the optional packages names them" inside build bash /opt/graphwire/test/install/optional.sh
	rm "$run/build/usr/local/bin/cc"
	cp -a "$run/build/usr/local/." "$run/full/usr/local/"
	holds "what they installed in /usr/local" inside full ldconfig
	tour full "cmake --install in $suite" graphwire /opt/tour/minibatch
done
exit $status
