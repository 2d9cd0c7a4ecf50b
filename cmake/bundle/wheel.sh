#!/bin/sh
# wheel.sh STAGE GLIBC OLDER_GLIBC PROGRAM LIBRARY MODULE OTHER…: makes the folder STAGE with the compiled files of a wheel
# that runs on other hosts:
#
#   STAGE/_c.abi3.so                 MODULE
#   STAGE/bin/graphwire              PROGRAM, of the bundle
#   STAGE/lib/libgraphwire.so.0      LIBRARY, of the bundle, and each OTHER library
#   STAGE/licenses/                  of the linked code
set -eu
stage=$1 glibc=$2 older=$3 program=$4 library=$5 module=$6
shift 6
here=$(dirname "$0")
rm -rf "$stage"
mkdir -p "$stage/bin" "$stage/lib"
cp "$program" "$stage/bin/graphwire"
cp "$module" "$stage/_c.abi3.so"
sh "$here/linked.sh" "$stage/lib" "$stage/licenses" "$library" "$@"
sh "$here/portable.sh" "$glibc" "$older" "$stage/lib" "$stage.needs" "$stage/bin/graphwire" "$stage/_c.abi3.so" "$stage"/lib/*
sed 's/^/wheel: /' "$stage.needs"
