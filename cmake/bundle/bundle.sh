#!/bin/sh
# bundle.sh BUILD VERSION GLIBC OLDER_GLIBC LIBRARY…: writes BUILD/graphwire-VERSION-linux-MACHINE.tar.gz. The tarball has the
# installed files, the bundle's program and library instead of the build's, and each LIBRARY in the library's folder. Prints
# which C library the bundle needs (portable.sh).
set -eu
build=$1 version=$2 glibc=$3 older=$4
shift 4
here=$(dirname "$0")
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
# The report on RDMA (test/slow/rdma/run), with its tests if this host can build them.
rdma=$stage/libexec/graphwire/rdma
mkdir -p "$rdma/card"
cp "$here/../../test/slow/rdma/run" "$rdma/run"
cp "$here"/../../test/slow/rdma/card/*.py "$rdma/card"
tests=
if [ -e "$build/bundle/bin/rdma-tests" ]; then
	cp "$build/bundle/bin/rdma-tests" "$rdma/tests"
	tests=$rdma/tests
fi
sh "$here/linked.sh" "$folder" "$stage/share/doc/graphwire/licenses" "$@"

# shellcheck disable=SC2046,SC2086 # lists of files
sh "$here/portable.sh" "$glibc" "$older" "$folder" "$build/bundle/NEEDS" "$stage/bin/graphwire" $tests \
	$(find "$folder" -name 'lib*.so.*' -type f)
{ echo "Graphwire $version for $(uname -m)" && cat "$build/bundle/NEEDS"; } >"$stage/share/doc/graphwire/BUNDLE"
# The same program gives the same bytes, and a reader never sees half of the file.
tar -C "$build/bundle" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$(stat -c %Y "$build/bundle/bin/graphwire")" \
	-czf "$build/bundle/new.tar.gz" "$name"
mv "$build/bundle/new.tar.gz" "$build/$name.tar.gz"
find "$build" -maxdepth 1 -name 'graphwire-*.tar.gz' ! -name "$name.tar.gz" -delete # of other versions
sed 's/^/bundle: /' "$stage/share/doc/graphwire/BUNDLE"
echo "bundle: $build/$name.tar.gz, $(wc -c <"$build/$name.tar.gz") bytes"
