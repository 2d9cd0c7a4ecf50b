#!/bin/sh
# linked.sh LIBRARIES LICENSES FILE…: copies each library FILE into the folder LIBRARIES, under the name by which programs
# look for it, and the licenses of all linked code, from its Debian packages, into the folder LICENSES.
set -eu
libraries=$1 licenses=$2
shift 2
mkdir -p "$libraries" "$licenses"
for file in "$@"; do
	soname=$(objdump -p "$file" | awk '$1 == "SONAME" { print $2 }')
	cp -L "$file" "$libraries/$soname"
	chmod 644 "$libraries/$soname"
done
for package in libmetis5 libjansson4 libjemalloc2 libssl3 libssl3t64 liburing2 libxxhash0 zlib1g libcmocka0; do
	if [ -r "/usr/share/doc/$package/copyright" ]; then
		cp -L "/usr/share/doc/$package/copyright" "$licenses/$package"
	fi
done
