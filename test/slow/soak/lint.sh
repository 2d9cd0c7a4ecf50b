#!/usr/bin/env bash
# clang-tidy and cppcheck over every C file; `./check` analyzes a part of those that have not changed.
LINT_ALL=1 exec bash "$(dirname "$0")/../../check/lint.sh"
