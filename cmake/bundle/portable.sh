#!/bin/sh
# portable.sh GLIBC OLDER_GLIBC FOLDER NOTE FILE…: makes finished programs and libraries run on older hosts. Strips the
# files, binds their symbols to glibc GLIBC (older_glibc.c), and writes the newest version that they still require, and the
# symbols that require it, to NOTE.
#
# Fails if this version is newer than GLIBC, or if a file needs a library that neither FOLDER nor every host has.
set -eu
glibc=$1 older=$2 folder=$3 note=$4
shift 4
strip --strip-unneeded "$@"
"$older" "$glibc" "$@" >"$note.log"

needs=$(objdump -T "$@" | sed -n 's/.*\*UND\*.*(\{0,1\}GLIBC_\([0-9.]*\))\{0,1\} *\(.*\)/\1 \2/p' | sort -u -V)
newest=$(printf '%s\n' "$needs" | tail -n 1 | cut -d ' ' -f 1)
{
	echo "needs glibc $newest or newer"
	echo "because of: $(printf '%s\n' "$needs" | awk -v newest="$newest" '$1 == newest { print $2 }' | xargs)"
	echo "RDMA: libibverbs.so.1 and librdmacm.so.1 of the host, if it has them"
} >"$note"
if [ "$(printf '%s\n' "$glibc" "$newest" | sort -V | tail -n 1)" != "$glibc" ]; then
	echo "portable.sh: needs glibc $newest, not $glibc:" >&2
	printf '%s\n' "$needs" | awk -v newest="$newest" '$1 == newest { print "  " $2 }' >&2
	exit 1
fi
for file in "$@"; do
	for wanted in $(objdump -p "$file" | awk '$1 == "NEEDED" { print $2 }'); do
		case $wanted in
		libc.so.* | libm.so.* | libpthread.so.* | libdl.so.* | librt.so.* | libgcc_s.so.* | ld-linux*) continue ;;
		esac
		if [ ! -e "$folder/$wanted" ]; then
			echo "portable.sh: $file needs $wanted, which is neither in $folder nor on every host" >&2
			exit 1
		fi
	done
done
