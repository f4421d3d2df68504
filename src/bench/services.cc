#include "bench/evaluate.h"

namespace ptxbench::bench {

Services real_services(device::Device& device) {
  return {toolchain::compile, cudart::record, &device};
}

}  // namespace ptxbench::bench
