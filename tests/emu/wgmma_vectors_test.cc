// wgmma against recordings of an H200, at every instruction-set level of this machine.
#include <gtest/gtest.h>

#include <cstring>

#include "emu/hw_vectors.h"
#include "emu/isa_recorder.h"
#include "emu/wgmma_forms.h"

namespace ptxbench::emu {
namespace {

constexpr uint32_t kBase = 0x2400;  // where images are put: any 1024-byte boundary

std::vector<const tensor::Kernels*> levels() {
  const tensor::Levels& l = tensor::levels();
  return {l.level, l.level + l.count};
}

const std::vector<plan::TensorMode> kModes = {plan::TensorMode::hw, plan::TensorMode::f32,
                                              plan::TensorMode::fast};

// Small integers: every mode is exact.
TEST(WgmmaVectors, Layouts) {
  const hw::Group& g = hw::group("wgmma_layout");
  auto run = std::make_unique<Fragments>();
  for (const hw::Json& c : g.cases()) {
    const std::string ptx = c.at("ptx");
    isa::executed(ptx);
    WgmmaForm form = parse_form(ptx);
    ASSERT_TRUE(check(form).ok()) << check(form).error().message;
    auto image = g.array(c.at("image")).bytes;
    std::vector<uint8_t> shared(kBase);
    shared.insert(shared.end(), image.begin(), image.end());
    hw::Array want = g.array(c.at("d"));
    const size_t registers = want.shape[1];
    WgmmaOperands& o = run->operands;
    o.shared = shared.data();
    o.shared_bytes = static_cast<uint32_t>(shared.size());
    o.a_descriptor = c.at("a_desc").get<uint64_t>() + (kBase >> 4);
    o.b_descriptor = c.at("b_desc").get<uint64_t>() + (kBase >> 4);
    if (form.a_in_registers) {
      auto regs = g.array(c.at("a_regs")).as<uint32_t>();
      for (int t = 0; t < 128; ++t)
        for (int j = 0; j < 4; ++j) run->a[t / 32][j][t % 32] = regs[t * 4 + j];
    }
    for (const tensor::Kernels* level : levels())
      for (plan::TensorMode mode : kModes) {
        for (int t = 0; t < 128; ++t)
          for (int e = 0; e < form.n / 2; ++e) {
            const int value = (7 * t + 3 * e) % 64 - 32;
            const int row = 16 * (t / 32) + t % 32 / 4 + 8 * (e / 2 % 2);
            const int column = 8 * (e / 4) + 2 * (t % 4) + e % 2;
            const float f = static_cast<float>(value);
            _Float16 h = static_cast<_Float16>(f);
            uint32_t bits = static_cast<uint32_t>(value);
            if (form.d == ptx::Type::f32) std::memcpy(&bits, &f, 4);
            if (form.d == ptx::Type::f16) {
              uint16_t b16;
              std::memcpy(&b16, &h, 2);
              run->set16(row, column, b16);
            } else {
              run->at(row, column) = bits;
            }
          }
        tensor::wgmma_at(form, o, mode, *level);
        size_t bad = 0;
        auto d = want.as<uint32_t>();
        for (size_t t = 0; t < 128; ++t)
          for (size_t r = 0; r < registers; ++r)
            bad += run->d[t / 32][r][t % 32] != d[t * registers + r];
        EXPECT_EQ(bad, 0u) << ptx << " swizzle " << c.at("swizzle") << " " << level->level;
      }
  }
}

TEST(WgmmaVectors, DescriptorAddressMaps) {
  const hw::Group& g = hw::group("wgmma_desc");
  size_t elements = 0;
  for (const hw::Json& c : g.cases()) {
    const int bytes = bytes_of(parse_form(c.at("ptx")).a);
    const bool mn_major = c.at("major") != "K";
    MatrixDescriptor d = decode_descriptor(c.at("desc").get<uint64_t>() + (kBase >> 4));
    EXPECT_EQ(d.start, c.at("start").get<uint32_t>() + kBase);
    EXPECT_EQ(d.swizzle, c.at("swizzle").get<uint32_t>());
    EXPECT_EQ(d.base_offset, c.at("base_offset").get<uint32_t>());
    hw::Array map = g.array(c.at("map"));
    const int mn = static_cast<int>(map.shape[0]), k = static_cast<int>(map.shape[1]);
    std::map<uint32_t, uint32_t> from_chunks;  // every byte with how often it is named
    for_each_chunk(d, mn_major, bytes, mn, k, [&](uint32_t address, uint32_t n) {
      EXPECT_EQ(address / 16, (address + n - 1) / 16);
      for (uint32_t i = 0; i < n; ++i) ++from_chunks[address + i];
    });
    std::map<uint32_t, uint32_t> from_elements;
    size_t bad = 0;
    for (int i = 0; i < mn; ++i)
      for (int j = 0; j < k; ++j) {
        uint32_t want = static_cast<uint32_t>(map.at(i * k + j) * bytes) + kBase;
        bad += element_address(d, mn_major, bytes, i, j) != want;
        for (int b = 0; b < bytes; ++b) ++from_elements[want + b];
      }
    EXPECT_EQ(bad, 0u) << c.dump();
    EXPECT_EQ(from_chunks, from_elements) << c.dump();
    elements += map.size();
  }
  EXPECT_EQ(elements, 654336u);
}

// The fetch of operands uses shortcuts that element_address does not: fill memory with a counter
// and compare.
TEST(WgmmaVectors, OperandsComeFromTheMappedAddresses) {
  const hw::Group& g = hw::group("wgmma_desc");
  std::vector<uint8_t> shared(232448);
  for (size_t i = 0; i < shared.size(); ++i)
    shared[i] = static_cast<uint8_t>(i * 0x9E3779B1u >> 24);
  auto panels = std::make_unique<tensor::Panels>();
  tensor::Panels& p = *panels;
  for (const hw::Json& c : g.cases()) {
    WgmmaForm form = parse_form(c.at("ptx"));
    form.a_mn_major = form.b_mn_major = c.at("major") != "K";
    const int bytes = bytes_of(form.a);
    hw::Array map = g.array(c.at("map"));
    const size_t mn = map.shape[0], k = map.shape[1];
    tensor::fetch_shared(decode_descriptor(c.at("desc").get<uint64_t>() + (kBase >> 4)),
                         form.a_mn_major, bytes, static_cast<int>(mn), shared.data(),
                         static_cast<uint32_t>(shared.size()), p.b_rows);
    size_t bad = 0;
    for (size_t i = 0; i < mn; ++i)
      for (size_t j = 0; j < k; ++j)
        bad += std::memcmp(&p.b_rows[i][j * bytes], &shared[map.at(i * k + j) * bytes + kBase],
                           bytes) != 0;
    EXPECT_EQ(bad, 0u) << c.dump();
  }
}

void put_k_major(std::vector<uint8_t>& shared, uint32_t start, int rows, int k, int bytes,
                 const std::function<uint64_t(int, int)>& element) {
  MatrixDescriptor d{start, 128, 256, 0, 0};
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < k; ++j) {
      uint64_t v = element(i, j);
      std::memcpy(&shared[element_address(d, false, bytes, i, j)], &v, bytes);
    }
}

// All recorded accumulations, single steps and chains, bit for bit in mode hw.
TEST(WgmmaVectors, Numerics) {
  const hw::Group& g = hw::group("wgmma_numerics");
  auto run = std::make_unique<Fragments>();
  std::vector<uint8_t> shared(0x4000);
  size_t compared = 0;
  for (const hw::Json& c : g.cases()) {
    WgmmaForm form = parse_form(c.at("ptx"));
    const bool f16 = form.d == ptx::Type::f16;
    const int steps = c.value("steps", 1), bytes = bytes_of(form.a);
    hw::Array a = g.array(c.at("a")), b = g.array(c.at("b"));
    hw::Array start = g.array(c.at("c")), want = g.array(c.at("d"));
    WgmmaOperands& o = run->operands;
    o.shared = shared.data();
    o.shared_bytes = static_cast<uint32_t>(shared.size());
    o.a_descriptor = 0x0000001000080000ull;  // LBO 128, SBO 256, not swizzled
    o.b_descriptor = o.a_descriptor + (0x2000 >> 4);
    for (const tensor::Kernels* level : levels()) {
      for (int r = 0; r < 64; ++r)
        for (int n = 0; n < 8; ++n) {
          const uint32_t v = static_cast<uint32_t>(start.at(r * 8 + n));
          if (f16)
            run->set16(r, n, v);
          else
            run->at(r, n) = v;
        }
      for (int s = 0; s < steps; ++s) {
        put_k_major(shared, 0, 64, form.k, bytes,
                    [&](int r, int k) { return a.at((s * 64 + r) * form.k + k); });
        put_k_major(shared, 0x2000, 8, form.k, bytes,
                    [&](int n, int k) { return b.at((s * form.k + k) * 8 + n); });
        tensor::wgmma_at(form, o, plan::TensorMode::hw, *level);
      }
      size_t bad = 0;
      for (int r = 0; r < 64; ++r)
        for (int n = 0; n < 8; ++n, ++compared)
          bad += (f16 ? run->get16(r, n) : run->at(r, n)) != want.at(r * 8 + n);
      EXPECT_EQ(bad, 0u) << c.value("name", "chain") << " " << c.at("ptx") << " " << level->level;
    }
  }
  EXPECT_EQ(compared, 152u * 512 * levels().size());
}

// Sparse, negated, saturating and single-bit forms, registers and images as recorded.
TEST(WgmmaVectors, RawRegisters) {
  const hw::Group& g = hw::group("matrix_more");
  constexpr uint32_t kImage = 1024;
  auto run = std::make_unique<Fragments>();
  size_t compared = 0, cases = 0;
  for (const hw::Json& c : g.cases("wgmma_raw")) {
    isa::executed(c.at("ptx").get<std::string>());
    WgmmaForm form = parse_form(c.at("ptx"));
    form.selector = std::max(c.value("selector", -1), 0);
    ASSERT_TRUE(check(form).ok()) << c.at("ptx") << check(form).error().message;
    auto image = g.array(c.at("image")).bytes;
    std::vector<uint8_t> shared(kImage);
    shared.insert(shared.end(), image.begin(), image.end());
    WgmmaOperands& o = run->operands;
    o.shared = shared.data(), o.shared_bytes = static_cast<uint32_t>(shared.size());
    o.a_descriptor = c.at("a_desc").get<uint64_t>() + (kImage >> 4);
    o.b_descriptor = c.at("b_desc").get<uint64_t>() + (kImage >> 4);
    hw::Array start = g.array(c.at("c")), want = g.array(c.at("d")), a = g.array(c.at("a_regs"));
    hw::Array metadata = g.array(form.sparse ? c.at("e") : c.at("c"));
    for (size_t w = 0; w < 4; ++w)
      o.metadata[w] = form.sparse ? metadata.as<uint32_t>().data() + 32 * w : nullptr;
    const size_t registers = want.shape[1];
    for (const tensor::Kernels* level : levels()) {
      for (size_t t = 0; t < 128; ++t) {
        for (size_t r = 0; r < registers; ++r)
          run->d[t / 32][r][t % 32] = start.as<uint32_t>()[t * registers + r];
        for (size_t r = 0; r < 4; ++r) run->a[t / 32][r][t % 32] = a.as<uint32_t>()[t * 4 + r];
      }
      tensor::wgmma_at(form, o, plan::TensorMode::hw, *level);
      size_t bad = 0;
      for (size_t t = 0; t < 128; ++t)
        for (size_t r = 0; r < registers; ++r, ++compared)
          bad += run->d[t / 32][r][t % 32] != want.as<uint32_t>()[t * registers + r];
      EXPECT_EQ(bad, 0u) << c.at("ptx") << " " << c.at("fill") << " selector "
                         << c.value("selector", -1) << " " << level->level;
    }
    ++cases;
  }
  EXPECT_EQ(cases, 248u);
  EXPECT_EQ(compared, 225280u * levels().size());
}

}  // namespace
}  // namespace ptxbench::emu
