#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "base/interrupt.h"
#include "bench/task.h"
#include "cli/commands.h"

namespace ptxbench::cli {

int fail(const Error& error) {
  hold_if_interrupted();
  const std::string text = error.to_string();
  std::string line;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    // C1 controls, as UTF-8 writes them, can be as harmful as an escape.
    const bool c1 = c == 0xc2 && next >= 0x80 && next < 0xa0;
    if (c == '\n' || c == '\r' || c == '\t')
      line += ' ';
    else if (c < 32 || c == 127 || c1)
      line += fmt::format("\\x{:02x}", c1 ? static_cast<unsigned char>(text[++i]) : c);
    else
      line += text[i];
  }
  std::fprintf(stderr, "ptxbench: %s\n", line.c_str());
  return kFailure;
}

}  // namespace ptxbench::cli

int main(int argc, char** argv) {
  using namespace ptxbench;
  end_cleanly_on_signals();
  CLI::App app{
      "Measures and explains GPU kernels written with architecture-specific PTX, on no GPU at "
      "all."};
  app.name("ptxbench");
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("ptxbench 0.1.0"));
  int exit_code = cli::kOk;
  cli::add_doctor(app, exit_code);
  cli::add_tasks(app, exit_code);
  cli::add_eval(app, exit_code);
  cli::add_estimate(app, exit_code);
  cli::add_record(app, exit_code);
  cli::add_emulate(app, exit_code);
  cli::add_inspect(app, exit_code);
  cli::add_report(app, exit_code);
  cli::add_runs(app, exit_code);
  app.footer("Exit codes: 0 done, 1 the candidate fell short, 2 usage or infrastructure error.");
  try {
    // The parser would only say that a subcommand is missing.
    std::vector<std::string> names;
    for (const CLI::App* command : app.get_subcommands(nullptr))
      names.push_back(command->get_name());
    if (argc > 1 && argv[1][0] != '-' && std::count(names.begin(), names.end(), argv[1]) == 0)
      return cli::fail(
          Error{"usage", fmt::format("unknown command '{}'; nearest: {} (see --help)", argv[1],
                                     bench::nearest_names(argv[1], names, 1).at(0))});
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    return cli::fail(Error{"usage", std::string(error.what()) + " (see --help)"});
  } catch (const std::bad_alloc&) {
    return cli::fail(Error{"memory", "out of memory"});
  } catch (const std::exception& error) {
    return cli::fail(Error{"internal", error.what()});
  }
  hold_if_interrupted();
  return exit_code;
}
