#!/usr/bin/env bash
# Cases of ../shared/cases that take too long for the step `cases` (test/check/cases.sh).
exec bash "$(dirname "$0")/../../check/cases.sh" ops/killed_server_memory.sh ops/kge-dataset-flag/case.py ops/launch_ends_trainers.sh \
	ops/pause.sh
