#!/usr/bin/env python3
"""Cases on which the PTX verifier is compared with ptxas, and what ptxas says to them.

    scripts/ptxas_cases.py record FILE     writes the cases of tests/ptx/ptxas with ptxas's verdicts
    scripts/ptxas_cases.py record FILE SEED COUNT    the same with that seed, COUNT of the cases
    scripts/ptxas_cases.py sample N FILE   asks ptxas again about N recorded cases; exit 1 on a difference

A case is one statement in the frame tests/ptx/ptxas/frame.ptx. Valid ones are instances of each form of
src/ptx/instructions.def, each slot's alternatives once; broken ones are random mutations of them with a fixed
seed: words dropped, replaced, added, misspelt and reordered, types, operands, vector widths, targets and
versions changed. ptxas judges both, so a form that the table gets wrong counts against us too. A line of FILE:
+ or -, kind, target, PTX version, statement, ptxas's message, separated by tabs.
"""
import os
import random
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SOURCES = os.path.join(ROOT, 'src', 'ptx')
FRAME = os.path.join(ROOT, 'tests', 'ptx', 'ptxas', 'frame.ptx')
PTXAS = os.environ.get('PTXAS', '/usr/local/cuda/bin/ptxas')
SEED, MUTATIONS, PER_FORM = 20, 4, 2

OPERANDS = ['%r1', '%rd1', '%rs1', '%f1', '%fd1', '%p1', '%u1', '%s2', '%us1', '%ud1', '%h1', '%hh1', '%rq1',
            '7', '1.5', '0f3F800000', '_', '%tid.x', 'gvar', 'svar', '[%rd1]', '[%r1]', '[gvar]', '[svar]',
            '[lvar]', '{%r1, %r2}', '{%f1, %f2, %f3, %f4}', '!%p1', '-1', '%p1|%p2', '[%f1]']
# the lowest PTX version of each target
TARGETS = {'sm_75': 63, 'sm_80': 70, 'sm_86': 71, 'sm_89': 78, 'sm_90': 78, 'sm_90a': 80, 'sm_100': 86,
           'sm_100a': 86, 'sm_100f': 88, 'sm_103': 88, 'sm_103a': 88, 'sm_103f': 88, 'sm_110a': 90,
           'sm_120': 87, 'sm_120a': 87, 'sm_120f': 88, 'sm_121a': 88}
VERSIONS = ['6.5', '7.0', '7.4', '7.8', '8.0', '8.3', '8.6', '8.7', '8.8']
COLON_WORDS = {'tcgen05.wait': ('ld', 'st'), 'tcgen05.fence': ('before_thread_sync', 'after_thread_sync')}


def read(name):
    with open(os.path.join(SOURCES, name)) as f:
        return f.read()


class Table:
    """instructions.def: groups, and rows of (opcode, modifiers, operands, target)."""

    def __init__(self):
        text = re.sub(r'"\s*\n\s*"', '', re.sub(r'^//.*$', '', read('instructions.def'), flags=re.M))
        self.opcodes = dict(re.findall(r'PTX_OP\((\w+), "([^"]+)"\)', read('opcodes.def')))
        self.names = sorted(self.opcodes.values(), key=len, reverse=True)
        self.types = {t: int(b) for t, b in re.findall(r'PTX_TYPE\(\w+, "([^"]+)", (\d+)\)', read('types.def'))}
        self.groups, self.rows = {}, []
        opcode, operands = None, ''
        for kind, body in re.findall(r'PTX_(GROUP|INSTRUCTION|FORM)\((.*?)\)\n', text, flags=re.S):
            strings = re.findall(r'"([^"]*)"', body)
            if kind == 'GROUP':
                self.groups[strings[0]] = strings[1]
            elif kind == 'INSTRUCTION':
                opcode = self.opcodes[re.match(r'\w+', body).group(0)]
            else:
                operands = strings[1] or operands
                self.rows.append((opcode, strings[0], operands, strings[2]))
        self.vocabulary = {}
        for opcode, modifiers, _, _ in self.rows:
            words = self.vocabulary.setdefault(opcode, set())
            for choices, _ in self.slots(modifiers):
                words.update(w for w in choices if w != 'row.col')
        self.vocabulary = {k: sorted(v) for k, v in self.vocabulary.items()}
        self.words = sorted(set().union(*self.vocabulary.values()))

    def choices(self, token):
        out = []
        for word in token.split('|'):
            out += self.choices(self.groups[word]) if word in self.groups else [word]
        return out

    def slots(self, modifiers):
        fixed = {'$shape': ['m64n8k16'], '$layout': ['row.col']}
        for token in modifiers.split():
            name = token.rstrip('?+')
            if name == 'unified':  # stands behind the address
                continue
            yield fixed.get(name) or self.choices(name), token.endswith('?')

    def target(self, text):
        first = self.choices(text)[0]
        number = int(re.match(r'sm_(\d+)', first).group(1))
        if first.endswith(('a', 'f')):
            return first[:-1] + 'a'
        return 'sm_80' if number <= 80 else 'sm_90a' if number <= 90 else 'sm_100a'


def join(opcode, words, operands):
    text = opcode
    for k, word in enumerate(words):
        text += ('::' if k == 0 and word in COLON_WORDS.get(opcode, ()) else '.') + word
    return text + (' ' + ', '.join(operands) if operands else '') + ';'


class Sampler:
    """Instances of the forms, with registers that fit."""
    SPECIAL = {'pred': '%p', 'b128': '%rq', 'f32': '%f', 'f64': '%fd'}
    BY_SIZE = {1: '%p', 2: '%rs', 4: '%rs', 6: '%rs', 8: '%rc', 16: '%rs', 32: '%r', 64: '%rd', 128: '%rq',
               1024: '%rd'}
    CONSTANTS = {'lop3': '0x80', 'setmaxnreg': '40', 'cp.async': '16'}
    COORDINATES = {'1d': 'x', '2d': 'xx', '3d': 'xxxx', 'a1d': 'rx', 'a2d': 'rxxx', 'cube': 'xxxx',
                   'acube': 'rxxx', '2dms': 'rrrr', 'a2dms': 'rrrr'}

    def __init__(self, table):
        self.table = table

    def register(self, kind, n):
        return self.SPECIAL.get(kind, self.BY_SIZE[self.table.types[kind]]) + str(n)

    def vector(self, kind, n, count):
        small = self.register(kind, 1)[:3] in ('%rd', '%rs', '%fd', '%rc')
        modulus = 3 if self.register(kind, 1)[:3] == '%rc' else 8
        numbers = [1 + (n + i - 1) % modulus if small else n + i for i in range(count)]
        return '{' + ', '.join(self.register(kind, k) for k in numbers) + '}'

    def count(self, opcode, words, types):
        """Elements of a vector of open length."""
        dims = next((int(w[0]) for w in words if re.match(r'\dd$', w)), 1)
        if opcode.startswith('tcgen05.mma'):
            return 8 if 'cta_group::2' in words else 4
        if opcode.startswith('wgmma'):
            return 2 if types[0] == 'f16' else 4
        if opcode.startswith('tcgen05.'):
            times = int(next(w for w in words if re.match(r'x\d+$', w))[1:])
            return times * (4 if '16x256b' in words else 2 if '16x128b' in words else 1)
        return dims - 2 if 'im2col' in words else 2

    def coordinates(self, opcode, words, types):
        if opcode[:4] in ('tex', 'tld4', 'suld', 'sust', 'sure'):
            geometry = next(w for w in words if w in self.COORDINATES)
            x = '%f' if opcode in ('tex', 'tld4') and types[-1] != 's32' else '%r'
            parts = [('%r' if c == 'r' else x) + str(k + 1) for k, c in enumerate(self.COORDINATES[geometry])]
        else:
            dims = next((int(w[0]) for w in words if re.match(r'\dd$', w)), 1)
            if 'tile::gather4' in words or 'tile::scatter4' in words:
                dims = 5
            parts = ['%%r%d' % (20 + k) for k in range(dims)]
        return '[%rd9, {' + ', '.join(parts) + '}]'

    def operand(self, opcode, words, types, pattern, n):
        role, flags, kind, count = pattern
        if role == 'i':
            return kind.split('..')[0] if kind else self.CONSTANTS.get(opcode, '1')
        type_name = 'b32'
        if kind == 'w':
            type_name = 'b%d' % (2 * self.table.types[types[0]]) if 'wide' in words else types[0]
        elif kind and re.match(r'\+?\d$', kind):
            type_name = types[min(int(kind[-1]), len(types) - 1)]
            if kind[0] == '+' and self.table.types[type_name] == 8:
                type_name = 'b16'
        elif kind:
            type_name = kind
        lengths = {'v2': 2, 'v4': 4, 'v8': 8, 'v16': 16}
        if count:
            size = next((lengths[w] for w in words if w in lengths), 1) if count == '*v' else \
                self.count(opcode, words, types) if count == '*' else int(count[1:])
            if count != '*v' or size > 1:
                return self.vector(type_name, n, size)
        tensor_memory = opcode.startswith('tcgen05') and opcode not in ('tcgen05.commit', 'tcgen05.alloc')
        fixed = {'p': '%p1', 'q': '%p2', '_': '_', 'l': 'there', 't': 'table', 'f': 'callee',
                 'm': '[%r9]' if tensor_memory else '[%rd9]'}
        if role == 'M':
            return self.coordinates(opcode, words, types)
        return fixed.get(role) or self.register(type_name, n) + ('|%p1' if '!' in flags else '')

    def operands(self, opcode, words, text):
        types = [w for w in words if w in self.table.types]
        out, n = [], 1
        if text == '-':
            return out
        if opcode == 'mov' and '*' in text and words[0] not in ('v2', 'v4'):
            half = 'b%d' % max(8, self.table.types[types[0]] // 2)
            pair = [self.register(types[0], 3), self.vector(half, 1, 2)]
            return pair if text.startswith('d:0') else pair[::-1]
        for token in text.split():
            condition = token.split('@')[1] if '@' in token else None
            if token.endswith('?') or (condition and condition not in words):
                continue
            pattern = re.match(r'(\w)([_|!~#]*)(?::([^*@]*))?(\*[^@]*)?', token).groups()
            out.append(self.operand(opcode, words, types, pattern, n))
            n += out[-1].count(',') + 1
            if n > 30 or (n > 6 and re.match(r'\{?%(rd|fd|rs|rc|rq)', out[-1])):
                n = 1
        return out

    def samples(self, row):
        opcode, modifiers, operands, _ = row
        slots = list(self.table.slots(modifiers))
        base = [None if optional else choices[0] for choices, optional in slots]
        picks = [base] + [base[:i] + [w] + base[i + 1:] for i, (choices, _) in enumerate(slots)
                          for w in choices if w != base[i]]
        for pick in picks:
            words = [w for p in pick if p for w in p.split('.')]
            yield join(opcode, words, self.operands(opcode, words, operands))


class Mutator:
    def __init__(self, table, rng):
        self.table, self.rng = table, rng

    def split(self, statement):
        mnemonic, _, rest = statement.rstrip(';').partition(' ')
        opcode = next(n for n in self.table.names
                      if mnemonic == n or mnemonic.startswith((n + '.', n + '::')))
        tail = mnemonic[len(opcode):]
        words = [w for w in (tail[2:] if tail.startswith('::') else tail).split('.') if w]
        operands = re.findall(r'(?:[^,\[{(]|\[[^\]]*\]|\{[^}]*\})+', rest)
        return opcode, words, [o.strip() for o in operands]

    def mutate(self, statement, target):
        """(kind, target, version, statement), or None where the mutation does not apply."""
        rng, table = self.rng, self.table
        opcode, words, operands = self.split(statement)
        vocabulary = table.vocabulary[opcode]
        kind = rng.choice(['drop word', 'replace word', 'replace word', 'add word', 'wrong type', 'foreign word',
                           'replace operand', 'replace operand', 'drop operand', 'add operand', 'other target',
                           'older version', 'other order', 'vector width', 'misspelt word'])
        version = '9.0'
        i = rng.randrange(max(1, len(words)))
        k = rng.randrange(max(1, len(operands)))
        needs_words = kind in ('drop word', 'replace word', 'foreign word', 'other order', 'misspelt word')
        if (needs_words and not words) or (kind.endswith('operand') and kind != 'add operand' and not operands):
            return None
        if kind == 'drop word':
            words = words[:i] + words[i + 1:]
        elif kind == 'replace word':
            words = words[:i] + [rng.choice(vocabulary)] + words[i + 1:]
        elif kind == 'add word' and vocabulary:
            words = words[:i] + [rng.choice(vocabulary)] + words[i:]
        elif kind == 'wrong type':
            places = [p for p, w in enumerate(words) if w in table.types]
            if not places:
                return None
            words[rng.choice(places)] = rng.choice(sorted(table.types))
        elif kind == 'foreign word':
            words = words[:i] + [rng.choice(table.words)] + words[i:]
        elif kind == 'replace operand':
            operands[k] = rng.choice(OPERANDS)
        elif kind == 'drop operand':
            del operands[k]
        elif kind == 'add operand':
            operands.insert(k, rng.choice(OPERANDS))
        elif kind == 'other target':
            target = rng.choice(sorted(TARGETS))
        elif kind == 'older version':
            version = rng.choice(VERSIONS)
            if int(version.replace('.', '')) < TARGETS[target]:
                return None
        elif kind == 'other order':
            rng.shuffle(words)
        elif kind == 'vector width':
            places = [p for p, o in enumerate(operands) if o.startswith('{')]
            if not places:
                return None
            place = rng.choice(places)
            elements = operands[place][1:-1].split(', ')
            elements = elements[:-1] if len(elements) > 1 and rng.random() < .5 else elements + elements[:1]
            operands[place] = '{' + ', '.join(elements) + '}'
        elif kind == 'misspelt word':
            word = words[i]
            j = rng.randrange(len(word))
            words[i] = word[:j] + word[j + 1:j + 2] + word[j:j + 1] + word[j + 2:]
        changed = join(opcode, words, operands)
        if changed == statement and kind not in ('other target', 'older version'):
            return None
        return kind, target, version, changed


def make_cases(seed=SEED):
    table, rng = Table(), random.Random(seed)
    sampler, mutator = Sampler(table), Mutator(table, rng)
    cases = []
    for row in table.rows:
        target = table.target(row[3])
        samples = list(sampler.samples(row))
        chosen = rng.sample(samples, min(len(samples), PER_FORM))
        cases += [('valid', target, '9.0', s) for s in chosen]
        for statement in chosen:
            cases += [m for m in (mutator.mutate(statement, target) for _ in range(MUTATIONS)) if m]
    return list(dict.fromkeys(cases))


def fill(target, version, statement):
    with open(FRAME) as f:
        frame = f.read()
    if '%rq' not in statement:
        frame = frame.replace('.reg .b128 %rq<6>;', '')  # .b128 needs PTX 8.3
    return frame.replace('{target}', target).replace('{version}', version).replace('{statement}', statement)


def ask(case):
    """None, or ptxas's first message. A crash of ptxas is a refusal."""
    _, target, version, statement = case
    with tempfile.NamedTemporaryFile('w', suffix='.ptx') as f:
        f.write(fill(target, version, statement))
        f.flush()
        done = subprocess.run([PTXAS, '-arch=' + target, '-o', '/dev/null', f.name], capture_output=True, text=True)
    if done.returncode == 0:
        return None
    found = re.search(r'(?:error|fatal)\s*:\s*(.*)', done.stderr)
    return found.group(1).strip() if found else 'ptxas ends with status %d' % done.returncode


def record(path, seed=SEED, count=None):
    cases = make_cases(seed)
    if count and count < len(cases):
        cases = random.Random(seed).sample(cases, count)
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(ask, cases))
    with open(path, 'w') as f:
        for case, answer in zip(cases, answers):
            f.write('\t'.join(['-' if answer else '+', *case, answer or '']) + '\n')
    print('%d cases, %d of them accepted' % (len(cases), sum(a is None for a in answers)))
    return 0


def sample(count, path):
    with open(path) as f:
        lines = [line.rstrip('\n').split('\t') for line in f]
    wrong = 0
    for line in random.Random(SEED).sample(lines, min(count, len(lines))):
        answer = ask(line[1:5])
        if (answer is None) != (line[0] == '+'):
            wrong += 1
            print('recorded %s, now %s: %s' % (line[0], answer or 'accepted', line[4]))
    print('%d of %d cases differ from the record' % (wrong, min(count, len(lines))))
    return 1 if wrong or not lines else 0


def main():
    if len(sys.argv) == 3 and sys.argv[1] == 'record':
        return record(sys.argv[2])
    if len(sys.argv) == 5 and sys.argv[1] == 'record' and sys.argv[3].isdigit() and sys.argv[4].isdigit():
        return record(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    if len(sys.argv) == 4 and sys.argv[1] == 'sample' and sys.argv[2].isdigit():
        return sample(int(sys.argv[2]), sys.argv[3])
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == '__main__':
    sys.exit(main())
