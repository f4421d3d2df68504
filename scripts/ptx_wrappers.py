#!/usr/bin/env python3
"""PTX of every wrapper in the CUDA toolkit's cuda/ptx headers, for the tests of the PTX front end.

    scripts/ptx_wrappers.py FOLDER     writes FOLDER/wrappers_TARGET_N.ptx

One kernel for each overload and each choice of its template parameters, compiled by nvcc for the lowest of
sm_90a and sm_100a that has the instruction. The overloads are read from the declarations that the headers
repeat as comments, their choices of scope, kind and so on from the static_asserts below them. An overload that
is not understood ends the script: nothing is left out silently.
"""
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

NVCC = os.environ.get('NVCC', '/usr/local/cuda/bin/nvcc')
HEADERS = '/usr/local/cuda/include/cccl/cuda/__ptx/instructions/generated'
TYPES = {'B8': ['signed char'], 'B16': ['short'], 'B32': ['int'], 'B64': ['long long'], 'B128': ['longlong2'],
         'Type': ['int', 'long long']}
ENUMS = {'Scope': 'scope', 'Sem': 'sem', 'Kind': 'kind', 'Cta_Group': 'cta_group', 'Op': 'op', 'Space': 'space'}
# the value of an integral constant where 1 is not allowed
CONSTANTS = {'st_bulk': [0], 'fence_proxy_tensormap_generic': [128], 'tensormap_cp_fenceproxy': [128]}
UNITS = 2  # translation units for each target


def overloads(text):
    """(target, name, result, template parameters, arguments, choices) of each declaration in a header."""
    pieces = re.split(r'^/\*\n', text, flags=re.M)[1:]
    for piece in pieces:
        comment, _, definition = piece.partition('\n*/')
        found = re.search(r'template <((?:[^<>]|<[^<>]*>)*)>\s*__device__ static inline (.*?)\b(\w+)\((.*?)\);',
                          comment, flags=re.S)
        if not found:
            raise SystemExit('not understood: ' + comment)
        template, result, name, arguments = (' '.join(g.split()) for g in found.groups())
        supported = re.findall(r'\bSM_(\d+)([af]?)', comment[:found.start()] + template)
        choices = {}
        body = definition.split('#endif')[0] if '#endif' in definition else definition
        for statement in re.findall(r'static_assert\((.*?),\s*""\)', body, flags=re.S):
            for variable, value in re.findall(r'__(\w+) == (\w+)', statement):
                choices.setdefault(variable, []).append(value)
        yield target(supported), name, result.strip(), template, arguments, choices


def target(supported):
    """The first of our two targets that has it; plain numbers mean that one and later."""
    for number, suffix in ((90, 'a'), (100, 'a')):
        for n, s in supported or [('20', '')]:
            if (int(n) == number and s in ('', suffix)) or (int(n) <= number and not s):
                return 'sm_%d%s' % (number, suffix)
    return None


def split(arguments):
    """Commas outside of brackets."""
    out, depth = [''], 0
    for ch in arguments:
        depth += (ch in '(<[') - (ch in ')>]')
        if ch == ',' and depth == 0:
            out.append('')
        else:
            out[-1] += ch
    return [a.strip() for a in out if a.strip()]


def variants(template, arguments, choices, name):
    """Dictionaries of what stands for each template parameter."""
    out = [{}]
    for parameter in split(template):
        word = parameter.split('=')[0].split()
        if word[0].startswith('enable_if_t'):
            continue
        if word[0] == 'typename':
            if len(word) > 1:
                # the signed types have overloads of their own
                prefix = 'unsigned ' if name == 'shr' else ''
                out = [dict(v, **{word[1]: prefix + t}) for v in out for t in TYPES[word[1]]]
        elif word[0] == 'int':
            values = CONSTANTS.get(name, [1])
            out = [dict(v, **{word[1]: str(k)}) for v in out for k in values]
        else:
            kind = ENUMS[word[-1]]
            values = choices.get(kind)
            if not values:
                raise SystemExit('%s: no choices of %s' % (name, kind))
            enum = 'cuda::ptx::dot_%s::' % kind
            values = [v if kind == 'cta_group' else v[len(kind) + 1:] for v in values]
            out = [dict(v, **{word[-1]: enum + k}) for v in out for k in dict.fromkeys(values)]
    return out


def kernel(number, name, result, arguments, variant):
    """A kernel that calls the wrapper with its own parameters and stores what it returns."""
    parameters, before, call, after = [], [], [], []
    for k, argument in enumerate(split(arguments)):
        for parameter, value in variant.items():
            argument = re.sub(r'\b%s\b' % parameter, value, argument)
        array = re.match(r'(const )?(.+?) \(&\s*(\w+)\)\[(\d+)\]$', argument)
        if array:
            constant, kind, _, count = array.groups()
            parameters.append('%s* p%d' % (kind, k))
            before.append('%s a%d[%s];' % (kind, k, count))
            copy = '\n#pragma unroll\nfor (int i = 0; i < %s; ++i) ' % count
            if constant:
                before.append(copy + 'a%d[i] = p%d[i];' % (k, k))
            else:
                after.append(copy + 'p%d[i] = a%d[i];' % (k, k))
            call.append('a%d' % k)
            continue
        if argument.startswith('cuda::ptx::'):
            call.append(re.sub(r' \w+$', '', argument) + '{}')
            continue
        plain = re.match(r'(.*[\s*&])\w+$', argument).group(1).replace('&', '').strip()
        output = '&' in argument and 'const' not in argument
        if output:
            parameters.append('%s* p%d' % (plain, k))
            before.append('%s a%d;' % (plain, k))
            after.append('*p%d = a%d;' % (k, k))
        else:
            parameters.append('%s a%d' % (plain, k))
        call.append('a%d' % k)
    # a type that no argument shows
    explicit = '<%s>' % variant[result] if result in variant else ''
    for parameter, value in variant.items():
        result = re.sub(r'\b%s\b' % parameter, value, result)
    store = ''
    if result != 'void':
        parameters.append('%s* result' % result)
        store = '*result = '
    return 'extern "C" __global__ void k%d(%s) {\n%s\n%scuda::ptx::%s%s(%s);\n%s\n}\n' % (
        number, ', '.join(parameters), ' '.join(before), store, name, explicit, ', '.join(call), ' '.join(after))


def sources():
    kernels, number = {}, 0
    for file in sorted(os.listdir(HEADERS)):
        with open(os.path.join(HEADERS, file)) as f:
            text = f.read()
        for where, name, result, template, arguments, choices in overloads(text):
            if where is None:
                print('%s: neither sm_90a nor sm_100a has it' % name, file=sys.stderr)
                continue
            for variant in variants(template, arguments, choices, name):
                unit = kernels.setdefault(where, [])
                unit.append(kernel(number, name, result, arguments, variant))
                number += 1
    return kernels, number


def compile_unit(job):
    source, where, out = job
    done = subprocess.run([NVCC, '-std=c++17', '-arch=' + where, '-ptx', '-w', source, '-o', out + '.tmp'],
                          capture_output=True, text=True)
    if done.returncode == 0:
        os.replace(out + '.tmp', out)
    return done.stderr if done.returncode else ''


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    kernels, number = sources()
    jobs = []
    for where, list_of in kernels.items():
        for unit in range(UNITS):
            stem = os.path.join(folder, 'wrappers_%s_%d' % (where, unit))
            with open(stem + '.cu', 'w') as f:
                f.write('#include <cstdint>\n#include <cuda/ptx>\n' + '\n'.join(list_of[unit::UNITS]))
            jobs.append((stem + '.cu', where, stem + '.ptx'))
    with ThreadPoolExecutor(2) as pool:
        errors = [e for e in pool.map(compile_unit, jobs) if e]
    print('%d kernels' % number)
    if errors:
        print('\n'.join(errors)[:4000], file=sys.stderr)
    return 1 if errors else 0


if __name__ == '__main__':
    sys.exit(main())
