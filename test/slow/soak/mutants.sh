#!/usr/bin/env bash
# Breaks one line at a time for MUTANT_MINUTES (40), in MUTANT_FOLDERS (sampler, client, tensors, protocol and
# core/graph), and prints the broken lines that no test notices. HEAD's hash chooses the lines. See mutants.py.
cd "$(dirname "$0")/../../.." || exit 1
# shellcheck disable=SC2086 # the names of the folders
exec nice python3 test/slow/soak/mutants.py --minutes "${MUTANT_MINUTES:-40}" ${MUTANT_FOLDERS:-}
