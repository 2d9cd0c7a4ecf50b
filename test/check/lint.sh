#!/usr/bin/env bash
# clang-tidy over what the dev build compiles, cppcheck over the same, shellcheck over the scripts.
#
# clang-tidy is slow, so a file that was clean is not looked at again until it, a header or .clang-tidy changes
# (build/lint), and those that differ from main come first: if LINT_SECONDS (80) run out, the rest is noted, not hidden.
cd "$(dirname "$0")/../.." && . test/check/lib.sh
export stamps=build/lint
mkdir -p "$stamps"
tidy=$(command -v clang-tidy-14 || command -v clang-tidy)
export tidy

if [ "${1:-}" = --tidy ]; then # --tidy FILE STAMP: one file
	[ "$(date +%s)" -lt "$LINT_UNTIL" ] || exit 0
	if "$tidy" -p build/dev --quiet --extra-arg=-Wno-unknown-warning-option "$2" 2>/dev/null; then
		touch "$3"
	else
		not_ok "clang-tidy: $2"
		exit 1
	fi
	exit 0
fi

build dev >/dev/null || { not_ok "dev does not build, so there is nothing to lint"; exit 1; }
LINT_UNTIL=$(($(date +%s) + ${LINT_SECONDS:-80}))
export LINT_UNTIL
sources() { c_files | grep '\.c$' | grep -v -e '^bench/peers/' -e '^examples/' -e '^test/fuzz/'; }
headers=$({ c_files | grep '\.h$' | xargs cat; cat .clang-tidy; "$tidy" --version; } | sha1sum | cut -c 1-16)
changed=$(git diff --name-only "$(git merge-base HEAD main 2>/dev/null || echo HEAD)" 2>/dev/null)
work=$(
	sources | while read -r file; do
		stamp=$stamps/$(printf '%s' "$headers" | cat - "$file" | sha1sum | cut -c 1-16)-$(basename "$file")
		[ -e "$stamp" ] && continue
		first=1
		grep -qxF "$file" <<<"$changed" && first=0
		printf '%s %s %s\n' "$first" "$file" "$stamp"
	done | sort
)
status=0
if [ -n "$work" ]; then
	cut -d ' ' -f 2,3 <<<"$work" | xargs -P "$(nproc)" -n 2 bash "$0" --tidy || status=1
fi
left=$(cut -d ' ' -f 3 <<<"$work" | while read -r stamp; do [ -z "$stamp" ] || [ -e "$stamp" ] || echo left; done | grep -c left)
if [ $status -eq 0 ]; then
	ok "clang-tidy"
	[ "$left" -gt 0 ] && note "clang-tidy did not reach $left of $(sources | wc -l) files in time"
fi

mkdir -p build/lint/cppcheck
if sources | cppcheck --quiet -j "$(nproc)" --enable=warning,performance,portability --inline-suppr \
	--std=c11 --suppress=missingIncludeSystem --cppcheck-build-dir=build/lint/cppcheck --error-exitcode=1 \
	--suppressions-list=test/check/cppcheck.txt -I . -I include -D_GNU_SOURCE -DGRAPHWIRE_VERSION='"0"' --file-list=-; then
	ok "cppcheck"
else
	not_ok "cppcheck"
	status=1
fi

mapfile -t scripts < <(git ls-files --cached --others --exclude-standard | while read -r file; do
	[ -f "$file" ] && head -n 1 "$file" | grep -qE '^#!.*(bash|/sh)' && echo "$file"
done)
if shellcheck -x "${scripts[@]}"; then ok "shellcheck"; else not_ok "shellcheck" && status=1; fi
exit $status
