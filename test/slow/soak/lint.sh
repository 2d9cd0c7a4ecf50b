#!/usr/bin/env bash
# clang-tidy over every C file; `./check` leaves out tests that have not changed.
LINT_TESTS=1 exec bash "$(dirname "$0")/../../check/lint.sh"
