#!/usr/bin/env bash
# packages.sh PURPOSE…: installs the packages that deploy/packages lists for the purposes; quick when all are there.
# packages.sh --lists: fetches the package lists only.
#
# Needs apt and root or sudo only if something is missing. Where there is no apt it names what to install and goes on
# (status 0): the build says what it still misses. Status 1: a package cannot be installed; 2: unknown purpose.
set -euo pipefail
list=$(dirname "${BASH_SOURCE[0]}")/packages

say() { printf 'packages: %s\n' "$*" >&2; }

# Runs apt-get as root or with sudo; 1 where neither is there.
apt() {
	local root=()
	if [ "$(id -u)" -ne 0 ]; then
		command -v sudo >/dev/null || return 1
		root=(sudo)
	fi
	"${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y "$@" >&2
}

if [ "${1:-}" = --lists ]; then
	apt update
	exit
fi

wanted=()
for purpose in "$@"; do
	mapfile -t found < <(sed -n "s/^$purpose: *//p" "$list" | tr ' ' '\n')
	if [ ${#found[@]} -eq 0 ]; then
		say "unknown purpose \"$purpose\"; there are: $(sed -n 's/^\([a-z]*\):.*/\1/p' "$list" | sort -u | xargs)"
		exit 2
	fi
	wanted+=("${found[@]}")
done

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
	say "no apt here; these (by their Debian names) must be installed by hand: ${wanted[*]%\?}"
	exit 0
fi

installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }
offered() { apt-cache show --no-all-versions "$1" >/dev/null 2>&1; }

missing=() optional=()
for package in "${wanted[@]}"; do
	installed "${package%\?}" && continue
	case $package in
	*\?) optional+=("${package%\?}") ;;
	*) missing+=("$package") ;;
	esac
done
# The optional ones are worth a look only while their company is being installed.
[ ${#missing[@]} -gt 0 ] || exit 0

say "installing ${missing[*]}"
apt update || say "the package lists could not be fetched; trying with what is there"
for package in "${optional[@]}"; do
	if offered "$package"; then missing+=("$package"); fi
done
if ! apt install --no-install-recommends "${missing[@]}"; then
	say "could not install them; as root: apt-get install ${missing[*]}"
	exit 1
fi
