#pragma once
// Ctrl-C and its relatives: a thread waits for SIGINT, SIGTERM and SIGHUP, ends every descendant of
// this process, removes the temporary folders and exits with 128 + signal. Being an ordinary thread
// it may do all that; a signal handler could not.

#include <functional>

namespace ptxbench {

// Before any other thread exists, whose signals it blocks. A signal that the caller ignores (nohup)
// stays ignored.
void end_cleanly_on_signals();

// From then on nothing new is started: run_process, the sandbox and TempDir refuse.
bool interrupted();

// Calls `act` on such a signal, when every child is dead and before the temporary folders go.
void on_interrupt(std::function<void()> act);

// Does not return once interrupted: what ended children leave behind is no result to report.
void hold_if_interrupted();

}  // namespace ptxbench
