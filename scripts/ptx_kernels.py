#!/usr/bin/env python3
"""PTX of the project's own kernels, for the tests of the PTX front end.

    scripts/ptx_kernels.py FOLDER          writes FOLDER/NAME_TARGET.ptx of kernels/ and examples/programs/
    scripts/ptx_kernels.py FOLDER engine   the transformer engine's kernels (minutes)
    scripts/ptx_kernels.py pack FOLDER FILE   the modules of FOLDER in one file, for tests/ptx/corpus/engine.ptx.zst

For sm_80, sm_90a and sm_100a, except where the source says a target's own instructions: wgmma is of sm_90a alone.
"""
import glob
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NVCC = os.environ.get('NVCC', '/usr/local/cuda/bin/nvcc')
TARGETS = ['sm_80', 'sm_90a', 'sm_100a']
# FP8 operands of mma.sync begin with sm_89. Attention with mma.sync is the same code for every target.
SOURCES = {'': [('kernels/sm_80/gemm_*.cu', TARGETS), ('kernels/sm_80/mha_*.cu', ['sm_80']),
                ('kernels/sm_80/fp8_*.cu', TARGETS[1:]), ('kernels/sm_90a/*.cu', ['sm_90a']),
                ('examples/programs/*.cu', TARGETS)],
           'engine': [('src/te/kernels/*.cu', TARGETS[1:])]}
INCLUDE = ['include', 'src', '.', 'src/toolchain/ffi']


def compile_one(job):
    source, target, folder = job
    name = os.path.relpath(source, ROOT).replace('/', '_')[:-3]
    out = os.path.join(folder, '%s_%s.ptx' % (name, target))
    command = [NVCC, '-std=c++20', '-arch=' + target, '-ptx', '-w', source, '-o', out + '.tmp']
    done = subprocess.run(command + ['-I' + os.path.join(ROOT, i) for i in INCLUDE], capture_output=True, text=True)
    if done.returncode == 0:
        os.replace(out + '.tmp', out)
    return done.stderr if done.returncode else ''


def pack(folder, out):
    """Each module behind a comment with its name, compressed."""
    files = sorted(glob.glob(os.path.join(folder, '*.ptx')))
    text = ''
    for path in files:
        with open(path) as f:
            text += '//// %s\n%s' % (os.path.basename(path), f.read())
    subprocess.run(['zstd', '-q', '-f', '-19', '--long=27', '-o', out], input=text.encode(), check=True)
    print('%d modules, %d bytes' % (len(files), len(text)))
    return 0 if files else 1


def main():
    if len(sys.argv) == 4 and sys.argv[1] == 'pack':
        return pack(sys.argv[2], sys.argv[3])
    which = sys.argv[2] if len(sys.argv) > 2 else ''
    if len(sys.argv) not in (2, 3) or which not in SOURCES:
        print(__doc__, file=sys.stderr)
        return 2
    os.makedirs(sys.argv[1], exist_ok=True)
    jobs = [(source, target, sys.argv[1]) for pattern, targets in SOURCES[which]
            for source in sorted(glob.glob(os.path.join(ROOT, pattern))) for target in targets]
    with ThreadPoolExecutor(2) as pool:
        errors = [e for e in pool.map(compile_one, jobs) if e]
    print('%d compilations' % len(jobs))
    if errors:
        print('\n'.join(errors)[:4000], file=sys.stderr)
    return 1 if errors or not jobs else 0


if __name__ == '__main__':
    sys.exit(main())
