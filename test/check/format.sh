#!/usr/bin/env bash
# Checks that clang-format changes no C file, and that no file of code is longer than LINES_MAX.
#
# Versions of clang-format differ in what they write. So one version formats on every system: the one that PyPI has, in
# build/format. Without PyPI, the distribution's program of the same version does.
cd "$(dirname "$0")/../.." && . test/check/lib.sh
LINES_MAX=600
VERSION=14.0.6
status=0

# of_version PROGRAM: whether the program is clang-format of this version.
of_version() { "$1" --version 2>/dev/null | grep -qF "clang-format version $VERSION"; }

formatter=build/format/bin/clang-format
if ! of_version "$formatter"; then
	rm -rf build/format
	python3 -m venv build/format >build/format.log 2>&1 && build/format/bin/pip install -q "clang-format==$VERSION" >>build/format.log 2>&1
	of_version "$formatter" || formatter=$(command -v clang-format-14 || command -v clang-format)
	of_version "${formatter:-false}" || {
		tail -n 3 build/format.log
		not_ok "clang-format $VERSION is missing: python3 -m venv build/format && build/format/bin/pip install clang-format==$VERSION"
		exit 1
	}
fi
if c_files | xargs -r "$formatter" --dry-run -Werror; then
	ok "every C file is formatted"
else
	not_ok "files to be formatted: run $formatter -i on them"
	status=1
fi
long=$(git ls-files --cached --others --exclude-standard -- '*.c' '*.h' '*.py' '*.sh' check quickstart | xargs -d '\n' wc -l 2>/dev/null |
	awk -v max="$LINES_MAX" '$1 > max && $2 != "total" { print $2 " (" $1 ")" }')
if [ -z "$long" ]; then
	ok "no file is longer than $LINES_MAX lines"
else
	not_ok "files longer than $LINES_MAX lines: $(xargs <<<"$long"); split them by flow"
	status=1
fi
exit $status
