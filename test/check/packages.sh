#!/usr/bin/env bash
# What the other steps need, installed where it is missing; train: the oldest torch, under which the package is tried.
exec "$(dirname "$0")/../../deploy/packages.sh" build check train
