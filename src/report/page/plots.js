'use strict';
// The plots. Each is a function of the groups in view that returns {traces, layout, summary, side}; it is
// drawn when it comes into view, and again when filters or colours change.

const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const levelColours = () => D.levels.map((_, i) => css('--l' + i));
const PALETTE = ['#4477aa', '#ee6677', '#228833', '#ccaa22', '#66ccee', '#aa3377', '#ee8844', '#44aa99', '#999933',
  '#882255', '#88aadd', '#777777', '#cc6644', '#6655aa', '#117755', '#ddaa99'];
const modelOrder = [...new Set(D.groups.map(modelName))].sort();
const modelColour = model => PALETTE[modelOrder.indexOf(model) % PALETTE.length];
const multipleArchs = groups => new Set(groups.map(g => D.groups[g].arch)).size > 1;
const short = text => text.length > 34 ? `${text.slice(0, 17)}…${text.slice(-16)}` : text;
// An axis of names: told apart by the whole name, labelled with a short one.
const named = names => ({type: 'category', tickmode: 'array', tickvals: names.map(plain), ticktext: names.map(n => plain(short(n))), automargin: true});
const POINTS = 3000;  // more than that are thinned out, and the plot says so

function pooled(groups, key) {
  return [...by(groups, g => key(D.groups[g]))].sort(([a], [b]) => (a < b ? -1 : 1));
}

const PLOTS = {};

PLOTS.rates = {
  title: 'Rates by model',
  tall: true,
  note: 'Share of trajectories with a right answer in their first 1, 4 and 8 turns, pooled over the tasks in view; bars span the 95 % Wilson interval.',
  draw(groups) {
    const arch = state.measure === 'arch' ? 1 : 0, both = multipleArchs(groups);
    const models = pooled(groups, g => both ? `${modelName(g)} · ${g.arch}` : modelName(g));
    const traces = D.limits.map((limit, l) => {
      const rows = models.map(([name, list]) => {
        const n = list.reduce((s, g) => s + D.groups[g].count, 0);
        const k = list.reduce((s, g) => s + D.groups[g].rates[l][arch], 0);
        return {name, n, k, range: wilson(k, n)};
      });
      return {type: 'bar', orientation: 'h', name: limit === 1 ? '1 turn' : `${limit} turns`, y: rows.map(r => plain(r.name)),
        x: rows.map(r => r.k / r.n), customdata: rows.map(r => [plain(r.name), r.k, r.n, r.range[0], r.range[1]]),
        hovertemplate: '%{customdata[0]}<br>%{x:.1%} (%{customdata[1]} of %{customdata[2]})<br>95 %: %{customdata[3]:.1%} to %{customdata[4]:.1%}<extra>%{fullData.name}</extra>',
        error_x: {type: 'data', symmetric: false, array: rows.map(r => r.range[1] - r.k / r.n),
          arrayminus: rows.map(r => r.k / r.n - r.range[0]), thickness: 1, width: 2, color: css('--muted')},
        marker: {color: [css('--seq1'), css('--seq2'), css('--seq3')][l]}};
    });
    return {traces, layout: {barmode: 'group', bargap: 0.25, xaxis: {tickformat: '.0%', range: [0, 1.02]}, yaxis: {...named(models.map(m => m[0])), autorange: 'reversed'}},
      summary: models.map(([name], i) => `${name}: ${format(traces[2].x[i], 'ratio')} at 8 turns`).join('; ')};
  },
};

PLOTS.levels = {
  title: 'Where answers break, turn by turn',
  note: 'Share of the turns at each level. Published rows carry no level: it follows from label, instruction tag and speed-up.',
  draw(groups) {
    const sums = Array.from({length: 8}, (_, t) => D.levels.map((_, l) =>
      groups.reduce((s, g) => s + D.groups[g].levels[t][l], 0)));
    const whole = sums.map(row => row.reduce((a, b) => a + b, 0)), colours = levelColours();
    const turns = whole.map((n, t) => n ? t : -1).filter(t => t >= 0);
    const traces = D.levels.map((level, l) => ({type: 'bar', name: level, x: turns.map(t => 'turn ' + t), y: turns.map(t => sums[t][l] / whole[t]),
      customdata: turns.map(t => [sums[t][l], whole[t]]), marker: {color: colours[l]},
      hovertemplate: `%{y:.1%} (%{customdata[0]} of %{customdata[1]})<extra>${level}: ${LEVEL_TEXT[l]}</extra>`}))
      .filter(trace => trace.y.some(y => y > 0));
    return {traces, layout: {barmode: 'stack', bargap: 0.15, yaxis: {tickformat: '.0%', range: [0, 1]}},
      summary: traces.map(t => `${t.name} ${format(t.y[0], 'ratio')} at turn 0, ${format(t.y[t.y.length - 1], 'ratio')} at the last`).join('; ')};
  },
};

PLOTS.alluvial = {
  title: 'From level to level',
  note: 'How trajectories move between levels from one turn to the next; a band is as wide as the number of trajectories.',
  tall: true,
  draw(groups) {
    const flow = new Map();
    for (const g of groups)
      for (const [turn, from, to, n] of D.groups[g].steps) {
        const key = `${turn} ${from} ${to}`;
        flow.set(key, (flow.get(key) ?? 0) + n);
      }
    const nodes = new Map(), colours = levelColours();
    const node = (turn, level) => {
      const key = turn * 8 + level;
      if (!nodes.has(key)) nodes.set(key, {index: nodes.size, turn, level});
      return nodes.get(key).index;
    };
    const links = [...flow].map(([key, n]) => {
      const [turn, from, to] = key.split(' ').map(Number);
      return {source: node(turn, from), target: node(turn + 1, to), value: n, from, to, turn};
    });
    const list = [...nodes.values()], last = Math.max(1, ...list.map(n => n.turn));
    const traces = [{type: 'sankey', arrangement: 'snap',
      node: {label: list.map(n => n.turn === 0 || n.turn === last ? D.levels[n.level] : ''), color: list.map(n => colours[n.level]),
        x: list.map(n => Math.min(0.999, Math.max(0.001, n.turn / last))), y: list.map(n => Math.min(0.97, Math.max(0.03, (n.level + 0.5) / 8))),
        customdata: list.map(n => `turn ${n.turn}: ${D.levels[n.level]}`), hovertemplate: '%{customdata}: %{value}<extra></extra>', pad: 8, thickness: 12, line: {width: 0}},
      link: {source: links.map(l => l.source), target: links.map(l => l.target), value: links.map(l => l.value),
        color: links.map(l => colours[l.to] + '55'), customdata: links.map(l => `${D.levels[l.from]} → ${D.levels[l.to]} after turn ${l.turn}`),
        hovertemplate: '%{customdata}: %{value} trajectories<extra></extra>'}}];
    return {traces: links.length ? traces : [], layout: {margin: {l: 8, r: 8, t: 8, b: 8}}, summary: `${links.length} transitions`};
  },
};

PLOTS.repairs = {
  title: 'What becomes of an error',
  note: 'Of the turns that failed so and were followed by another: what the next turn did.',
  draw(groups) {
    const sums = new Map();
    for (const g of groups)
      for (const [label, ...counts] of D.groups[g].repairs) {
        const sum = sums.get(label) ?? [0, 0, 0, 0, 0];
        sums.set(label, sum.map((s, i) => s + counts[i]));
      }
    const rows = [...sums].sort((a, b) => a[1][0] - b[1][0]);
    const bar = (name, colour, value) => ({type: 'bar', orientation: 'h', name, marker: {color: colour},
      y: rows.map(([label, s]) => plain(`${D.labels[label]} (${s[0]})`)), x: rows.map(([, s]) => value(s) / s[0]),
      customdata: rows.map(([, s]) => [value(s), s[0], s[4]]),
      hovertemplate: '%{x:.1%} (%{customdata[0]} of %{customdata[1]})<br>right at some later turn: %{customdata[2]}<extra>%{fullData.name}</extra>'});
    const colours = levelColours();
    const traces = [bar('correct', colours[5], s => s[1]), bar('broke later', colours[4], s => s[2] - s[1]),
      bar('other error, no further', colours[2], s => s[0] - s[2] - s[3]), bar('same error', colours[1], s => s[3])];
    return {traces, layout: {barmode: 'stack', xaxis: {tickformat: '.0%', range: [0, 1]}, yaxis: {automargin: true}},
      summary: rows.map(([label, s]) => `${D.labels[label]}: ${format(s[1] / s[0], 'ratio')} repaired at once`).join('; ')};
  },
};

// Best speed-up of each trajectory's correct turns, its tokens, whether solved.
const outcomes = (() => {
  const n = trajectories.count.length, best = new Float64Array(n), tokens = new Float64Array(n), solved = new Uint8Array(n);
  const {label, speedup, tokens: spent} = D.turns;
  for (let t = 0; t < n; ++t)
    for (let i = trajectories.first[t]; i < trajectories.first[t + 1]; ++i) {
      tokens[t] = spent[i] < 0 ? NaN : tokens[t] + spent[i];
      if (label[i] !== CORRECT) continue;
      solved[t] = 1;
      if (speedup[i] > best[t]) best[t] = speedup[i];
    }
  return {best, tokens, solved};
})();

const trajectoriesOf = groups => groups.flatMap(g => Array.from({length: D.groups[g].count}, (_, i) => D.groups[g].first + i));

PLOTS.fast = {
  title: 'How fast, how often',
  note: 'fast_p: share of all trajectories with a right answer faster than p times the library.',
  draw(groups) {
    const steps = Array.from({length: 61}, (_, i) => i / 50);
    const traces = pooled(groups, modelName).map(([name, list]) => {
      const speeds = trajectoriesOf(list).map(t => outcomes.best[t]);
      return {type: 'scatter', mode: 'lines', name: plain(short(name)), x: steps, y: steps.map(p => speeds.filter(s => s > p).length / speeds.length),
        line: {color: modelColour(name), width: 2}, hovertemplate: 'faster than %{x}: %{y:.1%}<extra>%{fullData.name}</extra>'};
    });
    return {traces, layout: {xaxis: {title: {text: 'p, times the library'}}, yaxis: {tickformat: '.0%', rangemode: 'tozero'}}, side: true, summary: `${traces.length} models`};
  },
};

const taskName = g => `${D.groups[g].task} · ${D.groups[g].arch}`;

PLOTS.best = {
  title: 'Best speed-up per task',
  note: 'Library time over the candidate’s time, best right answer within 8 turns; unsolved and untimed tasks have no point.',
  draw(groups) {
    const traces = pooled(groups, modelName).map(([name, list]) => {
      const solved = list.filter(g => D.groups[g].rates[2][2] > 0);
      return {type: 'scatter', mode: 'markers', name: plain(short(name)), x: solved.map(g => D.groups[g].rates[2][2]),
        y: solved.map(g => plain(taskName(g))),
        marker: {color: modelColour(name), size: 10, opacity: 0.85, line: {width: 1, color: css('--card')}}, customdata: solved.map(g => plain(D.groups[g].run)),
        hovertemplate: '%{y}<br>%{x:.3f} times the library<br>run %{customdata}<extra>%{fullData.name}</extra>'};
    }).filter(t => t.x.length);
    return {traces, layout: {xaxis: {type: 'log', title: {text: 'times the library'}}, yaxis: {...named([...new Set(groups.map(taskName))]), categoryorder: 'category descending'},
      shapes: [{type: 'line', x0: 1, x1: 1, y0: 0, y1: 1, yref: 'paper', line: {dash: 'dot', color: css('--muted'), width: 1}}]},
    side: true, summary: traces.map(t => `${t.name}: up to ${format(Math.max(...t.x))}`).join('; ')};
  },
};

PLOTS.tokens = {
  title: 'Tokens and performance',
  note: 'One point per trajectory: all its tokens (reasoning where known, else output) and its best speed-up; 0: unsolved or not timed.',
  draw(groups) {
    let thinned = false;
    const known = groups.map(g => [g, trajectoriesOf([g]).filter(t => outcomes.tokens[t] > 0)]);
    const total = known.reduce((s, [, list]) => s + list.length, 0), step = Math.max(1, Math.ceil(total / POINTS));
    const traces = [...by(known, ([g]) => modelName(D.groups[g]))].sort().map(([name, lists]) => {
      const all = lists.flatMap(([, list]) => list), points = all.filter((_, i) => i % step === 0);
      thinned ||= points.length < all.length;
      return {type: 'scatter', mode: 'markers', name: plain(short(name)), x: points.map(t => outcomes.tokens[t]), y: points.map(t => outcomes.best[t]),
        marker: {color: modelColour(name), size: 6, opacity: 0.6}, trajectories: points,
        customdata: points.map(t => plain(`${D.groups[trajectories.group[t]].task}, ${trajectories.name[t]}`)),
        hovertemplate: '%{customdata}<br>%{x:,} tokens, %{y:.3f} times the library<extra>%{fullData.name}</extra>'};
    }).filter(t => t.x.length);
    return {traces, layout: {xaxis: {type: 'log', title: {text: thinned ? `tokens of a trajectory (every ${step}th shown)` : 'tokens of a trajectory'}}, yaxis: {title: {text: 'best speed-up'}, rangemode: 'tozero'}},
      side: true, summary: `${total} trajectories`};
  },
  click: point => openTrajectory(point.data.trajectories[point.pointNumber]),
};

PLOTS.dates = {
  title: 'Results and release dates',
  note: 'Rate at 8 turns against the days between the release of the architecture’s PTX and that of the model. Models without a known date are not shown.',
  draw(groups) {
    const names = D.tables.dates.columns.map(c => c.name), at = name => names.indexOf(name);
    const shown = new Set(groups.map(g => `${D.groups[g].model}\n${D.groups[g].arch}\n${D.groups[g].definition}\n${D.groups[g].run}`));
    const rows = D.tables.dates.rows.filter(r => r[at('days_after_ptx')] !== null && shown.has([r[0], r[1], r[2], r[3]].join('\n')));
    const traces = [...by(rows, r => r[1])].map(([arch, list], i) => ({type: 'scatter', mode: 'markers', name: plain(arch),
      x: list.map(r => r[at('days_after_ptx')]), y: list.map(r => r[at(state.measure === 'arch' ? 'correct_with_arch_rate' : 'correctness_rate')]),
      marker: {color: PALETTE[i], size: 9, opacity: 0.7, symbol: ['circle', 'diamond', 'square'][i % 3]},
      customdata: list.map(r => [plain(r[0]), plain(r[2]), r[at('days_after_attention')] ?? '–', plain(r[at('attention_library')] || 'no attention')]),
      hovertemplate: '%{customdata[0]}<br>%{customdata[1]}<br>%{y:.1%}, %{x} days after PTX, %{customdata[2]} after %{customdata[3]}<extra>%{fullData.name}</extra>'}));
    return {traces, layout: {xaxis: {title: {text: 'days after the architecture’s PTX'}}, yaxis: {tickformat: '.0%', range: [-0.03, 1.05]}}, summary: `${rows.length} results`};
  },
};

PLOTS.sizes = {
  title: 'Across tasks and sizes',
  note: 'Rate at 8 turns, all runs pooled. Empty: not tried.',
  tall: true,
  draw(groups) {
    const arch = state.measure === 'arch' ? 1 : 0, both = multipleArchs(groups);
    const models = pooled(groups, g => both ? `${modelName(g)} · ${g.arch}` : modelName(g));
    const tasks = [...new Set(groups.map(g => D.groups[g].task))].sort();
    const cell = (list, task) => {
      const own = list.filter(g => D.groups[g].task === task), n = own.reduce((s, g) => s + D.groups[g].count, 0);
      return n ? own.reduce((s, g) => s + D.groups[g].rates[2][arch], 0) / n : null;
    };
    const z = models.map(([, list]) => tasks.map(task => cell(list, task)));
    return {traces: [{type: 'heatmap', x: tasks.map(plain), y: models.map(([name]) => plain(name)), z, zmin: 0, zmax: 1, xgap: 2, ygap: 2,
      colorscale: [[0, css('--heat0')], [0.5, css('--heat1')], [1, css('--heat2')]], colorbar: {tickformat: '.0%', thickness: 10, outlinewidth: 0}, hoverongaps: false,
      hovertemplate: '%{y}<br>%{x}: %{z:.1%}<extra></extra>'}],
    layout: {xaxis: {...named(tasks), tickangle: -40}, yaxis: {...named(models.map(m => m[0])), autorange: 'reversed'}}, summary: `${models.length} models, ${tasks.length} tasks`};
  },
};

// ---- drawing -----------------------------------------------------------------------------------

function themed(layout) {
  const axis = {gridcolor: css('--line'), zerolinecolor: css('--line'), linecolor: css('--line'), automargin: true};
  return {paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)', font: {family: css('--sans'), size: 12, color: css('--text')},
    margin: {l: 52, r: 12, t: 8, b: 44}, legend: {orientation: 'h', y: 1.02, yanchor: 'bottom', x: 0, font: {size: 11}, traceorder: 'normal'}, hoverlabel: {align: 'left'},
    colorway: PALETTE, ...layout, xaxis: {...axis, ...layout.xaxis}, yaxis: {...axis, ...layout.yaxis}};
}

function plotCard(name) {
  const plot = PLOTS[name], chart = el('div', {class: 'chart' + (plot.tall ? ' tall' : ''), role: 'img', id: 'plot-' + name});
  const save = type => () => Plotly.downloadImage(chart, {format: type, filename: name, width: 1000, height: plot.tall ? 620 : 480, scale: type === 'png' ? 2 : 1});
  const card = el('section', {class: 'card plot', 'aria-label': plot.title}, el('h2', {}, plot.title), el('p', {class: 'note'}, plot.note), chart,
    el('p', {class: 'save'}, el('button', {type: 'button', class: 'quiet', onclick: save('svg'), 'aria-label': plot.title + ' as SVG'}, 'SVG'),
      el('button', {type: 'button', class: 'quiet', onclick: save('png'), 'aria-label': plot.title + ' as PNG'}, 'PNG')));
  chart.draw = () => {
    const {traces, layout, summary, side} = plot.draw(groupsShown());
    // Many names: beside the plot where there is room, else hovering tells.
    if (side) {
      layout.legend = {orientation: 'v', x: 1.01, y: 1, font: {size: 10}};
      layout.showlegend = chart.clientWidth > 480 && traces.length > 1;
    }
    chart.setAttribute('aria-label', `${plot.title}. ${summary}`);
    chart.classList.toggle('nothing', !traces.length);
    Plotly.react(chart, traces, themed(layout), {displayModeBar: false, responsive: true});
    if (plot.click && !chart.listens) {
      chart.listens = true;
      chart.on('plotly_click', event => plot.click(event.points[0]));
    }
  };
  seen.observe(chart);
  return card;
}

// One plot at a time, so that the page answers in between.
const waitingPlots = [];
function drawLater(chart) {
  chart.stale = false;
  waitingPlots.push(chart);
  if (waitingPlots.length === 1) setTimeout(drawNext);
}

function drawNext() {
  const chart = waitingPlots[0];
  try {
    if (chart.isConnected) chart.draw();
  } finally {
    waitingPlots.shift();
    if (waitingPlots.length) setTimeout(drawNext);
  }
}

const seen = new IntersectionObserver(entries => entries.forEach(entry => {
  entry.target.visibleNow = entry.isIntersecting;
  if (entry.isIntersecting && entry.target.stale !== false) drawLater(entry.target);
}), {rootMargin: '150px'});

function redrawPlots() {
  document.querySelectorAll('.chart').forEach(chart => {
    chart.stale = true;
    if (chart.visibleNow) drawLater(chart);
  });
}
