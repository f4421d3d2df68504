#include "bench/repair.h"

#include <algorithm>

#include "toolchain/elf.h"

namespace ptxbench::bench {
namespace {

const char* missing_instruction(const std::string& kind) {
  if (kind == "wgmma-fence-missing") return "wgmma.fence.sync.aligned;";
  if (kind == "wgmma-commit-missing") return "wgmma.commit_group.sync.aligned;";
  if (kind == "wgmma-register-access") return "wgmma.wait_group.sync.aligned 0;";
  return nullptr;
}

// Machine code of one kernel; empty if the text does not assemble.
Result<std::vector<uint8_t>> machine_code(const std::string& ptx, const std::string& kernel,
                                          const std::string& arch, const Assemble& assemble) {
  toolchain::CompileRequest request;
  request.source = ptx;
  request.is_ptx = true;
  request.file_name = "repair.ptx";
  request.arch = arch;
  PB_ASSIGN_OR_RETURN(const toolchain::CompiledCandidate compiled, assemble(request));
  std::vector<uint8_t> code;
  if (!compiled.ok) return code;
  PB_ASSIGN_OR_RETURN(const toolchain::ElfFile elf, toolchain::read_elf(compiled.cubin));
  if (const toolchain::ElfSection* text = elf.section(".text." + kernel))
    code.assign(text->bytes.begin(), text->bytes.end());
  return code;
}

}  // namespace

std::string with_missing_instruction(const std::string& ptx, const plan::Finding& finding) {
  const char* instruction = missing_instruction(finding.kind);
  if (!instruction || finding.ptx_line < 1) return "";
  size_t at = 0;
  for (int line = 1; line < finding.ptx_line; ++line) {
    at = ptx.find('\n', at);
    if (at == std::string::npos) return "";
    ++at;
  }
  std::string out = ptx;
  return out.insert(at, std::string(instruction) + "\n");
}

Result<Repair> reassemble(const std::string& ptx, const plan::Finding& finding,
                          const std::string& arch, const Assemble& assemble) {
  const std::string mended = with_missing_instruction(ptx, finding);
  if (mended.empty()) return Repair::not_tried;
  PB_ASSIGN_OR_RETURN(const std::vector<uint8_t> as_is,
                      machine_code(ptx, finding.kernel, arch, assemble));
  if (as_is.empty()) return Repair::not_tried;
  PB_ASSIGN_OR_RETURN(const std::vector<uint8_t> with,
                      machine_code(mended, finding.kernel, arch, assemble));
  if (with.empty()) return Repair::not_tried;
  return as_is == with ? Repair::same : Repair::other;
}

}  // namespace ptxbench::bench
