#!/usr/bin/env bash
# Checks that clang-format 14 changes no C file; other versions format differently.
cd "$(dirname "$0")/../.." && . test/check/lib.sh
formatter=$(command -v clang-format-14 || command -v clang-format) || { not_ok "clang-format is missing"; exit 1; }
if c_files | xargs -r "$formatter" --dry-run -Werror; then
	ok "every C file is formatted"
else
	not_ok "files to be formatted: run $formatter -i on them"
	exit 1
fi
