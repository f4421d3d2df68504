'use strict';
// Views, filters, colours, keys.

const VIEWS = {
  overview: {title: 'Overview', filters: FACETS, show: overview},
  results: {title: 'Results', filters: [...FACETS, 'q'], show: results},
  turns: {title: 'Turns', filters: [...FACETS, 'level', 'q'], show: turnsView},
  compare: {title: 'Compare', filters: [], show: compareView},
  tables: {title: 'Tables', filters: ['model', 'arch'], show: tablesView},
  notes: {title: 'Notes', filters: [], show: notesView},
  trajectory: {title: 'Trajectory', filters: [], show: trajectoryView},
};

const main = document.getElementById('main');

// ---- filters -----------------------------------------------------------------------------------

function facet(name, title) {
  const values = [...new Set(D.groups.map(facetValue[name]))].sort();
  const text = () => state[name].length ? `${title}: ${state[name].length} of ${values.length}` : `${title}: all`;
  const summary = el('summary', {}, text());
  const change = () => {
    state[name] = [...box.querySelectorAll('input:checked')].map(i => i.value);
    summary.textContent = text();
    filtersChanged();
  };
  const box = el('div', {class: 'choices'}, ...values.map(v => el('label', {}, el('input', {type: 'checkbox', value: v, checked: state[name].includes(v), onchange: change}), ' ', visible(v) || '–')),
    el('button', {type: 'button', class: 'quiet', onclick: () => { box.querySelectorAll('input').forEach(i => { i.checked = false; }); change(); }}, 'All'));
  return el('details', {class: 'facet', 'data-facet': name}, summary, box);
}

const filterNodes = {
  model: () => facet('model', 'Model'),
  arch: () => facet('arch', 'Architecture'),
  definition: () => facet('definition', 'Task'),
  level: () => el('label', {}, 'Level ', el('select', {id: 'f-level', onchange: e => { state.level = e.target.value; filtersChanged(); }},
    el('option', {value: ''}, 'all'), ...D.levels.map((l, i) => el('option', {value: String(i), selected: state.level === String(i)}, l)))),
  q: () => el('label', {}, 'Search ', el('input', {id: 'f-q', type: 'search', value: state.q, placeholder: 'run, task, label …', oninput: e => { state.q = e.target.value; filtersChanged(); }})),
};

let waiting = 0;
let refresh = () => {};  // what the current view does when filters change
function filtersChanged() {
  writeAddress(true);
  cancelAnimationFrame(waiting);
  waiting = requestAnimationFrame(() => refresh());
}

// ---- views -------------------------------------------------------------------------------------

const sum = (groups, value) => groups.reduce((s, g) => s + value(D.groups[g]), 0);

function tiles() {
  const groups = groupsShown(), n = sum(groups, g => g.count);
  const turns = groups.reduce((s, g) => s + trajectories.first[D.groups[g].first + D.groups[g].count] - trajectories.first[D.groups[g].first], 0);
  const best = Math.max(0, ...groups.map(g => D.groups[g].rates[2][2] ?? 0));
  const tile = (value, text) => el('div', {class: 'tile'}, el('b', {}, value), el('span', {}, text));
  return [tile(format(turns, 'count'), 'turns'), tile(format(n, 'count'), 'trajectories'), tile(String(new Set(groups.map(g => D.groups[g].definition + D.groups[g].workload)).size), 'tasks'),
    tile(String(new Set(groups.map(g => D.groups[g].model)).size), 'models'), tile(n ? format(sum(groups, g => g.rates[2][0]) / n, 'ratio') : '–', 'right within 8 turns'),
    tile(n ? format(sum(groups, g => g.rates[2][1]) / n, 'ratio') : '–', 'with the architecture’s instructions'), tile(best ? format(best) + '×' : '–', 'best speed-up')];
}

function measureSwitch() {
  const choice = (value, text) => el('label', {}, el('input', {type: 'radio', name: 'measure', value, checked: state.measure === value, onchange: () => { state.measure = value; filtersChanged(); }}), ' ', text);
  return el('fieldset', {class: 'measure'}, el('legend', {class: 'hidden'}, 'Rates of'), choice('correct', 'right answers'), choice('arch', 'right, with the architecture’s instructions'));
}

function overview() {
  const strip = el('div', {class: 'tiles'}, ...tiles());
  refresh = () => { strip.replaceChildren(...tiles()); redrawPlots(); };
  return el('div', {}, strip, measureSwitch(), el('div', {class: 'plots'}, ...['rates', 'levels', 'alluvial', 'repairs', 'best', 'fast', 'tokens', 'dates', 'sizes'].map(plotCard)));
}

const groupText = D.groups.map(g => [g.run, modelName(g), g.arch, g.definition, g.workload, g.task].join(' ').toLowerCase());
const sortable = table => Object.assign(table, {onsort: sort => { state.sort = sort; writeAddress(true); }});

function rateCell(k, n) {
  const [low, high] = wilson(k, n), bar = el('span', {class: 'bar', 'aria-hidden': 'true'});
  bar.style.setProperty('--from', 100 * low + '%');
  bar.style.setProperty('--to', 100 * high + '%');
  bar.style.setProperty('--at', 100 * k / n + '%');
  return el('span', {class: 'rate', title: `95 %: ${format(low, 'ratio')} to ${format(high, 'ratio')}`}, bar, `${k}/${n}`);
}

function results() {
  const G = i => D.groups[i];
  const columns = [{name: 'model', header: 'model', kind: 'text', value: i => modelName(G(i))}, {name: 'arch', header: 'arch', kind: 'text', value: i => G(i).arch},
    {name: 'task', header: 'task', kind: 'text', value: i => G(i).task || G(i).definition}, {name: 'run', header: 'run', kind: 'text', value: i => G(i).run},
    ...D.limits.flatMap((limit, l) => [{name: 'rate' + limit, header: `right at ${limit}`, kind: 'ratio', value: i => G(i).rates[l][0] / G(i).count, cell: i => rateCell(G(i).rates[l][0], G(i).count)},
      {name: 'arch' + limit, header: `instr. at ${limit}`, kind: 'ratio', value: i => G(i).rates[l][1] / G(i).count, cell: i => rateCell(G(i).rates[l][1], G(i).count)},
      {name: 'best' + limit, header: `speed at ${limit}`, kind: 'number', value: i => G(i).rates[l][2]}])];
  const table = sortable(new BigTable({columns, label: 'Results per run and task', sort: state.sort, height: '74vh', open: i => {
    Object.assign(state, {...DEFAULTS, view: 'turns', model: [modelName(G(i))], arch: [G(i).arch], definition: [G(i).definition], q: G(i).run});
    writeAddress();
    render();
  }}));
  const count = el('p', {class: 'note'});
  refresh = () => {
    const q = state.q.toLowerCase(), rows = groupsShown().filter(i => groupText[i].includes(q));
    count.textContent = `${format(rows.length, 'count')} of ${format(D.groups.length, 'count')} results; a row opens its turns. Bars: 95 % Wilson interval.`;
    table.show(rows);
  };
  return el('section', {class: 'card'}, el('h2', {}, 'Results per run and task'), count, table.node);
}

function turnsView() {
  const T = D.turns, group = i => D.groups[trajectories.group[trajectories.ofTurn[i]]];
  const columns = [{name: 'model', header: 'model', kind: 'text', value: i => modelName(group(i))}, {name: 'arch', header: 'arch', kind: 'text', value: i => group(i).arch},
    {name: 'task', header: 'task', kind: 'text', value: i => group(i).task || group(i).definition}, {name: 'run', header: 'run', kind: 'text', value: i => group(i).run},
    {name: 'trajectory', header: 'trajectory', kind: 'text', value: i => trajectories.name[trajectories.ofTurn[i]]}, {name: 'turn', header: 'turn', kind: 'count', value: i => T.index[i]},
    {name: 'level', header: 'level', kind: 'text', value: i => T.level[i] + D.levels[T.level[i]], cell: i => levelMark(T.level[i])}, {name: 'label', header: 'label', kind: 'text', value: i => D.labels[T.label[i]]},
    {name: 'reason', header: 'reason', kind: 'text', value: i => D.reasons[T.reason[i]]}, {name: 'speedup', header: 'speed-up', kind: 'number', value: i => T.label[i] === CORRECT ? T.speedup[i] : null},
    {name: 'tag', header: 'instr.', kind: 'text', value: i => D.tags[T.tag[i]]}, {name: 'tokens', header: 'tokens', kind: 'count', value: i => T.tokens[i] < 0 ? null : T.tokens[i]}];
  const table = sortable(new BigTable({columns, label: 'All turns', sort: state.sort, height: '74vh', open: i => openTrajectory(trajectories.ofTurn[i], T.index[i])}));
  const count = el('p', {class: 'note'});
  const labels = D.labels.map(s => s.toLowerCase()), reasons = D.reasons.map(s => s.toLowerCase());
  refresh = () => {
    const q = state.q.toLowerCase(), rows = [];
    for (const g of groupsShown()) {
      const all = groupText[g].includes(q), {first, count: n} = D.groups[g];
      for (let t = first; t < first + n; ++t) {
        const named = all || trajectories.name[t].toLowerCase().includes(q);
        for (let i = trajectories.first[t]; i < trajectories.first[t + 1]; ++i)
          if ((state.level === '' || T.level[i] === Number(state.level)) && (named || labels[T.label[i]].includes(q) || reasons[T.reason[i]].includes(q))) rows.push(i);
      }
    }
    count.textContent = `${format(rows.length, 'count')} of ${format(T.index.length, 'count')} turns; a row opens its trajectory.`;
    say(count.textContent);
    table.show(rows);
  };
  return el('section', {class: 'card'}, el('h2', {}, 'Turns'), count, table.node);
}

function compareView() {
  const table = D.tables.comparisons, at = Object.fromEntries(table.columns.map((c, i) => [c.name, i]));
  const names = [...new Set(table.rows.flatMap(r => [r[at.a], r[at.b]]))].sort();
  const pick = (key, text) => el('label', {}, text + ' ', el('select', {id: 'compare-' + key, onchange: e => { state[key] = e.target.value; writeAddress(true); refresh(); }},
    el('option', {value: ''}, 'any'), ...names.map(n => el('option', {value: n, selected: state[key] === n}, visible(n)))));
  const chart = el('div', {class: 'chart', role: 'img', id: 'plot-compare'});
  const columns = table.columns.map((c, i) => ({...c, value: row => row[i]}));
  const big = new BigTable({columns, label: table.title, height: '46vh'});
  refresh = () => {
    const wanted = [state.a, state.b].filter(Boolean);
    const rows = table.rows.filter(r => wanted.every(n => r[at.a] === n || r[at.b] === n));
    big.show(rows);
    drawComparisons(chart, rows.slice(0, 30), at);
  };
  chart.draw = () => refresh();
  chart.stale = false;
  seen.observe(chart);
  return el('div', {}, el('section', {class: 'card'}, el('h2', {}, table.title), el('p', {class: 'note'}, table.note), el('div', {class: 'row'}, pick('a', 'Compare'), pick('b', 'with')), chart, big.node));
}

function drawComparisons(chart, rows, at) {
  const name = r => plain(`${r[at.a]} − ${r[at.b]} · ${r[at.arch]}`), label = r => plain(`${short(r[at.a])} − ${short(r[at.b])} · ${r[at.arch]}`);
  const sure = r => r[at.difference_low] !== null && (r[at.difference_low] > 0 || r[at.difference_high] < 0);
  const height = Math.max(160, 70 + 22 * rows.length);
  chart.style.height = height + 'px';
  chart.setAttribute('aria-label', `Differences of rates for ${rows.length} pairs; the table below has the numbers.`);
  const interval = (r, end) => r[at[end]] === null ? 0 : Math.abs(r[at[end]] - r[at.difference]);
  Plotly.react(chart, [{type: 'scatter', mode: 'markers', x: rows.map(r => r[at.difference]), y: rows.map(name), marker: {size: 8, color: rows.map(r => sure(r) ? css('--accent') : css('--muted'))},
    error_x: {type: 'data', symmetric: false, array: rows.map(r => interval(r, 'difference_high')), arrayminus: rows.map(r => interval(r, 'difference_low')), thickness: 1.5, width: 3, color: css('--muted')},
    customdata: rows.map(r => [r[at.tasks], r[at.p]]), hovertemplate: '%{y}<br>%{x:+.1%} over %{customdata[0]} tasks, p = %{customdata[1]:.3f}<extra></extra>'}],
  themed({height, xaxis: {tickformat: '+.0%', zeroline: true, zerolinecolor: css('--muted')}, yaxis: {type: 'category', tickmode: 'array', tickvals: rows.map(name), ticktext: rows.map(label), automargin: true, autorange: 'reversed'}, margin: {l: 8, r: 12, t: 8, b: 36}}), {displayModeBar: false, responsive: true});
}

function tablesView() {
  const names = ['models', 'statistics', 'repairs', 'tokens', 'sizes', 'dates'], box = el('div', {class: 'stack'});
  refresh = () => {
    const models = new Set(state.model), archs = new Set(state.arch);
    const filter = columns => row => (!archs.size || archs.has(row[columns.indexOf('arch')])) &&
      (!models.size || models.has(modelName({model: row[columns.indexOf('model')], prompt: columns.includes('prompt') ? row[columns.indexOf('prompt')] : ''})));
    box.replaceChildren(...names.map(n => finishedTable(n, {filter, height: '42vh'})));
    box.querySelectorAll('.bigtable').forEach(node => node.dispatchEvent(new Event('scroll')));
  };
  return box;
}

function notesView() {
  refresh = () => {};
  const definitions = ['models', 'statistics', 'repairs', 'tokens', 'sizes', 'dates', 'comparisons'].map(n => D.tables[n]);
  const left = D.documentsLeftOut;
  return el('div', {class: 'stack'}, finishedTable('problems', {height: '50vh'}),
    el('section', {class: 'card'}, el('h2', {}, 'How things are counted'), el('p', {}, 'A trajectory counts once; “at n turns” means in any of its first n; rates are over all trajectories of a run.'),
      el('dl', {}, ...definitions.flatMap(t => [el('dt', {}, t.title), el('dd', {}, t.note)])), el('h3', {}, 'Levels'), el('dl', {class: 'facts'}, ...D.levels.flatMap((l, i) => [el('dt', {}, levelMark(i)), el('dd', {}, LEVEL_TEXT[i])])),
      el('p', {class: 'note'}, `Made on ${D.made}. Sources and verdicts of ${Object.keys(D.documents).length} trajectories are included` + (left ? `, those of ${left} more are not.` : '.'))));
}

// ---- the whole ---------------------------------------------------------------------------------

let shown = '';  // view whose filters are on the page

async function render() {
  const view = VIEWS[state.view] ?? VIEWS.overview, name = VIEWS[state.view] ? state.view : 'overview';
  document.getElementById('tabs').replaceChildren(...Object.entries(VIEWS).filter(([n]) => n !== 'trajectory' || name === n).map(([n, v]) =>
    el('button', {type: 'button', 'aria-current': n === name ? 'page' : null, 'data-view': n, onclick: () => { if (n === name) return; Object.assign(state, {view: n, sort: '', q: '', level: ''}); writeAddress(); render(); }}, v.title)));
  const filters = document.getElementById('filters');
  filters.replaceChildren(...view.filters.map(f => filterNodes[f]()));
  filters.hidden = !view.filters.length;
  seen.disconnect();
  document.querySelectorAll('.chart').forEach(chart => Plotly.purge(chart));
  const node = await view.show();
  main.replaceChildren(node);
  refresh();
  if (shown !== name) window.scrollTo(0, 0);
  shown = name;
  document.documentElement.dataset.ready = name;
}

function paintTheme(choice) {
  document.documentElement.dataset.theme = choice;
  const button = document.getElementById('theme');
  button.textContent = {auto: '◐ auto', light: '☀ light', dark: '☾ dark'}[choice];
  button.setAttribute('aria-label', `Colours: ${choice}`);
}

function setUp() {
  let theme = 'auto';
  try { theme = localStorage.getItem('ptxbench-theme') ?? 'auto'; } catch { /* private windows refuse */ }
  paintTheme(['auto', 'light', 'dark'].includes(theme) ? theme : 'auto');
  document.getElementById('theme').addEventListener('click', () => {
    const next = {auto: 'light', light: 'dark', dark: 'auto'}[document.documentElement.dataset.theme];
    try { localStorage.setItem('ptxbench-theme', next); } catch { /* as above */ }
    paintTheme(next);
    redrawPlots();
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redrawPlots);
  document.getElementById('skip').addEventListener('click', event => { event.preventDefault(); main.focus(); });
  // A facet's choices close on Escape and when the focus leaves them.
  document.addEventListener('keydown', event => {
    const open = document.querySelector('details.facet[open]');
    if (event.key === 'Escape' && open) { open.open = false; open.querySelector('summary').focus(); }
  });
  document.addEventListener('click', event => document.querySelectorAll('details.facet[open]').forEach(d => { if (!d.contains(event.target)) d.open = false; }));
  window.addEventListener('popstate', () => { Object.assign(state, DEFAULTS); readAddress(); render(); });
  window.addEventListener('resize', () => document.querySelectorAll('.bigtable').forEach(node => node.dispatchEvent(new Event('scroll'))));
  readAddress();
  // The first frame after the first view: from here on the page answers (bench/report).
  render().then(() => requestAnimationFrame(() => setTimeout(() => performance.mark('usable'))));
}

setUp();
