"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const find = (id) => document.getElementById(id);
  const DASHES = ["", "8 4", "2 3", "10 3 2 3"];
  const LEFT = 56, RIGHT = 12;
  const SOME = 8; // classes shown until more are asked for
  const state = { series: 0, channels: new Set(data.order.slice(0, data.first)), hidden: new Set(), time: null, more: false };
  let readers = []; // one function per chart that shows the values at a moment

  // Text only ever enters the page as text nodes: names are the user's, and may look like markup.
  function fill(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {})) {
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else if (value === true) node.setAttribute(name, "");
      else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, String(value));
    }
    node.append(...children.flat().filter((child) => child !== null));
    return node;
  }
  const html = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
  const svg = (tag, attributes, ...children) =>
    fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

  function number(value) {
    if (value === null) return "–";
    const size = Math.abs(value);
    if (size !== 0 && (size >= 1e6 || size < 1e-3)) return value.toExponential(2);
    return String(Number(value.toPrecision(size >= 1000 ? 6 : 4)));
  }
  function moment(series, time) {
    if (data.dates) return new Date(Math.round((series.origin + time) * 1000)).toISOString().slice(0, 19).replace("T", " ");
    const digits = series.span > 0 ? Math.max(0, 3 - Math.floor(Math.log10(series.span))) : 6;
    return String(Number((series.origin + time).toFixed(Math.min(digits, 12))));
  }
  const viewTitle = (view) => view.name + (view.bandwidth === null ? "" : ", bandwidth " + view.bandwidth);
  const plural = (count, word) => count + " " + word + (count === 1 ? "" : "s");
  const visible = (series) => series.views.map((_, index) => index).filter((index) => !state.hidden.has(index));

  function interpolate([times, values], time) {
    if (!times.length) return null;
    let low = 0, high = times.length - 1;
    if (time <= times[0]) return values[0];
    if (time >= times[high]) return values[high];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (times[middle] <= time) low = middle; else high = middle;
    }
    const gap = times[high] - times[low];
    return gap > 0 ? values[low] + ((time - times[low]) / gap) * (values[high] - values[low]) : values[high];
  }
  function nearest(times, time) {
    let best = -1;
    times.forEach((t, index) => { if (best < 0 || Math.abs(t - time) < Math.abs(times[best] - time)) best = index; });
    return best;
  }
  function niceTicks(low, high, most) {
    const rough = (high - low) / most, power = Math.pow(10, Math.floor(Math.log10(rough)));
    const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= rough) || 10 * power;
    const ticks = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) ticks.push(Number((k * step).toPrecision(12)));
    return ticks;
  }
  // Labels of a narrow axis need the digits in which they differ.
  function tickText(value, ticks) {
    const step = ticks.length > 1 ? Math.abs(ticks[1] - ticks[0]) : Math.abs(value) || 1;
    const largest = Math.max(...ticks.map(Math.abs));
    if (largest >= 1e6 || (largest < 1e-3 && largest > 0)) return value === 0 ? "0" : value.toExponential(largest / step > 50 ? 2 : 1);
    let decimals = 0;
    while (decimals < 8 && Math.abs(step * 10 ** decimals - Math.round(step * 10 ** decimals)) > 1e-6 * step * 10 ** decimals) decimals++;
    return value.toFixed(decimals);
  }

  // A frame with time to the right: gridlines, labels, a cursor, and the scales to draw by.
  function frame(series, width, height, range, label, last) {
    const bottom = last ? 24 : 6, top = 6;
    const x = (time) => LEFT + (width - LEFT - RIGHT) * (series.span > 0 ? time / series.span : 0.5);
    let low = 0, high = 1, y = () => 0;
    if (range) {
      [low, high] = range;
      const pad = high > low ? 0.06 * (high - low) : Math.abs(low) * 0.1 || 1;
      low -= range.floor === undefined ? pad : 0; high += pad;
      y = (value) => top + (height - top - bottom) * (1 - (value - low) / (high - low));
    }
    const root = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
    let free = -Infinity;
    for (const [time, text] of series.ticks) {
      root.append(svg("line", { class: "grid", x1: x(time), x2: x(time), y1: top, y2: height - bottom }));
      const half = text.length * 3.3;
      if (last && x(time) - half > free && x(time) + half < width + RIGHT) {
        const at = Math.min(x(time), width - half);
        root.append(svg("text", { x: at, y: height - 7, "text-anchor": "middle" }, text));
        free = at + half + 8;
      }
    }
    if (range) {
      const ticks = niceTicks(low, high, Math.max(2, Math.round((height - top - bottom) / 34)));
      for (const value of ticks) {
        root.append(svg("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y(value), y2: y(value) }));
        root.append(svg("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, tickText(value, ticks)));
      }
    }
    root.append(svg("line", { class: "frame", x1: LEFT, x2: width - RIGHT, y1: height - bottom, y2: height - bottom }));
    const cursor = svg("line", { class: "cursor", y1: top, y2: height - bottom });
    const point = (time) => {
      cursor.style.visibility = time === null ? "hidden" : "visible";
      if (time !== null) { cursor.setAttribute("x1", x(time)); cursor.setAttribute("x2", x(time)); }
    };
    return { root, x, y, top, bottom: height - bottom, cursor, point };
  }
  function chart(name, drawn, read) {
    const readout = html("span", { class: "read" });
    drawn.root.append(drawn.cursor);
    readers.push((time) => {
      drawn.point(time);
      readout.replaceChildren(...(time === null ? [] : read(time)));
    });
    return html("div", { class: "chart" }, html("div", { class: "top" }, html("b", { title: name }, name), readout), drawn.root);
  }
  const line = (index, times, values, x, y) =>
    svg("polyline", {
      class: "view c" + (index % 8),
      "stroke-dasharray": DASHES[index % 4] || null,
      points: times.map((t, i) => x(t).toFixed(1) + "," + y(values[i]).toFixed(1)).join(" "),
    });
  const coloured = (index, text) => html("span", { class: "c" + (index % 8) }, text);

  function channelChart(series, channel, width, last) {
    const seen = series.channels[channel], name = data.channels[channel], shown = visible(series);
    const extent = seen.x.length ? `, from ${number(Math.min(...seen.x))} to ${number(Math.max(...seen.x))}` : "";
    const label = `${name}: ${plural(seen.x.length, "observation")}${extent}` +
      (seen.gaps.length ? `, ${plural(seen.gaps.length, "long gap")}` : "") +
      (shown.length ? `; paths of ${shown.map((index) => series.views[index].name).join(", ")}` : "");
    const drawn = frame(series, width, last ? 168 : 150, [seen.low, seen.high], label, last);
    for (const [from, to] of seen.gaps) {
      const left = drawn.x(from), right = drawn.x(to);
      drawn.root.append(svg("rect", { class: "gap", x: left, y: drawn.top, width: Math.max(right - left, 1), height: drawn.bottom - drawn.top }));
    }
    for (const index of shown) drawn.root.append(line(index, ...seen.paths[index], drawn.x, drawn.y));
    const radius = seen.t.length > 200 ? 1.6 : 2.8;
    seen.t.forEach((t, i) => drawn.root.append(svg("circle", { class: "dot", cx: drawn.x(t).toFixed(1), cy: drawn.y(seen.x[i]).toFixed(1), r: radius })));
    if (!seen.t.length) {
      const remark = series.views.length ? "never observed here: the path is an assumption" : "never observed here";
      drawn.root.append(svg("text", { x: LEFT + 8, y: drawn.top + 14 }, remark));
    }
    return chart(name, drawn, (time) => {
      const place = nearest(seen.t, time);
      const parts = place < 0 ? [] : [html("span", {}, `observed ${number(seen.x[place])} at ${moment(series, seen.t[place])}`)];
      return parts.concat(shown.map((index) => coloured(index, number(interpolate(seen.paths[index], time)))));
    });
  }
  function attentionChart(series, width, last) {
    const { t, weights } = series.attention, shown = visible(series);
    const even = t.length ? 1 / t.length : 0;
    const range = [0, Math.max(even, ...shown.flatMap((index) => weights[index]))];
    range.floor = 0;
    const peaks = shown.filter(() => t.length).map((index) => {
      const peak = weights[index].indexOf(Math.max(...weights[index]));
      return `${series.views[index].name} attends most at ${moment(series, t[peak])}`;
    });
    const drawn = frame(series, width, last ? 138 : 120, range, "Attention over time. " + peaks.join("; "), last);
    drawn.root.append(svg("line", { class: "even", x1: LEFT, x2: width - RIGHT, y1: drawn.y(even), y2: drawn.y(even) }));
    for (const index of shown) {
      drawn.root.append(line(index, t, weights[index], drawn.x, drawn.y));
      if (t.length <= 120) {
        t.forEach((time, i) => drawn.root.append(svg("circle", { class: "mark c" + (index % 8), cx: drawn.x(time).toFixed(1), cy: drawn.y(weights[index][i]).toFixed(1), r: 2 })));
      }
    }
    return chart("Attention (dotted: if even)", drawn, (time) => {
      const place = nearest(t, time);
      return place < 0 ? [] : shown.map((index) => coloured(index, number(weights[index][place])));
    });
  }
  function stepsChart(series, width) {
    const shown = visible(series), height = 20 * Math.max(shown.length, 1) + 36;
    const label = "Solver steps. " + shown.map((i) => `${series.views[i].name}: ${plural(series.views[i].accepted, "step")}`).join("; ");
    const drawn = frame(series, width, height, null, label, true);
    shown.forEach((index, row) => {
      const middle = 18 + 20 * row, view = series.views[index];
      drawn.root.append(svg("text", { x: LEFT - 6, y: middle + 4, "text-anchor": "end" }, series.views.length > 1 ? view.name : "steps"));
      for (const t of view.steps) {
        drawn.root.append(svg("line", { class: "tick c" + (index % 8), x1: drawn.x(t).toFixed(1), x2: drawn.x(t).toFixed(1), y1: middle - 7, y2: middle + 7 }));
      }
    });
    return chart("Where the solver stepped", drawn, (time) => shown.map((index) => {
      const steps = series.views[index].steps, next = steps.findIndex((t) => t > time);
      return coloured(index, next > 0 ? "step " + number(steps[next] - steps[next - 1]) : "");
    }));
  }

  function drawCharts() {
    const series = data.series[state.series], width = Math.max(280, Math.floor(find("charts").clientWidth));
    const channels = data.order.filter((channel) => state.channels.has(channel));
    const after = (series.attention ? 1 : 0) + (series.views.length ? 1 : 0);
    readers = [];
    const charts = channels.map((channel, place) => channelChart(series, channel, width, !after && place === channels.length - 1));
    if (series.attention) charts.push(attentionChart(series, width, false));
    if (series.views.length) charts.push(stepsChart(series, width));
    if (!charts.length) charts.push(html("p", { class: "quiet" }, "No channel is chosen; choose one above."));
    find("charts").replaceChildren(...charts);
    point(state.time);
    drawNumbers();
  }
  function point(time) {
    const series = data.series[state.series];
    state.time = time === null ? null : Math.min(Math.max(time, 0), series.span);
    readers.forEach((read) => read(state.time));
  }
  function timeAt(event) {
    const box = find("charts").getBoundingClientRect(), series = data.series[state.series];
    return ((event.clientX - box.left - LEFT) / (box.width - LEFT - RIGHT)) * series.span;
  }

  const cells = (tag, texts, numeric) =>
    texts.map((text, i) => html(tag, { class: numeric(i) ? "number" : null, scope: tag === "th" ? "col" : null }, text));
  function table(head, rows, numeric) {
    const body = rows.map((row) => html("tr", {}, html("th", { scope: "row", class: numeric(0) ? "number" : null }, row[0]), cells("td", row.slice(1), (i) => numeric(i + 1))));
    return html("table", {}, html("thead", {}, html("tr", {}, cells("th", head, numeric))), html("tbody", {}, body));
  }
  function drawNumbers() {
    if (!find("numbers").open) return;
    const series = data.series[state.series];
    const rows = data.order.filter((channel) => state.channels.has(channel)).flatMap((channel) => {
      const seen = series.channels[channel];
      return seen.t.map((t, i) => [data.channels[channel], moment(series, t), number(seen.x[i]), ...seen.paths.map((path) => number(interpolate(path, t)))]);
    });
    const head = ["Channel", "Time", "Observed", ...series.views.map((view) => view.name)];
    find("numbers").lastElementChild.replaceChildren(table(head, rows, (i) => i > 0));
  }

  function drawAnswer() {
    const { answer } = data.series[state.series];
    const order = answer.numbers.map((_, i) => i);
    if (answer.classification) order.sort((a, b) => (answer.numbers[b] ?? -1) - (answer.numbers[a] ?? -1) || a - b);
    const parts = answer.classification || order.length === 1 || answer.numbers.includes(null) ? [html("p", { class: "said" }, answer.text)] : [];
    if (answer.truth !== null) parts.push(html("p", { class: "quiet" }, "Truth: " + answer.truth));
    if (answer.classification) {
      for (const i of state.more ? order : order.slice(0, SOME)) {
        const bar = html("div", { class: "fill" });
        bar.style.width = 100 * (answer.numbers[i] || 0) + "%";
        parts.push(html("div", { class: "bar" },
          html("span", { class: "name" }, answer.names[i]),
          html("span", { class: "value" }, answer.numbers[i] === null ? "–" : answer.numbers[i].toFixed(3)),
          html("div", { class: "rail", "aria-hidden": "true" }, bar)));
      }
      if (order.length > SOME) {
        const text = state.more ? "Show fewer" : `Show all ${order.length} classes`;
        parts.push(html("button", { type: "button", class: "more", onclick: () => { state.more = !state.more; drawAnswer(); } }, text));
      }
    } else if (order.length > 1) {
      parts.push(table(["Target", "Value"], order.map((i) => [answer.names[i], number(answer.numbers[i])]), (i) => i > 0));
    }
    find("answer").replaceChildren(...parts);
  }
  function drawCost() {
    const series = data.series[state.series], parts = [];
    if (series.views.length) {
      const name = (view) => view.bandwidth === null ? view.name : [view.name, html("small", {}, "bandwidth " + view.bandwidth)];
      const rows = series.views.map((view) => [name(view), String(view.nfe), String(view.accepted), String(view.rejected)]);
      if (rows.length > 1) rows.push(["all views", ...["nfe", "accepted", "rejected"].map((key) => String(series.views.reduce((sum, view) => sum + view[key], 0)))]);
      parts.push(table(["View", "NFE", "Steps", "Rejected"], rows, (i) => i > 0));
    } else {
      parts.push(html("p", {}, `${data.model} has no path to draw, and no view to tell the cost of.` +
        (series.nfe ? ` Between stamps it evaluated its vector field ${plural(series.nfe, "time")}.` : "")));
    }
    find("cost").replaceChildren(...parts);
  }
  function swatch(index) {
    return svg("svg", { class: "swatch c" + (index % 8), viewBox: "0 0 26 10", "aria-hidden": "true" },
      svg("line", { class: "view", x1: 0, x2: 26, y1: 5, y2: 5, "stroke-dasharray": DASHES[index % 4] || null }));
  }
  function drawViews() {
    const series = data.series[state.series], box = find("views");
    box.hidden = !series.views.length;
    box.firstElementChild.textContent = series.views.length > 1 ? "Views" : "Path";
    box.replaceChildren(box.firstElementChild, ...series.views.map((view, index) => html("label", {},
      html("input", { type: "checkbox", checked: !state.hidden.has(index), onchange: (event) => {
        if (event.target.checked) state.hidden.delete(index); else state.hidden.add(index);
        drawCharts();
      } }), swatch(index), viewTitle(view))));
  }
  function drawChannels() {
    const series = data.series[state.series], wanted = find("filter").value.trim().toLowerCase();
    const chips = data.order.filter((channel) => data.channels[channel].toLowerCase().includes(wanted)).map((channel) => {
      const count = series.channels[channel].t.length;
      return html("label", { class: count ? null : "unseen", title: plural(count, "observation") },
        html("input", { type: "checkbox", checked: state.channels.has(channel), value: channel, onchange: (event) => {
          if (event.target.checked) state.channels.add(channel); else state.channels.delete(channel);
          drawCharts();
        } }), `${data.channels[channel]} (${count})`);
    });
    find("channel-list").replaceChildren(...(chips.length ? chips : [html("span", { class: "quiet" }, "No channel of that name.")]));
  }
  function choose(channels) {
    state.channels = new Set(channels);
    drawChannels();
    drawCharts();
  }
  function show(place) {
    state.series = place;
    state.time = null;
    const series = data.series[place];
    const count = series.channels.reduce((sum, channel) => sum + channel.t.length, 0);
    find("series").value = String(place);
    find("previous").disabled = place === 0;
    find("next").disabled = place === data.series.length - 1;
    find("window").textContent = `From ${series.from} to ${series.to}, ${plural(count, "observation")}`;
    find("static-card").hidden = !series.static.length;
    find("static").replaceChildren(table(["Feature", "Value"], series.static.map(([name, value]) => [name, number(value)]), (i) => i > 0));
    [...find("overview").tBodies[0].rows].forEach((row, i) => row.classList.toggle("current", i === place));
    drawAnswer();
    drawCost();
    drawViews();
    drawChannels();
    drawCharts();
  }

  document.documentElement.classList.add("scripted");
  find("series").append(...data.series.map((series, i) => html("option", { value: i }, series.id)));
  find("series").addEventListener("change", (event) => show(Number(event.target.value)));
  find("previous").addEventListener("click", () => show(state.series - 1));
  find("next").addEventListener("click", () => show(state.series + 1));
  [...find("overview").tBodies[0].rows].forEach((row, i) => {
    const cell = row.cells[0];
    cell.replaceChildren(html("button", { type: "button", onclick: () => { show(i); window.scrollTo({ top: 0 }); } }, cell.textContent));
  });
  const few = data.order.length <= data.first;
  find("first").textContent = `First ${data.first}`;
  find("first").hidden = few;
  find("filter").hidden = data.order.length <= 12;
  find("first").addEventListener("click", () => choose(data.order.slice(0, data.first)));
  find("all").addEventListener("click", () => choose(data.order));
  find("none").addEventListener("click", () => choose([]));
  find("filter").addEventListener("input", drawChannels);
  find("numbers").addEventListener("toggle", drawNumbers);
  const charts = find("charts");
  charts.addEventListener("pointermove", (event) => point(timeAt(event)));
  charts.addEventListener("pointerdown", (event) => point(timeAt(event)));
  charts.addEventListener("pointerleave", () => point(null));
  charts.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key], { span } = data.series[state.series];
    if (event.key === "Escape") point(null);
    if (!step) return;
    event.preventDefault();
    point(state.time === null ? (step > 0 ? 0 : span) : state.time + (step * span) / 100);
  });
  let width = 0;
  new ResizeObserver(() => {
    if (charts.clientWidth !== width) { width = charts.clientWidth; drawCharts(); }
  }).observe(charts);
  show(0);
})();
