'use strict';
// The lines of two texts that differ: the shortest edit script (E. W. Myers, Algorithmica 1, 1986),
// after common beginnings and ends are taken off. Past a bound on the edits, everything in between
// counts as replaced.

const MAX_EDITS = 3000;

// [[' ' | '-' | '+', line in a or -1, line in b or -1], ...]
function diffLines(a, b) {
  let start = 0, endA = a.length, endB = b.length;
  while (start < endA && start < endB && a[start] === b[start]) ++start;
  while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) --endA, --endB;
  const script = [];
  for (let i = 0; i < start; ++i) script.push([' ', i, i]);
  script.push(...middle(a.slice(start, endA), b.slice(start, endB)).map(([op, i, j]) =>
    [op, i < 0 ? -1 : i + start, j < 0 ? -1 : j + start]));
  for (let i = endA; i < a.length; ++i) script.push([' ', i, i - endA + endB]);
  return script;
}

function middle(a, b) {
  const n = a.length, m = b.length, most = Math.min(n + m, MAX_EDITS), trace = [];
  const v = new Int32Array(2 * most + 3), zero = most + 1;
  for (let d = 0; d <= most; ++d) {
    trace.push(v.slice(zero - d - 1, zero + d + 2));
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && v[zero + k - 1] < v[zero + k + 1]);
      let x = down ? v[zero + k + 1] : v[zero + k - 1] + 1, y = x - k;
      while (x < n && y < m && a[x] === b[y]) ++x, ++y;
      v[zero + k] = x;
      if (x >= n && y >= m) return backtrack(trace, n, m);
    }
  }
  return [...a.map((_, i) => ['-', i, -1]), ...b.map((_, j) => ['+', -1, j])];
}

function backtrack(trace, x, y) {
  const script = [];
  for (let d = trace.length - 1; d >= 0; --d) {
    const v = trace[d], at = k => v[k + d + 1], k = x - y;
    const down = k === -d || (k !== d && at(k - 1) < at(k + 1));
    const before = down ? k + 1 : k - 1, px = d === 0 ? 0 : at(before), py = d === 0 ? 0 : px - before;
    while (x > px && y > py) script.push([' ', --x, --y]);
    if (d > 0) script.push(down ? ['+', -1, --y] : ['-', --x, -1]);
  }
  return script.reverse();
}
