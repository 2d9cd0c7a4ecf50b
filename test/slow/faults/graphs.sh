#!/usr/bin/env bash
# graphs.sh FOLDER: creates the graph that the two hosts serve, the digests of its mini-batches, and another graph of the
# same shape. It creates them anew each time, with the programs of build/dev, in a second.
set -euo pipefail
programs=$(cd "$(dirname "$0")/../../../build/dev" && pwd)
rm -rf "$1"
mkdir -p "$1/other"
cd "$1"
"$programs/graphwire" generate rmat --scale 12 --seed 3 --features 64 --labels 4 --train-share 0.5 --weight weight --out graph --quiet
"$programs/graphwire" generate rmat --scale 12 --seed 4 --features 64 --labels 4 --train-share 0.5 --weight weight --out graph2 --quiet
"$programs/graphwire" partition graph --num-parts 2 --method random --out parts >/dev/null
"$programs/graphwire" partition graph2 --num-parts 2 --method random --out other/parts >/dev/null
"$programs/test/faults_trainer" --part-config parts --digests digests --batch-size 8 --steps 80
"$programs/test/faults_trainer" --part-config parts --digests digests-small --batch-size 2 --steps 300
