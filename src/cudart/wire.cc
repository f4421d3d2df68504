#include "cudart/wire.h"

namespace ptxbench::cudart::wire {

std::vector<uint8_t> write_request(const Request& r) {
  Writer w;
  w.put(kRequestMagic);
  w.put(kVersion);
  for (const auto* text :
       {&r.library, &r.tvm_ffi, &r.entry, &r.recording, &r.profile, &r.ptx_target})
    w.put_string(*text);
  w.put(r.base);
  w.put(r.sm_count);
  w.put(r.clock_skew_s);
  w.put(static_cast<uint32_t>(r.kernels.size()));
  for (const KernelInfo& k : r.kernels) {
    w.put_string(k.name);
    w.put(static_cast<uint32_t>(k.params.size()));
    for (const ParamSlot& slot : k.params) {
      w.put(slot.offset);
      w.put(slot.bytes);
    }
    for (uint32_t v : {k.param_bytes, k.static_shared, k.max_threads, k.registers, k.local_bytes})
      w.put(v);
    for (int i = 0; i < 3; ++i) {
      w.put(k.required_block[i]);
      w.put(k.required_cluster[i]);
    }
  }
  w.put(static_cast<uint32_t>(r.arguments.size()));
  for (const ArgumentInfo& a : r.arguments) {
    w.put_string(a.name);
    w.put(a.dtype_code);
    w.put(a.dtype_bits);
    w.put(static_cast<uint32_t>(a.shape.size()));
    for (int64_t extent : a.shape) w.put(extent);
    w.put(a.bytes);
    w.put_bytes(a.host_bytes.data(), a.host_bytes.size());
  }
  w.put(static_cast<uint32_t>(r.scalars.size()));
  for (const ScalarInfo& scalar : r.scalars) {
    w.put(scalar.position);
    w.put(scalar.type_index);
    w.put(scalar.bits);
  }
  return w.bytes();
}

bool read_request(const std::vector<uint8_t>& bytes, Request* r) {
  Reader in(bytes.data(), bytes.size());
  if (in.get<uint32_t>() != kRequestMagic || in.get<uint32_t>() != kVersion) return false;
  for (auto* text :
       {&r->library, &r->tvm_ffi, &r->entry, &r->recording, &r->profile, &r->ptx_target})
    *text = in.get_string();
  r->base = in.get<uint64_t>();
  r->sm_count = in.get<uint32_t>();
  r->clock_skew_s = in.get<uint64_t>();
  for (uint32_t n = in.get<uint32_t>(); n > 0 && in.ok(); --n) {
    KernelInfo& k = r->kernels.emplace_back();
    k.name = in.get_string();
    for (uint32_t p = in.get<uint32_t>(); p > 0 && in.ok(); --p) {
      const uint32_t offset = in.get<uint32_t>();
      k.params.push_back({offset, in.get<uint32_t>()});
    }
    for (uint32_t* v :
         {&k.param_bytes, &k.static_shared, &k.max_threads, &k.registers, &k.local_bytes})
      *v = in.get<uint32_t>();
    for (int i = 0; i < 3; ++i) {
      k.required_block[i] = in.get<uint32_t>();
      k.required_cluster[i] = in.get<uint32_t>();
    }
  }
  for (uint32_t n = in.get<uint32_t>(); n > 0 && in.ok(); --n) {
    ArgumentInfo& a = r->arguments.emplace_back();
    a.name = in.get_string();
    a.dtype_code = in.get<uint8_t>();
    a.dtype_bits = in.get<uint8_t>();
    for (uint32_t d = in.get<uint32_t>(); d > 0 && in.ok(); --d)
      a.shape.push_back(in.get<int64_t>());
    a.bytes = in.get<uint64_t>();
    const std::string_view host = in.get_bytes();
    a.host_bytes.assign(host.begin(), host.end());
  }
  for (uint32_t n = in.get<uint32_t>(); n > 0 && in.ok(); --n) {
    ScalarInfo& scalar = r->scalars.emplace_back();
    scalar.position = in.get<uint32_t>();
    scalar.type_index = in.get<int32_t>();
    scalar.bits = in.get<uint64_t>();
  }
  return in.ok() && in.at_end();
}

}  // namespace ptxbench::cudart::wire
