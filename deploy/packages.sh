#!/usr/bin/env bash
# packages.sh PURPOSE…: installs the packages that deploy/packages lists for the purposes.
# packages.sh --lists: fetches the package lists only.
#
# If all packages are installed, the script needs neither apt nor root. Otherwise it runs apt as root or with sudo.
# Without apt it prints the missing packages and exits with 0; the build then reports what it lacks.
# Exit status 1: a package cannot be installed; 2: unknown purpose.
set -euo pipefail
list=$(dirname "${BASH_SOURCE[0]}")/packages

say() { printf 'packages: %s\n' "$*" >&2; }

# Runs apt-get as root or with sudo; returns 1 if neither is possible. Another packages.sh of this checkout waits, because
# apt-get would fail.
apt() {
	local root=()
	if [ "$(id -u)" -ne 0 ]; then
		command -v sudo >/dev/null || return 1
		root=(sudo)
	fi
	flock "$list" "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y "$@" >&2
}

if [ "${1:-}" = --lists ]; then
	apt update
	exit
fi

wanted=()
for purpose in "$@"; do
	mapfile -t found < <(sed -n "s/^$purpose: *//p" "$list" | tr ' ' '\n')
	if [ ${#found[@]} -eq 0 ]; then
		say "unknown purpose \"$purpose\"; the purposes are: $(sed -n 's/^\([a-z]*\):.*/\1/p' "$list" | sort -u | xargs)"
		exit 2
	fi
	wanted+=("${found[@]}")
done

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
	say "apt does not exist here; install these packages by hand (Debian's names): ${wanted[*]%\?}"
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
# Optional packages are installed only together with a missing required one.
[ ${#missing[@]} -gt 0 ] || exit 0

say "installing ${missing[*]}"
apt update || say "the package lists could not be fetched; trying with the old lists"
for package in "${optional[@]}"; do
	if offered "$package"; then missing+=("$package"); fi
done
if ! apt install --no-install-recommends "${missing[@]}"; then
	say "the packages could not be installed; as root: apt-get install ${missing[*]}"
	exit 1
fi
