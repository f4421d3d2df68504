#!/bin/sh
# Compiles the sources in this folder to the PTX that the tests read. Needs nvcc 13.0. Works in a folder
# of its own, because debug information holds the path.
set -e
cd "$(dirname "$0")"
here=$PWD
rm -rf /tmp/corpus
mkdir /tmp/corpus
cp ./*.cu /tmp/corpus
cd /tmp/corpus
for name in templates calls memory warps numbers math hopper; do
  nvcc -std=c++17 -arch=sm_90a -ptx "$name.cu" -o "$name.ptx"
done
nvcc -std=c++17 -arch=sm_90a -lineinfo -ptx lines.cu -o lines_lineinfo.ptx
nvcc -std=c++17 -arch=sm_90a -G -ptx lines.cu -o lines_debug.ptx
nvcc -std=c++17 -arch=sm_90a -rdc=true -ptx calls.cu -o calls_rdc.ptx
nvcc -std=c++17 -arch=sm_80 -ptx math.cu -o math_sm80.ptx
nvcc -std=c++17 -arch=sm_100a -ptx blackwell.cu -o blackwell.ptx
cp ./*.ptx "$here"
rm -rf /tmp/corpus
