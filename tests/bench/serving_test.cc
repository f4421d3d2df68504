// Serving attention and the gated delta rule: the oracles against second formulations, inputs that
// are valid, faults that fail.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>

#include "bench/op/index_inputs.h"
#include "judge_models.h"

namespace ptxbench::bench {
namespace {

constexpr Seed kSeed = {41, 42};

struct Outputs {
  std::vector<double> first, second;
};

struct Made {
  Task task;
  AxisValues axes;
  std::vector<Tensor> inputs;
  Problem problem() const { return {task.definition, axes, inputs}; }
};

Made make(const std::string& name, const char* workload, Distribution distribution) {
  Made made{load_task(name), {}, {}};
  const Workload* found = made.task.find_workload(workload);
  made.axes = resolve_axes(made.task.definition, found, {}).take();
  made.inputs = operation_of(made.task.definition)
                    .take()
                    ->inputs(made.task.definition, made.axes, kSeed, kModelThreads, distribution)
                    .take();
  return made;
}

Outputs oracle(const Made& made) {
  Outputs out;
  const auto done = operation_of(made.task.definition)
                        .take()
                        ->reference(made.problem(), kModelThreads, [&](const ReferenceBlock& b) {
                          auto& to = b.output == 0 ? out.first : out.second;
                          to.insert(to.end(), b.values.begin(), b.values.end());
                        });
  EXPECT_TRUE(done.ok()) << (done.ok() ? "" : done.error().to_string());
  return out;
}

bool passes(const Made& made, const Outputs& got) {
  std::vector<Tensor> tensors = make_outputs(made.task.definition, made.axes, 0).take();
  for (size_t t = 0; t < 2; ++t) {
    const auto& values = t == 0 ? got.first : got.second;
    const size_t element = numeric::dtype_size(tensors[t].type);
    for (size_t i = 0; i < values.size(); ++i)
      numeric::store_element(tensors[t].type, values[i], tensors[t].bytes.data() + i * element);
  }
  return deciding_output(judge_values(made.task, made.problem(), tensors)).passed;
}

// ---- attention ----

struct AttentionFault {
  const char* name = "";
  bool whole_last_page = false, no_offset = false, natural_lse = false, no_scale = false,
       pages_in_order = false, heads_interleaved = false, last_key_dropped = false;
};

double number(const Tensor& t, int64_t i) {
  const size_t element = numeric::dtype_size(t.type);
  return numeric::load_element(t.type, t.bytes.data() + static_cast<size_t>(i) * element);
}

// Query by query and key by key through the page table, with a running maximum.
Outputs attend_token_by_token(const Made& m, const AttentionFault& f) {
  const Problem p = m.problem();
  const bool latent = p.input("ckv_cache") != nullptr;
  const bool paged = p.input("kv_indices") != nullptr;
  const Tensor& q = latent ? *p.input("q_nope") : *p.input("q");
  const Tensor& k = latent ? *p.input("ckv_cache") : paged ? *p.input("k_cache") : *p.input("k");
  const Tensor& v = latent ? k : paged ? *p.input("v_cache") : *p.input("v");
  const int64_t page = paged ? k.shape[1] : 1, heads = q.shape[1];
  const int64_t kv_heads = latent ? 1 : k.shape[k.shape.size() - 2];
  const int64_t d = q.shape[2], d_v = v.shape.back();
  const std::vector<int64_t> kv = indices_of(*p.input("kv_indptr"));
  const double scale = f.no_scale ? 1 : number(*p.input("sm_scale"), 0);
  Outputs out;
  out.first.resize(static_cast<size_t>(q.shape[0] * heads * d_v));
  out.second.resize(static_cast<size_t>(q.shape[0] * heads));
  for (size_t s = 0; s + 1 < kv.size(); ++s) {
    const auto at = [&](size_t i) {
      return p.input("qo_indptr") ? static_cast<int64_t>(number(*p.input("qo_indptr"), int64_t(i)))
                                  : static_cast<int64_t>(i);
    };
    std::vector<int64_t> rows;
    for (int64_t i = kv[s]; i < kv[s + 1]; ++i) {
      const int64_t first = page * (paged && !f.pages_in_order
                                        ? static_cast<int64_t>(number(*p.input("kv_indices"), i))
                                        : i);
      const bool cut = i + 1 == kv[s + 1] && p.input("kv_last_page_len") && !f.whole_last_page;
      const int64_t count =
          cut ? static_cast<int64_t>(number(*p.input("kv_last_page_len"), int64_t(s))) : page;
      for (int64_t r = first; r < first + count; ++r) rows.push_back(r);
    }
    if (f.last_key_dropped && rows.size() > 1) rows.pop_back();
    const int64_t queries = at(s + 1) - at(s), keys = static_cast<int64_t>(rows.size());
    for (int64_t i = 0; i < queries; ++i)
      for (int64_t head = 0; head < heads; ++head) {
        const int64_t token = at(s) + i;
        const int64_t of_kv = f.heads_interleaved ? head % kv_heads : head / (heads / kv_heads);
        const int64_t seen =
            std::clamp<int64_t>(i + 1 + (f.no_offset ? 0 : keys - queries), 0, keys);
        long double top = -INFINITY, sum = 0;
        std::vector<long double> o(static_cast<size_t>(d_v), 0);
        for (int64_t j = 0; j < seen; ++j) {
          const int64_t row = rows[static_cast<size_t>(j)];
          long double score = 0;
          for (int64_t c = 0; c < d; ++c)
            score += number(q, (token * heads + head) * d + c) *
                     number(k, (row * kv_heads + of_kv) * d + c);
          for (int64_t c = 0; latent && c < p.input("q_pe")->shape[2]; ++c)
            score +=
                number(*p.input("q_pe"), (token * heads + head) * p.input("q_pe")->shape[2] + c) *
                number(*p.input("kpe_cache"), row * p.input("q_pe")->shape[2] + c);
          score *= scale;
          const long double now = std::max(top, score), keep = std::exp(top - now),
                            e = std::exp(score - now);
          sum = sum * keep + e;
          for (int64_t c = 0; c < d_v; ++c)
            o[static_cast<size_t>(c)] = o[static_cast<size_t>(c)] * keep +
                                        e * number(v, (row * kv_heads + of_kv) * d_v + c);
          top = now;
        }
        const size_t to = static_cast<size_t>(token * heads + head);
        out.second[to] =
            static_cast<double>((top + std::log(sum)) / (f.natural_lse ? 1.0L : std::log(2.0L)));
        for (int64_t c = 0; c < d_v; ++c)
          out.first[to * static_cast<size_t>(d_v) + static_cast<size_t>(c)] =
              seen > 0 ? static_cast<double>(o[static_cast<size_t>(c)] / sum) : 0;
      }
  }
  return out;
}

void expect_near(const Outputs& a, const Outputs& b, const std::string& what) {
  ASSERT_EQ(a.first.size(), b.first.size()) << what;
  ASSERT_EQ(a.second.size(), b.second.size()) << what;
  for (size_t i = 0; i < a.first.size(); ++i)
    ASSERT_NEAR(a.first[i], b.first[i], 1e-9) << what << " " << i;
  for (size_t i = 0; i < a.second.size(); ++i)
    ASSERT_NEAR(a.second[i], b.second[i], 1e-9) << what << " " << i;
}

const char* const kServing[] = {
    "gqa_paged_decode_h5_kv1_d128_ps1",         "gqa_paged_decode_h20_kv4_d128_ps64",
    "gqa_paged_prefill_causal_h5_kv1_d128_ps1", "gqa_paged_prefill_causal_h16_kv2_d128_ps64",
    "gqa_ragged_prefill_causal_h8_kv1_d256",    "mla_paged_decode_h16_ckv512_kpe64_ps1",
    "mla_ragged_prefill_causal_h16_qk192_vo128"};

TEST(ServingAttention, OracleIsAttentionTokenByToken) {
  for (const char* name : kServing) {
    const Made made = make(name, "smoke-1", Distribution::spiky);
    expect_near(oracle(made), attend_token_by_token(made, {}), name);
  }
}

TEST(ServingAttention, SequencesOfDifferentLengthsAgreeToo) {
  const Made made = make("gqa_paged_decode_h20_kv4_d128_ps64", "smoke", Distribution::normal);
  const Outputs right = attend_token_by_token(made, {});
  expect_near(oracle(made), right, "smoke");
  EXPECT_TRUE(passes(made, right));
}

TEST(ServingAttention, FaultsFail) {
  const Made paged =
      make("gqa_paged_prefill_causal_h16_kv2_d128_ps64", "smoke-1", Distribution::mixed);
  EXPECT_TRUE(passes(paged, attend_token_by_token(paged, {})));
  const AttentionFault faults[] = {
      {.name = "the last page taken whole", .whole_last_page = true},
      {.name = "queries aligned with the first key", .no_offset = true},
      {.name = "LSE in base e", .natural_lse = true},
      {.name = "no scale", .no_scale = true},
      {.name = "pages in order", .pages_in_order = true},
      {.name = "heads interleaved", .heads_interleaved = true},
      {.name = "last key dropped", .last_key_dropped = true}};
  for (const AttentionFault& fault : faults)
    EXPECT_FALSE(passes(paged, attend_token_by_token(paged, fault))) << fault.name;
}

TEST(ServingAttention, PagesAndOffsetsAreValid) {
  for (const char* name : kServing)
    for (const char* workload : {"smoke", "smoke-1"}) {
      const Made made = make(name, workload, Distribution::mixed);
      const Problem p = made.problem();
      const std::vector<int64_t> kv = indices_of(*p.input("kv_indptr"));
      EXPECT_EQ(kv.front(), 0);
      EXPECT_TRUE(std::is_sorted(kv.begin(), kv.end()));
      if (const Tensor* pages = p.input("kv_indices")) {
        const std::vector<int64_t> all = indices_of(*pages);
        EXPECT_EQ(std::set<int64_t>(all.begin(), all.end()).size(), all.size()) << name;
        EXPECT_FALSE(std::is_sorted(all.begin(), all.end()));
        EXPECT_EQ(kv.back(), static_cast<int64_t>(all.size()));
        for (int64_t page : all) EXPECT_LT(page, axis_value(made.axes, "num_pages"));
      }
      if (kv.size() > 4) {
        EXPECT_NE(kv[1] - kv[0], kv[2] - kv[1]) << "lengths must be ragged";
      }
    }
}

TEST(ServingAttention, PageOutsideTheCacheIsAnError) {
  Made made = make("gqa_paged_decode_h5_kv1_d128_ps1", "smoke-1", Distribution::normal);
  const int32_t page = static_cast<int32_t>(axis_value(made.axes, "num_pages"));
  std::memcpy(made.inputs[4].bytes.data(), &page, 4);
  const auto done = operation_of(made.task.definition)
                        .take()
                        ->reference(made.problem(), 1, [](const ReferenceBlock&) {});
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().kind, "bad-task");
}

// ---- gated delta rule ----

struct DeltaFault {
  const char* name = "";
  bool no_decay = false, beta_one = false, state_forgotten = false, no_scale = false,
       old_state_read = false, heads_interleaved = false, transposed = false;
};

// As the published reference has it: what the key recalls is taken out of the state, and a mixture
// of it and the value put in.
Outputs delta_by_removal(const Made& m, const DeltaFault& f) {
  const Problem p = m.problem();
  const Tensor &q = *p.input("q"), &k = *p.input("k"), &v = *p.input("v");
  const bool prefill = p.input("cu_seqlens") != nullptr, pool = p.input("initial_state") != nullptr;
  const Tensor& states = pool ? *p.input("initial_state") : *p.input("state");
  const int64_t d = q.shape.back(), hq = q.shape[q.shape.size() - 2],
                hv = v.shape[v.shape.size() - 2];
  Outputs out;
  out.first.resize(v.bytes.size() / 2);
  out.second = to_doubles(states);
  std::vector<int64_t> offsets;
  if (prefill) offsets = indices_of(*p.input("cu_seqlens"));
  for (int64_t i = 0; !prefill && i <= q.shape[0]; ++i) offsets.push_back(i * q.shape[1]);
  const double scale = f.no_scale ? 1 : number(*p.input("scale"), 0);
  for (size_t s = 0; s + 1 < offsets.size(); ++s)
    for (int64_t h = 0; h < hv; ++h) {
      const int64_t state =
          pool ? static_cast<int64_t>(number(*p.input("initial_state_indices"), int64_t(s)))
               : static_cast<int64_t>(s);
      std::vector<long double> S(static_cast<size_t>(d * d));
      for (int64_t i = 0; i < d * d; ++i)
        S[static_cast<size_t>(i)] =
            f.transposed ? number(states, (state * hv + h) * d * d + i % d * d + i / d)
                         : number(states, (state * hv + h) * d * d + i);
      const std::vector<long double> begin = S;
      for (int64_t t = offsets[s]; t < offsets[s + 1]; ++t) {
        if (f.state_forgotten && t > offsets[s]) S = begin;
        const int64_t of_q = f.heads_interleaved ? h % hq : h / (hv / hq);
        const long double x = number(*p.input("a"), t * hv + h) + number(*p.input("dt_bias"), h);
        const long double g = f.no_decay
                                  ? 1
                                  : std::exp(-std::exp((long double)number(*p.input("A_log"), h)) *
                                             std::log(1 + std::exp(x)));
        const long double beta =
            f.beta_one ? 1 : 1 / (1 + std::exp(-(long double)number(*p.input("b"), t * hv + h)));
        const std::vector<long double> was = S;
        for (int64_t r = 0; r < d; ++r) {
          long double* row = &S[static_cast<size_t>(r * d)];
          long double old_v = 0, result = 0;
          for (int64_t c = 0; c < d; ++c) {
            row[c] *= g;
            old_v += row[c] * number(k, (t * hq + of_q) * d + c);
          }
          const long double new_v = beta * number(v, (t * hv + h) * d + r) + (1 - beta) * old_v;
          for (int64_t c = 0; c < d; ++c) {
            const long double key = number(k, (t * hq + of_q) * d + c);
            row[c] = row[c] - key * old_v + key * new_v;
            result += (f.old_state_read ? was[static_cast<size_t>(r * d + c)] : row[c]) *
                      number(q, (t * hq + of_q) * d + c);
          }
          out.first[static_cast<size_t>((t * hv + h) * d + r)] =
              static_cast<double>(scale * result);
        }
      }
      for (int64_t i = 0; !pool && i < d * d; ++i)
        out.second[static_cast<size_t>((state * hv + h) * d * d + i)] =
            static_cast<double>(S[static_cast<size_t>(i)]);
    }
  return out;
}

TEST(GatedDeltaRule, OracleIsTheRuleByRemovalAndUpdate) {
  for (const char* name : {"gdn_decode_qk4_v8_d128_k_last", "gdn_mtp_qk4_v8_d128_k_last",
                           "gdn_prefill_qk4_v8_d128_k_last"}) {
    const Made made = make(name, "smoke", Distribution::spiky);
    const Outputs right = delta_by_removal(made, {});
    expect_near(oracle(made), right, name);
    EXPECT_TRUE(passes(made, right)) << name;
  }
}

TEST(GatedDeltaRule, FaultsFail) {
  const Made made = make("gdn_prefill_qk4_v8_d128_k_last", "smoke", Distribution::mixed);
  const DeltaFault faults[] = {{.name = "no decay", .no_decay = true},
                               {.name = "beta one", .beta_one = true},
                               {.name = "state not handed on", .state_forgotten = true},
                               {.name = "no scale", .no_scale = true},
                               {.name = "state read before its update", .old_state_read = true},
                               {.name = "heads interleaved", .heads_interleaved = true},
                               {.name = "state transposed", .transposed = true}};
  for (const DeltaFault& fault : faults)
    EXPECT_FALSE(passes(made, delta_by_removal(made, fault))) << fault.name;
}

}  // namespace
}  // namespace ptxbench::bench
