#pragma once
// A user id that nothing else on the machine has, for one command of a root caller: RLIMIT_NPROC
// does not bind root, and a stray process of the command has no rights over anybody's.

#include <cstdint>
#include <optional>

#include "sandbox/sandbox.h"

namespace ptxbench::sandbox {

// A fresh id, the same for no two commands that run at once; nothing where this process is not root
// or may not become the ids in question.
std::optional<uint32_t> draw_user_id();

// Whether a stranger may read what the command is shown: its read-only paths themselves (not what
// is below them).
bool readable_by_others(const Command& command);

// Hands the command's writable folders, and the files right in them, to the user. Links are not
// followed. False if that is impossible.
bool give_writable_folders(const Command& command, uint32_t uid);

}  // namespace ptxbench::sandbox
