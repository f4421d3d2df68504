#pragma once
// Two recordings of one host function, with different fake device addresses, become a launch plan.

#include <cstdint>

#include "cudart/kernel_table.h"
#include "cudart/record.h"
#include "cudart/recording.h"

namespace ptxbench::cudart {

// Addresses of the two runs. The distance has a non-zero low half with few trailing zero bits, so
// that the first four bytes of a pointer always differ: a pointer's place is where the difference
// begins.
constexpr uint64_t kBaseA = 0x0000'1000'0000'0000u;
constexpr uint64_t kBaseB = 0x0000'2a5c'7340'0000u;

// Fills ok, reason, message and plan of the outcome. Both recordings finished without complaint.
RecordOutcome merge(const Recording& a, const Recording& b, const RecordRequest& request,
                    const KernelTable& table);

}  // namespace ptxbench::cudart
