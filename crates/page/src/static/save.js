// Every table and every chart can be saved: as a picture (PNG) that is drawn here in the browser, and its figures as a
// file (CSV). Nothing is asked of the server for it.
"use strict";

// What a saved picture has for each pixel of the screen, the space around it, and the most pixels of a side that
// browsers draw.
const DENSITY = 2;
const SPACE = 16;
const LONGEST = 16000;
// What the style sheet says of a chart's parts, which a picture of its own does not have.
const DRAWN = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap",
  "stroke-linejoin", "paint-order", "vector-effect", "image-rendering", "opacity", "display", "visibility", "color",
  "font-family", "font-size", "font-weight", "text-anchor"];

function fileName(title, ending) {
  const words = title.toLowerCase().replace(/[^a-z0-9.]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 80);
  return `fingerpost-${words || "table"}.${ending}`;
}

function download(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

// The chart as an image that needs no style sheet.
async function imageOf(svg, width, height) {
  const copy = svg.cloneNode(true);
  const parts = [svg, ...svg.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((part, i) => {
    const style = getComputedStyle(parts[i]);
    // Attributes, not a style: the page's policy forbids styles within elements.
    for (const name of DRAWN) part.setAttribute(name, style.getPropertyValue(name));
    part.removeAttribute("class");
  });
  for (const words of copy.querySelectorAll("title, desc")) words.remove();
  for (const [name, value] of [["x", SPACE], ["y", SPACE], ["width", width], ["height", height]]) {
    copy.setAttribute(name, value);
  }
  // Marks at an edge reach beyond it, unless the chart cuts them off.
  copy.setAttribute("overflow", getComputedStyle(svg).overflow === "hidden" ? "hidden" : "visible");
  const outer = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  outer.setAttribute("width", width + 2 * SPACE);
  outer.setAttribute("height", height + 2 * SPACE);
  outer.append(copy);
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(new XMLSerializer().serializeToString(outer))}`;
  await image.decode();
  return image;
}

// The words of a text line by line, each where the browser put it.
function linesOf(text) {
  const lines = [];
  const range = document.createRange();
  for (let at = 0; at < text.length; at += 1) {
    range.setStart(text, at);
    range.setEnd(text, at + 1);
    const box = range.getClientRects()[0];
    if (!box) continue;
    const last = lines[lines.length - 1];
    if (last && Math.abs(last.box.top - box.top) < 2) last.words += text.data[at];
    else lines.push({ box, words: text.data[at] });
  }
  return lines;
}

// Draws an element as it is on the screen: backgrounds and rules of its boxes, its charts, its words.
async function drawn(element, canvas, left, top) {
  const context = canvas.getContext("2d");
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT, (node) => {
    const part = node.nodeType === Node.TEXT_NODE ? node.parentElement : node;
    const hidden = part.matches(".unseen, .save, script") || !part.checkVisibility();
    return hidden || part.parentElement?.closest("svg") ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT;
  });
  for (let node = walker.currentNode; node; node = walker.nextNode()) {
    if (node.nodeType === Node.TEXT_NODE) {
      if (node.parentElement.closest("svg")) continue;
      const style = getComputedStyle(node.parentElement);
      context.font = `${style.fontStyle} ${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
      context.fillStyle = style.color;
      context.textBaseline = "alphabetic";
      for (const { box, words } of linesOf(node)) {
        const { fontBoundingBoxAscent: up, fontBoundingBoxDescent: down } = context.measureText(words);
        context.fillText(words, box.left - left, box.top - top + (box.height + up - down) / 2);
      }
      continue;
    }
    const box = node.getBoundingClientRect();
    if (node.matches("svg")) {
      if (box.width < 1 || box.height < 1) continue;
      const image = await imageOf(node, box.width, box.height);
      context.drawImage(image, box.left - left - SPACE, box.top - top - SPACE);
      continue;
    }
    const style = getComputedStyle(node);
    context.fillStyle = style.backgroundColor;
    context.fillRect(box.left - left, box.top - top, box.width, box.height);
    const rule = parseFloat(style.borderBottomWidth);
    if (rule > 0 && style.borderBottomStyle !== "none") {
      context.fillStyle = style.borderBottomColor;
      context.fillRect(box.left - left, box.bottom - top - rule, box.width, rule);
    }
  }
}

// The element as a picture, with its title above it where the element has none of its own.
async function pictureOf(element, title) {
  const box = element.getBoundingClientRect();
  const [width, height] = [Math.max(box.width, element.scrollWidth), Math.max(box.height, element.scrollHeight)];
  const titled = element.querySelector("figcaption, caption") ? 0 : 28;
  const canvas = document.createElement("canvas");
  const density = Math.min(DENSITY, LONGEST / (height + titled + 2 * SPACE), LONGEST / (width + 2 * SPACE));
  canvas.width = Math.ceil((width + 2 * SPACE) * density);
  canvas.height = Math.ceil((height + titled + 2 * SPACE) * density);
  const context = canvas.getContext("2d");
  const page = getComputedStyle(document.body);
  context.scale(density, density);
  context.fillStyle = page.getPropertyValue("--card");
  context.fillRect(0, 0, canvas.width, canvas.height);
  if (titled) {
    context.font = `600 16px ${page.fontFamily}`;
    context.fillStyle = page.color;
    context.fillText(title, SPACE, SPACE + 14, width);
  }
  await drawn(element, canvas, box.left - SPACE, box.top - SPACE - titled);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

// One cell of a file: quoted where it must be, and nothing that a spreadsheet takes for a formula.
function csvCell(words) {
  const plain = words.replace(/\s+/g, " ").trim();
  const safe = /^[=+@\t]/.test(plain) || /^-(?![0-9.])/.test(plain) ? `'${plain}` : plain;
  return /[",]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function csvOfTable(table) {
  const words = (cell) => {
    const copy = cell.cloneNode(true);
    // What a chart says stands in the row's other cells.
    for (const part of copy.querySelectorAll("svg, .save, input")) part.remove();
    return csvCell(copy.textContent);
  };
  const pictures = [...table.querySelectorAll("thead th")].map((cell) => cell.matches(".graphic"));
  const kept = (cell) => !cell.matches(".graphic") && !(pictures[cell.cellIndex] && cell.textContent.trim() === "");
  const line = (row) => [...row.cells].filter(kept)
    .flatMap((cell) => [words(cell), ...Array(cell.colSpan - 1).fill("")]).join(",");
  return [...table.rows].map(line);
}

// A chart's figures: what each of its marks says on hover, as `series, step: value`, else its description.
function csvOfChart(svg) {
  const marks = [...svg.querySelectorAll("title")].filter((title) => title.parentElement !== svg)
    .map((title) => title.textContent);
  const said = marks.length ? marks : (svg.querySelector("desc")?.textContent ?? "").split(/(?<=[;.]) /);
  const split = (mark) => {
    const at = mark.lastIndexOf(": ");
    return at < 0 ? [mark] : [mark.slice(0, at), mark.slice(at + 2)];
  };
  return ["what,figure", ...said.map((mark) => split(mark).map(csvCell).join(","))];
}

function csvOf(element) {
  const tables = element.matches("table") ? [element] : [...element.querySelectorAll("table")];
  const charts = element.matches("svg") ? [element] : [...element.querySelectorAll("svg[role=img]")];
  const lines = tables.length ? tables.flatMap(csvOfTable) : charts.flatMap(csvOfChart);
  return new Blob([`${lines.join("\r\n")}\r\n`], { type: "text/csv" });
}

function titleOf(element) {
  const own = element.querySelector("caption, figcaption strong, figcaption, svg > title")
    ?? element.querySelector("title");
  const label = element.closest(".scroll")?.getAttribute("aria-label")?.replace(/, table$/, "");
  const section = element.closest("section")?.querySelector("h2, h3")?.textContent;
  return (label || own?.textContent || section || document.title).replace(/\s+/g, " ").trim();
}

// Two buttons after each table and each chart.
function saving(within) {
  const wanted = "table, figure:not(.part), svg.chart, svg.icicle, details.samples > dl, ul.tiles";
  for (const element of within.querySelectorAll(wanted)) {
    const inside = element.parentElement.closest("table, figure:not(.part), details.samples > dl");
    if (inside || element.dataset.saves || element.closest("article.document")) continue;
    element.dataset.saves = "yes";
    const title = titleOf(element);
    const row = document.createElement("p");
    row.className = "save";
    const button = (name, make) => {
      const one = document.createElement("button");
      one.type = "button";
      one.textContent = name;
      one.setAttribute("aria-label", `Save “${title}” as ${name}`);
      one.addEventListener("click", async () => {
        one.disabled = true;
        try { download(await make(), fileName(title, name.toLowerCase())); } finally { one.disabled = false; }
      });
      row.append(one);
    };
    button("PNG", () => pictureOf(element, title));
    button("CSV", () => csvOf(element));
    (element.closest(".scroll") ?? element).after(row);
  }
}
saving(document.getElementById("main"));
