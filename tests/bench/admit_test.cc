// Admission accepts a good ruler and finds out bad ones; every task of the repository is admitted.
#include "bench/admit/admit.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/temp_dir.h"
#include "bench/admission.h"
#include "bench/admit/gemm_models.h"

namespace ptxbench::bench::admit {
namespace {

TaskSuite suite() {
  return TaskSuite::open(std::filesystem::path(PTXBENCH_SOURCE_DIR) / "tasks").take();
}

// A task of two sizes that take milliseconds.
AdmitRequest small_request() {
  AdmitRequest request;
  request.task = suite().load("gemm_n128_k2048").take();
  request.task.workloads = {{"small", {{"M", 70}, {"N", 48}, {"K", 512}}, {}, false, 1},
                            {"published", {{"M", 200}, {"N", 96}, {"K", 640}}, {}, true, 0}};
  request.seed = {3, 4};
  request.date = "2000-01-01";
  request.threads = 2;
  return request;
}

TEST(Admission, EveryTaskIsAdmittedAsItStands) {
  const TaskSuite tasks = suite();
  size_t tried = 0;
  for (const std::string& name : tasks.names()) {
    auto task = tasks.load(name);
    ASSERT_TRUE(task.ok()) << task.error().to_string();
    const auto battery = battery_of(task->definition);
    // No battery yet, or an operation that only its author knows: the list says so.
    if (!battery.ok() || battery->honest.empty()) {
      EXPECT_NE(task->admission, AdmissionState::admitted) << name;
      continue;
    }
    ++tried;
    EXPECT_EQ(task->admission, AdmissionState::admitted)
        << name << " has changed: ptxbench tasks admit " << name << " --write";
    if (errors_by_length(task->file_calibration)) {
      EXPECT_GT(task->calibration.honest.size(), task->file_calibration.honest.size()) << name;
    }
  }
  EXPECT_GE(tried, 31u);  // GEMM and attention
}

TEST(Admission, StoredReportsCoverEverySizeAndCheat) {
  const TaskSuite tasks = suite();
  for (const std::string& name : tasks.names()) {
    const Task task = tasks.load(name).take();
    const auto found = battery_of(task.definition);
    if (!found.ok() || found->honest.empty()) continue;
    const Battery& battery = *found;
    const Json report =
        parse_json(read_file(task.folder / "admission.json").take(), "admission.json").take();
    const std::vector<Form> forms = forms_of(task, battery, false);
    EXPECT_EQ(report["forms"].size(), forms.size()) << name;
    EXPECT_EQ(report["distributions"].size(), static_cast<size_t>(kDistributions)) << name;
    EXPECT_GE(report["honest"]["implementations"].size(), 2u) << name;
    for (const Json& honest : report["honest"]["implementations"]) {
      EXPECT_EQ(honest["runs"], forms.size() * kDistributions) << name;
      EXPECT_EQ(honest["accepted"], honest["runs"]) << name;
    }
    EXPECT_EQ(report["battery"].size(), battery.cheats.size()) << name;
    size_t shown = 0;
    for (const Json& distribution : report["distributions"])
      shown += distribution["battery"].get<bool>();
    EXPECT_GE(shown, static_cast<size_t>(kDistributions) - 2) << name;
    for (size_t i = 0; i < battery.cheats.size(); ++i) {
      const Json& cheat = report["battery"][i];
      EXPECT_EQ(cheat["name"], battery.cheats[i].name) << name;
      EXPECT_EQ(cheat["runs"], forms.size() * (shown - battery.cheats[i].hidden_on.size()))
          << name << " " << cheat["name"];
      EXPECT_EQ(cheat["accepted"], 0) << name << " " << cheat["name"];
      EXPECT_LT(cheat["as_right"], cheat["runs"]) << name << " " << cheat["name"];
    }
    EXPECT_FALSE(report["provenance"]["sample"].get<bool>()) << name;
    EXPECT_EQ(report["provenance"]["seed"].get<std::string>().size(), 32u) << name;
  }
}

TEST(Admission, AGoodRulerIsAdmitted) {
  auto admission = admit(small_request());
  ASSERT_TRUE(admission.ok()) << admission.error().to_string();
  EXPECT_TRUE(admission->admitted) << (admission->failures.empty() ? "" : admission->failures[0]);
  ASSERT_EQ(admission->forms.size(), 2u);
  EXPECT_EQ(axis_value(admission->forms[1].axes, "M"), 72);  // 64 + 200 % 64
  EXPECT_EQ(axis_value(admission->forms[1].axes, "N"), 64);
  EXPECT_EQ(axis_value(admission->forms[1].axes, "K"), 640);
  for (const EntryResult& e : admission->battery) {
    EXPECT_EQ(e.runs, 12) << e.name;
    EXPECT_EQ(e.accepted, 0) << e.name;
    EXPECT_GT(e.nearest, 1) << e.name;
  }
  for (const EntryResult& e : admission->honest) {
    EXPECT_EQ(e.accepted, 16) << e.name;
    EXPECT_LT(e.nearest, 1) << e.name;
  }
  EXPECT_EQ(admission->sensitivity.slices, 2 * (512 / 64) + 2 * (640 / 64));
}

TEST(Admission, ALooseRulerAcceptsCheatsAndInputsThatDoNotMatter) {
  AdmitRequest request = small_request();
  request.task.file_calibration.rel_frobenius_factor = 1e6;
  request.task.file_calibration.tile_rel_frobenius_factor = 1e6;
  request.task.file_calibration.misround = request.task.file_calibration.tile_misround = 1;
  const Admission admission = admit(request).take();
  EXPECT_FALSE(admission.admitted);
  std::string text;
  for (const std::string& failure : admission.failures) text += failure + "\n";
  for (const char* words : {"zeros is accepted at small on mixed inputs", "fp16-accumulation is",
                            "k-tail-8 is accepted", "moves the result by"})
    EXPECT_NE(text.find(words), std::string::npos) << words;
  for (const char* never : {"nothing-written is", "nan is"})
    EXPECT_EQ(text.find(never), std::string::npos) << never;
}

// The same for attention, on one small size: what the command does in full for each task.
AdmitRequest small_attention(const char* name) {
  AdmitRequest request;
  request.task = suite().load(name).take();
  request.task.workloads = {{"small", {{"B", 1}, {"H", 2}, {"S", 100}}, {}, false, 1}};
  request.seed = {5, 6};
  request.date = "2000-01-01";
  request.threads = 2;
  request.sample = true;
  return request;
}

TEST(Admission, AttentionIsAdmitted) {
  for (const char* name : {"mha_with_lse_d64_causal", "mha_bwd_d64"}) {
    const Admission admission = admit(small_attention(name)).take();
    EXPECT_TRUE(admission.admitted) << (admission.failures.empty() ? "" : admission.failures[0]);
    EXPECT_GE(admission.honest.size(), 3u);
    EXPECT_GE(admission.battery.size(), 50u);
    EXPECT_GT(admission.sensitivity.slices, 10);
  }
}

TEST(Admission, ALooseRulerOfAttentionIsFoundOut) {
  AdmitRequest request = small_attention("mha_with_lse_d64_causal");
  request.task.file_calibration.outputs = {{"O", {40, 60}}, {"LSE", {1e5, 1e5}}};
  const Admission admission = admit(request).take();
  EXPECT_FALSE(admission.admitted);
  std::string text;
  for (const std::string& failure : admission.failures) text += failure + "\n";
  for (const char* words : {"e4m3-p-scaled is accepted", "fp16-scores is accepted"})
    EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << text;
  EXPECT_EQ(text.find("zeros is"), std::string::npos);
}

TEST(Admission, HonestAttentionsDiffer) {
  const Task task = small_attention("mha_with_lse_d64").task;
  const Case c =
      make_case(task.definition, resolve_axes(task.definition, &task.workloads[0], {}).take(),
                {7, 8}, Distribution::normal)
          .take();
  const Battery battery = battery_of(task.definition).take();
  const auto one = battery.honest[0].compute(c).take(), two = battery.honest[1].compute(c).take(),
             three = battery.honest[2].compute(c).take();
  EXPECT_NE(one[0].bytes, two[0].bytes);
  EXPECT_NE(two[0].bytes, three[0].bytes);
  EXPECT_NE(one[1].bytes, two[1].bytes);
}

TEST(Admission, AStrictRulerRejectsHonestWork) {
  AdmitRequest request = small_request();
  request.task.file_calibration.rel_frobenius_factor = 0.5;
  const Admission admission = admit(request).take();
  EXPECT_FALSE(admission.admitted);
  EXPECT_LE(admission.honest[0].accepted, 4);  // results that are exact suit any ruler
  ASSERT_FALSE(admission.failures.empty());
  EXPECT_NE(admission.failures[0].find("wgmma-one-chain is rejected"), std::string::npos);
}

TEST(Admission, ASliceThatChangesNothingIsFound) {
  const Task task = small_request().task;
  const AxisValues axes = {{"M", 48}, {"N", 48}, {"K", 320}};
  const GemmCase g =
      gemm_case(make_case(task.definition, axes, {1, 1}, Distribution::normal).take());
  GemmCase other = gemm_case(make_case(task.definition, axes, {2, 1}, Distribution::normal).take());
  EXPECT_GT(gemm_sensitivity(g, other, 0.005).take().least, kRequiredMove);
  for (int64_t row = 0; row < 48; ++row)
    std::copy_n(g.b.begin() + row * 320 + 128, 64, other.b.begin() + row * 320 + 128);
  const Sensitivity found = gemm_sensitivity(g, other, 0.005).take();
  EXPECT_EQ(found.least, 0);
  EXPECT_EQ(found.input, "B");
  EXPECT_EQ(found.slice, "[:, 128..191]");
}

// The two tensor-core orders differ in their roundings, and neither is the fp64 result.
TEST(Admission, HonestImplementationsDiffer) {
  const Task task = small_request().task;
  const GemmCase g = gemm_case(make_case(task.definition, {{"M", 128}, {"N", 128}, {"K", 4096}},
                                         {5, 6}, Distribution::normal)
                                   .take());
  const Words one = honest_gemms()[0].compute(g), two = honest_gemms()[1].compute(g),
              chain = honest_gemms()[2].compute(g);
  EXPECT_NE(one, two);
  EXPECT_NE(one, chain);
  EXPECT_NE(two, chain);
}

TEST(Admission, ForeignOperationsAreRefused) {
  AdmitRequest request = small_request();
  request.task.definition.op_type = "sort";
  auto admission = admit(request);
  ASSERT_FALSE(admission.ok());
  EXPECT_EQ(admission.error().kind, "unsupported");
}

class StoredAdmission : public ::testing::Test {
 protected:
  StoredAdmission() : folder_(TempDir::create("admission").take()) {
    std::filesystem::copy(suite().folder() / "gemm_n128_k2048", path(),
                          std::filesystem::copy_options::recursive);
  }
  std::filesystem::path path() const { return folder_.path() / "gemm_n128_k2048"; }
  Result<Task> load() { return TaskSuite::open(folder_.path()).take().load("gemm_n128_k2048"); }
  void edit(const char* file, const std::string& from, const std::string& to) {
    std::string text = read_file(path() / file).take();
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    ASSERT_TRUE(write_file_atomically(path() / file, std::string_view(text)).ok());
  }
  TempDir folder_;
};

TEST_F(StoredAdmission, HoldsForTheFilesThatWereTried) {
  EXPECT_EQ(load()->admission, AdmissionState::admitted);
  edit("workloads.jsonl", "\"M\": 70", "\"M\": 71");
  EXPECT_EQ(load()->admission, AdmissionState::changed);
  edit("workloads.jsonl", "\"M\": 71", "\"M\": 70");
  edit("calibration.json", "\"misround\": 0.02", "\"misround\": 0.5");
  const Task loose = load().take();
  EXPECT_EQ(loose.admission, AdmissionState::changed);
  EXPECT_EQ(loose.calibration.honest.size(), loose.file_calibration.honest.size());
  std::filesystem::remove(path() / "admission.json");
  EXPECT_EQ(load()->admission, AdmissionState::none);
}

TEST_F(StoredAdmission, RejectedTasksSaySo) {
  edit("admission.json", "\"admitted\": true", "\"admitted\": false");
  EXPECT_EQ(load()->admission, AdmissionState::rejected);
}

TEST_F(StoredAdmission, BrokenReportsAreErrors) {
  edit("admission.json", "\"version\": 1", "\"version\": 99");
  auto task = load();
  ASSERT_FALSE(task.ok());
  EXPECT_EQ(task.error().kind, "bad-task");
  EXPECT_NE(task.error().message.find("admission.json"), std::string::npos);
  ASSERT_TRUE(write_file_atomically(path() / "admission.json", std::string_view("{")).ok());
  EXPECT_FALSE(load().ok());
}

}  // namespace
}  // namespace ptxbench::bench::admit
