'use strict';
// The report's data, the state that its address holds, and small helpers. All texts come from
// candidates and models: they become text nodes, never markup.

const D = JSON.parse(document.getElementById('data').textContent);
document.getElementById('data').remove();

const LEVEL_TEXT = ['no code found', 'does not compile', 'does not run', 'wrong values', 'generic instructions',
  'right instructions', 'as fast as the library', 'other'];

// Where each trajectory's turns begin, and each turn's trajectory.
const trajectories = (() => {
  const count = D.trajectories.turns, first = new Uint32Array(count.length + 1);
  for (let i = 0; i < count.length; ++i) first[i + 1] = first[i] + count[i];
  const group = new Uint32Array(count.length);
  D.groups.forEach((g, i) => group.fill(i, g.first, g.first + g.count));
  const ofTurn = new Uint32Array(first[count.length]);
  for (let i = 0; i < count.length; ++i) ofTurn.fill(i, first[i], first[i + 1]);
  return {first, group, ofTurn, name: D.trajectories.name, count};
})();

const CORRECT = D.labels.indexOf('Correct');

// ---- state: what the address after '#' says ----------------------------------------------------

const FACETS = ['model', 'arch', 'definition'];
const DEFAULTS = {view: 'overview', model: [], arch: [], definition: [], q: '', level: '', sort: '', t: '', turn: '',
  base: '', pane: '', limit: '8', measure: 'correct', a: '', b: ''};
const state = {...DEFAULTS};

function readAddress() {
  const address = new URLSearchParams(location.hash.slice(1));
  for (const key of Object.keys(DEFAULTS))
    state[key] = FACETS.includes(key) ? address.getAll(key) : address.get(key) ?? DEFAULTS[key];
}

function writeAddress(replace) {
  const address = new URLSearchParams();
  for (const [key, value] of Object.entries(state))
    if (Array.isArray(value)) value.forEach(v => address.append(key, v));
    else if (value !== DEFAULTS[key]) address.set(key, value);
  const hash = '#' + address.toString();
  if (hash !== location.hash) history[replace ? 'replaceState' : 'pushState'](null, '', hash);
}

// ---- filters -----------------------------------------------------------------------------------

const modelName = g => g.prompt ? `${g.model} [${g.prompt}]` : g.model || '(model not given)';
const facetValue = {model: modelName, arch: g => g.arch, definition: g => g.definition};

function groupsShown() {
  const wanted = FACETS.filter(f => state[f].length).map(f => [facetValue[f], new Set(state[f])]);
  return D.groups.map((g, i) => i).filter(i => wanted.every(([value, set]) => set.has(value(D.groups[i]))));
}

const by = (items, key) => {
  const map = new Map();
  for (const item of items) {
    const k = key(item);
    if (!map.has(k)) map.set(k, []);
    map.get(k).push(item);
  }
  return map;
};

// ---- numbers and texts -------------------------------------------------------------------------

// Wilson score interval, as in the tables.
function wilson(k, n) {
  if (!n) return [0, 1];
  const z = 1.959963984540054, p = k / n, scale = 1 + z * z / n;
  const half = z * Math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)), mid = p + z * z / (2 * n);
  return [k ? (mid - half) / scale : 0, k < n ? (mid + half) / scale : 1];
}

function format(value, kind) {
  if (value === null || value === undefined || value === '') return '–';
  if (typeof value === 'string') return visible(value);
  if (kind === 'ratio') return (100 * value).toFixed(1) + ' %';
  if (kind === 'count') return value.toLocaleString('en-US');
  const size = Math.abs(value);
  return size !== 0 && (size < 1e-3 || size >= 1e6) ? value.toExponential(2) : String(+value.toPrecision(4));
}

// Characters that reorder or hide text are shown by their number.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;
const visible = text => text.replace(HIDDEN, c =>
  '⟦U+' + c.codePointAt(0).toString(16).toUpperCase().padStart(4, '0') + '⟧');

// For labels in plots, where the library reads a few tags.
const plain = text => visible(String(text)).replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');

// el('p', {class: 'x', onclick: f}, 'text', node, ...)
function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes))
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, '');
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  node.append(...children.filter(c => c !== null && c !== undefined));
  return node;
}

const say = text => { document.getElementById('status').textContent = text; };

function levelMark(level) {
  return el('span', {class: 'level l' + level, title: LEVEL_TEXT[level]}, D.levels[level]);
}

// ---- documents ---------------------------------------------------------------------------------

const unpacked = new Map();

// Sources and verdicts of a trajectory by turn, or null if the report holds none.
async function documentsOf(trajectory) {
  const packed = D.documents[trajectory];
  if (packed === undefined) return null;
  if (!unpacked.has(trajectory)) {
    const bytes = Uint8Array.from(atob(packed), c => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
    unpacked.set(trajectory, JSON.parse(await new Response(stream).text()));
  }
  return unpacked.get(trajectory);
}
