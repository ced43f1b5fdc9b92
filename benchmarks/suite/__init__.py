# ===-----------------------------------------------------------------------===#
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ===-----------------------------------------------------------------------===#
"""What benchmarks/suite.py is made of.

works       what is timed: variants and shapes, their FLOPs and bytes; needs nothing
operands    tensors of a work, and its rows in fp64; needs PyTorch
contestants attnfuse and its peers as functions of nothing
timing      rounds, graphs, medians
runner      one work after the other, within a budget
record      the JSON file
report      the tables
plot        the figures; needs matplotlib
"""
