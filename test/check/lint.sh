#!/usr/bin/env bash
# Runs clang-tidy and cppcheck on compiled C files, and shellcheck on the scripts.
#
# The static analyzer takes nearly all of clang-tidy's time. It analyzes every file except the tests that have not
# changed, which test/slow/soak/lint.sh adds (LINT_TESTS=1), with up to NODES steps for each function. This limits work instead
# of time, so that the verdict is the same on any machine. Files that differ from main, up to DEEP_MAX of them, get the
# full depth; LINT_DEEP=1 gives the full depth to all files (half an hour). A clean file is analyzed again only when the
# file, a header or the configuration changes (build/lint).
cd "$(dirname "$0")/../.." && . test/check/lib.sh
NODES=20000
DEEP_MAX=12
stamps=build/lint
mkdir -p "$stamps"
tidy=$(command -v clang-tidy-14 || command -v clang-tidy) || { not_ok "clang-tidy-14 is missing (Debian 12 and Ubuntu have it)"; exit 1; }
export tidy NODES

if [ "${1:-}" = --tidy ]; then # --tidy deep|usual FILE STAMP: checks one file
	arguments=(--quiet --extra-arg=-Wno-unknown-warning-option)
	[ "$2" = usual ] && for word in -Xclang -analyzer-config -Xclang "max-nodes=$NODES"; do
		arguments+=("--extra-arg=$word")
	done
	preset=dev
	[[ $3 = test/fuzz/* ]] && preset=fuzz
	if "$tidy" -p "build/$preset" "${arguments[@]}" "$3" 2>/dev/null; then
		touch "$4"
	else
		not_ok "clang-tidy: $3"
		exit 1
	fi
	exit 0
fi

build dev >/dev/null || { not_ok "dev does not build, so there is nothing to lint"; exit 1; }
locked fuzz configure fuzz >/dev/null || { not_ok "fuzz is not configured, so its targets cannot be linted"; exit 1; }
sources() { c_files | grep '\.c$' | grep -v '^bench/peers/'; } # bench/peers/run builds those separately
configuration=$({ c_files | grep '\.h$' | xargs cat; cat .clang-tidy "$0"; "$tidy" --version; } | sha1sum | cut -c 1-16)

# Files that changed since the branch left main, and files that are not committed yet.
changed() {
	git diff --name-only "$(git merge-base HEAD main 2>/dev/null || echo HEAD)"
	git ls-files --others --exclude-standard
}
deep=$(changed 2>/dev/null | sort -u | grep -xFf <(sources) | head -n "$DEEP_MAX")
[ -n "${LINT_DEEP:-}" ] && deep=$(sources)
analyzed() {
	if [ -n "${LINT_TESTS:-}${LINT_DEEP:-}" ]; then sources; else { sources | grep -v '^test/' && echo "$deep"; } | grep . | sort -u; fi
}
work=$(
	analyzed | xargs sha1sum | while read -r sum file; do
		depth=usual stamp=$stamps/$configuration-${sum:0:16}
		[[ $'\n'$deep$'\n' = *$'\n'$file$'\n'* ]] && depth=deep
		# A file that is clean in full depth is clean in any depth.
		[ -e "$stamp-deep-${file##*/}" ] || [ -e "$stamp-$depth-${file##*/}" ] && continue
		printf '%s %s %s\n' "$depth" "$file" "$stamp-$depth-${file##*/}"
	done | sort
)
status=0
if [ -n "$work" ]; then
	xargs -P "$(nproc)" -n 3 bash "$0" --tidy <<<"$work" || status=1
fi
if [ $status -eq 0 ]; then
	ok "clang-tidy"
	note "clang-tidy: $(analyzed | wc -l) of $(sources | wc -l) files, $(grep -c . <<<"$deep") in depth"
fi

mkdir -p build/lint/cppcheck
if sources | cppcheck --quiet -j "$(nproc)" --enable=warning,performance,portability --inline-suppr \
	--std=c11 --suppress=missingIncludeSystem --cppcheck-build-dir=build/lint/cppcheck --error-exitcode=1 \
	-I . -I include -D_GNU_SOURCE -DGRAPHWIRE_VERSION='"0"' --file-list=-; then
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
