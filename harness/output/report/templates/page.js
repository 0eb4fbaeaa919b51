"use strict";
// Text of users reaches the page as text only: textContent, attributes, and values in Vega's data.
(async () => {
  if (!window.DecompressionStream) {
    document.getElementById("status").textContent = "Figures and tables need a browser of 2023 or later.";
    return;
  }
  // The data: JSON in gzip in base64. Uint8Array.from takes 30 times as long as this loop.
  const letters = atob(document.getElementById("data").textContent);
  const bytes = new Uint8Array(letters.length);
  for (let place = 0; place < bytes.length; place += 1) bytes[place] = letters.charCodeAt(place);
  const json = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const data = await new Response(json).json();
  const MOST = 20;
  const LONG = 40; // characters
  const NARROW = 500; // pixels
  const NUMBERS = new Set(["count", "seconds", "bytes", "number", "ratio", "share"]);
  const form = document.getElementById("filters");
  const element = (name, attributes = {}, text) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  };

  // Tables: columns of values; a row is a number.
  const tables = {};
  for (const [name, table] of Object.entries(data.tables)) {
    const readers = {};
    for (const column of table.columns) {
      const values = table.values[column.name];
      if (column.kind === "text") readers[column.name] = (row) => values.d[values.i[row]];
      else if (column.kind === "list") {
        const parsed = new Map();
        readers[column.name] = (row) => {
          const place = values.i[row];
          if (!parsed.has(place)) parsed.set(place, JSON.parse(values.d[place]));
          return parsed.get(place);
        };
      } else readers[column.name] = (row) => values[row];
    }
    tables[name] = { ...table, name, readers };
  }

  const offers = (name) => form.elements[name];

  const filters = () => {
    const chosen = new FormData(form);
    const text = form.querySelector("input[type=search]").value.trim().toLowerCase();
    const exact = data.filters.choices
      .map((name) => [name, chosen.get(name) || ""])
      .filter(([, value]) => value);
    return { text, exact };
  };

  const matching = (table, { text, exact }, picks = {}) => {
    const tests = [];
    const read = table.readers;
    const searched = data.filters.search.filter((name) => read[name]);
    if (text && searched.length) {
      tests.push((row) => searched.some((name) => read[name](row).toLowerCase().includes(text)));
    }
    for (const [name, value] of [...exact, ...Object.entries(picks)]) {
      if (read[name]) tests.push((row) => read[name](row) === value);
      else if (name === "stage") {
        // A column per stage: rows where that stage has a value.
        const own = table.columns.find((column) => column.stage === value);
        if (own) tests.push((row) => read[own.name](row) !== null);
        else if (table.columns.some((column) => column.stage)) tests.push(() => false);
      }
    }
    const rows = [];
    for (let row = 0; row < table.length; row += 1) if (tests.every((test) => test(row))) rows.push(row);
    return rows;
  };

  const objects = (table, rows, explode) => {
    const names = table.columns.map((column) => column.name);
    const lists = table.columns.filter((c) => c.kind === "list" && explode.includes(c.name)).map((c) => c.name);
    const found = [];
    for (const row of rows) {
      const whole = Object.fromEntries(names.map((name) => [name, table.readers[name](row)]));
      if (!lists.length) found.push(whole);
      else whole[lists[0]].forEach((_, place) => {
        found.push({ ...whole, ...Object.fromEntries(lists.map((name) => [name, whole[name][place]])) });
      });
    }
    return found;
  };

  // Numbers as text.
  const short = (value) => (Math.abs(value) >= 1e6 || (value !== 0 && Math.abs(value) < 1e-3)
    ? value.toExponential(2) : String(Number(value.toPrecision(4))));
  const scaled = (value, steps) => {
    if (value === 0) return "0";
    const size = Math.abs(value);
    const [scale, unit] = steps.find(([least]) => size >= least * 0.9995) || steps[steps.length - 1];
    return `${Number((value / scale).toPrecision(3))} ${unit}`;
  };
  const WORDS = {
    count: (value) => (Number.isInteger(value) && Math.abs(value) < 1e6 ? String(value) : short(value)),
    seconds: (value) => scaled(value, [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]]),
    bytes: (value) => scaled(value, [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]]),
    number: short,
    ratio: (value) => `${short(value)} ×`,
    share: (value) => `${Number((value * 100).toPrecision(3))} %`,
  };
  const cellText = (value, kind) => {
    if (value === null || value === undefined) return "–";
    return WORDS[kind] ? WORDS[kind](value) : String(value);
  };

  // Names break behind these signs, where they must, numbers never; between backticks is code.
  const breakable = (text) => text.split(/(?<=\w[._/])(?![\d\s])/).flatMap((part, place) => (
    place ? [document.createElement("wbr"), part] : [part]));
  const prose = (text) => text.split(/`([^`]+)`/).flatMap((part, place) => {
    if (place % 2 === 0) return breakable(part);
    const code = element("code");
    // An option of a command is not broken behind its dashes.
    code.append(...part.split(/(--[\w-]+)/).flatMap((word, at) => (
      at % 2 ? [element("span", { class: "option" }, word)] : breakable(word))));
    return [code];
  });

  // A table that can be read aloud and sorted with the keyboard.
  const collator = new Intl.Collator(undefined, { numeric: true });
  const isNumber = (column) => NUMBERS.has(column.kind) || column.kind === "list";
  const sorted = (rows, column, descending) => {
    if (!column) return rows;
    const missing = (row) => row[column.name] === null || row[column.name] === "";
    const compare = isNumber(column) ? (a, b) => a - b : collator.compare;
    return [...rows].sort((a, b) => missing(a) - missing(b)
      || (missing(a) ? 0 : (descending ? -1 : 1) * compare(a[column.name], b[column.name])));
  };
  // Beneath its row stands what there is no room for: first what is long, then the last columns.
  const drawTable = (place, caption, whole, rows, state) => {
    const beside = whole[0].name === "workload" && whole.find(({ name }) => name === "case");
    if (beside) state.beside = place.clientWidth < NARROW; // on a phone a case is below its workload
    const every = state.beside ? whole.filter((column) => column !== beside) : whole;
    const long = new Set(every.filter((column, number) => number && column.name !== "case" && !isNumber(column)
      && rows.some((row) => cellText(row[column.name], column.kind).length > LONG)));
    let columns = every;
    const fits = () => place.firstChild.scrollWidth <= place.firstChild.clientWidth;
    const put = () => placeTable(place, caption, columns, every, rows, state);
    put();
    if (fits()) return;
    columns = every.filter((column) => !long.has(column));
    put();
    if (fits()) return;
    const room = place.firstChild.clientWidth;
    // On a phone each column is as narrow as its words.
    if (room < NARROW) place.querySelector("table").style.width = "0";
    const widths = [...place.querySelectorAll("thead > tr > *")].map((cell) => cell.offsetWidth);
    let left = room - (widths[columns.length] ?? 60);
    const most = columns.findIndex((_, number) => (left -= widths[number]) < 0);
    columns = columns.slice(0, Math.max(2, most));
    put();
    while (!fits() && columns.length > 2) {
      columns = columns.slice(0, -1);
      put();
    }
  };
  const placeTable = (place, caption, columns, every, rows, state) => {
    const folded = every.filter((column) => !columns.includes(column));
    const redraw = (focus) => {
      drawTable(place, caption, every, rows, state);
      place.querySelector(focus)?.focus();
    };
    const ordered = sorted(rows, every.find(({ name }) => name === state.by), state.descending);
    const shown = state.all ? ordered : ordered.slice(0, MOST);
    // What is to be done is read without a click.
    state.open ??= every.some(({ name }) => name === "remedy");
    const table = element("table");
    const title = table.createCaption();
    title.id = `${state.id}-caption`;
    const counted = shown.length < rows.length ? `${shown.length} of ${rows.length}` : rows.length;
    title.append(element("span", {}, `${caption} (${counted})`));
    const head = table.createTHead().insertRow();
    for (const column of columns) {
      const direction = state.by !== column.name ? "none" : state.descending ? "descending" : "ascending";
      const button = element("button", { type: "button", "data-column": column.name }, column.label);
      button.addEventListener("click", () => {
        state.descending = state.by === column.name ? !state.descending : isNumber(column);
        state.by = column.name;
        redraw(`[data-column="${CSS.escape(column.name)}"]`);
      });
      const cell = element("th", { scope: "col", "aria-sort": direction, class: isNumber(column) ? "number" : "" });
      cell.append(button);
      head.append(cell);
    }
    const folds = [];
    const turner = (label, own) => {
      const turn = element("button", { type: "button", class: "turn", "aria-label": label });
      const say = () => turn.setAttribute("aria-expanded", String(!own.some((line) => line.hidden)));
      turn.addEventListener("click", () => {
        const hide = own.every((line) => !line.hidden);
        for (const line of own) line.hidden = hide;
        if (own === folds) state.open = !hide;
        for (const one of table.querySelectorAll(".turn")) one.dispatchEvent(new Event("turned"));
      });
      turn.addEventListener("turned", say);
      return turn;
    };
    if (folded.length) head.insertCell().append(turner(`Show ${folded.map((c) => c.label).join(", ")}`, folds));
    const body = table.createTBody();
    for (const row of shown) {
      const line = body.insertRow();
      columns.forEach((column, number) => {
        const text = cellText(row[column.name], column.kind);
        const cell = number ? line.insertCell() : line.appendChild(element("th", { scope: "row" }));
        const one = !number && row.one_case;
        if (one && offers("one_case")?.value === "") {
          const link = element("a", { href: `?${new URLSearchParams({ one_case: one })}`, "aria-label": one });
          link.append(...breakable(text));
          cell.append(link);
        } else if (isNumber(column)) cell.textContent = text;
        else cell.append(...prose(text));
        if (!number && state.beside && row.case) cell.append(element("br"), ...prose(row.case));
        if (isNumber(column)) cell.className = "number";
        else {
          cell.dir = "auto";
          if (text.length > LONG && column.name !== "case") cell.className = "wide";
        }
      });
      if (!folded.length) continue;
      const more = body.insertRow();
      more.className = "fold";
      more.hidden = !state.open;
      folds.push(more);
      const list = element("dl");
      for (const column of folded) {
        const text = cellText(row[column.name], column.kind);
        if (!text || text === "–") continue;
        const value = element("dd", { dir: "auto" });
        value.append(...prose(text));
        const entry = element("div", text.length > LONG ? { class: "long" } : {});
        entry.append(element("dt", {}, column.label), value);
        list.append(entry);
      }
      const cell = more.insertCell();
      cell.colSpan = columns.length + 1;
      cell.append(list);
      line.insertCell().append(turner("Show more of this row", [more]));
    }
    for (const turn of table.querySelectorAll(".turn")) turn.dispatchEvent(new Event("turned"));
    const scroll = element("div", { class: "scroll", tabindex: "0", role: "region", "aria-labelledby": title.id });
    scroll.append(table);
    place.replaceChildren(scroll);
    if (rows.length > MOST) {
      const text = state.all ? `Show the first ${MOST}` : `Show all ${rows.length} rows`;
      const more = element("button", { type: "button", class: "more" }, text);
      more.addEventListener("click", () => {
        state.all = !state.all;
        redraw(".more");
      });
      place.append(more);
    }
  };

  const visible = (table, { exact }) => {
    const stage = (exact.find(([name]) => name === "stage") || [])[1];
    return table.columns.filter((c) => !c.hidden && !(stage && c.stage && c.stage !== stage));
  };

  // A stage that no row has tells nothing, nor does the name of the one case that is shown.
  const telling = (columns, rows) => columns.filter((column) => {
    if (column.stage) return rows.some((row) => row[column.name] !== null);
    const same = ["workload", "case", "name"].includes(column.name) && offers("one_case")?.value;
    return !same || rows.some((row) => row[column.name] !== rows[0][column.name]);
  });

  // Where there is little room, the label of a row has a line for the workload and one for each axis.
  const broken = (spec, rows) => {
    const parts = (row) => String(row.case ?? "").split(/, (?!\d)/).length;
    const lines = 1 + Math.max(1, ...rows.map(parts));
    const layers = (spec.layer || [spec]).map((layer) => (layer.encoding?.y?.field !== "row" ? layer : {
      ...layer, encoding: { ...layer.encoding, y: { ...layer.encoding.y, axis: {
        ...layer.encoding.y.axis, labelFontSize: 10,
        labelOffset: 6 - 6 * lines, // else the first line stands in the middle
        labelExpr: "split(replace(datum.label, ' ', ', '), regexp(', (?![0-9])'))",
      } } },
    }));
    if (spec.layer) spec.layer = layers;
    else Object.assign(spec, layers[0]);
    if (spec.height?.step) spec.height = { step: 8 + 12 * lines };
  };

  // What is on the page: drawn one after the other, and again when a filter changes.
  const parts = [];
  const picked = [];
  const shows = (node, draw) => parts.push({ node, draw });
  let queue = Promise.resolve();
  const later = (task) => { queue = queue.then(task).catch(console.error); };
  let number = 0;

  for (const node of document.querySelectorAll("[data-table]")) {
    const table = tables[node.dataset.table];
    const state = { id: `table-${number += 1}` };
    shows(node, async () => {
      const chosen = filters();
      const rows = objects(table, matching(table, chosen), []);
      const columns = telling(visible(table, chosen), rows);
      drawTable(node, table.caption, columns, rows, state);
    });
  }

  for (const node of document.querySelectorAll("[data-figure]")) {
    const figure = data.figures[node.dataset.figure];
    const main = tables[figure.tables[0]];
    const details = node.querySelector("details");
    const chart = node.querySelector(".chart");
    const selects = [...node.querySelectorAll("[data-pick]")];
    const summary = node.querySelector(".summary");
    const state = { id: `table-${number += 1}` };
    const start = Object.fromEntries(figure.picks.map(([name, , value]) => [name, value]));
    const wished = { ...start };
    const picks = {};
    picked.push({ name: node.dataset.figure, wished, start });
    let drawn = null;
    let wide = 0;
    let zoomed = null;

    // The rows that fit, by table.
    const current = () => {
      const chosen = filters();
      let before = {};
      for (const select of selects) {
        const name = select.dataset.pick;
        const read = main.readers[name];
        const offered = [...new Set(matching(main, chosen, before).map(read))];
        picks[name] = offered.includes(wished[name]) ? wished[name] : offered[0];
        if (offered.join("\n") !== [...select.options].map(({ value }) => value).join("\n")) {
          select.replaceChildren(...offered.map((value) => element("option", { value, dir: "auto" }, value)));
        }
        select.value = picks[name];
        select.disabled = !offered.length;
        before = { ...before, [name]: picks[name] };
      }
      return Object.fromEntries(figure.tables.map((name) => [name, matching(tables[name], chosen, picks)]));
    };
    // Of thousands of rows a chart draws a few: the others are not worth Vega's time.
    const worthDrawing = (fits) => {
      if (!figure.most) return fits;
      const read = main.readers;
      const wanted = Object.entries(figure.drawn).map(([name, values]) => [read[name], new Set(values)]);
      const rows = fits.filter((row) => wanted.every(([own, values]) => values.has(own(row))));
      const label = (row) => `${read.workload(row)} ${read.case(row)}`;
      const sums = new Map();
      for (const row of rows) sums.set(label(row), (sums.get(label(row)) || 0) + read[figure.most](row));
      const most = new Set([...sums].sort(([, a], [, b]) => b - a).slice(0, 2 * MOST).map(([name]) => name));
      return rows.filter((row) => most.has(label(row)));
    };
    const tabulate = (fits) => {
      if (!details.open) return;
      const rows = objects(main, fits, figure.explode);
      const columns = telling(visible(main, { exact: [] }), rows).map((c) => (c.kind === "list"
        ? { ...c, kind: c.name === "at" ? "count" : "seconds" } : c));
      drawTable(details.querySelector(".table"), figure.title, columns, rows, state);
    };
    const draw = async () => {
      const width = chart.clientWidth; // first: to ask when the page has changed lays it out anew
      const fitting = current();
      tabulate(fitting[main.name]);
      fitting[main.name] = worthDrawing(fitting[main.name]);
      const datasets = Object.fromEntries(figure.tables.map((name) => [
        name, objects(tables[name], fitting[name], figure.explode)]));
      const rows = datasets[main.name];
      // What was written of all of it does not hold of a part.
      const fit = matching(main, filters()).length;
      summary.replaceChildren(...prose(fit === main.length ? figure.summary
        : `Of ${main.length} rows ${fit} fit the filters.`));
      if (drawn && rows.length && width === wide && width >= NARROW) {
        // Only its rows are others: Vega keeps what it has compiled.
        for (const [name, values] of Object.entries(datasets)) drawn.view.data(name, values);
        await drawn.view.runAsync();
        performance.mark("figure");
        return;
      }
      if (drawn) { drawn.finalize(); drawn = null; }
      if (!rows.length) {
        chart.replaceChildren(element("p", { class: "empty" }, fit
          ? "What fits the filters is no part of this figure; the table has it." : "Nothing fits the filters."));
        return;
      }
      wide = width;
      const spec = {
        ...figure.spec, datasets, width: "container", description: `${figure.title}. ${figure.summary}`,
        autosize: { type: "fit-x", contains: "padding" },
      };
      const config = {
        ...data.config,
        legend: { ...data.config.legend, columns: Math.max(2, Math.floor(width / 190)) },
        axis: { ...data.config.axis, labelLimit: Math.max(130, width * 0.6) },
      };
      if (width < NARROW) broken(spec, rows);
      chart.style.minHeight = "0";
      drawn = await window.vegaEmbed(chart, spec, {
        ast: true, config, renderer: "svg", actions: false, mode: "vega-lite",
      });
      if (figure.zoom) zoomed = window.zoomable(node, drawn.view, figure.spec, zoomed);
      performance.mark("figure");
    };
    for (const select of selects) {
      select.addEventListener("change", () => {
        wished[select.dataset.pick] = select.value;
        keep();
        later(draw);
      });
    }
    details.addEventListener("toggle", () => tabulate(current()[figure.tables[0]]));
    shows(node, draw);
  }

  for (const node of document.querySelectorAll("[data-pair]")) {
    const table = tables[node.dataset.pair];
    const moments = tables[node.dataset.moments];
    const selects = [...node.querySelectorAll("[data-moment]")];
    const places = new Map();
    for (let row = 0; row < moments.length; row += 1) {
      const told = ["label", "env", "machine"].map((name) => moments.readers[name](row));
      places.set(told.join(" · "), moments.readers.place(row));
    }
    const names = [...places.keys()];
    const start = { before: names[Math.max(0, names.length - 2)], after: names[names.length - 1] };
    const wished = { ...start };
    picked.push({ name: "pair", wished, start });
    const state = { id: `table-${number += 1}` };
    const columns = [
      { name: "name", label: "case" }, { name: "stage", label: "stage" },
      { name: "before", label: "before", kind: "seconds" }, { name: "after", label: "after", kind: "seconds" },
      { name: "ratio", label: "after / before", kind: "ratio" },
    ];
    const side = (row, moment) => {
      const at = table.readers.at(row).indexOf(places.get(moment));
      return at < 0 ? null : table.readers.value(row)[at];
    };
    shows(node, async () => {
      const rows = matching(table, filters()).map((row) => {
        const [before, after] = [side(row, wished.before), side(row, wished.after)];
        const own = Object.fromEntries(["name", "stage", "one_case"].map((name) => [name, table.readers[name](row)]));
        return { ...own, before, after, ratio: after / before };
      }).filter(({ before, after }) => before !== null && after !== null);
      rows.sort((a, b) => Math.abs(Math.log(b.ratio)) - Math.abs(Math.log(a.ratio)));
      for (const select of selects) {
        select.replaceChildren(...names.map((name) => element("option", { value: name, dir: "auto" }, name)));
        if (!places.has(wished[select.dataset.moment])) wished[select.dataset.moment] = start[select.dataset.moment];
        select.value = wished[select.dataset.moment];
      }
      drawTable(node.querySelector(".table"), "What differs most first", telling(columns, rows), rows, state);
    });
    for (const select of selects) {
      select.addEventListener("change", () => {
        wished[select.dataset.moment] = select.value;
        keep();
        refresh();
      });
    }
  }

  // What is in view comes first; a newer change stops an older one between two parts.
  let turn = 0;
  const away = ({ node }) => {
    const { top, bottom } = node.getBoundingClientRect();
    return Math.max(0, top - window.innerHeight, -bottom);
  };
  const pause = () => new Promise((resolve) => { setTimeout(resolve); });
  let arriving = window.location.hash.slice(1);
  window.addEventListener("wheel", () => { arriving = ""; }, { passive: true });
  window.addEventListener("keydown", () => { arriving = ""; });
  window.addEventListener("pointerdown", () => { arriving = ""; });
  const refresh = () => {
    const mine = turn += 1;
    delete document.documentElement.dataset.complete;
    later(async () => {
      const near = parts.filter(({ node }) => !node.closest("section").hidden)
        .map((part) => [away(part), part]).sort(([a], [b]) => a - b);
      for (const [, { node, draw }] of near) {
        if (mine !== turn) return;
        try {
          await draw();
        } catch (error) {
          console.error(error);
          node.append(element("p", { class: "empty" }, `This could not be drawn: ${error.message}`));
        }
        await pause();
      }
      // What was drawn above it has moved it.
      if (arriving) document.getElementById(arriving)?.scrollIntoView();
      arriving = "";
      document.documentElement.dataset.complete = "yes";
    });
  };
  const begin = () => {
    if (window.location.search) follow(window.location.search);
    refresh();
  };

  // One case alone: only what is known of it.
  const title = document.title;
  const heading = document.getElementById("one-case");
  const alone = () => {
    const one = offers("one_case")?.value || "";
    heading.textContent = one;
    heading.hidden = !one;
    document.title = one ? `${one} · ${title}` : title;
    for (const section of document.querySelectorAll("section[data-tables]")) {
      const own = section.dataset.tables.split(" ").filter((name) => tables[name]?.readers.one_case);
      section.hidden = Boolean(one) && !own.some((name) => matching(tables[name], filters()).length);
      document.querySelector(`nav a[href="#${section.id}"]`).parentElement.hidden = section.hidden;
    }
    document.querySelector(".answers").hidden = Boolean(one);
  };

  // What is chosen stands in the address: it can be sent, and one can go back.
  const address = () => {
    const said = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
    for (const { name, wished, start } of picked) {
      for (const [pick, value] of Object.entries(wished)) {
        if (value !== start[pick]) said.set(`${name}.${pick}`, value);
      }
    }
    const text = said.toString();
    return text ? `?${text}` : "";
  };
  let kept = window.location.search;
  let typed = false; // The entry on top is of a search that goes on.
  function keep(part = window.location.hash, typing = false) {
    kept = address();
    const whole = `${window.location.pathname}${kept}${part}`;
    window.history[typing && typed ? "replaceState" : "pushState"](null, "", whole);
    typed = typing;
  }
  const follow = (search) => {
    const said = new URLSearchParams(search);
    const unknown = [];
    for (const field of form.elements) {
      if (!field.name) continue;
      field.value = said.get(field.name) || "";
      if (field.value !== (said.get(field.name) || "")) {
        field.value = "";
        unknown.push(said.get(field.name));
      }
    }
    for (const { name, wished, start } of picked) {
      for (const pick of Object.keys(start)) wished[pick] = said.get(`${name}.${pick}`) ?? start[pick];
    }
    kept = search;
    alone();
    count();
    if (unknown.length) status.textContent = `Not in this report: ${unknown.join(", ")}.`;
  };

  const status = document.getElementById("status");
  const count = () => {
    const chosen = filters();
    const usual = tables[data.filters.counted];
    const table = [usual, ...Object.values(tables)].find((one) => one
      && chosen.exact.every(([name]) => one.readers[name]));
    const narrowed = table && (chosen.text || chosen.exact.length);
    const noun = table === usual ? data.filters.noun : "rows";
    status.textContent = narrowed ? `${matching(table, chosen).length} of ${table.length} ${noun}` : "";
  };
  const changed = (typing = false) => {
    alone();
    count();
    keep(window.location.hash, typing);
    refresh();
  };
  let waiting = 0;
  form.addEventListener("input", (event) => {
    clearTimeout(waiting);
    const typing = event.target.type === "search";
    waiting = setTimeout(changed, typing ? 150 : 0, typing);
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='?']");
    if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    follow(link.search);
    keep(link.hash);
    refresh();
    (document.getElementById(link.hash.slice(1)) || form).scrollIntoView();
  });
  window.addEventListener("popstate", () => {
    typed = false;
    if (window.location.search === kept) return;
    follow(window.location.search);
    refresh();
  });
  form.addEventListener("reset", () => setTimeout(changed));
  form.addEventListener("submit", (event) => event.preventDefault());

  // Light or dark: as the system says, until the reader says otherwise.
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  function dark() { return root.dataset.theme ? root.dataset.theme === "dark" : system.matches; }
  const say = () => { button.textContent = dark() ? "Light theme" : "Dark theme"; };
  button.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; say(); });
  system.addEventListener("change", say);
  say();
  let broad = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth === broad || window.matchMedia("print").matches) return;
    broad = window.innerWidth;
    clearTimeout(waiting);
    waiting = setTimeout(refresh, 200);
  });

  if (document.readyState === "complete") begin();
  else window.addEventListener("load", begin);
})();
