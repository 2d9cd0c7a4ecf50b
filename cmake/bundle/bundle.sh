#!/bin/sh
# bundle.sh BUILD VERSION GLIBC OLDER_GLIBC LIBRARY…: writes BUILD/graphwire-VERSION-linux-MACHINE.tar.gz. The tarball has the
# installed files, the bundle's program and library instead of the build's, and each LIBRARY in the library's folder.
#
# Prints the C library that the bundle needs: the newest version that a symbol of any file requires. Fails if this version
# is newer than GLIBC, or if a file needs a library that neither the bundle nor every host has.
set -eu
build=$1 version=$2 glibc=$3 older=$4
shift 4
name=graphwire-$version-linux-$(uname -m)
stage=$build/bundle/$name
rm -rf "$stage"
cmake --install "$build" --prefix "$stage" >"$build/bundle/install.log"
cp "$build/bundle/bin/graphwire" "$stage/bin/graphwire"
library=$(ls "$stage"/lib*/libgraphwire.so."$version")
folder=$(dirname "$library")
# The program looks for the library in lib, even if this system installs libraries in another folder.
if [ "$folder" != "$stage/lib" ]; then
	echo "bundle.sh: the library is in $folder: configure with -DCMAKE_INSTALL_LIBDIR=lib" >&2
	exit 1
fi
cp "$build/bundle/lib/libgraphwire.so.$version" "$library"
mkdir -p "$stage/share/doc/graphwire/licenses"
for file in "$@"; do
	soname=$(objdump -p "$file" | awk '$1 == "SONAME" { print $2 }')
	cp -L "$file" "$folder/$soname"
	chmod 644 "$folder/$soname"
done
# The licenses of the linked code, from its packages.
for package in libmetis5 libjansson4 libjemalloc2 libssl3 liburing2 libxxhash0 zlib1g; do
	if [ -r "/usr/share/doc/$package/copyright" ]; then
		cp -L "/usr/share/doc/$package/copyright" "$stage/share/doc/graphwire/licenses/$package"
	fi
done

files="$stage/bin/graphwire $(find "$folder" -name 'lib*.so.*' -type f)"
# shellcheck disable=SC2086 # a list of files
strip --strip-unneeded $files
# shellcheck disable=SC2086
"$older" "$glibc" $files >"$build/bundle/older_glibc.log"

# The newest version that the files require, and the symbols that require it.
# shellcheck disable=SC2086
needs=$(objdump -T $files | sed -n 's/.*\*UND\*.*(\{0,1\}GLIBC_\([0-9.]*\))\{0,1\} *\(.*\)/\1 \2/p' | sort -u -V)
newest=$(printf '%s\n' "$needs" | tail -n 1 | cut -d ' ' -f 1)
{
	echo "Graphwire $version for $(uname -m)"
	echo "needs glibc $newest or newer"
	echo "because of: $(printf '%s\n' "$needs" | awk -v newest="$newest" '$1 == newest { print $2 }' | xargs)"
	echo "RDMA: libibverbs.so.1 and librdmacm.so.1 of the host, if it has them"
} >"$stage/share/doc/graphwire/BUNDLE"
if [ "$(printf '%s\n' "$glibc" "$newest" | sort -V | tail -n 1)" != "$glibc" ]; then
	echo "bundle.sh: needs glibc $newest, not $glibc:" >&2
	printf '%s\n' "$needs" | awk -v newest="$newest" '$1 == newest { print "  " $2 }' >&2
	exit 1
fi
for file in $files; do
	for wanted in $(objdump -p "$file" | awk '$1 == "NEEDED" { print $2 }'); do
		case $wanted in
		libc.so.* | libm.so.* | libpthread.so.* | libdl.so.* | librt.so.* | libgcc_s.so.* | ld-linux*) continue ;;
		esac
		if [ ! -e "$folder/$wanted" ]; then
			echo "bundle.sh: $file needs $wanted, which is neither in the bundle nor on every host" >&2
			exit 1
		fi
	done
done
tar -C "$build/bundle" --sort=name --owner=0 --group=0 --numeric-owner -czf "$build/$name.tar.gz" "$name"
sed 's/^/bundle: /' "$stage/share/doc/graphwire/BUNDLE"
echo "bundle: $build/$name.tar.gz, $(wc -c <"$build/$name.tar.gz") bytes"
