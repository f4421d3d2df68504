#include <CLI/CLI.hpp>
#include <cstdio>

#include "cli/commands.h"

namespace ptxbench::cli {

int fail(const Error& error) {
  std::string line;
  for (char c : error.to_string())
    line += c == '\n' || c == '\r' || c == '\t'  ? ' '
            : static_cast<unsigned char>(c) < 32 ? '?'
                                                 : c;
  std::fprintf(stderr, "ptxbench: %s\n", line.c_str());
  return kFailure;
}

}  // namespace ptxbench::cli

int main(int argc, char** argv) {
  using namespace ptxbench;
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
  cli::add_record(app, exit_code);
  cli::add_inspect(app, exit_code);
  app.footer("Exit codes: 0 done, 1 the candidate fell short, 2 usage or infrastructure error.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    return cli::fail(Error{"usage", std::string(error.what()) + " (see --help)"});
  } catch (const std::bad_alloc&) {
    return cli::fail(Error{"memory", "out of memory"});
  } catch (const std::exception& error) {
    return cli::fail(Error{"internal", error.what()});
  }
  return exit_code;
}
