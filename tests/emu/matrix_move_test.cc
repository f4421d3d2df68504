// ldmatrix and stmatrix against recordings of an H200.
#include "emu/matrix_move.h"

#include <gtest/gtest.h>

#include <cstring>

#include "emu/hw_vectors.h"

namespace ptxbench::emu {
namespace {

struct Form {
  int count;
  bool trans;
};
Form form(const hw::Json& c) {
  std::string ptx = c.at("ptx");
  return {ptx[ptx.find(".x") + 2] - '0', ptx.find(".trans") != std::string::npos};
}

TEST(MatrixMove, Ldmatrix) {
  const hw::Group& g = hw::group("matrix_warp");
  std::vector<uint16_t> memory(2048);
  for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<uint16_t>(i);
  auto cases = g.cases("ldmatrix");
  for (const hw::Json& c : cases) {
    uint32_t lanes[4][32];
    std::fill_n(&lanes[0][0], 128, 0xeeeeeeee);
    uint32_t* regs[4] = {lanes[0], lanes[1], lanes[2], lanes[3]};
    Form f = form(c);
    ldmatrix(reinterpret_cast<const uint8_t*>(memory.data()),
             g.array(c.at("rows")).as<uint32_t>().data(), f.count, f.trans, regs);
    auto want = g.array(c.at("regs")).as<uint32_t>();
    for (int l = 0; l < 32; ++l)
      for (int r = 0; r < 4; ++r) EXPECT_EQ(lanes[r][l], want[l * 4 + r]) << c.at("ptx") << l;
  }
  EXPECT_EQ(cases.size(), 6u);
}

TEST(MatrixMove, AddressRegisterMayBeADestination) {
  std::vector<uint16_t> memory(256);
  for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<uint16_t>(i);
  uint32_t lanes[4][32], want[4][32], rows[32];
  for (uint32_t l = 0; l < 32; ++l) lanes[0][l] = rows[l] = 16 * l;
  uint32_t* regs[4] = {lanes[0], lanes[1], lanes[2], lanes[3]};
  uint32_t* want_regs[4] = {want[0], want[1], want[2], want[3]};
  ldmatrix(reinterpret_cast<const uint8_t*>(memory.data()), rows, 4, false, want_regs);
  ldmatrix(reinterpret_cast<const uint8_t*>(memory.data()), lanes[0], 4, false, regs);
  EXPECT_EQ(std::memcmp(lanes, want, sizeof lanes), 0);
}

TEST(MatrixMove, Stmatrix) {
  const hw::Group& g = hw::group("matrix_warp");
  uint32_t lanes[4][32];
  for (uint32_t l = 0; l < 32; ++l)
    for (uint32_t j = 0; j < 4; ++j) lanes[j][l] = (8 * l + 2 * j) | (8 * l + 2 * j + 1) << 16;
  const uint32_t* regs[4] = {lanes[0], lanes[1], lanes[2], lanes[3]};
  auto cases = g.cases("stmatrix");
  for (const hw::Json& c : cases) {
    std::vector<uint8_t> memory(4096, 0xff);
    Form f = form(c);
    stmatrix(memory.data(), g.array(c.at("rows")).as<uint32_t>().data(), f.count, f.trans, regs);
    auto want = g.array(c.at("after")).bytes;
    EXPECT_TRUE(std::equal(memory.begin(), memory.end(), want.begin(), want.end())) << c.at("ptx");
  }
  EXPECT_EQ(cases.size(), 6u);
}

}  // namespace
}  // namespace ptxbench::emu
