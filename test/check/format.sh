#!/usr/bin/env bash
# Checks that clang-format 14 changes no C file (other versions format differently), and that no file of code is longer than
# LINES_MAX.
cd "$(dirname "$0")/../.." && . test/check/lib.sh
LINES_MAX=600
status=0
formatter=$(command -v clang-format-14 || command -v clang-format) || { not_ok "clang-format is missing"; exit 1; }
if c_files | xargs -r "$formatter" --dry-run -Werror; then
	ok "every C file is formatted"
else
	not_ok "files to be formatted: run $formatter -i on them"
	status=1
fi
long=$(git ls-files --cached --others --exclude-standard -- '*.c' '*.h' '*.py' '*.sh' check quickstart | while read -r file; do
	[ -f "$file" ] && lines=$(wc -l <"$file") && [ "$lines" -gt "$LINES_MAX" ] && echo "$file ($lines)"
done)
if [ -z "$long" ]; then
	ok "no file is longer than $LINES_MAX lines"
else
	not_ok "files longer than $LINES_MAX lines: $(xargs <<<"$long"); split them by flow"
	status=1
fi
exit $status
