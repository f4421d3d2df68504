#include "te/fp8/format.h"

#include "numeric/float_formats.h"

namespace ptxbench::te {

uint8_t fp8_encode(Fp8Format format, float value) {
  return format == Fp8Format::e4m3 ? numeric::e4m3_from_float(value)
                                   : numeric::e5m2_from_float(value);
}

float fp8_decode(Fp8Format format, uint8_t bits) {
  return format == Fp8Format::e4m3 ? numeric::e4m3_to_float(bits) : numeric::e5m2_to_float(bits);
}

}  // namespace ptxbench::te
