// ptxbench-gpu: the process in which candidates' kernels run. It knows the candidate's plan and its
// inputs, nothing of what is right. Started by src/device/cuda/worker_process.cc:
//   ptxbench-gpu SOCKET ARENA DEVICE [DRIVER]     (descriptors, a device's number, a library's
//   path)

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "device/cuda/frames.h"
#include "device/cuda/worker/session.h"

using namespace ptxbench;
using namespace ptxbench::device::cuda;

namespace {

int serve(int socket, Session& session) {
  std::vector<uint8_t> request;
  while (read_frame(socket, request, -1) == FrameStatus::complete) {
    Result<std::vector<uint8_t>> answer = session.answer(request);
    if (!write_answer(socket, answer)) return 1;
  }
  // The driver is not unwound: a context may be broken, and the process ends anyway.
  _exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fputs("ptxbench-gpu is started by ptxbench\n", stderr);
    return 2;
  }
  const int socket = std::atoi(argv[1]);
  auto session = Session::open(argc > 4 ? argv[4] : "", std::atoi(argv[3]), std::atoi(argv[2]));
  if (!session.ok()) {
    write_answer(socket, session.error());
    _exit(2);
  }
  write_answer(socket, std::vector<uint8_t>());
  return serve(socket, **session);
}
