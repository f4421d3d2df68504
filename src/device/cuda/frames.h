#pragma once
// Length-prefixed messages over a socket, with a time limit for the reader.

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <vector>

#include "device/cuda/wire.h"

namespace ptxbench::device::cuda {

enum class FrameStatus { complete, closed, timeout };
constexpr uint64_t kMaxFrame = uint64_t{1} << 30;

inline bool write_all(int socket, const uint8_t* data, size_t bytes) {
  while (bytes > 0) {
    const ssize_t n = send(socket, data, bytes, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    data += n, bytes -= static_cast<size_t>(n);
  }
  return true;
}

inline bool write_frame(int socket, const std::vector<uint8_t>& message) {
  const uint64_t bytes = message.size();
  uint8_t head[8];
  std::memcpy(head, &bytes, 8);
  return write_all(socket, head, 8) && write_all(socket, message.data(), message.size());
}

inline FrameStatus read_all(int socket, uint8_t* data, size_t bytes,
                            std::chrono::steady_clock::time_point until, bool forever) {
  while (bytes > 0) {
    if (!forever) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          until - std::chrono::steady_clock::now());
      if (left.count() <= 0) return FrameStatus::timeout;
      pollfd wait = {socket, POLLIN, 0};
      const int ready = poll(&wait, 1, static_cast<int>(std::min<int64_t>(left.count(), 1000)));
      if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    }
    const ssize_t n = recv(socket, data, bytes, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return FrameStatus::closed;
    data += n, bytes -= static_cast<size_t>(n);
  }
  return FrameStatus::complete;
}

// `seconds` negative: as long as it takes.
inline FrameStatus read_frame(int socket, std::vector<uint8_t>& message, double seconds) {
  const bool forever = seconds < 0;
  const auto until =
      std::chrono::steady_clock::now() +
      std::chrono::milliseconds(static_cast<int64_t>(1000 * (forever ? 0 : seconds)));
  uint8_t head[8];
  FrameStatus status = read_all(socket, head, 8, until, forever);
  if (status != FrameStatus::complete) return status;
  uint64_t bytes = 0;
  std::memcpy(&bytes, head, 8);
  if (bytes > kMaxFrame) return FrameStatus::closed;
  message.resize(bytes);
  return read_all(socket, message.data(), bytes, until, forever);
}

// An answer is a frame: 0 and the message, or 1, kind and text of an Error.
inline bool write_answer(int socket, const Result<std::vector<uint8_t>>& answer) {
  plan::Writer writer;
  uint8_t tag = answer.ok() ? 0 : 1;
  writer.number(tag);
  if (answer.ok()) {
    writer.raw(answer->data(), answer->size());
  } else {
    std::string kind = answer.error().kind, text = answer.error().message;
    io(writer, kind);
    io(writer, text);
  }
  return write_frame(socket, writer.take());
}

}  // namespace ptxbench::device::cuda
