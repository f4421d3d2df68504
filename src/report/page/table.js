'use strict';
// A table of any length: only the rows in view exist. Sorting by the headers, keys for moving and
// opening; rows are numbered for screen readers.

const ROW = 30;  // pixels, as in the style sheet

class BigTable {
  // columns: [{name, header, kind, value(row), cell?(row) -> Node}]; rows: any values.
  constructor({columns, label, open, sort, onsort, height}) {
    this.columns = columns;
    this.open = open;
    this.onsort = onsort;
    this.active = 0;
    this.rows = this.order = [];
    this.head = el('tr', {'aria-rowindex': 1}, ...columns.map((c, i) => this.header(c, i)));
    this.body = el('tbody');
    this.table = el('table', {'aria-label': label}, el('thead', {}, this.head), this.body);
    this.node = el('div', {class: 'bigtable', tabindex: 0, role: 'group', 'aria-label': label + ': scrollable',
      onscroll: () => this.paint(), onkeydown: e => this.key(e)}, this.table);
    this.node.style.maxHeight = height ?? '70vh';
    [this.sortBy, this.down] = this.parse(sort);
  }

  parse(sort) {
    const [name, way] = (sort ?? '').split(':');
    const i = this.columns.findIndex(c => c.name === name);
    return [i < 0 ? null : i, way === 'desc'];
  }

  header(column, i) {
    return el('th', {scope: 'col', class: column.kind === 'text' ? '' : 'num'},
      el('button', {type: 'button', onclick: () => this.sort(i)}, column.header));
  }

  sort(i) {
    // Numbers are first sorted with the largest on top.
    const numeric = this.columns[i].kind !== 'text';
    this.down = this.sortBy === i ? !this.down : numeric;
    this.sortBy = i;
    this.arrange();
    this.onsort?.(`${this.columns[i].name}:${this.down ? 'desc' : 'asc'}`);
    say(`Sorted by ${this.columns[i].header}, ${this.down ? 'descending' : 'ascending'}`);
  }

  show(rows) {
    this.rows = rows;
    this.active = 0;
    this.node.scrollTop = 0;
    this.arrange();
  }

  arrange() {
    this.order = this.rows;
    [...this.head.children].forEach((th, i) => i === this.sortBy
      ? th.setAttribute('aria-sort', this.down ? 'descending' : 'ascending') : th.removeAttribute('aria-sort'));
    if (this.sortBy !== null) {
      const {value} = this.columns[this.sortBy], way = this.down ? -1 : 1;
      const empty = v => v === null || v === undefined || v === '' || Number.isNaN(v);
      // Missing values come last, whichever way.
      this.order = this.rows.map(row => [value(row), row]).sort(([x], [y]) => {
        if (empty(x) || empty(y)) return empty(x) - empty(y);
        return way * (typeof x === 'string' ? (x < y ? -1 : x > y ? 1 : 0) : x - y);
      }).map(pair => pair[1]);
    }
    this.table.setAttribute('aria-rowcount', this.order.length + 1);
    this.painted = '';
    this.paint();
  }

  paint() {
    const space = innerHeight, first = Math.max(0, Math.floor(this.node.scrollTop / ROW) - 10);
    const last = Math.min(this.order.length, first + Math.ceil(space / ROW) + 20);
    const painted = `${first} ${last} ${this.active}`;
    if (painted === this.painted) return;
    this.painted = painted;
    const spacer = rows => el('tr', {class: 'spacer', 'aria-hidden': 'true'},
      Object.assign(el('td', {colspan: this.columns.length}), {style: `height:${rows * ROW}px`}));
    const rows = this.order.slice(first, last).map((row, i) => this.row(row, first + i));
    if (first) rows.unshift(spacer(first));
    if (last < this.order.length) rows.push(spacer(this.order.length - last));
    if (!rows.length) rows.push(el('tr', {}, el('td', {colspan: this.columns.length, class: 'empty'}, 'Nothing matches the filters.')));
    this.body.replaceChildren(...rows);
  }

  row(row, i) {
    const cells = this.columns.map(c => el('td', {class: c.kind === 'text' ? '' : 'num'},
      c.cell ? c.cell(row) : format(c.value(row), c.kind)));
    const attributes = {'aria-rowindex': i + 2, class: i === this.active ? 'active' : ''};
    if (this.open) Object.assign(attributes, {class: attributes.class + ' link', onclick: () => this.open(row)});
    return el('tr', attributes, ...cells);
  }

  key(event) {
    if (event.target !== this.node) return;
    const page = Math.max(1, Math.floor(this.node.clientHeight / ROW) - 2), last = this.order.length - 1;
    const moves = {ArrowDown: this.active + 1, ArrowUp: this.active - 1, PageDown: this.active + page,
      PageUp: this.active - page, Home: 0, End: last};
    if (event.key === 'Enter' && this.open && this.order.length) this.open(this.order[this.active]);
    if (!(event.key in moves) || last < 0) return;
    event.preventDefault();
    this.active = Math.min(last, Math.max(0, moves[event.key]));
    const top = this.active * ROW, view = this.node.clientHeight - 2 * ROW;
    if (top < this.node.scrollTop) this.node.scrollTop = top;
    if (top > this.node.scrollTop + view) this.node.scrollTop = top - view;
    this.paint();
    say(this.columns.slice(0, 5).map(c => format(c.value(this.order[this.active]), c.kind)).join(', '));
  }
}

// A finished table of the report.
function finishedTable(name, {filter, height, open} = {}) {
  const table = D.tables[name];
  const columns = table.columns.map((c, i) => ({...c, value: row => row[i]}));
  const big = new BigTable({columns, label: table.title, height: height ?? '50vh', open});
  big.show(filter ? table.rows.filter(filter(table.columns.map(c => c.name))) : table.rows);
  return el('section', {class: 'card'}, el('h2', {}, table.title), table.note ? el('p', {class: 'note'}, table.note) : null,
    big.node);
}
