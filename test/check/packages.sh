#!/usr/bin/env bash
# Installs the packages that the other steps need. The purpose train brings the oldest torch that the package is tested
# with.
exec "$(dirname "$0")/../../deploy/packages.sh" build check train
