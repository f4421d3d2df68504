// Every recorded element-wise form against the handlers, at every instruction-set level this CPU
// has.
#include <gtest/gtest.h>

#include <cmath>
#include <regex>

#include "emu/hw_vectors.h"
#include "emu/scalar_machine.h"

namespace ptxbench::emu {
namespace {

using testing::ScalarMachine;

std::string replace_all(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

// The form as a kernel's body: %0 is the destination, %1... the sources.
std::string body(const hw::Group& g, const hw::Json& form) {
  std::string text = form.at("ptx");
  auto declare = [](const std::string& name, size_t bytes) {
    return ".reg .b" + std::to_string(8 * bytes) + " " + name + ";\n";
  };
  std::string declarations = declare("%out", g.array(form.at("out")).element_bytes());
  text = replace_all(text, "%0", "%out");
  const auto& inputs = form.at("inputs");
  for (size_t k = 0; k < inputs.size(); ++k) {
    std::string name = "%in" + std::to_string(k + 1);
    declarations += declare(name, g.input(inputs[k]).element_bytes());
    text = replace_all(text, "%" + std::to_string(k + 1), name);
  }
  return declarations + "{ " + text + " }";
}

// 8-bit registers take 16 bits a lane.
size_t place(size_t bytes, int lane) {
  return std::max<size_t>(bytes, 2) * static_cast<size_t>(lane);
}
void store(ScalarMachine& m, const std::string& name, size_t bytes, int lane, uint64_t value) {
  std::memcpy(m.lanes<uint8_t>(name) + place(bytes, lane), &value, bytes);
}
uint64_t load(ScalarMachine& m, const std::string& name, size_t bytes, int lane) {
  uint64_t value = 0;
  std::memcpy(&value, m.lanes<uint8_t>(name) + place(bytes, lane), bytes);
  return value;
}

// Runs the form on all elements and calls check(i, got, want).
template <class F>
std::string run_form(const hw::Group& g, const hw::Json& form, const scalar::Level& level,
                     F&& check) {
  ScalarMachine m(body(g, form), level);
  if (!m.error().empty()) return m.error();
  hw::Array out = g.array(form.at("out"));
  std::vector<hw::Array> in;
  for (const auto& name : form.at("inputs")) in.push_back(g.input(name));
  for (size_t first = 0; first < out.size(); first += 32) {
    const int lanes = static_cast<int>(std::min<size_t>(32, out.size() - first));
    for (int lane = 0; lane < lanes; ++lane)
      for (size_t k = 0; k < in.size(); ++k)
        store(m, "%in" + std::to_string(k + 1), in[k].element_bytes(), lane,
              in[k].at(first + static_cast<size_t>(lane)));
    m.run();
    for (int lane = 0; lane < lanes; ++lane) {
      size_t i = first + static_cast<size_t>(lane);
      check(i, load(m, "%out", out.element_bytes(), lane), out.at(i));
    }
  }
  return "";
}

std::string inputs_of(const hw::Group& g, const hw::Json& form, size_t i) {
  std::string text;
  for (const auto& name : form.at("inputs")) text += fmt::format(" {:#x}", g.input(name).at(i));
  return text;
}

class ScalarVectors : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (GetParam() >= scalar::available_levels().count)
      GTEST_SKIP() << "this CPU has no such level";
  }
  const scalar::Level& level() { return scalar::available_levels().level[GetParam()]; }

  // `refused`: how many forms the finder does not know.
  void expect_exact(const std::string& group, size_t forms, size_t refused = 0) {
    const hw::Group& g = hw::group(group);
    size_t passed = 0, unknown = 0;
    for (const hw::Json& form : g.cases()) {
      if (form.contains("kind")) continue;  // not element-wise
      size_t wrong = 0, total = 0;
      std::string example;
      std::string error = run_form(g, form, level(), [&](size_t i, uint64_t got, uint64_t want) {
        ++total;
        if (got == want) return;
        if (wrong++ < 3)
          example +=
              fmt::format("\n    in{} got {:#x} want {:#x}", inputs_of(g, form, i), got, want);
      });
      const std::string text = form.at("ptx");
      if (refused != 0 && error.starts_with("not implemented") && ++unknown <= refused) continue;
      EXPECT_EQ(error, "") << text;
      EXPECT_EQ(wrong, 0u) << text << " of " << total << example;
      if (error.empty() && wrong == 0 && total > 0) ++passed;
    }
    EXPECT_EQ(passed, forms);
    EXPECT_EQ(unknown, refused);
  }
};

TEST_P(ScalarVectors, Exact) { expect_exact("exact", 747); }
TEST_P(ScalarVectors, Cvt) { expect_exact("cvt", 784); }
// What is refused are video instructions whose sequence is not what the ISA says (video_agrees).
TEST_P(ScalarVectors, Forms) { expect_exact("forms", 2721, 441); }

// ------------------------------------------------------------------------------------- approximate
// One value of a packed or plain result as a number.
double number(const std::string& type, uint64_t bits) {
  auto as_float = [](uint32_t b) {
    float f;
    std::memcpy(&f, &b, 4);
    return static_cast<double>(f);
  };
  if (type == "f64") {
    double d;
    std::memcpy(&d, &bits, 8);
    return d;
  }
  if (type == "f32") return as_float(static_cast<uint32_t>(bits));
  if (type[0] == 'b') return as_float(static_cast<uint32_t>(bits & 0xffff) << 16);
  const int e = static_cast<int>(bits >> 10 & 31), m = static_cast<int>(bits & 1023);
  double v = e == 0    ? std::ldexp(m, -24)
             : e == 31 ? (m ? std::nan("") : INFINITY)
                       : std::ldexp(1024 + m, e - 25);
  return bits & 0x8000 ? -v : v;
}

// The ISA's bounds: relative to the exact result, or absolute (whichever is larger).
struct Bound {
  const char* prefix;
  double relative, absolute;
};
constexpr Bound kBounds[] = {
    {"ex2.approx.f16", 0x1p-9, 0x1p-24},  // 2^-9.9
    {"ex2.approx.ftz.bf16", 0x1p-7, 0},
    {"ex2.approx", 0x1p-22, 0x1p-149},
    {"lg2.approx", 0x1p-22, 0x1p-22},
    {"rcp.approx.ftz.f64", 0x1p-20, 0},  // the low word is not computed
    {"rcp.approx", 0x1p-23, 0x1p-149},
    {"rsqrt.approx.ftz.f64", 0x1p-20, 0},
    {"rsqrt.approx.f64", 0x1p-26, 0},
    {"rsqrt.approx", 0x1p-22, 0},  // 2^-22.9
    {"sqrt.approx", 0x1p-22, 0x1p-149},
    {"sin.approx", 0, 0x1p-20},  // 2^-20.5 within [-pi, pi]
    {"cos.approx", 0, 0x1p-20},
    {"tanh.approx.f32", 0x1p-10, 0},  // 2^-11
    {"tanh.approx.f16", 0x1p-10, 0x1p-10},
    {"tanh.approx.bf16", 0x1p-8, 0x1p-8},
    {"div.approx", 0x1p-22, 0x1p-148},  // 2 ulp
    {"div.full", 0x1p-22, 0x1p-148},
};

// Both the card and the emulator are within the bound of the exact value, hence within twice of
// each other. Zeros, infinities and NaNs have to be the same.
bool close(const std::string& type, const Bound& bound, uint64_t got, uint64_t want) {
  if (got == want) return true;
  double g = number(type, got), w = number(type, want);
  if (!std::isfinite(w) || !std::isfinite(g)) return false;
  return std::fabs(g - w) <= 2 * std::max(bound.relative * std::fabs(w), bound.absolute);
}

TEST_P(ScalarVectors, Approximate) {
  const hw::Group& g = hw::group("approx");
  size_t forms = 0;
  for (const hw::Json& form : g.cases()) {
    const std::string text = form.at("ptx");
    std::string type = text.substr(0, text.find(' '));
    type = type.substr(type.rfind('.') + 1);
    const bool packed = type.ends_with("x2");
    const Bound* bound = std::find_if(std::begin(kBounds), std::end(kBounds),
                                      [&](const Bound& b) { return text.starts_with(b.prefix); });
    ASSERT_NE(bound, std::end(kBounds)) << text;
    size_t wrong = 0, different = 0, total = 0;
    std::string example;
    std::string error = run_form(g, form, level(), [&](size_t i, uint64_t got, uint64_t want) {
      ++total;
      different += got != want;
      const uint64_t part = packed ? 0xffff : ~uint64_t{0};
      bool ok = close(type, *bound, got & part, want & part);
      if (packed) ok = ok && close(type, *bound, got >> 16, want >> 16);
      if (!ok && wrong++ < 4)
        example += fmt::format("\n    in{} got {:#x} want {:#x}", inputs_of(g, form, i), got, want);
    });
    EXPECT_EQ(error, "") << text;
    EXPECT_EQ(wrong, 0u) << text << " of " << total << example;
    RecordProperty(replace_all(text.substr(0, text.find(' ')), ".", "_"),
                   fmt::format("{} of {} differ from the card", different, total));
    ++forms;
  }
  EXPECT_EQ(forms, 30u);
}

INSTANTIATE_TEST_SUITE_P(Level, ScalarVectors, ::testing::Range(0, 3));

}  // namespace
}  // namespace ptxbench::emu
