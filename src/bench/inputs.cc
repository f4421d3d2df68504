// Why rows are mixed: a candidate that sniffs magnitudes to pick a cheaper path gains nothing, and
// every input set holds rows on which fp16 accumulation overflows, e4m3 loses small values, or a
// dropped tail of K changes the result by much.
#include "bench/inputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstring>
#include <random>
#include <thread>

#include "bench/safetensors.h"
#include "numeric/float_formats.h"

namespace ptxbench::bench {
namespace {

using numeric::Random;

constexpr float kNominalShare = 0.7f, kSpikyShare = 0.2f;  // the rest is adversarial
constexpr float kSpikeProbability = 0.001f, kSpikeSigma = 10;

// Streams of one input: values, spikes, choices.
struct RowSource {
  Random values, spikes, choices;
  RowSource(const Seed& seed, size_t input)
      : values(seed, 16 * input + 1), spikes(seed, 16 * input + 2), choices(seed, 16 * input + 3) {}
};

void add_spikes(const RowSource& source, uint64_t first, std::span<float> row) {
  for (size_t i = 0; i < row.size(); ++i)
    if (source.spikes.uniform(2 * (first + i)) < kSpikeProbability)
      row[i] += kSpikeSigma * source.spikes.normal(2 * (first + i) + 1);
}

// Alters a row of N(0,1). `pick`: random bits.
void shape_row(Distribution kind, const RowSource& source, uint64_t first, uint64_t pick,
               std::span<float> row) {
  switch (kind) {
    case Distribution::mixed:
    case Distribution::normal:
      return;
    case Distribution::spiky:
      return add_spikes(source, first, row);
    case Distribution::scaled:
      // Far from 1, mostly below: e4m3 loses such values. Not far above: where large terms cancel,
      // honest kernels would miss the published absolute tolerance.
      for (float& x : row) x = std::ldexp(x, static_cast<int>(pick % 11) - 8);
      return;
    case Distribution::integers:
      for (float& x : row) x = std::nearbyint(2 * x);
      return;
    case Distribution::one_hot:  // copies a column of the other input
      for (float& x : row) x = 0;
      row[pick % row.size()] = 1;
      return;
    case Distribution::one_sign:
      for (float& x : row) x = std::abs(x);
      return;
    case Distribution::tail_heavy:
      for (size_t i = row.size() - std::min<size_t>(row.size(), 16); i < row.size(); ++i)
        row[i] *= 8;
      return;
  }
}

Distribution draw_kind(const RowSource& source, uint64_t row_index) {
  const float choice = source.choices.uniform(4 * row_index);
  if (choice < kNominalShare) return Distribution::normal;
  if (choice < kNominalShare + kSpikyShare) return Distribution::spiky;
  constexpr Distribution kAdversarial[] = {Distribution::scaled, Distribution::integers,
                                           Distribution::one_hot, Distribution::one_sign,
                                           Distribution::tail_heavy};
  return kAdversarial[source.choices.below(2 * row_index + 1, 5)];
}

void make_row(const RowSource& source, uint64_t row_index, Distribution distribution,
              std::span<float> row) {
  const uint64_t first = row_index * row.size();
  source.values.fill_normal(first, row);
  if (distribution == Distribution::mixed) distribution = draw_kind(source, row_index);
  shape_row(distribution, source, first, source.choices.word(4 * row_index + 1), row);
}

bool is_supported(numeric::DType type) {
  switch (type) {
    case numeric::DType::float64:
    case numeric::DType::uint64:
    case numeric::DType::uint32:
    case numeric::DType::uint16:
    case numeric::DType::uint8:
      return false;
    default:
      return true;
  }
}

Result<Tensor> empty_tensor(const TensorSpec& spec, const AxisValues& axes) {
  Tensor tensor;
  tensor.spec = spec;
  const auto type = numeric::dtype_from_name(spec.dtype);
  if (!type || !is_supported(*type))
    return Error{
        "unsupported",
        fmt::format("tensor {}: dtype {} is not supported (known: float32, float16, bfloat16, "
                    "float8_e4m3fn, float8_e5m2, int64, int32, int16, int8, bool)",
                    spec.name, spec.dtype)};
  tensor.type = *type;
  PB_ASSIGN_OR_RETURN(tensor.shape, resolve_shape(spec, axes));
  uint64_t elements = 1;
  for (int64_t size : tensor.shape) elements *= static_cast<uint64_t>(size);
  tensor.bytes.resize(elements * numeric::dtype_size(*type));
  return tensor;
}

void fill(Tensor& tensor, size_t input, const Seed& seed, int threads, Distribution distribution) {
  const RowSource source(seed, input);
  const uint64_t columns = static_cast<uint64_t>(tensor.shape.back());
  const uint64_t element = numeric::dtype_size(tensor.type);
  const uint64_t rows = tensor.bytes.size() / element / columns;
  auto work = [&](uint64_t begin, uint64_t end) {
    std::vector<float> row(columns);
    for (uint64_t r = begin; r < end; ++r) {
      make_row(source, r, distribution, row);
      numeric::store_elements(tensor.type, row, tensor.bytes.data() + r * columns * element);
    }
  };
  const uint64_t parts =
      rows * columns < (1u << 20) ? 1 : static_cast<uint64_t>(std::max(threads, 1));
  std::vector<std::thread> helpers;
  for (uint64_t t = 1; t < parts; ++t)
    helpers.emplace_back(work, rows * t / parts, rows * (t + 1) / parts);
  work(0, rows / parts);
  for (std::thread& helper : helpers) helper.join();
}

}  // namespace

const char* name(Distribution distribution) {
  constexpr const char* kNames[kDistributions] = {"mixed",    "normal",  "spiky",    "scaled",
                                                  "integers", "one-hot", "one-sign", "tail-heavy"};
  return kNames[static_cast<size_t>(distribution)];
}

Seed draw_seed() {
  std::random_device device;
  auto word = [&] { return uint64_t{device()} << 32 | device(); };
  return Seed{word(), word()};
}

std::string to_hex(const Seed& seed) { return fmt::format("{:016x}{:016x}", seed.high, seed.low); }

Result<Seed> parse_seed(const std::string& hex) {
  std::string digits = hex.substr(hex.compare(0, 2, "0x") == 0 ? 2 : 0);
  if (digits.empty() || digits.size() > 32 ||
      digits.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos)
    return Error{"usage", fmt::format("seed '{}' is not 1 to 32 hexadecimal digits", hex)};
  digits.insert(0, 32 - digits.size(), '0');
  return Seed{std::stoull(digits.substr(0, 16), nullptr, 16),
              std::stoull(digits.substr(16), nullptr, 16)};
}

namespace {

// Error "unsupported" where nobody says which integers are meant.
Result<void> fill_integers(Tensor& tensor, size_t input, const Seed& seed,
                           const InputSource& source) {
  const bool boolean = tensor.type == numeric::DType::boolean;
  if (!boolean && source.low == source.high)
    return Error{
        "unsupported",
        fmt::format("input {}: random {} needs a range ({{\"type\": \"random\", \"range\": "
                    "[low, high]}}) or a blob",
                    tensor.spec.name, tensor.spec.dtype)};
  const int64_t low = boolean ? 0 : source.low;
  const uint64_t count = boolean ? 2 : static_cast<uint64_t>(source.high - source.low);
  const Random random(seed, 16 * input + 1);
  const size_t element = numeric::dtype_size(tensor.type);
  for (size_t i = 0; i * element < tensor.bytes.size(); ++i) {
    const int64_t value = low + static_cast<int64_t>(random.below(i, count));
    std::memcpy(tensor.bytes.data() + i * element, &value, element);  // little endian
  }
  return {};
}

Error bad_source(const Tensor& tensor, const std::string& message) {
  return Error{"bad-task", fmt::format("input {}: {}", tensor.spec.name, message)};
}

Result<void> apply_source(const InputSource& source, Tensor& tensor) {
  if (source.kind == InputSource::Kind::random) return {};
  if (source.kind == InputSource::Kind::scalar) {
    if (!tensor.spec.scalar)
      return bad_source(tensor, "the workload gives a number for what is a tensor");
    numeric::store_element(tensor.type, source.value, tensor.bytes.data());
    return {};
  }
  if (tensor.spec.scalar)
    return bad_source(tensor, "the workload gives a blob for what is a number");
  PB_ASSIGN_OR_RETURN(SafeTensor blob, read_safetensor(source.path, source.tensor_key));
  if (blob.dtype != tensor.spec.dtype || blob.shape != tensor.shape)
    return bad_source(
        tensor,
        fmt::format("{} has {}[{}], the definition {}[{}]", source.path.string(), blob.dtype,
                    fmt::join(blob.shape, ","), tensor.spec.dtype, fmt::join(tensor.shape, ",")));
  tensor.bytes = std::move(blob.bytes);
  return {};
}

}  // namespace

Result<void> apply_sources(const InputSources& sources, std::vector<Tensor>& inputs) {
  for (Tensor& tensor : inputs) {
    const auto source = sources.find(tensor.spec.name);
    if (source != sources.end()) {
      PB_RETURN_IF_ERROR(apply_source(source->second, tensor));
    } else if (tensor.spec.scalar) {
      return bad_source(tensor, "is a number, and the workload gives none");
    }
  }
  return {};
}

Result<Tensor> make_input(const TensorSpec& spec, const AxisValues& axes, size_t index,
                          const Seed& seed, int threads, Distribution distribution) {
  PB_ASSIGN_OR_RETURN(Tensor tensor, empty_tensor(spec, axes));
  if (!numeric::is_floating(tensor.type)) {
    PB_RETURN_IF_ERROR(fill_integers(tensor, index, seed, {}));
    return tensor;
  }
  fill(tensor, index, seed, threads, distribution);
  return tensor;
}

Result<std::vector<Tensor>> make_inputs(const Definition& definition, const AxisValues& axes,
                                        const Seed& seed, int threads, Distribution distribution,
                                        const InputSources& sources) {
  std::vector<Tensor> tensors;
  for (const TensorSpec& spec : definition.inputs) {
    PB_ASSIGN_OR_RETURN(Tensor tensor, empty_tensor(spec, axes));
    const auto found = sources.find(spec.name);
    const InputSource source = found == sources.end() ? InputSource{} : found->second;
    if (!spec.scalar && source.kind == InputSource::Kind::random) {
      if (numeric::is_floating(tensor.type))
        fill(tensor, tensors.size(), seed, threads, distribution);
      else
        PB_RETURN_IF_ERROR(fill_integers(tensor, tensors.size(), seed, source));
    }
    tensors.push_back(std::move(tensor));
  }
  PB_RETURN_IF_ERROR(apply_sources(sources, tensors));
  return tensors;
}

Result<std::vector<Tensor>> make_outputs(const Definition& definition, const AxisValues& axes,
                                         uint16_t poison) {
  std::vector<Tensor> tensors;
  for (const TensorSpec& spec : definition.outputs) {
    PB_ASSIGN_OR_RETURN(Tensor tensor, empty_tensor(spec, axes));
    const uint64_t pattern = poison_bits(tensor.type, poison);
    const size_t element = numeric::dtype_size(tensor.type);
    for (size_t at = 0; at < tensor.bytes.size(); at += element)  // little endian
      std::memcpy(tensor.bytes.data() + at, &pattern, element);
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

uint64_t poison_bits(numeric::DType type, uint16_t poison) {
  constexpr uint64_t kE4m3Nan = 0xff, kE5m2Nan = 0xfd;  // conversions give 0x7f
  if (type == numeric::DType::float8_e4m3fn) return kE4m3Nan;
  if (type == numeric::DType::float8_e5m2) return kE5m2Nan;
  if (numeric::dtype_size(type) == 8) return uint64_t{poison} * 0x0001000100010001u;
  if (numeric::dtype_size(type) == 4) return uint64_t{poison} << 16 | poison;
  return poison;
}

uint16_t poison_pattern(const Seed& seed) {
  const uint64_t bits = Random(seed, 7).word(0);
  const uint16_t payload = static_cast<uint16_t>(1 + bits % 62);  // quiet bit clear, 1..62
  return static_cast<uint16_t>(0x7f80 | (bits >> 16 & 0x8000) | payload);
}

}  // namespace ptxbench::bench
