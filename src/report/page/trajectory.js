'use strict';
// One trajectory: its turns, a turn's verdict, the source with findings at their lines, and what
// changed since another turn.

const CONTEXT = 3;  // unchanged lines shown around a change

function turnsOf(t) {
  return Array.from({length: trajectories.count[t]}, (_, i) => trajectories.first[t] + i);
}

function openTrajectory(t, turn = '') {
  Object.assign(state, {view: 'trajectory', t: String(t), turn: String(turn), base: '', pane: ''});
  writeAddress();
  render();
}

// ---- source ------------------------------------------------------------------------------------

// A finding's or diagnostic's line in the candidate, through the inlining chain; 0: none.
function candidateLine(item, verdict) {
  const base = path => String(path ?? '').split('/').pop();
  const candidate = verdict?.candidate ?? {}, stem = base(candidate.name).replace(/\.[^.]*$/, '');
  const own = file => file === base(candidate.file ?? stem + '.cu') || file === base(candidate.name);
  const places = [item.source, ...(item.source?.inlined_at ?? [])];
  return places.find(p => p && p.line > 0 && own(base(p.file)))?.line ?? 0;
}

function notesByLine(verdict) {
  const notes = new Map();
  const add = (line, severity, title, text, hint) => {
    if (!notes.has(line)) notes.set(line, []);
    notes.get(line).push({severity, title, text, hint});
  };
  for (const f of verdict?.findings ?? []) add(candidateLine(f, verdict), f.severity, f.kind, f.message, f.hint);
  for (const d of verdict?.diagnostics ?? []) add(candidateLine(d, verdict), d.severity, d.tool, d.message, '');
  return notes;
}

function noteNode({severity, title, text, hint}) {
  return el('div', {class: 'finding ' + String(severity).replace(/\W/g, '')}, el('strong', {}, `${visible(String(severity))} ${visible(String(title))}`), ' ',
    visible(String(text ?? '')), hint ? el('div', {class: 'hint'}, 'hint: ' + visible(String(hint))) : null);
}

function sourcePane(documents) {
  const lines = documents.source.split('\n'), notes = notesByLine(documents.verdict);
  const rows = [];
  lines.forEach((line, i) => {
    const here = notes.get(i + 1);
    rows.push(el('div', {class: 'line' + (here ? ' hit' : ''), id: 'L' + (i + 1)}, el('span', {class: 'no'}, String(i + 1)), el('code', {}, visible(line) || ' ')));
    for (const note of here ?? []) rows.push(noteNode(note));
  });
  const box = el('div', {class: 'source', tabindex: 0, role: 'group', 'aria-label': 'Source of the candidate'}, ...rows);
  // Begins at the first finding.
  const hit = box.querySelector('.hit');
  if (hit) requestAnimationFrame(() => { box.scrollTop = hit.offsetTop - box.offsetTop - 120; });
  return box;
}

function diffPane(before, after) {
  const a = before.split('\n'), b = after.split('\n'), script = diffLines(a, b);
  const near = new Uint8Array(script.length);
  script.forEach(([op], i) => {
    if (op !== ' ') near.fill(1, Math.max(0, i - CONTEXT), i + CONTEXT + 1);
  });
  const rows = [];
  let skipped = 0;
  const flush = () => {
    if (skipped) rows.push(el('div', {class: 'line fold'}, `${skipped} unchanged lines`));
    skipped = 0;
  };
  script.forEach(([op, i, j], at) => {
    if (!near[at]) return void ++skipped;
    flush();
    const text = op === '+' ? b[j] : a[i];
    rows.push(el('div', {class: 'line ' + ({'+': 'plus', '-': 'minus'}[op] ?? '')}, el('span', {class: 'no'}, i < 0 ? '' : String(i + 1)),
      el('span', {class: 'no'}, j < 0 ? '' : String(j + 1)), el('span', {class: 'op'}, op), el('code', {}, visible(text) || ' ')));
  });
  flush();
  const changed = op => script.filter(s => s[0] === op).length;
  return el('div', {}, el('p', {class: 'note'}, `${changed('+')} lines added, ${changed('-')} removed`),
    el('div', {class: 'source diff', tabindex: 0, role: 'group', 'aria-label': 'Changes of the source'}, ...rows));
}

// ---- the view ----------------------------------------------------------------------------------

function turnChips(turns, current) {
  const chips = turns.map(i => {
    const speed = D.turns.speedup[i];
    return el('button', {type: 'button', class: 'chip l' + D.turns.level[i], 'aria-pressed': String(i === current), title: visible(D.labels[D.turns.label[i]]),
      onclick: () => chooseTurn(i)}, el('b', {}, 'turn ' + D.turns.index[i]), ' ', D.levels[D.turns.level[i]],
    D.turns.label[i] === CORRECT && speed !== null ? el('small', {}, ` ${format(speed)}×`) : null);
  });
  return el('div', {class: 'chips', role: 'group', 'aria-label': 'Turns', onkeydown: event => {
    const step = {ArrowRight: 1, ArrowLeft: -1}[event.key], next = turns[turns.indexOf(current) + step];
    if (next === undefined) return;
    event.preventDefault();
    chooseTurn(next);
  }}, ...chips);
}

function chooseTurn(i) {
  Object.assign(state, {turn: String(D.turns.index[i]), base: ''});
  writeAddress(true);
  render().then(() => document.querySelector('.chip[aria-pressed=true]')?.focus());
}

function facts(i) {
  const turns = D.turns, tokens = turns.tokens[i];
  const pairs = [['level', el('span', {}, levelMark(turns.level[i]), ' ', LEVEL_TEXT[turns.level[i]])], ['label', visible(D.labels[turns.label[i]])],
    ['reason', visible(D.reasons[turns.reason[i]]) || '–'], ['speed-up', format(turns.speedup[i])], ['instructions', visible(D.tags[turns.tag[i]]) || '–'],
    ['tokens', tokens < 0 ? '–' : format(tokens, 'count')]];
  return el('dl', {class: 'facts'}, ...pairs.flatMap(([name, value]) => [el('dt', {}, name), el('dd', {}, value)]));
}

function verdictPane(verdict) {
  const c = verdict.correctness;
  const list = (title, items) => items?.length ? el('div', {}, el('h3', {}, title), ...items) : null;
  const notes = [...notesByLine(verdict)].sort((x, y) => x[0] - y[0]);
  const families = Object.entries(verdict.evidence?.families ?? {}).sort((x, y) => (y[1].required - x[1].required) || (y[1].warps - x[1].warps));
  return el('div', {class: 'verdict'},
    list('Findings', notes.flatMap(([line, items]) => items.map(note => el('div', {class: 'at'},
      line ? el('a', {href: '#', onclick: event => (event.preventDefault(), showLine(line))}, 'line ' + line) : null, noteNode(note))))),
    c ? el('div', {}, el('h3', {}, 'Correctness'), el('p', {}, visible(`${c.verified ?? '–'} of ${c.total ?? '–'} elements compared; relative Frobenius error ${format(c.rel_frobenius)}, ` +
      `largest absolute error ${format(c.max_abs)}. ${c.why ?? ''} ${c.pattern ?? ''}`)), c.tile_map ? el('pre', {}, visible(String(c.tile_map))) : null) : null,
    families.length ? el('div', {}, el('h3', {}, 'Instructions executed'), el('table', {class: 'plain'}, el('thead', {}, el('tr', {}, ...['family', 'sites', 'warps', 'threads'].map((h, i) => el('th', {scope: 'col', class: i ? 'num' : ''}, h)))),
      el('tbody', {}, ...families.slice(0, 24).map(([name, f]) => el('tr', {}, el('td', {}, (f.required ? '★ ' : '') + visible(name)), ...[f.static, f.warps, f.threads].map(n => el('td', {class: 'num'}, format(n, 'count')))))))) : null,
    list('Notes', (verdict.notes ?? []).map(n => el('p', {}, visible(String(n))))),
    verdict.feedback ? el('div', {}, el('h3', {}, 'Feedback to the model'), el('pre', {}, visible(String(verdict.feedback)))) : null);
}

async function showLine(line) {
  state.pane = 'source';
  writeAddress(true);
  await render();
  document.getElementById('L' + line)?.scrollIntoView({block: 'center'});
}

function panes(documents, all, i, turns) {
  const own = documents[D.turns.index[i]] ?? {}, previous = turns.filter(j => j < i && all?.[D.turns.index[j]]?.source);
  const offers = [];
  if (own.verdict) offers.push(['verdict', 'Verdict', () => verdictPane(own.verdict)]);
  if (own.source) offers.push(['source', 'Source', () => sourcePane(own)]);
  if (own.source && previous.length) offers.push(['diff', 'Changes', () => {
    const base = previous.find(j => String(D.turns.index[j]) === state.base) ?? previous[previous.length - 1];
    const choose = el('select', {onchange: event => { state.base = event.target.value; writeAddress(true); render(); }},
      ...previous.map(j => el('option', {value: D.turns.index[j], selected: j === base}, 'turn ' + D.turns.index[j])));
    return el('div', {}, el('label', {}, 'since ', choose), diffPane(all[D.turns.index[base]].source, own.source));
  }]);
  if (!offers.length) return el('p', {class: 'note'}, 'No source or verdict of this turn is in the report.');
  const chosen = offers.find(([name]) => name === state.pane) ?? offers.find(([name]) => name === 'source') ?? offers[0];
  const tabs = offers.map(([name, title]) => el('button', {type: 'button', 'aria-pressed': String(name === chosen[0]), onclick: () => { state.pane = name; writeAddress(true); render(); }}, title));
  return el('div', {}, el('div', {class: 'panetabs', role: 'group', 'aria-label': 'What to show of the turn'}, ...tabs), chosen[2]());
}

async function trajectoryView() {
  const t = Number(state.t);
  if (state.t === '' || !Number.isInteger(t) || t < 0 || t >= trajectories.count.length)
    return el('p', {class: 'card'}, 'No such trajectory. Choose one from the turns.');
  const g = D.groups[trajectories.group[t]], turns = turnsOf(t), all = await documentsOf(t);
  const i = turns.find(j => String(D.turns.index[j]) === state.turn) ?? turns[turns.length - 1];
  const message = all?.[D.turns.index[i]]?.verdict?.message;
  const go = step => el('button', {type: 'button', class: 'quiet', disabled: t + step < 0 || t + step >= trajectories.count.length, onclick: () => openTrajectory(t + step)}, step < 0 ? '← previous' : 'next →');
  return el('section', {class: 'card trajectory'}, el('div', {class: 'row'}, el('h2', {}, visible(g.task || g.definition)), el('span', {class: 'grow'}), go(-1), go(1)),
    el('p', {class: 'note'}, visible(`${modelName(g)} · ${g.arch} · run ${g.run} · trajectory ${trajectories.name[t]}`)), turnChips(turns, i), facts(i),
    message ? el('p', {class: 'message'}, visible(String(message))) : null, panes(all ?? {}, all, i, turns));
}
