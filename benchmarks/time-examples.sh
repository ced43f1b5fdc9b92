#!/bin/sh
# Times each example at a size from practice on the GPU.
#
#   time-examples.sh TOOLS EXAMPLES [attnfuse-run flags]
#
# TOOLS is the folder of attnfuse-run, EXAMPLES that of the .mlir files.
set -eu
tools=$1 examples=$2
shift 2

time_one() {
  example=$1 dims=$2
  shift 2
  "$tools/attnfuse-run" "$examples/$example.mlir" --device=cuda --random=1 --dims "$dims" --time "$@" |
    sed -n "s/^  time:/$example $dims:/p"
}

time_one bert-dense B=4,N=4096 "$@"
time_one gpt2-causal B=4,N=4096 "$@"
time_one mistral-window-gqa B=1,N=16384 "$@"
time_one bidirectional-window B=4,N=4096 "$@"
time_one bloom-alibi B=2,N=4096 "$@"
time_one llama3-rope-causal-gqa B=4,N=2048 "$@"
time_one llama3-rope-causal-gqa B=1,N=8192 "$@"
time_one gptj-interleaved-partial-rope B=4,N=2048 "$@"
time_one rope-alibi-causal B=4,N=4096 "$@"
time_one alphafold-row-bias B=128,N=256 "$@"
time_one t5-bias B=4,N=2048 "$@"
time_one bigbird-block-sparse B=4,N=4096 "$@"
time_one relu-attention B=4,N=4096 "$@"
time_one cross-attention B=16,Nq=448,Nkv=1500 "$@"
time_one decode-rope-offset B=32,Nkv=8192 "$@"
time_one everything B=2,N=2048 "$@"
