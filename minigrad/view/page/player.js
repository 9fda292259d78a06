"use strict";
// The player's page. What it shows is in the element #film, written by player.py: for each run the boxes of its graph,
// with their columns and lanes, and its frames, one for each step. Here the columns are cut into rows that fit the
// window, the curve is drawn, and the frame at the time line's position is shown. Text is set as text, never as markup.

const film = JSON.parse(document.getElementById("film").textContent);
const STATES = Object.keys(film.states);
const WAITING = 8;        // is added to the code of a box's state if a gradient waits at it
const KEY_EVERY = 128;    // frames between two at which the whole picture is remembered
const LONGEST_PLAY = 24000, SLOWEST = 420, FASTEST = 30;  // milliseconds: of a whole play, and of a step
const PHASES = {forward: "forward", replay: "replay", backward: "backward", end: "finished"};
const byId = id => document.getElementById(id);

function svg(name, attributes, parent, text) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const key in attributes) element.setAttribute(key, attributes[key]);
  if (text !== undefined) element.textContent = text;
  if (parent) parent.append(element);
  return element;
}

function bytesText(count) {
  for (const [unit, size] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]])
    if (count >= size) return `${(count / size).toFixed(1)} ${unit}`;
  return `${count} B`;
}

function listed(names) {
  const shown = names.slice(0, 3);
  if (names.length > 3) shown.push(`${names.length - 3} more`);
  return shown.length < 2 ? shown.join("") : `${shown.slice(0, -1).join(", ")} and ${shown[shown.length - 1]}`;
}

const pen = document.createElement("canvas").getContext("2d");
pen.font = 'bold 10.5px system-ui, "Segoe UI", Roboto, sans-serif';

function fitting(text, width) {
  // the text, or as much of it as fits; nothing if that would be less than three letters
  if (width < 9) return "";
  if (pen.measureText(text).width <= width) return text;
  for (let length = text.length - 1; length >= 3; length--)
    if (pen.measureText(text.slice(0, length) + "…").width <= width) return text.slice(0, length) + "…";
  return "";
}

// ---- One run -------------------------------------------------------------------------------------------

class Run {
  constructor(data) {
    this.data = data;
    this.boxes = data.graph.boxes;
    this.frames = data.frames;
    this.length = this.frames.kind.length;
    this.article = byId("run").content.firstElementChild.cloneNode(true);
    this.find = selector => this.article.querySelector(selector);
    this.find("h2").textContent = data.name || "the run";
    this.article.setAttribute("aria-label", data.name || "the run");
    this.rememberFrames();
    this.drawn = [];   // the SVG group of each box
    this.codes = null; // what is on the screen now
  }

  rememberFrames() {
    const codes = new Uint8Array(this.boxes.length);
    this.keys = [];
    for (let frame = 0; frame < this.length; frame++) {
      this.apply(codes, frame);
      if (frame % KEY_EVERY === 0) this.keys.push(codes.slice());
    }
  }

  apply(codes, frame) {
    const changes = this.frames.changes[frame];
    for (let i = 0; i < changes.length; i += 2) codes[changes[i]] = changes[i + 1];
  }

  codesAt(frame) {
    const key = Math.floor(frame / KEY_EVERY), codes = this.keys[key].slice();
    for (let later = key * KEY_EVERY + 1; later <= frame; later++) this.apply(codes, later);
    return codes;
  }

  total(measure, frame) { return this.frames[measure][frame]; }

  peakFrame(measure) {
    const values = this.frames[measure];
    return values.indexOf(values.reduce((a, b) => Math.max(a, b), 0));
  }

  // -- what is said --

  subject(box) {
    const {name, op, parts} = this.boxes[box];
    return parts > 1 || !op || name.split(/[ ,]/).includes(op) ? name : `${name} (${op})`;
  }

  sentence(frame) {
    const kind = this.frames.kind[frame], number = this.frames.box[frame];
    if (kind === "end") {
      const left = this.frames.activations[frame], peak = this.data.peakActivations;
      return `The run is over. Live activations: ${left ? left : "none"}; at the peak there were ${peak}.`;
    }
    const names = boxes => listed(boxes.map(box => this.boxes[box].name));
    const box = number < 0 ? null : this.boxes[number], many = box && box.parts > 1;
    const what = box ? this.subject(number) : "an op that is not shown";
    let said;
    if (kind === "forward") said = `Forward: ${what} ${many ? "run" : "runs"}.`;
    else if (kind === "replay") said = `Replay: ${what} ${many ? "run" : "runs"} again; its value had been dropped.`;
    else said = `Backward: ${what} ${many ? "are" : "is"} differentiated${this.vjpNames(box)}.`;
    const {kept, dropped} = this.frames;
    if (kept[frame].length) said += ` ${kind === "replay" ? "Held now" : "The tape keeps"}: ${names(kept[frame])}.`;
    if (dropped[frame].length) said += ` Then let go: ${names(dropped[frame])}.`;
    return said;
  }

  vjpNames(box) {
    return box && box.vjps.length ? `, by ${listed(box.vjps.map(index => film.functions[index].name))}` : "";
  }

  // -- the graph --

  layOut() {
    const graph = this.find(".graph svg"), width = this.find(".graph").clientWidth;
    const columns = 1 + Math.max(0, ...this.boxes.map(box => box.column));
    const numbers = this.boxes.every(box => !box.op || /^\d+$/.test(box.short) || this.boxes.length > 300);
    const gutter = this.boxes.some(box => box.column < 0) ? 1 : 0;
    const some = this.boxes.length <= 300;
    const smallest = !some ? 15 : numbers ? 26 : this.boxes.length <= 200 ? 66 : 42;
    const starts = new Map(this.data.graph.breaks);
    let perRow = Math.max(4, Math.floor(width / smallest) - gutter);
    const longest = longestStretch([...starts.keys(), columns]);
    if (starts.size && longest <= perRow) perRow = longest;
    else if (perRow >= columns) perRow = columns;
    else if (numbers && perRow >= 10) perRow -= perRow % 10;
    const cell = Math.min(width / (perRow + gutter), numbers ? 64 : 104);
    const gap = cell >= 60 && numbers ? 12 : cell >= 40 ? 9 : cell >= 22 ? 6 : 3;
    const w = cell - gap, h = cell >= 22 ? 22 : Math.max(8, w);
    this.size = {w, h, gap, cell, rowGap: cell >= 22 ? 12 : 4};
    this.placeBoxes(columns, perRow, gutter, numbers ? new Map() : starts, starts);
    graph.replaceChildren();
    graph.setAttribute("width", width);
    graph.setAttribute("height", this.bottom + 6);
    this.drawFrames(graph);
    this.drawCaptions(graph);
    svg("path", {class: "edges", d: cell >= 22 ? this.edges() : ""}, graph);
    this.flow = svg("path", {class: "flow", "marker-end": "url(#arrow)"}, graph);
    this.drawBoxes(graph);
    this.hand = svg("g", {class: "hand"}, graph);
    svg("rect", {class: "ring", x: -3.5, y: -3.5, width: w + 7, height: h + 7}, this.hand);
    const badge = cell >= 22 ? {cx: 1, cy: -2, r: 8} : {cx: w / 2, cy: -9, r: 7};
    svg("circle", badge, this.hand);
    svg("text", {x: badge.cx, y: badge.cy + 0.5}, this.hand);
    this.codes = null;
  }

  placeBoxes(columns, perRow, gutter, captions, starts) {
    const lanes = new Array(columns).fill(1);
    for (const box of this.boxes) if (box.column >= 0) lanes[box.column] = Math.max(lanes[box.column], box.lane + 1);
    const {cell, h, rowGap} = this.size, place = [];
    let row = -1, y = 4, count = 0, deepest = 1, rowY = 4;
    this.captions = [];
    for (let column = 0; column < columns; column++) {
      if (row < 0 || count === perRow || starts.has(column)) {
        if (row >= 0) y = rowY + deepest * (h + 6) - 6 + rowGap;
        row++;
        count = 0;
        deepest = 1;
        if (captions.get(column)) {
          this.captions.push([y + 7, captions.get(column)]);
          y += 19;
        }
        rowY = y;
      }
      place.push({row, x: (gutter + count) * cell + this.size.gap / 2, y: rowY});
      deepest = Math.max(deepest, lanes[column]);
      count++;
    }
    this.bottom = rowY + deepest * (h + 6) - 6;
    this.at = this.boxes.map(box => {
      const {row, x, y} = box.column < 0 ? {...place[0], x: this.size.gap / 2} : place[box.column];
      return {row, x, y: y + box.lane * (h + 6)};
    });
  }

  drawFrames(graph) {
    // around the boxes of a checkpoint, once in each row; inner ones are drawn later and a little smaller
    const {checkpoints} = this.data.graph, around = new Map(), {w, h, cell} = this.size;
    const depth = index => { let n = 0; while ((index = checkpoints[index].parent) >= 0) n++; return n; };
    this.boxes.forEach((box, number) => {
      for (let index = box.checkpoint; index >= 0; index = checkpoints[index].parent) {
        const {row, x, y} = this.at[number], key = `${depth(index)} ${index} ${row}`;
        const r = around.get(key) || {left: x, right: x, top: y, bottom: y};
        around.set(key, {left: Math.min(r.left, x), right: Math.max(r.right, x), top: Math.min(r.top, y), bottom: Math.max(r.bottom, y)});
      }
    });
    const margin = cell >= 22 ? 3.5 : 1.5;
    for (const key of [...around.keys()].sort((a, b) => parseInt(a) - parseInt(b))) {
      const r = around.get(key), m = margin - 1.5 * parseInt(key);
      svg("rect", {class: parseInt(key) ? "frame inner" : "frame", x: r.left - m, y: r.top - m, rx: 6,
        width: r.right - r.left + w + 2 * m, height: r.bottom - r.top + h + 2 * m}, graph);
    }
  }

  drawCaptions(graph) {
    for (const [y, text] of this.captions) svg("text", {class: "caption", x: this.size.gap / 2 - 4, y}, graph, text);
  }

  drawBoxes(graph) {
    const {w, h} = this.size;
    this.drawn = this.boxes.map((box, number) => {
      const {x, y} = this.at[number];
      const group = svg("g", {transform: `translate(${x},${y})`}, graph);
      svg("rect", {width: w, height: h}, group);
      const short = fitting(box.short, w - 4);
      if (short) svg("text", {x: w / 2, y: h / 2 + 0.5}, group, short);
      const c = Math.min(9, h / 2);
      svg("path", {class: "waits", d: `M${w},${h - c} v${c} h${-c} z`}, group);
      const place = box.place < 0 ? "" : `, ${film.places[box.place].name}`;
      svg("title", {}, group, `${this.subject(number)}: ${box.shape}, ${box.size}${place}`);
      return group;
    });
  }

  edge(from, to) {
    const a = this.at[from], b = this.at[to], {w, h, gap, rowGap} = this.size;
    const middle = h / 2, forward = b.x > a.x;
    if (a.row === b.row && forward) {
      const next = this.boxes[to].column - Math.max(this.boxes[from].column, -1) === 1;
      if (next && a.y === b.y) return `M${a.x + w},${a.y + middle} H${b.x}`;
      if (next || a.y !== b.y) {
        const reach = Math.min(20, (b.x - a.x - w) / 2 + 4);
        return `M${a.x + w},${a.y + middle} C${a.x + w + reach},${a.y + middle} ${b.x - reach},${b.y + middle} ${b.x},${b.y + middle}`;
      }
      const top = a.y - Math.min(rowGap - 3, 4 + (b.x - a.x) / 60), inset = Math.min(14, w / 3);
      return `M${a.x + w - inset},${a.y} C${a.x + w},${top} ${a.x + w},${top} ${a.x + w + 10},${top} H${b.x - 10} C${b.x},${top} ${b.x},${top} ${b.x + inset},${b.y}`;
    }
    const stub = Math.max(gap - 2, 3);  // to another row: out to the right there, in from the left here
    return `M${a.x + w},${a.y + middle} h${stub} M${b.x - stub},${b.y + middle} H${b.x}`;
  }

  edges() {
    // those to the next row only from box to box; further ones would cross the rows between
    const paths = [];
    this.boxes.forEach((box, to) => {
      for (const from of box.inputs) {
        const rows = this.at[to].row - this.at[from].row;
        if (rows === 0 || (rows === 1 && box.column - this.boxes[from].column === 1)) paths.push(this.edge(from, to));
      }
    });
    return paths.join("");
  }

  // -- the curve --

  drawCurve(measure, length, highest) {
    const root = this.find(".curve svg"), width = this.find(".curve").clientWidth, height = 150;
    const left = measure === "bytes" ? 54 : 34, right = 10, top = 20, strip = 13, foot = height - strip - 4;
    this.x = frame => left + (width - left - right) * frame / length;
    this.y = value => foot - (foot - top) * value / highest;
    this.frameAt = x => Math.floor((x - left) * length / (width - left - right));
    root.replaceChildren();
    root.setAttribute("width", width);
    root.setAttribute("height", height);
    this.drawTicks(root, measure, highest, left, width - right);
    this.drawAreas(root, measure, Math.ceil(width - left - right));
    const end = this.x(this.length), peak = this.peakFrame(measure), value = this.total(measure, peak);
    const words = `peak ${measure === "bytes" ? bytesText(value) : value}`;
    this.drawStrip(root, foot + 4, strip);
    this.veil = svg("rect", {class: "veil", y: top - 4, height: height - top + 4}, root);
        svg("circle", {class: "dot", r: 3, cx: this.x(peak + 0.5), cy: this.y(value)}, root);
    svg("text", {class: "peak", x: Math.min(Math.max(this.x(peak + 0.5), left + 34), width - right - 34), y: this.y(value) - 7,
      "text-anchor": "middle"}, root, words);
    if (width - end > 70) svg("text", {class: "over", x: end + 6, y: foot - 6}, root, "finished");
    this.cursor = svg("path", {class: "cursor"}, root);
    this.handle = svg("path", {class: "handle"}, root);
    this.point = svg("circle", {class: "dot", r: 4}, root);
    this.plot = {width: width - right + 2, height, top};
    root.setAttribute("aria-label", this.curveInWords(measure));
  }

  curveInWords(measure) {
    const peak = this.peakFrame(measure), value = this.total(measure, peak);
    const what = measure === "bytes" ? `live bytes, ${bytesText(value)}` : `live activations, ${value}`;
    return `Memory curve over ${this.data.steps} steps. Peak: ${what}, at step ${this.frames.steps[peak][0]}.`;
  }

  drawTicks(root, measure, highest, left, right) {
    const rough = highest / 4.2, size = 10 ** Math.floor(Math.log10(rough)), whole = measure === "activations";
    const steps = [1, 2, 2.5, 5, 10].map(n => n * size).filter(n => !whole || n >= 1 && Number.isInteger(n));
    const step = steps.find(n => n >= rough) || 1;
    for (let value = 0; value <= highest; value += step) {
      svg("line", {class: "axis", x1: left, x2: right, y1: this.y(value), y2: this.y(value)}, root);
      const words = measure === "bytes" ? bytesText(value).replace(".0 ", " ") : value;
      svg("text", {class: "tick", x: left - 6, y: this.y(value) + 4, "text-anchor": "end"}, root, value ? words : "0");
    }
  }

  drawAreas(root, measure, pixels) {
    // at most one bar a pixel: of more frames than pixels, the highest
    const bars = [], each = Math.max(1, this.length / pixels);
    for (let start = 0; start < this.length; start += each) {
      const from = Math.round(start), to = Math.min(Math.round(start + each), this.length);
      let frame = from;
      for (let other = from; other < to; other++)
        if (this.total(measure, other) > this.total(measure, frame)) frame = other;
      if (to > from) bars.push([frame, from, to]);
    }
    const byRole = this.frames[`${measure}ByRole`], below = new Array(bars.length).fill(0), shown = [];
    for (const role in film.roles) {
      if (!byRole[role] || !byRole[role].some(value => value > 0)) continue;
      const base = below.slice();
      bars.forEach(([frame], i) => { below[i] += byRole[role][frame]; });
      const there = bars.map(([, from, to], i) => `L${this.x(from)},${this.y(below[i])} L${this.x(to)},${this.y(below[i])}`);
      const back = bars.map(([, from, to], i) => `L${this.x(to)},${this.y(base[i])} L${this.x(from)},${this.y(base[i])}`).reverse();
      const path = svg("path", {class: `role-${role}`, d: `M${this.x(0)},${this.y(base[0])}${there.join("")}${back.join("")}z`}, root);
      if (role === "replayed") path.style.fill = "url(#hatch)";
      shown.push(role);
    }
    const line = bars.map(([frame, from, to]) => `L${this.x(from)},${this.y(this.total(measure, frame))} H${this.x(to)}`).join("");
    svg("path", {class: "outline", d: `M${this.x(0)},${this.y(0)}${line}`}, root);
    this.nameRoles(shown.reverse());
  }

  nameRoles(roles) {
    this.find(".curve figcaption").replaceChildren(...roles.map(role => {
      const item = document.createElement("span");
      item.textContent = film.roles[role];
      item.style.setProperty("--swatch", `var(--role-${role})`);
      if (role === "replayed") item.className = "hatched";
      return item;
    }));
  }

  drawStrip(root, y, height) {
    const kinds = this.frames.kind;
    for (let start = 0, i = 1; i <= this.length; i++) {
      if (i < this.length && kinds[i] === kinds[start]) continue;
      const kind = kinds[start], x = this.x(start), width = this.x(i) - x;
      const thin = kind === "replay" ? 0 : 3;
      if (kind !== "end") {
        const bar = svg("rect", {class: `phase-${kind}`, x, y: y + thin, width, height: height - thin}, root);
        if (kind === "replay") bar.style.fill = "url(#hatch)";
        if (width > 56 && kind !== "replay") svg("text", {class: `on-${kind}`, x: x + 5, y: y + height - 2}, root, kind);
      }
      start = i;
    }
  }

  // -- showing --

  show(position, measure) {
    const frame = Math.min(position, this.length - 1), codes = this.codesAt(frame);
    for (let box = 0; box < codes.length; box++) {
      if (this.codes && this.codes[box] === codes[box]) continue;
      const state = STATES[codes[box] % WAITING], waits = codes[box] >= WAITING ? " waiting" : "";
      this.drawn[box].setAttribute("class", `box s-${state}${waits}${this.boxes[box].op ? "" : " data"}`);
    }
    this.codes = codes;
    this.frame = frame;
    this.showHand(frame);
    this.showFigures(frame);
    this.showCursor(position, frame, measure);
    this.showCode(frame);
    const said = this.sentence(frame);
    this.find(".sentence").textContent = said;
    this.find(".graph svg").setAttribute("aria-label", `Graph of ${this.boxes.length} boxes. ${said}`);
  }

  showHand(frame) {
    const number = this.frames.box[frame], kind = this.frames.kind[frame];
    this.hand.style.display = number < 0 ? "none" : "";
    this.flow.setAttribute("d", "");
    if (number < 0) return;
    const {x, y} = this.at[number];
    this.hand.setAttribute("transform", `translate(${x},${y})`);
    this.hand.lastChild.textContent = film.hands[kind][0] + "\uFE0E";
    const inputs = this.boxes[number].inputs.filter(from => this.near(from, number));
    this.flow.setAttribute("class", `flow ${kind}`);
    this.flow.removeAttribute("marker-start");
    this.flow.removeAttribute("marker-end");
    this.flow.setAttribute(kind === "backward" ? "marker-start" : "marker-end", "url(#arrow)");
    this.flow.setAttribute("d", inputs.length === 1 ? this.edge(inputs[0], number) : inputs.map(from => this.edge(from, number)).join(""));
  }

  near(from, to) { return this.at[to].row - this.at[from].row <= 1 && this.size.cell >= 22; }

  showFigures(frame) {
    const {activations, bytes, replayed} = this.frames, kind = this.frames.kind[frame];
    const put = (name, now, peak) => {
      this.find(`[data-figure="${name}"]`).textContent = now;
      this.find(`[data-peak="${name}"]`).textContent = peak;
    };
    put("activations", activations[frame], `peak ${this.data.peakActivations}`);
    put("bytes", bytesText(bytes[frame]), `peak ${bytesText(this.data.peakBytes)}`);
    put("replayed", replayed[frame], `of ${this.data.replayedOps}`);
    const phase = this.find(".phase");
    phase.textContent = PHASES[kind];
    phase.style.setProperty("--phase", kind === "end" ? "transparent" : `var(--phase-${kind})`);
  }

  showCursor(position, frame, measure) {
    const x = this.x(Math.min(position, this.length - 1) + 0.5), {width, top, height} = this.plot;
    this.veil.setAttribute("x", x);
    this.veil.setAttribute("width", Math.max(0, width - x));
    this.cursor.setAttribute("d", `M${x},${top - 6} V${height}`);
    this.handle.setAttribute("d", `M${x - 5},${top - 13} h10 l-5,8 z`);
    this.point.setAttribute("cx", x);
    this.point.setAttribute("cy", this.y(this.total(measure, frame)));
  }

  showCode(frame) {
    const number = this.frames.box[frame], kind = this.frames.kind[frame], box = this.boxes[number];
    const [yours, engine] = this.article.querySelectorAll(".place");
    const place = box && box.place >= 0 ? film.places[box.place] : {name: "", text: ""};
    yours.textContent = place.name;
    this.find(".yours").textContent = place.text || (box ? "(the source is not to be had)" : "");
    const indices = !box ? [] : kind === "backward" ? box.vjps : [box.forward].filter(index => index >= 0);
    const functions = indices.map(index => film.functions[index]);
    engine.textContent = [...new Set(functions.map(f => f.place))].join(", ");
    const text = functions.map(f => f.text || `${f.name}: the source is not to be had`).join("\n\n");
    const pre = this.find(".engine");
    if (pre.textContent === text) return;
    pre.textContent = text;
    pre.scrollTop = 0;
  }
}

function longestStretch(starts) {
  let longest = 0;
  for (let i = 1; i < starts.length; i++) longest = Math.max(longest, starts[i] - starts[i - 1]);
  return longest;
}

// ---- The time line -------------------------------------------------------------------------------------

class Player {
  constructor(runs) {
    this.runs = runs;
    this.length = Math.max(...runs.map(run => run.length));
    this.measure = "activations";
    this.position = 0;
    this.timer = null;
    const slider = byId("slider");
    slider.max = this.length - 1;
    slider.addEventListener("input", () => { this.stop(); this.go(Number(slider.value)); });
    for (const button of document.querySelectorAll("[data-go]"))
      button.addEventListener("click", () => this.act(button.dataset.go));
    document.addEventListener("keydown", event => this.key(event));
    for (const run of runs) this.scrubOn(run);
    this.starts = this.replayStarts();
    this.peaks = [...new Set(runs.map(run => run.peakFrame("activations")))].sort((a, b) => a - b);
  }

  replayStarts() {
    const starts = new Set();
    for (const {frames} of this.runs)
      frames.kind.forEach((kind, i) => { if (kind === "replay" && frames.kind[i - 1] !== "replay") starts.add(i); });
    return [...starts].sort((a, b) => a - b);
  }

  scrubOn(run) {
    const curve = run.find(".curve svg");
    const follow = event => {
      this.stop();
      this.go(run.frameAt(event.clientX - curve.getBoundingClientRect().left));
    };
    curve.addEventListener("pointerdown", event => { curve.setPointerCapture(event.pointerId); follow(event); });
    curve.addEventListener("pointermove", event => { if (event.buttons & 1) follow(event); });
  }

  draw() {
    const highest = 1.04 * Math.max(1, ...this.runs.map(run => run.total(this.measure, run.peakFrame(this.measure))));
    for (const run of this.runs) {
      run.layOut();
      run.drawCurve(this.measure, this.length, highest);
    }
    const other = this.measure === "bytes" ? "activations" : "bytes";
    byId("measure").firstElementChild.textContent = `show ${other}`;
    this.go(this.position);
  }

  go(position) {
    this.position = Math.min(Math.max(position, 0), this.length - 1);
    for (const run of this.runs) run.show(this.position, this.measure);
    const slider = byId("slider");
    slider.value = this.position;
    byId("where").textContent = this.where();
    slider.setAttribute("aria-valuetext", `step ${this.where()}. ${this.said()}`);
    if (document.activeElement !== slider && this.timer === null) byId("announcer").textContent = this.said();
  }

  where() {
    const last = this.length - 1;
    return this.position === last ? `${last} of ${last}, end` : `${this.position + 1} of ${last}`;
  }

  said() {
    return this.runs.map(run => {
      const {activations} = run.frames, name = run.data.name ? `${run.data.name}: ` : "";
      return `${name}${run.find(".sentence").textContent} Live activations: ${activations[run.frame]}.`;
    }).join(" ");
  }

  act(what) {
    if (what === "play") return this.timer === null ? this.play() : this.stop();
    if (what === "measure") return this.turnMeasure();
    this.stop();
    const after = list => list.find(frame => frame > this.position);
    const targets = {
      start: 0,
      end: this.length - 1,
      back: this.position - 1,
      forward: this.position + 1,
      "far-back": this.position - 10,
      "far-forward": this.position + 10,
      "replay-after": after(this.starts),
      "replay-before": [...this.starts].reverse().find(frame => frame < this.position),
      peak: after(this.peaks) ?? this.peaks[0],
    };
    this.go(targets[what] ?? this.position);
  }

  key(event) {
    const target = event.target, keys = {
      ArrowRight: "forward", ArrowLeft: "back", PageDown: "far-forward", PageUp: "far-back", Home: "start", End: "end",
      r: "replay-after", R: "replay-before", p: "peak", b: "measure", " ": "play",
    };
    const what = keys[event.key];
    if (!what || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === " " && target.closest("button")) return;               // which presses the button
    if (event.key.startsWith("Arrow") && target.closest("pre")) return;      // which scrolls it
    event.preventDefault();
    this.act(what);
  }

  play() {
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const delay = Math.min(SLOWEST, Math.max(FASTEST, LONGEST_PLAY / this.length, calm ? 250 : 0));
    if (this.position === this.length - 1) this.go(0);
    this.timer = setInterval(() => {
      if (this.position === this.length - 1) this.stop();
      else this.go(this.position + 1);
    }, delay);
    byId("play").firstElementChild.textContent = "pause";
  }

  stop() {
    if (this.timer === null) return;
    clearInterval(this.timer);
    this.timer = null;
    byId("play").firstElementChild.textContent = "play";
    this.go(this.position);
  }

  turnMeasure() {
    this.measure = this.measure === "bytes" ? "activations" : "bytes";
    this.draw();
  }
}

// ---- The page ------------------------------------------------------------------------------------------

function drawLegend(runs) {
  const used = new Set(runs.flatMap(run => run.frames.changes.flatMap(c => c.filter((_, i) => i % 2).map(code => code % WAITING))));
  const entries = STATES.filter((_, code) => code === 0 || used.has(code)).map(state => [state, film.states[state]]);
  const kinds = new Set(runs.flatMap(run => run.frames.kind));
  const list = byId("legend");
  const add = (draw, words) => {
    const item = document.createElement("li"), picture = svg("svg", {width: 44, height: 24, "aria-hidden": "true"}, item);
    draw(picture);
    item.append(words);
    list.append(item);
  };
  const box = (picture, state, extra) => {
    const group = svg("g", {class: `box s-${state}${extra || ""}`, transform: "translate(7,3)"}, picture);
    svg("rect", {width: 30, height: 18}, group);
    svg("path", {class: "waits", d: "M30,10 v8 h-8 z"}, group);
  };
  for (const [state, words] of entries) add(picture => box(picture, state, state === "input" ? " data" : ""), words);
  for (const kind in film.hands)
    if (kinds.has(kind)) add(picture => {
      box(picture, "dropped");
      const hand = svg("g", {class: "hand", transform: "translate(7,3)"}, picture);
      svg("rect", {class: "ring", x: -2, y: -2, width: 34, height: 22}, hand);
      svg("circle", {r: 7.5, cx: 15, cy: 9}, hand);
      svg("text", {x: 15, y: 9.5}, hand, film.hands[kind][0] + "\uFE0E");
    }, `in hand: it ${film.hands[kind][1]} now`);
  add(picture => box(picture, "dropped", " waiting"), "a gradient waits here for its turn");
  if (runs.some(run => run.data.graph.checkpoints.length))
    add(picture => svg("rect", {class: "frame", x: 2, y: 2, width: 40, height: 20, rx: 5}, picture), "a checkpoint, around what it replays");
}

function start() {
  byId("title").textContent = film.title;
  byId("facts").textContent = film.facts;
  const runs = film.runs.map(data => new Run(data));
  byId("runs").className = runs.length > 1 ? "several" : "single";
  byId("runs").append(...runs.map(run => run.article));
  drawLegend(runs);
  const player = new Player(runs);
  const asked = location.hash.match(/^#step=(\d+)$/);
  if (asked) player.position = Number(asked[1]) - 1;
  player.draw();
  let width = document.body.clientWidth;
  addEventListener("resize", () => {
    if (document.body.clientWidth === width) return;
    width = document.body.clientWidth;
    player.draw();
  });
  window.player = player;
}

start();
