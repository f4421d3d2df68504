#pragma once
// `ptxbench tasks admit`: tries the ruler of tasks before anything is judged with it.

namespace CLI {
class App;
}

namespace ptxbench::cli {

void add_tasks_admit(CLI::App& tasks, int& exit_code);

}  // namespace ptxbench::cli
