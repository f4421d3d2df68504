#!/usr/bin/env python3
"""Writes the kernels that record what is left of the instruction set: video instructions, set and setp with a
second condition, rare conversions, (vector) atomics on edge values, st.async and red.async.

    bench/hardware/record_forms.py DIR         writes DIR/forms.{ptx,list,json,in.bin}, assembles DIR/forms.cubin
    nvcc -std=c++17 -O1 -cudart static -o DIR/record_forms bench/hardware/record_forms.cu
    DIR/record_forms DIR OUT                   (on a Hopper GPU; twice, and compare: the files must be equal)
    gzip the .bin files in one folder with forms.json; scripts/import_hw_vectors.py THERE tests/data/hw forms

Element-wise cases have the form of the groups cvt and exact; the others ("kind": "kernel") carry the kernel's text:
one buffer in, one out, a CTA (two of them in a cluster where "cluster" is 2) of 32 threads.
"""
import gzip
import json
import random
import re
import struct
import subprocess
import sys
from pathlib import Path

N = 128                                    # elements of an element-wise case
rng = random.Random(20261201)
INTS = [0, 1, 2, 7, 8, 0x7f, 0x80, 0xff, 0x100, 0x7fff, 0x8000, 0xffff, 0x10000, 0x7f80ff01, 0x7fffffff, 0x80000000,
        0x80000001, 0xfffffffe, 0xffffffff, 0x8000ffff, 0xff7f0180]
EDGES = {
    "i8": [0, 1, 0x7f, 0x80, 0x81, 0xff],
    "i16": [0, 1, 2, 0x7ffe, 0x7fff, 0x8000, 0x8001, 0xfffe, 0xffff],
    "i32": INTS,
    "i64": INTS + [x << 32 for x in INTS] + [2**63 - 1, 2**64 - 1, 2**63],
    "f16": [0, 0x8000, 1, 0x8001, 0x3ff, 0x400, 0x3c00, 0xbc00, 0x3c01, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0x7d01],
    "bf16": [0, 0x8000, 1, 0x8001, 0x7f, 0x80, 0x3f80, 0xbf80, 0x3f81, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7fc0, 0x7f81,
             0x42fe, 0x42ff, 0x4300, 0xc300, 0xc301, 0x437f, 0x4380, 0x3f00, 0x3fc0, 0xbf00],
    "f32": [0, 0x80000000, 1, 0x80000001, 0x7fffff, 0x800000, 0x3f800000, 0xbf800000, 0x3f800001, 0x7f7fffff,
            0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001, 0xffc00123, 0x42fe0000, 0x42feffff, 0xc3000000,
            0x437f8000, 0x3f000000, 0xbf000000],
    "f64": [0, 1 << 63, 1, 0xfffffffffffff, 0x10000000000000, 0x3ff0000000000000, 0xbff0000000000000,
            0x3ff0000000000001, 0x7fefffffffffffff, 0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000,
            0x7ff0000000000001],
}
BITS = {"i8": 8, "i16": 16, "i32": 32, "i64": 64, "f16": 16, "bf16": 16, "f32": 32, "f64": 64}


def edge_arrays():
    arrays = {}
    for kind, edges in EDGES.items():
        for name in "abc":
            values = [rng.choice(edges) if i % 3 else rng.getrandbits(BITS[kind]) for i in range(N)]
            if name == "b":                # equal operands are an edge of their own
                values = [arrays[kind + "_a"][i] if i % 8 == 5 else v for i, v in enumerate(values)]
            arrays[f"{kind}_{name}"] = values
    for name in "abc":                     # packed halves
        for kind in ("f16", "bf16"):
            low, high = arrays[f"{kind}_{name}"], list(reversed(arrays[f"{kind}_{name}"]))
            arrays[f"{kind}x2_{name}"] = [x | y << 16 for x, y in zip(low, high)]
    return arrays


def width(name):
    return 32 if "x2" in name else BITS[name.rsplit("_", 1)[0]]


# ------------------------------------------------------------------------------------------ element-wise
def part():
    return rng.choice(["", "", ".b0", ".b1", ".b2", ".b3", ".h0", ".h1"])


def parts(lanes):
    if rng.random() < 0.4:
        return ""
    top = 7 if lanes == 4 else 3
    return (".b" if lanes == 4 else ".h") + "".join(str(rng.randint(0, top)) for _ in range(lanes))


def mask(lanes):
    if rng.random() < 0.3:
        return ""
    chosen = [i for i in reversed(range(lanes)) if rng.random() < 0.6] or [rng.randrange(lanes)]
    return (".b" if lanes == 4 else ".h") + "".join(map(str, chosen))


def scalar_video(word, take):
    """The word with each of the five shapes of destination: plain, a second operation, a part merged into c."""
    a, b = f"%1{part()}", f"%2{part()}"
    yield f"{word} %0, {a}, {b};"
    for second in ("add", "min", "max"):
        if take():
            yield f"{word}.{second} %0, {a}, {b}, %3;"
    yield f"{word} %0{rng.choice(['.b0', '.b1', '.b2', '.b3', '.h0', '.h1'])}, {a}, {b}, %3;"


def video():
    often, always = lambda: rng.random() < 0.5, lambda: True
    pairs = [(d, a, b) for d in ("u32", "s32") for a in ("u32", "s32") for b in ("u32", "s32")]
    for op in ("vadd", "vsub", "vabsdiff", "vmin", "vmax"):
        for d, a, b in pairs:
            for sat in ("", ".sat"):
                yield from scalar_video(f"{op}.{d}.{a}.{b}{sat}", often if sat else always)
    for op in ("vshl", "vshr"):
        for d, a, _ in pairs[::2]:
            for sat in ("", ".sat"):
                for mode in ("clamp", "wrap"):
                    yield from scalar_video(f"{op}.{d}.{a}.u32{sat}.{mode}", often)
    for compare in ("eq", "ne", "lt", "le", "gt", "ge"):
        for _, a, b in pairs[:4]:
            yield from scalar_video(f"vset.{a}.{b}.{compare}", often)
    for d, a, b in pairs:
        for sat in ("", ".sat"):
            for scale in ("", ".shr7", ".shr15"):
                for po, signs in (("", "   "), ("", "-  "), ("", " - "), ("", "  -"), ("", "-- "), (".po", "   ")):
                    x, y, z = (s.strip() for s in signs)
                    yield f"vmad.{d}.{a}.{b}{po}{sat}{scale} %0, {x}%1{part()}, {y}%2{part()}, {z}%3;"
    for lanes in (2, 4):
        for op in ("vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax"):
            for d, a, b in pairs:
                for tail in ("", ".sat", ".add"):
                    yield f"{op}{lanes}.{d}.{a}.{b}{tail} %0{mask(lanes)}, %1{parts(lanes)}, %2{parts(lanes)}, %3;"
        for compare in ("eq", "ne", "lt", "le", "gt", "ge"):
            for _, a, b in pairs[:4]:
                for tail in ("", ".add"):
                    yield (f"vset{lanes}.{a}.{b}.{compare}{tail} %0{mask(lanes)}, %1{parts(lanes)}, "
                           f"%2{parts(lanes)}, %3;")


SIGNED = ["eq", "ne", "lt", "le", "gt", "ge"]
UNSIGNED = SIGNED + ["lo", "ls", "hi", "hs"]
REAL = SIGNED + ["equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"]


def comparisons():
    """(text, kind of the operands, bits of the destination)"""
    sources = [(t, "i" + t[1:], c) for t, c in
               [("b16", SIGNED[:2]), ("b32", SIGNED[:2]), ("b64", SIGNED[:2]), ("u16", UNSIGNED), ("u32", UNSIGNED),
                ("u64", UNSIGNED), ("s16", SIGNED), ("s32", SIGNED), ("s64", SIGNED)]]
    sources += [(t, t, REAL) for t in ("f16", "bf16", "f16x2", "bf16x2", "f32", "f64")]
    turn = 0
    for source, kind, compares in sources:
        targets = ["u32", "s32", "f32", "f16", "bf16"]
        if kind in ("f16", "bf16"):
            targets += ["u16", "s16"]
        if source.endswith("x2"):
            targets = ["u32", "s32", source]
        for target in targets:
            for compare in compares:
                for bool_op in ("", [".and", ".or", ".xor"][turn % 3]):
                    turn += 1
                    ftz = ".ftz" if kind in ("f32", "f16", "f16x2") and turn % 5 == 0 else ""
                    bits = 16 if target in ("f16", "bf16", "u16", "s16") else 32
                    head = f".reg .pred p; setp.lt.s32 p, %3, 0; " if bool_op else ""
                    tail = ", !p" if bool_op and turn % 4 == 0 else ", p" if bool_op else ""
                    yield f"{head}set.{compare}{bool_op}{ftz}.{target}.{source} %0, %1, %2{tail};", kind, bits
        for compare in compares:
            for bool_op in ("", ".and", ".or", ".xor"):
                turn += 1
                ftz = ".ftz" if kind in ("f32", "f16", "f16x2") and turn % 3 == 0 else ""
                third = ", r" if bool_op else ""
                word = f"setp.lt.s32 r, %3, 0; setp.{compare}{bool_op}{ftz}.{source}"
                if kind in ("f16", "bf16"):              # these have one destination
                    yield f".reg .pred p, r; {word} p, %1, %2{third}; selp.u32 %0, 1, 0, p;", kind, 32
                else:
                    yield (f".reg .pred p, q, r; .reg .b32 x; {word} p|q, %1, %2{third}; "
                           "selp.u32 x, 2, 0, q; selp.u32 %0, 1, 0, p; add.u32 %0, %0, x;"), kind, 32


def others():
    for byte in ("s8", "u8"):
        for rounding in ("rni", "rzi", "rmi", "rpi"):
            for ftz in ("", ".ftz"):
                for sat in ("", ".sat"):
                    yield f"cvt.{rounding}{ftz}{sat}.{byte}.f32 %0, %1;", ["f32_a"], 32
            yield f"cvt.{rounding}.{byte}.bf16 %0, %1;", ["bf16_a"], 8
            yield f"cvt.{rounding}.{byte}.f64 %0, %1;", ["f64_a"], 32
            yield f"cvt.{rounding}.{byte}.f16 %0, %1;", ["f16_a"], 32
        for rounding in ("rn", "rz", "rm", "rp"):
            for ftz in ("", ".ftz", ".sat"):
                yield f"cvt.{rounding}{ftz}.f32.{byte} %0, %1;", ["i32_a"], 32
            yield f"cvt.{rounding}.bf16.{byte} %0, %1;", ["i8_a"], 16
    for rounding in ("rn", "rz", "rm", "rp"):
        for kind, bits in (("bf16", 16), ("bf16x2", 32), ("f16", 16)):
            yield f"fma.{rounding}.{kind} %0, %1, %2, %3;", [f"{kind}_a", f"{kind}_b", f"{kind}_c"], bits
        yield f"rcp.{rounding}.ftz.f64 %0, %1;", ["f64_a"], 64
        yield f"rcp.{rounding}.f64 %0, %1;", ["f64_a"], 64
    for t in ("u32", "s32", "u64", "s64"):
        names = [f"i{t[1:]}_{x}" for x in "abc"]
        yield f".reg .b{t[1:]} x; mad.hi.cc.{t} x, %1, %2, %3; addc.{t} %0, x, 0;", names, int(t[1:])
        yield f"mad.hi.cc.{t} %0, %1, %2, %3;", names, int(t[1:])


def elementwise():
    """(text, names of the inputs, bits of the destination)"""
    for text in video():
        yield text, ["i32_a", "i32_b", "i32_c"], 32
    for text, kind, bits in comparisons():
        yield text, [f"{kind}_a", f"{kind}_b", "i32_c"], bits
    yield from others()


def elementwise_kernel(name, text, inputs, bits):
    declare = f".reg .b{bits} %out; "
    text = text.replace("%0", "%out")
    lines = ["ld.param.u64 %po, [o]; mov.u32 %t, %tid.x;"]
    for k, source in enumerate(inputs):
        w = width(source)
        declare += f".reg .b{w} %in{k + 1}; "
        text = text.replace(f"%{k + 1}", f"%in{k + 1}")
        lines.append(f"ld.param.u64 %pi, [i{k}]; mad.wide.u32 %pi, %t, {w // 8}, %pi; ld.global.b{w} %in{k + 1}, [%pi];")
    lines += ["{ " + text + " }", f"mad.wide.u32 %po, %t, {bits // 8}, %po; st.global.b{bits} [%po], %out; ret;"]
    params = ", ".join(f".param .u64 {p}" for p in ["o"] + [f"i{k}" for k in range(len(inputs))])
    return (f".visible .entry {name}({params}) {{ .reg .b64 %po, %pi; .reg .b32 %t; {declare}"
            + " ".join(lines) + " }")


# ------------------------------------------------------------------------------------------------ kernels
def atomic_text(op, kind, vector, bits, reduce_only, cas=False):
    """Every thread has a word (vector) of its own: memory before and operand from the input; old and new go out."""
    span = bits // 8 * vector
    names = lambda p: "{" + ", ".join(f"%{p}{i}" for i in range(vector)) + "}" if vector > 1 else f"%{p}0"
    v = f".v{vector}" if vector > 1 else ""
    memory_v = lambda: ".v4.b32" if span == 16 else ".v2.b32" if span == 8 else f".b{span * 8}"
    word = f"{'red' if reduce_only else 'atom'}.relaxed.gpu.global.{op}{'.noftz' if 'f16' in kind else ''}{v}.{kind}"
    registers = f".reg .b{bits} %o<8>, %x<8>, %c<8>; .reg .b{min(bits, 64)} %z;"
    move = lambda frm, to: "".join(
        f"ld.global.b{bits} %c0, [{frm}+{i * bits // 8}]; st.global.b{bits} [{to}+{i * bits // 8}], %c0; "
        for i in range(vector))
    load = "".join(f"ld.global.b{bits} %x{i}, [%b+{i * bits // 8}]; " for i in range(vector))
    third = f"ld.global.b{bits} %c1, [%b+{32 * span}]; " if cas else ""
    operands = names("x") + (", %c1" if cas else "")
    act = f"{word} [%n], {operands}; " if reduce_only else f"{word} {names('o')}, [%n], {operands}; "
    # atom returns the old value; with red the initial value is what the first part keeps
    old = "" if reduce_only else "".join(f"st.global.b{bits} [%p+{i * bits // 8}], %o{i}; " for i in range(vector))
    return (f".visible .entry k(.param .u64 p0, .param .u64 p1) {{ .reg .b64 %a, %b, %p, %n; .reg .b32 %t; {registers} "
            f"ld.param.u64 %a, [p0]; ld.param.u64 %p, [p1]; mov.u32 %t, %tid.x; mad.wide.u32 %a, %t, {span}, %a; "
            f"mad.wide.u32 %p, %t, {span}, %p; add.s64 %b, %a, {32 * span}; add.s64 %n, %p, {32 * span}; "
            f"{move('%a', '%p')}{move('%a', '%n')}{load}{third}{act}{old}ret; }}"), 64 * span


def atomics():
    """(text, kind of the input, bytes out, cluster)"""
    for reduce_only in (False, True):
        for op in ("add", "min", "max"):
            for kind, vectors in (("f16", (2, 4, 8)), ("bf16", (2, 4, 8)), ("f16x2", (2, 4)), ("bf16x2", (2, 4))):
                for vector in vectors:
                    text, size = atomic_text(op, kind, vector, 32 if "x2" in kind else 16, reduce_only)
                    yield text, kind.replace("x2", ""), size, 1
        for vector in (1, 2, 4):
            text, size = atomic_text("add", "f32", vector, 32, reduce_only)
            yield text, "f32", size, 1
        for kind, bits in (("f16", 16), ("bf16", 16), ("f16x2", 32), ("bf16x2", 32), ("f64", 64)):
            text, size = atomic_text("add", kind, 1, bits, reduce_only)
            yield text, kind.replace("x2", ""), size, 1
        for op, kinds in (("add", "u32 s32 u64"), ("inc", "u32"), ("dec", "u32"), ("min", "u32 s32 u64 s64"),
                          ("max", "u32 s32 u64 s64"), ("and", "b32 b64"), ("or", "b32 b64"), ("xor", "b32 b64")):
            for kind in kinds.split():
                text, size = atomic_text(op, kind, 1, int(kind[1:]), reduce_only)
                yield text, "i" + kind[1:], size, 1
    for bits in (32, 64, 128):
        text, size = atomic_text("exch", f"b{bits}", 1, bits, False)
        yield text, "i64", size, 1
    for bits in (16, 32, 64):
        text, size = atomic_text("cas", f"b{bits}", 1, bits, False, cas=True)
        yield text, f"i{bits}", size, 1


def async_text(word, bits, vector):
    """Thread t of each CTA sends its element to the other CTA's shared memory, whose word it joins; all shared bytes
    and whether the phase ended go out."""
    span = bits // 8 * vector
    value = "{" + ", ".join(f"%x{i}" for i in range(vector)) + "}" if vector > 1 else "%x0"
    return (".visible .entry k(.param .u64 p0, .param .u64 p1) { .reg .b64 %a, %b, %p, %bar64; .reg .pred %q; "
            f".reg .b32 %t, %r, %s, %m, %peer, %pb, %far, %zero; .reg .b{bits} %x<4>, %y; "
            f".shared .align 16 .b8 tile[{32 * span}]; .shared .align 8 .b64 bar; "
            "ld.param.u64 %a, [p0]; ld.param.u64 %p, [p1]; mov.u32 %t, %tid.x; mov.u32 %r, %cluster_ctarank; "
            f"mad.wide.u32 %a, %t, {span}, %a; mov.u32 %s, tile; mad.lo.u32 %s, %t, {span}, %s; "
            + "".join(f"ld.global.b{bits} %y, [%a+{i * bits // 8}]; st.shared.b{bits} [%s+{i * bits // 8}], %y; "
                      for i in range(vector)) +
            "mov.u32 %m, bar; setp.ne.u32 %q, %t, 0; @%q bra ready; mbarrier.init.shared::cta.b64 [%m], 1; "
            f"mbarrier.arrive.expect_tx.shared::cta.b64 %bar64, [%m], {32 * span}; "
            "ready: fence.mbarrier_init.release.cluster; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; "
            "xor.b32 %peer, %r, 1; mapa.shared::cluster.u32 %far, %s, %peer; mapa.shared::cluster.u32 %pb, %m, %peer; "
            f"mul.wide.u32 %b, %r, {16 * span}; add.s64 %b, %a, %b; "
            + "".join(f"ld.global.b{bits} %x{i}, [%b+{32 * span + i * bits // 8}]; " for i in range(vector)) +
            f"{word} [%far], {value}, [%pb]; "
            "again: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %q, [%m], 0; @!%q bra again; "
            f"mul.wide.u32 %b, %r, {32 * span}; add.s64 %p, %p, %b; mad.wide.u32 %p, %t, {span}, %p; "
            + "".join(f"ld.shared.b{bits} %y, [%s+{i * bits // 8}]; st.global.b{bits} [%p+{i * bits // 8}], %y; "
                      for i in range(vector)) +
            "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; ret; }"), 64 * span


def remote():
    tail = "shared::cluster.mbarrier::complete_tx::bytes"
    for kind in ("b32", "b64", "u32", "u64", "s32", "s64", "f32", "f64"):
        for vector in (1, 2, 4):
            bits = int(kind[1:])
            if bits * vector > 128:
                continue
            v = f".v{vector}" if vector > 1 else ""
            for weak in ("", ".weak"):
                text, size = async_text(f"st.async{weak}.{tail}{v}.{kind}", bits, vector)
                yield text, "i64", size, 2
    for op, kinds in (("add", "u32 s32 u64"), ("inc", "u32"), ("dec", "u32"), ("min", "u32 s32"), ("max", "u32 s32"),
                      ("and", "b32"), ("or", "b32"), ("xor", "b32")):
        for kind in kinds.split():
            text, size = async_text(f"red.async.relaxed.cluster.{tail}.{op}.{kind}", int(kind[1:]), 1)
            yield text, "i" + kind[1:], size, 2


# ------------------------------------------------------------------------------------------------ writing
def assemble(kernels, folder):
    """Drops kernels that ptxas refuses; returns their names with the reason."""
    refused = {}
    while True:
        lines = [".version 9.0", ".target sm_90a", ".address_size 64"] + [t for n, t in kernels if n not in refused]
        names = [None] * 3 + [n for n, _ in kernels if n not in refused]
        (folder / "forms.ptx").write_text("\n".join(lines) + "\n")
        run = subprocess.run(["ptxas", "-arch=sm_90a", "-O1", "-o", folder / "forms.cubin", folder / "forms.ptx"],
                             capture_output=True, text=True)
        bad = {names[int(m.group(1)) - 1]: m.group(2)
               for m in re.finditer(r"line (\d+); error\s*: (.*)", run.stderr)}
        if run.returncode == 0:
            return refused
        if not bad:
            sys.exit(run.stderr[:2000])
        refused.update(bad)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = Path(sys.argv[1])
    arrays = edge_arrays()
    blob, places = bytearray(), {}
    for name, values in arrays.items():
        w = width(name) // 8
        places[name] = {"offset": len(blob), "dtype": f"u{8 * w}", "shape": [len(values)]}
        for v in values:
            blob += v.to_bytes(w, "little")
        blob += bytes(-len(blob) % 16)
    for kind in EDGES:                     # what kernels read: 8 KiB of edge values
        if kind == "i8":
            continue
        w = BITS[kind] // 8
        values = [rng.choice(EDGES[kind]) if i % 4 else rng.getrandbits(8 * w) for i in range(8192 // w)]
        places[kind] = {"offset": len(blob), "dtype": f"u{8 * w}", "shape": [len(values)]}
        blob += b"".join(v.to_bytes(w, "little") for v in values)
    cases, kernels = [], []
    for text, inputs, bits in elementwise():
        inputs = [name for k, name in enumerate(inputs) if f"%{k + 1}" in text]
        name = f"f{len(cases)}"
        kernels.append((name, elementwise_kernel(name, text, inputs, bits)))
        cases.append(({"ptx": text, "inputs": inputs}, inputs, N * bits // 8, f"u{bits}", N, N, 1))
    for text, kind, size, cluster in list(atomics()) + list(remote()):
        name = f"f{len(cases)}"
        kernels.append((name, text.replace("entry k(", f"entry {name}(")))
        cases.append(({"kind": "kernel", "ptx": text, "in": kind, "cluster": cluster}, [kind], size, "u8", size, 32,
                      cluster))
    refused = assemble(kernels, folder)
    at, tests, lines = 0, [], []
    for (name, _), (case, inputs, size, kind, count, threads, cluster) in zip(kernels, cases):
        if name in refused:
            continue
        tests.append(dict(case, out={"offset": at, "dtype": kind, "shape": [count]}))
        first = 1 if "kind" in case else 0
        offsets = [places[i]["offset"] for i in inputs]
        lines.append(" ".join(map(str, [name, first, threads, cluster, size, len(offsets)] + offsets)))
        at += size + (-size % 16)
    (folder / "forms.list").write_text("\n".join(lines) + "\n")
    (folder / "forms.in.bin").write_bytes(blob)
    (folder / "forms.json").write_text(json.dumps({"group": "forms", "arrays": places, "tests": tests}))
    texts = dict(kernels)
    print(f"{len(tests)} cases, {at} bytes; ptxas refuses {len(refused)}:")
    seen = set()
    for name, reason in refused.items():
        text = cases[int(name[1:])][0]["ptx"]
        word = re.sub(r"^\.reg.*?; (?=set|mad)", "", text).split(" ")[0] if len(text) < 200 else "a kernel"
        if (word, reason) not in seen:
            seen.add((word, reason))
            print("  ", word, "|", reason[:150])


main()
