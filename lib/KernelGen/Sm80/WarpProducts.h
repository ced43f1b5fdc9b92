//===- WarpProducts.h - A warp's rows of S and O ----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_KERNELGEN_SM80_WARPPRODUCTS_H
#define ATTNFUSE_LIB_KERNELGEN_SM80_WARPPRODUCTS_H

#include "attnfuse/KernelGen/AccumulatorTile.h"
#include "attnfuse/KernelGen/KernelResources.h"
#include "attnfuse/KernelGen/SharedLayout.h"

namespace mlir::attnfuse::kernelgen::sm80 {

/// The products of a warp's rows with the K and V tiles of a step, which are
/// in shared memory, as is Q.
class WarpProducts {
public:
  /// The warp's rows are those of the query tile from `warpRow` on; `type` is
  /// that of Q, K and V.
  WarpProducts(KernelBuilder &b, const KernelTile &tile,
               const PaddedHeadDims &dims, Type type, Value queryTile,
               Value warpRow, Value lane);

  /// A fragments of the warp's rows of Q, by step along the head and row tile.
  SmallVector<Values> loadQuery() const;
  /// S = Q K^T. `query` is what loadQuery returned, where the schedule keeps Q
  /// in registers, else empty: fragments are loaded step by step then.
  Values getScores(ArrayRef<Values> query, Value keyTile) const;
  /// O += P V; rounds the weights P.
  void addWeightedSum(ArrayRef<Value> weights, Value valueTile,
                      MutableArrayRef<Value> output) const;

private:
  SmallVector<Values> loadQuery(int64_t step) const;
  int64_t getQuerySteps() const;

  KernelBuilder &b;
  SharedLayout queryLayout, keyLayout, valueLayout;
  AccumulatorTile scoreShape, outputShape;
  Type type;
  Value queryTile, warpRow, lane;
};

} // namespace mlir::attnfuse::kernelgen::sm80

#endif // ATTNFUSE_LIB_KERNELGEN_SM80_WARPPRODUCTS_H
