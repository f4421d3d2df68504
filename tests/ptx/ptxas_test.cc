// The verifier beside ptxas 13.0, on recorded cases (tests/ptx/ptxas, made by
// scripts/ptxas_cases.py) and, where there is a ptxas, on a sample of them again.
// docs/ptxas-comparison.md is what this file says about the differences.
#include <filesystem>
#include <set>

#include "ptx/generated_document.h"
#include "ptx/packed_file.h"
#include "ptx/ptx_test_util.h"
#include "ptx/verifier.h"

namespace ptxbench::ptx {
namespace {

struct Case {
  bool accepted = false;
  std::string kind, target, version, statement, message;  // of ptxas
  std::string ours;                                       // "" = accepted
};

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream bytes;
  bytes << in.rdbuf();
  return bytes.str();
}

std::string fill(std::string text, const std::string& key, const std::string& value) {
  size_t at = text.find(key);
  return at == std::string::npos ? text : text.replace(at, key.size(), value);
}

std::string our_verdict(const std::string& frame, const Case& c) {
  std::string text = fill(fill(frame, "{target}", c.target), "{version}", c.version);
  // .b128 needs PTX 8.3
  if (c.statement.find("%rq") == std::string::npos) text = fill(text, ".reg .b128 %rq<6>;", "");
  auto module = parse(fill(text, "{statement}", c.statement));
  if (!module.ok()) return module.error().message;
  auto verified = verify(*module);
  return verified.ok() ? "" : verified.error().message;
}

std::vector<Case> read_cases(const std::string& file) {
  std::vector<Case> list;
  const std::string folder = PTXBENCH_SOURCE_DIR "/tests/ptx/ptxas/";
  std::string frame = read_file(folder + "frame.ptx");
  std::stringstream lines(read_packed("ptxas/" + file));
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> parts(1);
    for (char ch : line) {
      if (ch == '\t') {
        parts.emplace_back();
      } else {
        parts.back().push_back(ch);
      }
    }
    if (parts.size() != 6) continue;
    Case c{parts[0] == "+", parts[1], parts[2], parts[3], parts[4], parts[5], ""};
    c.ours = our_verdict(frame, c);
    list.push_back(std::move(c));
  }
  return list;
}

// The cases with which the table was improved, and cases of another seed, drawn afterwards and
// never looked at: how well it does on what it has not seen.
const std::vector<Case>& cases() {
  static const auto* all = new std::vector<Case>(read_cases("cases.tsv.zst"));
  return *all;
}
const std::vector<Case>& fresh_cases() {
  static const auto* all = new std::vector<Case>(read_cases("fresh.tsv.zst"));
  return *all;
}

bool agree(const Case& c) { return c.accepted == c.ours.empty(); }

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// Why we and ptxas differ, by what either says.
std::string_view reason(const Case& c) {
  if (c.accepted) {
    if (contains(c.ours, "is no modifier of") || contains(c.ours, "is no type of") ||
        contains(c.ours, "does not go with") || contains(c.ours, "exclude each other") ||
        contains(c.ours, "no state space of"))
      return "ptxas overlooks a word that the ISA does not give the instruction";
    if (contains(c.ours, "is given twice")) return "ptxas overlooks a repeated word";
    if (contains(c.ours, "do not fit") || contains(c.ours, "element"))
      return "ptxas takes operands that the ISA does not describe (brackets or braces missing or "
             "superfluous, one too few)";
    if (contains(c.ours, "needs target") || contains(c.ours, "needs PTX"))
      return "we ask for a newer target or version, as the ISA does";
    return "other cases in which we are stricter";
  }
  if (contains(c.message, "status")) return "ptxas crashes";
  if (contains(c.message, "Unknown modifier") || contains(c.message, "Parsing error") ||
      c.kind == "other order")
    return "ptxas wants some words in front of others; for us modifiers are a set";
  if (contains(c.message, "requires") || contains(c.message, "not supported"))
    return "a target or version that the table does not know yet";
  if (contains(c.message, "Arguments mismatch"))
    return "ptxas wants another register type than the table says";
  return "other cases in which we are looser";
}

struct Count {
  int both_accept = 0, both_refuse = 0, we_accept = 0, we_refuse = 0;
  void add(const Case& c) {
    bool ours = c.ours.empty();
    ++(c.accepted ? (ours ? both_accept : we_refuse) : (ours ? we_accept : both_refuse));
  }
  std::string row(const std::string& name) const {
    int all = both_accept + both_refuse + we_accept + we_refuse;
    return fmt::format("| {} | {} | {} | {} | {} | {} | {:.2f} % |\n", name, all, both_accept,
                       both_refuse, we_accept, we_refuse,
                       100.0 * (both_accept + both_refuse) / all);
  }
};

std::string document() {
  std::map<std::string, Count> kinds;
  std::map<std::string_view, std::vector<const Case*>> reasons;
  Count total;
  for (const Case& c : cases()) {
    kinds[c.kind].add(c);
    total.add(c);
    if (!agree(c)) reasons[reason(c)].push_back(&c);
  }
  std::string out =
      "# The verifier and ptxas\n\n"
      "Generated by the test `Ptxas.DocumentIsCurrent`; `cmake --build build --target ptx_docs` "
      "writes "
      "it anew.\n\n"
      "`scripts/ptxas_cases.py` makes instances of every form in `src/ptx/instructions.def` and "
      "breaks "
      "them at random (fixed seed); `ptxas` of CUDA 13.0 judged each of the statements, in a "
      "module of "
      "its own. \"Refuse\" counts errors only, a warning is acceptance.\n\n"
      "| kind of case | cases | both accept | both refuse | only we accept | only we refuse | "
      "agreement "
      "|\n|---|---|---|---|---|---|---|\n";
  for (const auto& [kind, count] : kinds) out += count.row(kind);
  out += total.row("all");
  std::set<std::string> seen;
  for (const Case& c : cases()) seen.insert(c.target + c.version + c.statement);
  Count fresh, unseen;
  for (const Case& c : fresh_cases()) {
    fresh.add(c);
    if (!seen.contains(c.target + c.version + c.statement)) unseen.add(c);
    if (!agree(c)) reasons[reason(c)].push_back(&c);
  }
  out +=
      "\nWith these cases the table was improved. Cases of another seed, drawn afterwards "
      "(`tests/ptx/ptxas/fresh.tsv.zst`), say how well it does on what it has not seen:\n\n"
      "| | cases | both accept | both refuse | only we accept | only we refuse | agreement |\n"
      "|---|---|---|---|---|---|---|\n" +
      fresh.row("fresh seed") + unseen.row("without those that both sets have");
  out +=
      "\n## Where we differ\n\nOf both sets. Words that ptxas checks for in no instruction but "
      "those that "
      "have them (`PTX_ANYWHERE` in the table), and those that it takes twice (`PTX_TWICE`), are "
      "accepted as there and count as agreement.\n";
  for (const auto& [text, list] : reasons) {
    out += fmt::format("\n**{}** ({})\n\n", text, list.size());
    for (const Case* c : list)
      out += fmt::format("- `{}` ({}, PTX {}): {}\n", c->statement, c->target, c->version,
                         c->accepted ? "we say: " + c->ours : "ptxas says: " + c->message);
  }
  return out;
}

TEST(Ptxas, AgreesOnRecordedCases) {
  size_t same = 0;
  for (const Case& c : cases()) same += agree(c);
  ASSERT_GT(cases().size(), 6000u);
  EXPECT_GE(static_cast<double>(same), 0.99 * static_cast<double>(cases().size()));
}

TEST(Ptxas, AgreesOnUnseenCases) {
  size_t same = 0;
  for (const Case& c : fresh_cases()) same += agree(c);
  ASSERT_GE(fresh_cases().size(), 2500u);
  EXPECT_GE(static_cast<double>(same), 0.99 * static_cast<double>(fresh_cases().size()));
}

// Both answers must occur in good number: a verifier that refuses everything would agree mostly.
TEST(Ptxas, AgreesOnEitherAnswer) {
  Count total;
  for (const Case& c : cases()) total.add(c);
  EXPECT_GT(total.both_accept, 1500);
  EXPECT_GT(total.both_refuse, 3000);
  EXPECT_LE(total.we_refuse, 0.03 * (total.both_accept + total.we_refuse));
  EXPECT_LE(total.we_accept, 0.015 * (total.both_refuse + total.we_accept));
}

TEST(Ptxas, DocumentIsCurrent) { expect_document("docs/ptxas-comparison.md", document()); }

// The record is what this machine's ptxas says, too.
TEST(Ptxas, RecordIsTrue) {
  if (!std::filesystem::exists("/usr/local/cuda/bin/ptxas")) GTEST_SKIP() << "no ptxas here";
  std::string plain = testing::TempDir() + "ptxas_cases.tsv";
  std::ofstream(plain, std::ios::binary) << read_packed("ptxas/cases.tsv.zst");
  std::string command =
      "python3 -B " PTXBENCH_SOURCE_DIR "/scripts/ptxas_cases.py sample 60 " + plain;
  EXPECT_EQ(std::system(command.c_str()), 0);
  std::filesystem::remove(plain);
}

}  // namespace
}  // namespace ptxbench::ptx
