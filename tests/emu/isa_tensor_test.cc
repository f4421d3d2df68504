// Tensor copies in every dimension, direction and mode: a box of an N-dimensional counter.
#include <fmt/format.h>

#include "emu/ptx_runner.h"

namespace ptxbench::emu::test {
namespace {

// 4 x 3 x 3 x 2 x 2 counted elements of 32 bits; dimension 0 has 4 of them (16 bytes).
constexpr std::array<uint32_t, 5> kDims = {4, 3, 3, 2, 2}, kBox = {4, 2, 2, 2, 1},
                                  kAt = {0, 1, 1, 0, 1};

plan::TensorMapArgs map_of(uint32_t rank, uint64_t buffer,
                           plan::MapType type = plan::MapType::u32) {
  plan::TensorMapArgs map;
  map.type = type, map.rank = rank, map.global_address = buffer;
  uint64_t stride = 4;
  for (uint32_t i = 0; i < rank; i++) {
    map.dims[i] = kDims[i], map.box[i] = kBox[i], map.element_strides[i] = 1;
    stride *= kDims[i];
    if (i + 1 < rank) map.strides[i] = stride;
  }
  return map;
}

std::string coordinates(uint32_t rank) {
  std::string s;
  for (uint32_t i = 0; i < rank; i++) s += fmt::format("{}{}", i ? ", " : "", kAt[i]);
  return s;
}

// Calls f(offset of the element in the tensor, its place in the box image, in bounds).
template <class F>
void each_of_box(uint32_t rank, F&& f) {
  std::array<uint32_t, 5> n{1, 1, 1, 1, 1}, i{};
  for (uint32_t d = 0; d < rank; d++) n[d] = kBox[d];
  size_t place = 0;
  for (i[4] = 0; i[4] < n[4]; i[4]++)
    for (i[3] = 0; i[3] < n[3]; i[3]++)
      for (i[2] = 0; i[2] < n[2]; i[2]++)
        for (i[1] = 0; i[1] < n[1]; i[1]++)
          for (i[0] = 0; i[0] < n[0]; i[0]++, place++) {
            size_t offset = 0, stride = 1;
            bool inside = true;
            for (uint32_t d = 0; d < rank; d++) {
              inside &= kAt[d] + i[d] < kDims[d];
              offset += (kAt[d] + i[d]) * stride, stride *= kDims[d];
            }
            f(offset, place, inside);
          }
}

size_t box_elements(uint32_t rank) {
  size_t n = 1;
  for (uint32_t d = 0; d < rank; d++) n *= kBox[d];
  return n;
}

// Loads with `load` into %tile and copies the image out; then `after`. Parameters: tensor, image,
// two maps.
PtxRun run_tensor(const std::string& load, const std::string& after,
                  std::vector<plan::TensorMapArgs> maps, std::vector<uint32_t> tensor,
                  uint32_t load_bytes) {
  PtxRun r;
  r.ptx =
      R"(.visible .entry k(.param .u64 p0, .param .u64 p1, .param .align 64 .b8 map[128], .param .align 64 .b8 map2[128]) {
    .reg .pred %p<5>; .reg .b32 %r<20>; .reg .b64 %d<20>; .reg .b16 %h<4>;
    .shared .align 128 .b8 tile[1024]; .shared .align 8 .b64 bar;
    ld.param.u64 %d1, [p1]; mov.b64 %d2, map; cvta.param.u64 %d2, %d2; mov.b64 %d3, map2; cvta.param.u64 %d3, %d3;
    createpolicy.fractional.L2::evict_first.b64 %d4; mov.u16 %h1, 1; mov.u16 %h2, 0;
    mov.u32 %r1, %tid.x; mov.u32 %r2, tile; mov.u32 %r3, bar; setp.ne.u32 %p1, %r1, 0;
    @%p1 bra READY;
    mbarrier.init.shared::cta.b64 [%r3], 1; fence.proxy.async.shared::cta;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], )" +
      std::to_string(load_bytes) + ";\n" + load + R"(
  READY: bar.sync 0;
  W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], 0; @!%p2 bra W;
    shl.b32 %r4, %r1, 2; add.u32 %r5, %r2, %r4; setp.ge.u32 %p3, %r4, )" +
      std::to_string(load_bytes) + R"(; @%p3 bra STORED;
    ld.shared.u32 %r6, [%r5]; cvt.u64.u32 %d5, %r4; add.s64 %d6, %d1, %d5; st.global.u32 [%d6], %r6;
  STORED: @%p1 bra END;
)" + after +
      R"(
  END: ret; })";
  r.buffers = {buffer_of("tensor", tensor), output_of("image", load_bytes)};
  r.maps = std::move(maps);
  r.block = {64};
  r.explicit_cluster = true;
  r.go();
  EXPECT_EQ(r.error, "") << load << after;
  EXPECT_EQ(r.kinds(), "") << load << after;
  EXPECT_EQ(r.result.message, "") << load << after;
  return r;
}

std::vector<uint32_t> counted(uint32_t rank) {
  size_t n = 1;
  for (uint32_t d = 0; d < rank; d++) n *= kDims[d];
  std::vector<uint32_t> v(n);
  for (size_t i = 0; i < n; i++) v[i] = static_cast<uint32_t>(i + 1);
  return v;
}

TEST(IsaTensor, Loads) {
  for (uint32_t rank = 1; rank <= 5; rank++) {
    const uint32_t bytes = static_cast<uint32_t>(4 * box_elements(rank));
    for (const char* words :
         {".shared::cluster.global.mbarrier::complete_tx::bytes",
          ".shared::cta.global.tile.mbarrier::complete_tx::bytes",
          ".shared::cta.global.mbarrier::complete_tx::bytes.L2::cache_hint",
          ".shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster",
          ".shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint"}) {
      const std::string w = words;
      const std::string extra = w.find("multicast") != std::string::npos    ? ", %h1"
                                : w.find("cache_hint") != std::string::npos ? ", %d4"
                                                                            : "";
      PtxRun r = run_tensor(
          fmt::format("cp.async.bulk.prefetch.tensor.{0}d.L2.global{4} [%d2, {{{1}}}]{5};\n"
                      "cp.async.bulk.tensor.{0}d{2} [%r2], [%d2, {{{1}}}], [%r3]{3};",
                      rank, coordinates(rank), w, extra,
                      w.find("cache_hint") != std::string::npos ? ".tile.L2::cache_hint" : "",
                      w.find("cache_hint") != std::string::npos ? ", %d4" : ""),
          "", {map_of(rank, 0), map_of(rank, 0)}, counted(rank), bytes);
      const auto image = values_of<uint32_t>(r.buffers[1]);
      each_of_box(rank, [&](size_t offset, size_t place, bool inside) {
        EXPECT_EQ(image[place], inside ? offset + 1 : 0) << rank << w << place;
      });
    }
  }
}

// The image goes back with a store or a reduction; what it does to each element is `f`.
TEST(IsaTensor, StoresAndReductions) {
  struct Case {
    const char* op;  // nullptr: store
    plan::MapType type;
    uint32_t (*f)(uint32_t old, uint32_t v);
  };
  using U = uint32_t;
  const Case cases[] = {
      {nullptr, plan::MapType::u32, [](U, U v) { return v; }},
      {"add", plan::MapType::u32, [](U o, U v) { return o + v; }},
      {"min", plan::MapType::s32, [](U o, U v) { return o < v ? o : v; }},
      {"max", plan::MapType::u32, [](U o, U v) { return o < v ? v : o; }},
      {"inc", plan::MapType::u32, [](U o, U v) { return o >= v ? U{0} : o + 1; }},
      {"dec", plan::MapType::u32, [](U o, U v) { return o == 0 || o > v ? v : o - 1; }},
      {"and", plan::MapType::u32, [](U o, U v) { return o & v; }},
      {"or", plan::MapType::u32, [](U o, U v) { return o | v; }},
      {"xor", plan::MapType::u32, [](U o, U v) { return o ^ v; }}};
  for (uint32_t rank = 1; rank <= 5; rank++)
    for (const Case& c : cases)
      for (bool second : {false, true}) {
        const std::string text =
            c.op ? fmt::format("cp.reduce.async.bulk.tensor.{}d.global.shared::cta.{}{}.bulk_group",
                               rank, c.op, second ? ".tile" : "")
                 : fmt::format("cp.async.bulk.tensor.{}d.global.shared::cta{}.bulk_group", rank,
                               second ? ".tile" : "");
        const std::string after = fmt::format(
            "{}{} [%d3, {{{}}}], [%r2]{}; cp.async.bulk.commit_group; "
            "cp.async.bulk.wait_group.read 0;",
            text, second ? ".L2::cache_hint" : "", coordinates(rank), second ? ", %d4" : "");
        std::vector<uint32_t> tensor = counted(rank), other = tensor;
        PtxRun r = run_tensor(fmt::format("cp.async.bulk.tensor.{0}d.shared::cta.global.mbarrier::"
                                          "complete_tx::bytes [%r2], [%d2, {{{1}}}], [%r3];",
                                          rank, coordinates(rank)),
                              after, {map_of(rank, 0), map_of(rank, 0, c.type)}, tensor,
                              static_cast<uint32_t>(4 * box_elements(rank)));
        std::vector<uint32_t> want = tensor;
        each_of_box(rank, [&](size_t offset, size_t, bool inside) {
          if (inside) want[offset] = c.f(tensor[offset], tensor[offset]);
        });
        EXPECT_EQ(values_of<uint32_t>(r.buffers[0]), want) << after;
      }
}

// One pixel column of a map in im2col mode: two channels' worth of a 4 x 3 image.
TEST(IsaTensor, ImageToColumn) {
  using U = uint32_t;
  struct Case {
    const char* op;  // nullptr: store
    U (*f)(U old, U v);
  };
  const Case cases[] = {{nullptr, [](U, U v) { return v; }},
                        {"add", [](U o, U v) { return o + v; }},
                        {"min", [](U o, U v) { return o < v ? o : v; }},
                        {"max", [](U o, U v) { return o < v ? v : o; }},
                        {"inc", [](U o, U v) { return o >= v ? U{0} : o + 1; }},
                        {"dec", [](U o, U v) { return o == 0 || o > v ? v : o - 1; }},
                        {"and", [](U o, U v) { return o & v; }},
                        {"or", [](U o, U v) { return o | v; }},
                        {"xor", [](U o, U v) { return o ^ v; }}};
  struct Load {
    const char *words, *operands;
  };
  const Load loads[] = {
      {"shared::cluster.global.im2col.mbarrier::complete_tx::bytes", ""},
      {"shared::cta.global.im2col.mbarrier::complete_tx::bytes", ""},
      {"shared::cta.global.im2col.mbarrier::complete_tx::bytes.L2::cache_hint", ", %d4"},
      {"shared::cluster.global.im2col.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_"
       "hint",
       ", %h1, %d4"}};
  size_t turn = 0;
  for (uint32_t rank = 3; rank <= 5; rank++) {
    plan::TensorMapArgs map = map_of(rank, 0);
    map.im2col = true, map.pixels = 4;
    for (uint32_t i = 1; i < rank; i++) map.box[i] = 1;
    std::string zeros = "0", offsets;
    for (uint32_t i = 1; i < rank; i++) zeros += ", 0";
    for (uint32_t i = 0; i + 2 < rank; i++) offsets += i ? ", %h2" : "%h1";
    for (const Case& c : cases) {
      const Load& words = loads[turn++ % std::size(loads)];
      const bool hint = turn % 2 != 0;
      const std::string policy = hint ? ", %d4" : "", word = hint ? ".L2::cache_hint" : "";
      const std::string load = fmt::format(
          "cp.async.bulk.prefetch.tensor.{0}d.L2.global.im2col{3} [%d2, {{{1}}}], {{{2}}}{4};\n"
          "cp.async.bulk.tensor.{0}d.{5} [%r2], [%d2, {{{1}}}], [%r3], {{{2}}}{6};",
          rank, zeros, offsets, word, policy, words.words, words.operands);
      const std::string after = fmt::format(
          "cp.{}async.bulk.tensor.{}d.global.shared::cta{}.im2col_no_offs.bulk_group{} [%d3, "
          "{{{}}}], [%r2]{}; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;",
          c.op ? "reduce." : "", rank, c.op ? std::string(".") + c.op : "", word, zeros, policy);
      PtxRun r = run_tensor(load, after, {map, map}, counted(rank), 64);
      // Pixels 1 and 2 of the first row, one outside, then the second row's second pixel.
      const auto image = values_of<uint32_t>(r.buffers[1]);
      const std::vector<uint32_t> rows = {4, 8, 0, 16};
      std::vector<uint32_t> want = counted(rank);
      for (size_t p = 0; p < 4; p++)
        for (size_t e = 0; e < 4; e++) {
          const uint32_t v = rows[p] ? rows[p] + static_cast<uint32_t>(e) + 1 : 0;
          EXPECT_EQ(image[p * 4 + e], v) << rank << " pixel " << p;
          // Without offsets the pixels are the first three of row 0 and the first of row 1.
          want[p * 4 + e] = c.f(want[p * 4 + e], v);
        }
      EXPECT_EQ(values_of<uint32_t>(r.buffers[0]), want) << after;
    }
  }
}

// Every field of a descriptor in global memory and in shared memory, as plan::replace changes it
// (which equals recordings: copies_vectors_test.cc).
TEST(IsaTensor, ReplacedFields) {
  using plan::MapField;
  struct Case {
    MapField field;
    const char *name, *type, *value;
    int ordinal;  // -1: none
    uint64_t number;
  };
  const Case cases[] = {{MapField::global_address, "global_address", "b64", "%d9", -1, 4096},
                        {MapField::rank, "rank", "b32", "%r9", -1, 2},
                        {MapField::box_dim, "box_dim", "b32", "%r9", 1, 9},
                        {MapField::global_dim, "global_dim", "b32", "%r9", 0, 77},
                        {MapField::global_stride, "global_stride", "b64", "%d9", 1, 640},
                        {MapField::element_stride, "element_stride", "b32", "%r9", 2, 3},
                        {MapField::elemtype, "elemtype", "b32", "7", -1, 7},
                        {MapField::interleave_layout, "interleave_layout", "b32", "2", -1, 2},
                        {MapField::swizzle_mode, "swizzle_mode", "b32", "3", -1, 3},
                        {MapField::fill_mode, "fill_mode", "b32", "1", -1, 1}};
  for (const Case& c : cases)
    for (const std::string space : {"", ".global", ".shared::cta"}) {
      const bool shared = space == ".shared::cta";
      const std::string where = shared ? "%r2" : "%d2";
      std::string copy_in, copy_out;
      for (int i = 0; i < 128; i += 16) {
        copy_in += fmt::format(
            "ld.global.v2.b64 {{%d5, %d6}}, [%d1+{0}]; st.shared.v2.b64 [%r2+{0}], "
            "{{%d5, %d6}}; st.global.v2.b64 [%d2+{0}], {{%d5, %d6}};\n",
            i);
        copy_out += fmt::format(
            "ld.shared.v2.b64 {{%d5, %d6}}, [%r2+{0}]; st.global.v2.b64 [%d2+{0}], "
            "{{%d5, %d6}};\n",
            i);
      }
      PtxRun r;
      r.ptx = fmt::format(R"(.visible .entry k(.param .u64 p0, .param .u64 p1) {{
    .reg .b32 %r<20>; .reg .b64 %d<20>; .shared .align 128 .b8 tile[128];
    ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1]; mov.u32 %r2, tile; mov.u32 %r9, {0}; mov.u64 %d9, {0};
{1} tensormap.replace.tile.{2}{3}.b1024.{4} [{5}]{6}, {7};
{8} ret; }})",
                          c.number, copy_in, c.name, space, c.type, where,
                          c.ordinal < 0 ? "" : fmt::format(", {}", c.ordinal), c.value,
                          shared ? copy_out : "");
      auto want = plan::encode(map_of(3, 0x7f0000000000));
      r.buffers = {buffer_of("map", std::vector<uint8_t>(want.begin(), want.end()), true),
                   output_of("out", 128)};
      r.go();
      ASSERT_EQ(r.error, "") << r.ptx;
      EXPECT_EQ(r.kinds(), "") << r.ptx;
      EXPECT_EQ(r.result.message, "") << r.ptx;
      ASSERT_TRUE(plan::replace(want.data(), c.field, static_cast<uint32_t>(std::max(c.ordinal, 0)),
                                c.number)
                      .ok());
      EXPECT_TRUE(std::equal(want.begin(), want.end(), r.buffers[1].bytes.begin())) << r.ptx;
    }
}

}  // namespace
}  // namespace ptxbench::emu::test
