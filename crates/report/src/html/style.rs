//! The style sheet, inlined into every page.

/// Light and dark by the reader's preference; one column on a phone; tables scroll by themselves.
pub const SHEET: &str = r"
:root {
  color-scheme: light dark;
  --paper: #fdfdfb; --ink: #1d2327; --faint: #5c666d; --rule: #d9dde0; --panel: #f2f4f3;
  --mark: #0b63a5; --spread: #b9d2e6; --doubt: #8a5200; --doubt-panel: #fff4df; --bad: #b3261e; --good: #1b6e3c;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #15191c; --ink: #e4e8ea; --faint: #9aa5ac; --rule: #333b40; --panel: #1e2428;
    --mark: #6cb6f0; --spread: #2c4a61; --doubt: #f0b35a; --doubt-panel: #33280f; --bad: #ff8a80; --good: #7bd29b;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 1rem; max-width: 68rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere;
}
h1 { font-size: 1.5rem; line-height: 1.2; }
h2 { font-size: 1.2rem; margin: 0 0 .5rem; }
section { margin: 2.5rem 0; }
a { color: var(--mark); }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1rem; padding: 0; list-style: none; }
.facts { margin: 0; display: grid; gap: .15rem; }
.facts div { display: grid; grid-template-columns: 11rem 1fr; gap: .75rem; }
.facts dt { color: var(--faint); }
.facts dd { margin: 0; }
.doubts { background: var(--doubt-panel); border-left: .3rem solid var(--doubt); padding: .75rem 1rem; margin: 1rem 0; }
.doubts ul { margin: 0; padding-left: 1.2rem; }
.good { color: var(--good); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .6rem; text-align: left; border-bottom: 1px solid var(--rule); vertical-align: top; overflow-wrap: normal; }
th { color: var(--faint); font-weight: 600; white-space: nowrap; }
td.number, th.number { text-align: right; white-space: nowrap; }
td.name, td.interval { white-space: nowrap; }
tr.untrusted td { color: var(--doubt); }
tr.failed td { color: var(--bad); }
.reason { display: block; white-space: normal; min-width: 12rem; }
.skipped { color: var(--faint); }
pre { background: var(--panel); padding: .75rem 1rem; overflow-x: auto; }
figure { margin: 1.25rem 0 0; }
figcaption { color: var(--faint); margin-bottom: .5rem; }
.chart { display: block; overflow: visible; max-width: 52rem; }
.chart text { fill: var(--ink); font-size: 13px; }
.chart .tick { fill: var(--faint); font-size: 11px; }
.chart .rule { stroke: var(--rule); }
.chart .spread { stroke: var(--spread); stroke-width: 8; }
.chart .interval { stroke: var(--mark); stroke-width: 3; }
.chart circle { fill: var(--mark); }
.chart .curve { stroke: var(--mark); stroke-width: 2; }
.chart .curve.second { stroke: var(--doubt); stroke-dasharray: 4 3; }
.chart .doubtful .interval { stroke: var(--doubt); }
.chart .doubtful circle { fill: var(--doubt); }
footer { color: var(--faint); border-top: 1px solid var(--rule); }
@media (max-width: 40rem) { .facts div { grid-template-columns: 1fr; gap: 0; margin-bottom: .4rem; } }
@media print { nav { display: none; } section { break-inside: avoid; } }
";
