#pragma once
// The subcommands. Each add_* declares options and a callback that leaves its exit code in
// `exit_code`: 0 did what was asked, 1 the candidate fell short, 2 usage or infrastructure error.

#include <string>

#include "base/result.h"

namespace CLI {
class App;
}

namespace ptxbench::cli {

constexpr int kOk = 0, kFellShort = 1, kFailure = 2;

void add_doctor(CLI::App& app, int& exit_code);
void add_tasks(CLI::App& app, int& exit_code);
void add_record(CLI::App& app, int& exit_code);
void add_estimate(CLI::App& app, int& exit_code);
void add_eval(CLI::App& app, int& exit_code);
void add_emulate(CLI::App& app, int& exit_code);
void add_inspect(CLI::App& app, int& exit_code);
void add_report(CLI::App& app, int& exit_code);
void add_runs(CLI::App& app, int& exit_code);

// One line on stderr, control characters made visible; returns kFailure.
int fail(const Error& error);

}  // namespace ptxbench::cli
