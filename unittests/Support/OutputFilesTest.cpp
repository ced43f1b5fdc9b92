//===- OutputFilesTest.cpp - Files written together or not at all ---------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Support/OutputFiles.h"
#include <algorithm>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

using namespace attnfuse;
namespace fs = std::filesystem;

namespace {
/// Has a folder of its own.
class OutputFilesTest : public testing::Test {
protected:
  OutputFilesTest() {
    std::string pattern = testing::TempDir() + "outputsXXXXXX";
    folder = ::mkdtemp(pattern.data());
  }
  ~OutputFilesTest() override { fs::remove_all(folder); }

  std::string path(const std::string &name) const { return folder / name; }
  void put(const std::string &name, const std::string &text) {
    std::ofstream(path(name)) << text;
  }
  std::string get(const std::string &name) const {
    std::ifstream file(path(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  /// Names in the folder, sorted.
  std::vector<std::string> list() const {
    std::vector<std::string> names;
    for (const fs::directory_entry &entry : fs::directory_iterator(folder))
      names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }
  using Names = std::vector<std::string>;

  fs::path folder;
};

TEST_F(OutputFilesTest, CommitReplacesAllAndLeavesNothingElse) {
  put("b", "old");
  OutputFiles files;
  ASSERT_TRUE(files.add(path("a")).ok());
  ASSERT_TRUE(files.add(path("b")).ok());
  ASSERT_TRUE(files.write(path("a"), "1").ok());
  ASSERT_TRUE(files.write(path("b"), "2").ok());
  EXPECT_EQ(get("b"), "old");
  ASSERT_TRUE(files.commit().ok());
  EXPECT_EQ(get("a") + get("b"), "12");
  EXPECT_EQ(list(), Names({"a", "b"}));
}

TEST_F(OutputFilesTest, WithoutCommitNothingChanges) {
  put("a", "old");
  {
    OutputFiles files;
    ASSERT_TRUE(files.add(path("a")).ok());
    ASSERT_TRUE(files.write(path("a"), "1").ok());
  }
  EXPECT_EQ(get("a"), "old");
  EXPECT_EQ(list(), Names({"a"}));
}

TEST_F(OutputFilesTest, OneThatCannotBeReplacedUndoesTheOthers) {
  put("a", "old");
  {
    OutputFiles files;
    for (const char *name : {"a", "b", "c"}) {
      ASSERT_TRUE(files.add(path(name)).ok());
      ASSERT_TRUE(files.write(path(name), "new").ok());
    }
    // A folder in the way, where even the owner of everything cannot put a
    // file: its backup's name is taken by a folder that is not empty.
    std::string backup;
    for (const std::string &name : list())
      if (name.rfind("c.tmp", 0) == 0)
        backup = path(name) + ".old";
    ASSERT_FALSE(backup.empty());
    fs::create_directories(path("c"));
    fs::create_directories(backup + "/x");
    Status status = files.commit();
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().message.find("cannot write '" + path("c")), 0u)
        << status.error().message;
    fs::remove_all(backup);
  }
  EXPECT_EQ(get("a"), "old");
  EXPECT_EQ(list(), Names({"a", "c"}));
}

TEST_F(OutputFilesTest, OneFileUnderTwoNamesIsRefused) {
  put("a", "old");
  fs::create_symlink("a", path("link"));
  for (std::string other : {"a", "./a", "x/../a", "link"}) {
    OutputFiles files;
    ASSERT_TRUE(files.add(path("a")).ok());
    Status status = files.add(path(other));
    ASSERT_FALSE(status.ok()) << other;
    EXPECT_EQ(status.error().message, "expected a file for each output, got '" +
                                          path("a") + "' and '" + path(other) +
                                          "', which are one");
  }
  // Also where it does not exist yet.
  OutputFiles files;
  ASSERT_TRUE(files.add(path("new")).ok());
  EXPECT_FALSE(files.add(path("./new")).ok());
}

TEST_F(OutputFilesTest, InputsAndFoldersAreRefused) {
  put("in", "text");
  fs::create_hard_link(path("in"), path("other"));
  OutputFiles files;
  files.protectInput(path("in"));
  for (std::string name : {"in", "./in", "other"}) {
    Status status = files.add(path(name));
    ASSERT_FALSE(status.ok()) << name;
    EXPECT_EQ(status.error().message,
              "'" + path(name) +
                  "' is an input and would be overwritten; choose another "
                  "output");
  }
  Status status = files.add(folder);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("it is a folder"), std::string::npos);
  status = files.add("");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message,
            "expected the name of a file to write, got ''");
}

TEST_F(OutputFilesTest, AFolderThatDoesNotExistIsNamed) {
  OutputFiles files;
  ASSERT_TRUE(files.add(path("none/a")).ok());
  Status status = files.write(path("none/a"), "1");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message,
            "cannot write '" + path("none/a") + "': No such file or directory");
}

TEST_F(OutputFilesTest, SpecialFilesAreWrittenInPlaceAndMayRepeat) {
  ASSERT_TRUE(OutputFiles::isSpecial("/dev/null"));
  EXPECT_FALSE(OutputFiles::isSpecial(folder));
  OutputFiles files;
  files.protectInput("/dev/null");
  ASSERT_TRUE(files.add("/dev/null").ok());
  ASSERT_TRUE(files.add("/dev/null").ok());
  ASSERT_TRUE(files.write("/dev/null", "1").ok());
  ASSERT_TRUE(files.commit().ok());
  EXPECT_TRUE(OutputFiles::isSpecial("/dev/null"));
}

TEST_F(OutputFilesTest, DescriptorsOfFilesGoOnFromWhatIsThere) {
  put("a", "");
  int descriptor = ::open(path("a").c_str(), O_WRONLY);
  ASSERT_GE(descriptor, 0);
  std::string name = "/dev/fd/" + std::to_string(descriptor);
  fs::create_symlink(name, path("link"));
  EXPECT_TRUE(OutputFiles::isSpecial(name));
  EXPECT_FALSE(OutputFiles::isSpecial(path("a")));
  for (std::string output : {name, path("link")}) {
    ASSERT_EQ(::write(descriptor, "head ", 5), 5);
    OutputFiles files;
    ASSERT_TRUE(files.add(output).ok());
    ASSERT_TRUE(files.write(output, "text ").ok());
    ASSERT_TRUE(files.commit().ok());
  }
  ASSERT_EQ(::write(descriptor, "tail", 4), 4);
  ::close(descriptor);
  EXPECT_EQ(get("a"), "head text head text tail");
  EXPECT_EQ(list(), Names({"a", "link"}));
}

TEST_F(OutputFilesTest, WhatDescriptorsRefuseIsAnError) {
  put("a", "old");
  int descriptor = ::open(path("a").c_str(), O_RDONLY);
  ASSERT_GE(descriptor, 0);
  std::string name = "/dev/fd/" + std::to_string(descriptor);
  OutputFiles files;
  ASSERT_TRUE(files.add(name).ok());
  ASSERT_TRUE(files.write(name, "text").ok());
  Status status = files.commit();
  ::close(descriptor);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message,
            "cannot write '" + name + "': Bad file descriptor");
  EXPECT_EQ(get("a"), "old");
}

TEST_F(OutputFilesTest, DescriptorsThatAreNotOpenStaySpecial) {
  int descriptor = ::open("/dev/null", O_WRONLY);
  ::close(descriptor);
  fs::create_symlink("/dev/fd/" + std::to_string(descriptor), path("link"));
  OutputFiles files;
  EXPECT_TRUE(OutputFiles::isSpecial(path("link")));
  ASSERT_TRUE(files.add(path("link")).ok());
  ASSERT_TRUE(files.write(path("link"), "text").ok());
  EXPECT_FALSE(files.commit().ok());
  EXPECT_TRUE(fs::is_symlink(path("link")));
  // No number.
  EXPECT_FALSE(OutputFiles::isSpecial("/dev/fd/none"));
}

TEST_F(OutputFilesTest, LinksToNothingStay) {
  fs::create_symlink("target", path("link"));
  OutputFiles files;
  ASSERT_TRUE(files.add(path("link")).ok());
  EXPECT_FALSE(files.add(path("target")).ok());
  ASSERT_TRUE(files.write(path("link"), "text").ok());
  ASSERT_TRUE(files.commit().ok());
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(get("target"), "text");
}

TEST_F(OutputFilesTest, LinksInACircleLeadToNoDescriptor) {
  fs::create_symlink("b", path("a"));
  fs::create_symlink("a", path("b"));
  EXPECT_FALSE(OutputFiles::isSpecial(path("a")));
}

TEST_F(OutputFilesTest, PipesGetTheirContents) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  int reader = ::open(path("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  OutputFiles files;
  ASSERT_TRUE(files.add(path("pipe")).ok());
  ASSERT_TRUE(files.write(path("pipe"), "text").ok());
  char received[8];
  EXPECT_LE(::read(reader, received, sizeof received), 0);
  ASSERT_TRUE(files.commit().ok());
  ASSERT_EQ(::read(reader, received, sizeof received), 4);
  ::close(reader);
  EXPECT_EQ(std::string(received, 4), "text");
  EXPECT_EQ(list(), Names({"pipe"}));
}

TEST_F(OutputFilesTest, SocketsAreRefused) {
  int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{AF_UNIX, {}};
  ASSERT_LT(path("s").size(), sizeof address.sun_path);
  path("s").copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(
      ::bind(socket, reinterpret_cast<sockaddr *>(&address), sizeof address),
      0);
  OutputFiles files;
  ASSERT_TRUE(files.add(path("s")).ok());
  ASSERT_TRUE(files.write(path("s"), "text").ok());
  Status status = files.commit();
  ::close(socket);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message,
            "cannot write '" + path("s") + "': No such device or address");
}
} // namespace
