//===- SharedLayout.cpp - Swizzled tiles in shared memory
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/KernelGen/SharedLayout.h"

using namespace mlir;
using namespace mlir::attnfuse::kernelgen;

/// Rows after which the swizzle repeats.
static constexpr int64_t kSwizzleRows = 8;

SharedLayout::SharedLayout(int64_t rows, int64_t columns)
    : rows(rows), columns(columns) {
  assert(columns % 16 == 0 && "rows are whole MMA steps");
  int64_t chunk = 0;
  for (int64_t width : {8, 4, 2})
    for (; getChunks() - chunk >= width; chunk += width)
      panels.push_back({chunk, width, chunk * 16 * rows});
}

const SharedLayout::Panel &SharedLayout::getPanel(int64_t chunk) const {
  return *llvm::find_if(llvm::reverse(panels), [&](const Panel &panel) {
    return panel.firstChunk <= chunk;
  });
}

int64_t SharedLayout::getOffset(int64_t row, int64_t chunk) const {
  const Panel &panel = getPanel(chunk);
  int64_t swizzle = row / (8 / panel.chunks) % panel.chunks;
  return panel.byteOffset + row * panel.getPitch() +
         ((chunk - panel.firstChunk) ^ swizzle) * 16;
}

/// Offset of chunk `chunk` (counted from the panel's first) of `row`, less the
/// panel's own offset.
static Value getOffsetInPanel(KernelBuilder &b,
                              const SharedLayout::Panel &panel, Value row,
                              Value chunk) {
  Value swizzle = b.andI(b.divU(row, 8 / panel.chunks), panel.chunks - 1);
  return b.add(b.mul(row, panel.getPitch()), b.shl(b.xorI(chunk, swizzle), 4));
}

Value SharedLayout::getOffset(KernelBuilder &b, Value row, Value chunk,
                              int64_t rowOffset) const {
  if (rowOffset % kSwizzleRows != 0) {
    row = b.add(row, rowOffset);
    rowOffset = 0;
  }
  Value offset;
  // All panels of 64 columns share one formula.
  if (panels.front().chunks == 8) {
    Value inPanel = getOffsetInPanel(b, panels.front(), row, b.andI(chunk, 7));
    offset = b.add(b.add(inPanel, b.mul(b.shrU(chunk, 3), rows * 128)),
                   rowOffset * 128);
  }
  for (const Panel &panel : panels) {
    if (panel.chunks == 8)
      continue;
    Value here =
        b.add(getOffsetInPanel(b, panel, row, b.sub(chunk, panel.firstChunk)),
              panel.byteOffset + rowOffset * panel.getPitch());
    offset =
        offset ? b.select(b.lt(chunk, panel.firstChunk), offset, here) : here;
  }
  return offset;
}

LaneAddress::LaneAddress(KernelBuilder &b, const SharedLayout &layout,
                         Value tile, Value row, Value chunkLowBit)
    : layout(layout), tile(tile) {
  for (const SharedLayout::Panel &panel : layout.getPanels()) {
    bool known = !laneOffsets.empty() && panel.chunks == 8;
    laneOffsets.push_back(known ? laneOffsets.front()
                                : getOffsetInPanel(b, panel, row, chunkLowBit));
  }
}

Value LaneAddress::get(KernelBuilder &b, int64_t rowOffset,
                       int64_t evenChunk) const {
  assert(rowOffset % kSwizzleRows == 0 && evenChunk % 2 == 0 &&
         "only the lane's part is a run-time value");
  const SharedLayout::Panel &panel = layout.getPanel(evenChunk);
  Value lane = laneOffsets[&panel - layout.getPanels().data()];
  // The swizzle is an XOR below the pitch, so the constant chunk may be XORed
  // afterwards.
  Value offset = b.xorI(lane, (evenChunk - panel.firstChunk) * 16);
  return b.offsetPtr(b.offsetPtr(tile, offset),
                     panel.byteOffset + rowOffset * panel.getPitch());
}
