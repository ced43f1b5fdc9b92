//===- NpyTest.cpp - NumPy's file format ----------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Runner/Npy.h"
#include <gtest/gtest.h>

using namespace attnfuse;

namespace {
/// A file of version 1 with this header and data.
std::string makeFile(const std::string &header, const std::string &data,
                     char version = 1) {
  std::string bytes = "\x93NUMPY";
  bytes += version;
  bytes += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i)
    bytes += char(header.size() >> (8 * i) & 0xff);
  return bytes + header + data;
}

std::string getError(const std::string &bytes) {
  Result<HostTensor> tensor = parseNpy(bytes, "x.npy");
  return tensor ? "" : tensor.error().message;
}

const std::string kData("\1\0\0\0\2\0\0\0\3\0\0\0\4\0\0\0\5\0\0\0\6\0\0\0", 24);

TEST(NpyTest, ReadsBothOrdersAndVersions) {
  for (char version : {1, 2, 3}) {
    Result<HostTensor> rows = parseNpy(
        makeFile("{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }",
                 kData, version),
        "x.npy");
    ASSERT_TRUE(bool(rows)) << rows.error().message;
    EXPECT_EQ(rows->getType(), ElementType::I32);
    EXPECT_EQ(rows->getShape(), (std::vector<int64_t>{2, 3}));
    for (int i = 0; i < 6; ++i)
      EXPECT_EQ(rows->getInt(i), i + 1);
  }
  // Keys in another order, other quotes and spaces; columns first.
  Result<HostTensor> columns = parseNpy(
      makeFile("{\"shape\":(2,3),'fortran_order' : True,'descr':'<i4'} \n",
               kData),
      "x.npy");
  ASSERT_TRUE(bool(columns)) << columns.error().message;
  std::vector<int64_t> values;
  for (int i = 0; i < 6; ++i)
    values.push_back(columns->getInt(i));
  EXPECT_EQ(values, (std::vector<int64_t>{1, 3, 5, 2, 4, 6}));
}

TEST(NpyTest, FortranOrderOfThreeDimensions) {
  std::string data;
  for (char i = 0; i < 24; ++i)
    data += {i, 0};
  Result<HostTensor> tensor = parseNpy(
      makeFile("{'descr': '<u2', 'fortran_order': True, 'shape': (2, 3, 4)}",
               data),
      "x.npy");
  ASSERT_TRUE(bool(tensor)) << tensor.error().message;
  for (int a = 0; a < 2; ++a)
    for (int b = 0; b < 3; ++b)
      for (int c = 0; c < 4; ++c) {
        uint16_t bits;
        std::memcpy(&bits, tensor->data() + 2 * ((a * 3 + b) * 4 + c), 2);
        EXPECT_EQ(bits, a + 2 * b + 6 * c);
      }
}

TEST(NpyTest, RoundTripsEveryTypeAndRank) {
  for (ElementType type :
       {ElementType::F16, ElementType::BF16, ElementType::F32, ElementType::F64,
        ElementType::I32, ElementType::I64})
    for (std::vector<int64_t> shape :
         {std::vector<int64_t>{}, {5}, {2, 3}, {1, 0, 4}, {2, 1, 3, 2}}) {
      HostTensor tensor(type, shape);
      for (int64_t i = 0; i < tensor.getNumElements(); ++i)
        tensor.setFloat(i, 3 * i - 4);
      std::string bytes = formatNpy(tensor);
      EXPECT_EQ((bytes.size() - tensor.getNumBytes()) % 64, 0u);
      Result<HostTensor> read = parseNpy(bytes, "x.npy");
      ASSERT_TRUE(bool(read)) << read.error().message;
      EXPECT_EQ(read->getType(), type);
      EXPECT_EQ(read->getShape(), shape);
      for (int64_t i = 0; i < tensor.getNumElements(); ++i)
        EXPECT_EQ(read->getFloat(i), 3 * i - 4);
    }
}

TEST(NpyTest, MalformedFiles) {
  std::string header =
      "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }";
  std::string file = makeFile(header, kData);
  EXPECT_EQ(getError(""), "'x.npy' is not an .npy file");
  EXPECT_EQ(getError("PK\3\4 not an npy file"), "'x.npy' is not an .npy file");
  EXPECT_EQ(getError(makeFile(header, kData, 9)),
            "'x.npy' is an .npy file of version 9: expected 1, 2 or 3");
  EXPECT_EQ(getError(file.substr(0, 9)), "'x.npy' is truncated");
  EXPECT_EQ(getError(file.substr(0, 40)), "'x.npy' is truncated in its header");
  EXPECT_EQ(getError(file.substr(0, file.size() - 1)),
            "'x.npy' is truncated: its shape needs 24 bytes of data, got 23");
  EXPECT_EQ(getError(file + "x"),
            "'x.npy' is too long: its shape needs 24 bytes of data, got 25");
  auto withHeader = [](const std::string &text) {
    return getError(makeFile(text, kData));
  };
  EXPECT_EQ(withHeader("{'descr': '>i4', 'fortran_order': False, 'shape': ()}"),
            "'x.npy' has elements of type '>i4': expected <f2, <f4, <f8, <i4, "
            "<i8, or <u2 for bf16");
  for (std::string bad :
       {"", "{", "{'descr'", "{'descr': ['<i4'], 'shape': ()}",
        "{'descr': '<i4', 'fortran_order': False}", "{'what': 1}",
        "{'descr': '<i4', 'fortran_order': 1, 'shape': ()}",
        "{'descr': '<i4', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<i4', 'fortran_order': False, 'shape': (2 3)}",
        "{'descr': '<i4', 'fortran_order': False, 'shape': "
        "(99999999999999999999,)}"})
    EXPECT_NE(withHeader(bad).find("malformed header"), std::string::npos)
        << bad << ": " << withHeader(bad);
  // Sizes whose product overflows are truncated files, not small ones.
  EXPECT_EQ(withHeader("{'descr': '<i4', 'fortran_order': False, 'shape': "
                       "(1000000000000, 1000000000000)}"),
            "'x.npy' is truncated: its shape needs too many bytes of data, "
            "got 24");
}

TEST(NpyTest, ErrorsOfTheSystemNameTheFile) {
  // Opens, and fails where it is read.
  EXPECT_EQ(readNpy("/proc/self/mem").error().message,
            "cannot read '/proc/self/mem': Input/output error");
  EXPECT_EQ(readNpy("/nonexistent/x.npy").error().message,
            "cannot read '/nonexistent/x.npy': No such file or directory");
}
} // namespace
