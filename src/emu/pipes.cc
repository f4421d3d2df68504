// Instructions by the pipe that executes them. Rates of the pipes belong to the time model; here is
// only which one, after the CUDA C++ Programming Guide's table of native arithmetic instructions
// (compute capability 9.0). What ptxas drops or folds into others (moves, conversions between
// address spaces, parameter reads, register packing) counts as nothing.
#include "emu/costs.h"
#include "ptx/instruction_table.h"

namespace ptxbench::emu {
namespace {

using plan::Pipe;
using ptx::Op;

bool on_fma_pipe(ptx::Type t) {
  using T = ptx::Type;
  return t == T::f16 || t == T::f16x2 || t == T::bf16 || t == T::bf16x2 || t == T::f32 ||
         t == T::f32x2 || t == T::tf32;
}

PipeUse arithmetic(const ptx::Instruction& i) {
  const ptx::Type t = i.mods.type();
  if (t == ptx::Type::f64) return {Pipe::fp64, 1};
  if (t == ptx::Type::f32x2) return {Pipe::fma, 2};
  if (on_fma_pipe(t)) return {Pipe::fma, 1};
  const bool wide = ptx::bits(t) == 64;
  const bool multiplies = i.op == Op::mul || i.op == Op::mad;
  return {Pipe::alu, multiplies ? (wide ? 4u : 1u) : wide ? 2u : 1u};
}

PipeUse division(const ptx::Instruction& i) {
  const ptx::Type t = i.mods.type();
  if (on_fma_pipe(t)) return {Pipe::special, i.op == Op::div ? 2u : 1u};
  return {Pipe::fp64, 4};
}

}  // namespace

PipeUse pipe_of(const ptx::Instruction& i) {
  switch (i.op) {
    case Op::add:
    case Op::sub:
    case Op::mul:
    case Op::fma:
    case Op::mad:
    case Op::neg:
    case Op::abs:
      return arithmetic(i);
    case Op::div:
    case Op::rem:
      return division(i);
    case Op::ex2:
    case Op::lg2:
    case Op::rcp:
    case Op::rsqrt:
    case Op::sqrt:
    case Op::sin:
    case Op::cos:
    case Op::tanh:
      return {Pipe::special, 1};
    case Op::cvt:
    case Op::cvt_pack:
      return {Pipe::convert, 1};
    case Op::shfl_sync:
    case Op::vote_sync:
    case Op::match_sync:
    case Op::redux_sync:
    case Op::elect_sync:
    case Op::movmatrix:
      return {Pipe::exchange, 1};
    case Op::ld:
    case Op::st: {
      const ptx::Space space = i.mods.space();
      if (space == ptx::Space::param || space == ptx::Space::const_) return {Pipe::none, 1};
      return {Pipe::memory, 1};
    }
    case Op::ldu:
    case Op::ldmatrix:
    case Op::stmatrix:
    case Op::atom:
    case Op::red:
    case Op::wmma_load:
    case Op::wmma_store:
      return {Pipe::memory, 1};
    case Op::mma:
    case Op::wmma_mma:
    case Op::wgmma_mma_async:
    case Op::wgmma_mma_async_sp:
      return {Pipe::matrix, 1};
    case Op::bra:
    case Op::brx_idx:
    case Op::call:
    case Op::ret:
    case Op::exit:
    case Op::bar:
    case Op::barrier:
    case Op::bar_warp_sync:
      return {Pipe::control, 1};
    case Op::mov:
    case Op::cvta:
    case Op::prefetch:
    case Op::isspacep:
    case Op::mapa:
      return {Pipe::none, 1};
    case Op::setp:
    case Op::set:
    case Op::selp:
    case Op::min:
    case Op::max:
    case Op::and_:
    case Op::or_:
    case Op::xor_:
    case Op::not_:
    case Op::shl:
    case Op::shr:
    case Op::shf:
    case Op::lop3:
    case Op::prmt: {
      return {Pipe::alu, ptx::bits(i.mods.type()) == 64 ? 2u : 1u};
    }
    default: {
      const std::string_view name = ptx::name(i.op);
      for (const std::string_view async :
           {"cp.", "mbarrier", "wgmma", "fence", "membar", "barrier.cluster", "setmaxnreg",
            "griddepcontrol", "red.async", "st.async", "tensormap", "nanosleep"})
        if (name.starts_with(async)) return {Pipe::async, 1};
      return {Pipe::alu, 1};
    }
  }
}

}  // namespace ptxbench::emu
