# Functions for the scripts in test/check, which source this file and run in the root of the checkout.
# shellcheck shell=bash
set -uo pipefail

# The report lines of a test; ./check counts them.
ok() { printf 'ok - %s\n' "$*"; }
not_ok() { printf 'not ok - %s\n' "$*"; }
note() { printf 'note: %s\n' "$*"; }

# Prints the names of all our C files.
c_files() {
	local folder
	for folder in core include transport sampler protocol metrics tensors client server tools bench cmd cmake examples test; do
		[ -d "$folder" ] && find "$folder" -name '*.[ch]'
	done | sort
}

# locked NAME COMMAND…: runs a command that changes build/NAME. Another step that locks it waits until the command ends.
# Within a command, no other NAME is locked but in the order python, then a preset.
locked() {
	mkdir -p build
	(flock 9 && "${@:2}") 9>"build/$1.lock"
}

# configure PRESET: configures a preset in build/PRESET, unless it is. The release build's warnings are errors here.
configure() {
	local flags=()
	[ "$1" = release ] && flags=(-DGRAPHWIRE_WERROR:BOOL=ON -DGRAPHWIRE_PYTHON:BOOL=OFF)
	if [ ! -e "build/$1/build.ninja" ] || printf '%s\n' "${flags[@]#-D}" | grep -vxqFf "build/$1/CMakeCache.txt"; then
		cmake --preset "$1" "${flags[@]}"
	fi
}

# build PRESET [TARGET…]: builds these targets of a preset, or all.
build() { locked "$1" build_alone "$@"; }
build_alone() { configure "$1" && cmake --build --preset "$1" ${2:+--target "${@:2}"}; }

# build_tests PRESET REGEX: builds only the test programs whose names match.
build_tests() { locked "$1" build_tests_alone "$@"; }
build_tests_alone() {
	local names
	configure "$1" && mapfile -t names < <(ctest --test-dir "build/$1" -N -R "$2" | sed -n 's/^ *Test *#[0-9]*: *//p') &&
		cmake --build --preset "$1" --target "${names[@]}"
}

# run_tests PRESET REGEX: runs the test programs whose names match, several at a time, and prints an ok/not ok line for
# each test. A program that dies or runs out of time counts as one failed test, whatever it has reported.
run_tests() {
	local folder=build/$1 regex=$2 log
	if [ "$(ctest --test-dir "$folder" -N -R "$regex" | grep -c 'Test *#')" -eq 0 ]; then
		not_ok "no test program matches $regex"
		return 1
	fi
	log=$(mktemp)
	# Most programs wait more than they compute, so two run on each processor at a time.
	CMOCKA_MESSAGE_OUTPUT=TAP ctest --test-dir "$folder" -R "$regex" -j "$((2 * $(nproc)))" -V 2>&1 | tee "$log"
	local status=${PIPESTATUS[0]}
	awk '
	# "7: ok 3 - name", "7: not ok 3 - name", and for a skipped test "7: not ok 3 # SKIP name"
	/^[0-9]+: Test command: / { number = $1 + 0; program[number] = $NF; sub(/.*\//, "", program[number]); gsub(/"/, "", program[number]) }
	/^[0-9]+: .*# SKIP/ { skipped++; of[program[$1 + 0]]++; next }
	/^[0-9]+: ok [0-9]+ - / { sub(/^[0-9]+: ok [0-9]+ - /, ""); print "ok - " $0 }
	/^[0-9]+: not ok [0-9]+ - / { n = $1 + 0; bad[n]++; line = $0; sub(/^[0-9]+: not ok [0-9]+ - /, "", line); print "not ok - " program[n] ": " line }
	/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: .*\*\*\*/ {
		match($0, /#[0-9]+/); n = substr($0, RSTART + 1, RLENGTH - 1) + 0
		if (!bad[n]) { why = $0; sub(/.*\*\*\*/, "", why); print "not ok - " program[n] ": " why }
	}
	END {
		for (name in of) names = names (names ? ", " : "") of[name] " of " name
		if (skipped) print "note: " skipped " skipped (" names ")"
	}' "$log"
	rm -f "$log"
	return "$status"
}

# Prints the names of the test programs in folders of test/, as a regex for ctest.
test_regex() {
	local folder names=()
	for folder in "$@"; do
		for file in "test/$folder"/test_*.c; do
			[ -e "$file" ] && names+=("$(basename "$file" .c)")
		done
	done
	local IFS='|'
	echo "^(${names[*]:-none})(_fabric)?\$" # and the same programs over the simulated RDMA device (test/fabric)
}
