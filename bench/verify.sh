#!/bin/sh
# Runs examples/gpt2 and reference.py on the same weights, generation and then a training step, and compares their traces
# byte for byte. WEIGHTS (default: the small model), PROMPT, TOKENS, RATE, OSPREY and PYTHON come from the environment; see `make gpt2-verify`.
set -eu
cd "$(dirname "$0")/.."
weights=${WEIGHTS:-examples/gpt2/small}
prompt=${PROMPT:-The capital of France is}
tokens=${TOKENS:-20}
rate=${RATE:-0.0001}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${OSPREY:-osprey}" run examples/gpt2/gpt2.osp \
    --weights "$weights" --prompt "$prompt" --tokens "$tokens" --trace "$folder/osprey"
"${PYTHON:-python3}" reference.py generate \
    --weights "$weights" --prompt "$prompt" --tokens "$tokens" --trace "$folder/reference"
generation=0
"${OSPREY:-osprey}" diff "$folder/osprey" "$folder/reference" || generation=$?
"${OSPREY:-osprey}" run examples/gpt2/train.osp \
    --weights "$weights" --prompt "$prompt" --rate "$rate" --trace "$folder/osprey"
"${PYTHON:-python3}" reference.py train \
    --weights "$weights" --prompt "$prompt" --rate "$rate" --trace "$folder/reference"
"${OSPREY:-osprey}" diff "$folder/osprey" "$folder/reference"
exit "$generation"
