#pragma once
// The checks that a real runtime makes before a kernel runs. Each refusal goes through
// Backend::refuse with its reason.

#include <vector>

#include "cudart/lib/backend.h"

namespace ptxbench::cudart {

// The cluster of a launch, three extents: as given, else as compiled in, else 0 (none).
void settle_cluster(const LaunchCall& call, uint32_t* cluster);

// Grid, block, cluster, shared memory, registers and co-residency against the device's and the
// kernel's limits. The kernel is known.
int check_launch(Backend& backend, const LaunchCall& call, const uint32_t* cluster);

// The .param block; false: too few arguments.
bool pack_arguments(const LaunchCall& call, std::vector<uint8_t>* params);

}  // namespace ptxbench::cudart
