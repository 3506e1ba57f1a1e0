// The inspector's page: its document and style. It contains no session data.

/** `base` is the page's path. */
export function pageHtml(base: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Offstage inspector</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${base}/page.css">
</head>
<body data-base="${base}" data-bare data-empty>
<header>
  <h1>Offstage</h1>
  <label>Session <select id="session"></select></label>
  <p id="status" role="status">Connecting</p>
</header>
<nav aria-label="Entries">
  <button id="first" type="button">First</button>
  <button id="back" type="button">Back</button>
  <label>Entry <input id="entry" type="number" min="1" value="1"></label>
  <span id="of"></span>
  <button id="next" type="button">Next</button>
  <button id="live" type="button" aria-pressed="true">Latest</button>
  <a id="link" href="#">Link to this entry</a>
  <button id="save" type="button">Save as a test</button>
  <label>Id of a fork <input id="fork-id" type="text" maxlength="200"></label>
  <button id="fork" type="button">Fork from here</button>
</nav>
<p id="dropped"></p>
<main>
  <p id="empty"></p>
  <section id="left" aria-labelledby="left-title">
    <h2 id="left-title">Actors</h2>
    <div id="tree" class="rows" role="tree" aria-labelledby="left-title" tabindex="0"></div>
    <h3 id="waits-title">What waits, and why</h3>
    <p id="idle"></p>
    <ul id="waits" aria-labelledby="waits-title" tabindex="0"></ul>
    <div id="own" hidden>
      <h3 id="machines-title">Your machines</h3>
      <div id="machines" class="rows" role="tree" aria-labelledby="machines-title" tabindex="0"></div>
    </div>
  </section>
  <section id="middle" aria-labelledby="middle-title">
    <h2 id="middle-title">Time</h2>
    <p class="tools">
      <button id="zoom-in" type="button">Zoom in</button>
      <button id="zoom-out" type="button">Zoom out</button>
      <button id="earlier" type="button">Earlier</button>
      <button id="later" type="button">Later</button>
      <button id="all" type="button">All</button>
      <span id="span"></span>
    </p>
    <div id="axis-scroll" tabindex="0" role="group" aria-label="Lanes">
      <canvas id="axis" role="img" aria-label="The conversation on a time axis; the list of entries has the same in words"></canvas>
    </div>
    <h3 id="entries-title">Entries</h3>
    <p class="tools">
      <input id="find" type="search" aria-label="Find entries" placeholder="Find" maxlength="200">
      <label><input id="only" type="checkbox"> Only selected</label>
      <span id="found" role="status"></span>
    </p>
    <div id="entries" class="rows" role="listbox" aria-labelledby="entries-title" tabindex="0"></div>
  </section>
  <section id="right" aria-labelledby="subject">
    <h2 id="subject">session</h2>
    <p id="why"></p>
    <p id="usage"></p>
    <div id="actions"></div>
    <p id="receipt" role="status"></p>
    <dl id="detail"></dl>
    <div id="said-box" hidden>
      <h3 id="said-title">Conversation</h3>
      <ol id="said" aria-labelledby="said-title" tabindex="0"></ol>
    </div>
    <div id="exchanged-box" hidden>
      <h3 id="exchanged-title">Questions, answers and messages</h3>
      <ol id="exchanged" aria-labelledby="exchanged-title" tabindex="0"></ol>
    </div>
    <h3 id="diff-title">Changed by this entry</h3>
    <dl id="diff"></dl>
    <h3 id="chart-title">Statechart</h3>
    <div id="chart" tabindex="0" role="group" aria-label="Statechart"></div>
    <p id="chart-note"></p>
    <ul id="moves" aria-label="Events that are taken now"></ul>
    <h3 id="context-title">Context</h3>
    <pre id="context" tabindex="0"></pre>
    <h3 id="event-title">Event of this entry</h3>
    <p class="tools"><button id="copy" type="button">Copy the event</button></p>
    <pre id="event" tabindex="0"></pre>
  </section>
</main>
<script src="${base}/page.js"></script>
</body>
</html>
`;
}

export const pageStyle = `:root {
  color-scheme: light dark;
  --paper: light-dark(#fdfdfc, #16181c);
  --ink: light-dark(#1c1f24, #e9ebee);
  --soft: light-dark(#555c66, #a9b1bd);
  --line: light-dark(#c9ced6, #3a404a);
  --mark: light-dark(#0b57d0, #8ab4f8);
  --on: light-dark(#d9e7ff, #1f3558);
  --chip: light-dark(#edeff2, #272b32);
  --bad: light-dark(#b3261e, #ffb4a9);
}
* { box-sizing: border-box; }
html, body { height: 100%; margin: 0; }
body { display: flex; flex-direction: column; background: var(--paper); color: var(--ink); font: 14px/1.4 system-ui, sans-serif; }
h1, h2, h3, p { margin: 0; overflow-wrap: anywhere; }
h1 { font-size: 16px; } h2 { font-size: 14px; } h3 { font-size: 12px; color: var(--soft); margin-top: 10px; }
header, nav { display: flex; flex-wrap: wrap; gap: 6px 12px; align-items: center; padding: 6px 12px; border-bottom: 1px solid var(--line); }
header > *, nav > * { min-width: 0; max-width: 100%; }
select { text-overflow: ellipsis; min-width: 0; }
#session { max-width: min(100%, 40ch); }
button, select, input { font: inherit; color: inherit; background: var(--chip); border: 1px solid var(--line); border-radius: 4px; padding: 2px 8px; min-height: 26px; max-width: 100%; }
button[aria-pressed="true"] { border-color: var(--mark); color: var(--mark); }
button:disabled { opacity: .6; }
input[type="number"] { width: 7em; }
a { color: var(--mark); }
:focus-visible { outline: 2px solid var(--mark); outline-offset: 1px; }
main { flex: 1; min-height: 0; display: grid; grid-template-columns: minmax(240px, 1.1fr) minmax(300px, 2.2fr) minmax(260px, 1.4fr); }
section { min-width: 0; min-height: 0; padding: 8px 12px; display: flex; flex-direction: column; border-right: 1px solid var(--line); }
#right { overflow: auto; }
.rows { flex: 1; min-height: 120px; overflow: auto; position: relative; }
.space { position: relative; }
.row { position: absolute; left: 0; right: 0; height: 24px; display: flex; gap: 8px; align-items: center; white-space: nowrap; overflow: hidden; padding-right: 4px; cursor: default; }
.row[aria-selected="true"] { background: var(--on); }
.row span { overflow: hidden; text-overflow: ellipsis; }
.row .n { color: var(--soft); min-width: 4em; text-align: right; }
.row .n, .row .n + span { flex: none; }
.row .chip { flex: none; max-width: 65%; }
.chip { background: var(--chip); border-radius: 8px; padding: 0 6px; font-size: 12px; }
.tools { display: flex; flex-wrap: wrap; align-items: center; gap: 6px; padding: 4px 0; }
#axis-scroll { height: 45%; min-height: 160px; overflow-y: auto; position: relative; }
#axis { position: sticky; top: 0; display: block; width: 100%; height: 100%; }
pre { margin: 0; padding: 6px; background: var(--chip); max-height: 260px; min-height: 2em; flex: none; overflow: auto; font-size: 12px; white-space: pre-wrap; overflow-wrap: anywhere; }
dl { margin: 0; } dt { font-weight: 600; } dd { margin: 0 0 4px 12px; overflow-wrap: anywhere; }
#dropped { padding: 4px 12px; }
#dropped:empty, #empty:empty { display: none; }
#empty { padding: 24px 12px; color: var(--soft); }
#status[data-wrong] { color: var(--bad); font-weight: 600; }
label { display: inline-flex; align-items: center; gap: 6px; min-width: 0; max-width: 100%; }
input[type="checkbox"] { min-height: 0; flex: none; width: 16px; height: 16px; }
#usage { margin: 0; }
#usage:empty { display: none; }
#why { font-weight: 600; padding: 4px 0; }
#receipt { overflow-wrap: anywhere; }
#actions { display: flex; flex-wrap: wrap; gap: 6px; }
#own { flex: 1; min-height: 0; display: flex; flex-direction: column; }
#own[hidden] { display: none; }
#chart { flex: none; overflow: auto; max-height: 340px; resize: vertical; }
#chart:empty, #chart-title:has(+ #chart:empty), pre:empty, #context-title:has(+ pre:empty), #diff-title:has(+ dl:empty) { display: none; }
#chart svg { display: block; }
#chart-note:empty { display: none; }
div.state { border: 1px solid var(--line); border-radius: 5px; padding: 2px 6px 4px; margin: 3px; display: inline-block; vertical-align: top; font-size: 12px; }
div.state[data-on] { border: 2px solid var(--mark); background: var(--on); }
div.state > b { display: block; }
div.state[data-type="parallel"] > .state { display: block; }
g.state rect { fill: var(--paper); stroke: var(--soft); }
g.state[data-type="parallel"] > rect { stroke-dasharray: 4 3; }
g.state[data-type="final"] > rect { stroke-width: 3; }
g.state[data-on] > rect { stroke: var(--mark); stroke-width: 2; }
g.state[data-on][data-leaf] > rect { fill: var(--on); }
body[data-bare] nav, body[data-bare] #middle, body[data-bare] #tree, body[data-bare] #waits-title, body[data-bare] #waits, body[data-bare] #idle { display: none; }
body[data-empty] section, body[data-empty] header label { display: none; }
body[data-empty] main { display: block; }
body[data-bare]:not([data-empty]) main { grid-template-columns: minmax(200px, 1fr) minmax(300px, 3fr); }
body[data-bare] #chart { max-height: none; }
g.state text { font: 600 12px system-ui, sans-serif; fill: var(--ink); }
.arrow { fill: none; stroke: var(--soft); }
.arrow[data-last] { stroke: var(--mark); stroke-width: 2.5; }
.tip, .start { fill: var(--soft); }
.event { font: 11px system-ui, sans-serif; fill: var(--ink); paint-order: stroke; stroke: var(--paper); stroke-width: 3px; }
.event[data-last] { fill: var(--mark); font-weight: 600; }
#waits { flex: none; max-height: 30%; overflow: auto; margin: 4px 0; padding: 0; list-style: none; font-size: 12px; overflow-wrap: anywhere; }
#waits li { margin: 2px 0; }
#waits button { border: 0; padding: 0 2px; min-height: 24px; background: none; color: var(--mark); text-align: left; overflow-wrap: anywhere; }
#waits:empty, #idle:empty, #detail:empty { display: none; }
#said, #exchanged { margin: 0; padding: 6px; list-style: none; max-height: 260px; overflow: auto; background: var(--chip); font-size: 12px; overflow-wrap: anywhere; white-space: pre-wrap; }
#said-box[hidden], #exchanged-box[hidden] { display: none; }
#moves { margin: 4px 0 0; padding-left: 18px; font-size: 12px; }
@media (max-width: 800px) {
  html, body { height: auto; }
  main { display: block; }
  .row .n { min-width: 2.5em; }
  section { border-right: 0; border-bottom: 1px solid var(--line); }
  .rows { max-height: 260px; }
  #axis-scroll { height: 240px; }
}
`;
