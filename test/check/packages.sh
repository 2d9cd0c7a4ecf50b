#!/usr/bin/env bash
# What the other steps need, installed where it is missing.
exec "$(dirname "$0")/../../deploy/packages.sh" build check
