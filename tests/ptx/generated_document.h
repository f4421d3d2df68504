#pragma once
// Documents that are written from the instruction table: a test compares, the target ptx_docs
// (which sets PTXBENCH_WRITE_DOCS) writes.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace ptxbench::ptx {

inline void expect_document(const std::string& name, const std::string& text) {
  const std::string path = std::string(PTXBENCH_SOURCE_DIR "/") + name;
  if (std::getenv("PTXBENCH_WRITE_DOCS")) std::ofstream(path, std::ios::binary) << text;
  std::ifstream in(path, std::ios::binary);
  std::stringstream have;
  have << in.rdbuf();
  EXPECT_TRUE(have.str() == text) << name << " is out of date: build the target ptx_docs";
}

}  // namespace ptxbench::ptx
