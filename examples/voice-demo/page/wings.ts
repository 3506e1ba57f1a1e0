// The rest of the right side: the subagents, what has come back, and the statecharts of the session.

import { signal } from '@preact/signals';
import { html as view } from 'htm/preact';
import { useEffect, useState } from 'preact/hooks';
import type { DeliveryView, SessionState, SubagentView } from 'offstage';
import { Icon } from './frame.ts';
import { client, humanName, now, session } from './session.ts';

const SHOWN_ENDED = 4;
const SHOWN_RESULTS = 8;
/** Waved away on this page, after they were told. */
const hidden = signal<ReadonlySet<string>>(new Set());

const stateWords: Readonly<Record<SubagentView['state'], string>> = {
  spawning: 'is called',
  ready: 'waits for its turn',
  running: 'at work',
  waiting_for_input: 'waits for you',
  waiting_for_children: 'waits for others',
  completed: 'done',
  failed: 'failed',
  cancelled: 'stopped',
};

export function Tray() {
  const { subagents } = session.value;
  const running = subagents.filter(({ endedAt }) => endedAt === null);
  const ended = subagents
    .filter(({ endedAt }) => endedAt !== null)
    .toSorted((a, b) => (b.endedAt ?? 0) - (a.endedAt ?? 0));
  return view`<section class="tray" aria-label="Subagents"><h2 class="section-title">Offstage</h2>
    ${subagents.length === 0 && view`<p class="empty">Nobody is at work. Ask for a ride, a table or a report.</p>`}
    <ul class="cards">${running.map((each) => view`<${AtWork} key=${each.id} worker=${each} />`)}</ul>
    <ul class="ended">${ended.slice(0, SHOWN_ENDED).map(
      ({
        id,
        state,
        startedAt,
        endedAt,
        outcome,
        title,
      }) => view`<li key=${id} class=${`ended-${state}`} title=${outcome?.error?.message ?? ''}>
      <${Icon} name=${state === 'completed' ? 'check' : 'close'} /><span class="ended-title">${title}</span>
      <span class="facts"><span>${stateWords[state]}</span><span>${duration((endedAt ?? 0) - startedAt)}</span></span></li>`,
    )}</ul>
    ${ended.length > SHOWN_ENDED && view`<p class="hint">and ${ended.length - SHOWN_ENDED} before</p>`}
  </section>`;
}

function AtWork({ worker }: { worker: SubagentView }) {
  const [isStopping, setStopping] = useState(false);
  const { id, name, title, state, progress, startedAt } = worker;
  const stop = (): void => {
    setStopping(true);
    client.cancel(id, 'the user pressed Stop').catch(() => setStopping(false));
  };
  return view`<li class=${`card worker worker-${state}`}><i class="pulse" aria-hidden="true"></i>
    <div class="worker-text"><h3>${title}</h3>
      <p class=${progress === null ? 'worker-name' : ''}>${progress ?? humanName(name)}</p>
      <p class="facts"><span>${isStopping ? 'stopping' : stateWords[state]}</span><span><time>${duration(now.value - startedAt)}</time></span></p></div>
    <button class="icon-button" type="button" aria-label=${`Stop: ${title}`} title="Stop" disabled=${isStopping} onClick=${stop}>
      <${Icon} name="stop" /></button></li>`;
}

/** Results and news. What waits to be said keeps its words to itself until it is said, or the user would rather read it. */
export function Results() {
  const shown = session.value.deliveries
    .filter(
      ({ deliveryId, kind, state }) =>
        (kind === 'result' || kind === 'notice') &&
        state !== 'dismissed' &&
        state !== 'dropped' &&
        !hidden.value.has(deliveryId),
    )
    .toSorted((a, b) => b.at - a.at)
    .slice(0, SHOWN_RESULTS);
  if (shown.length === 0) return null;
  return view`<section class="results" aria-label="Results"><h2 class="section-title">Results</h2>
    <ul class="cards" aria-live="polite">${shown.map((each) => view`<${Result} key=${each.deliveryId} delivery=${each} />`)}</ul></section>`;
}

function Result({
  delivery: { deliveryId, subagentId, label, text, state, grade, card, priority },
}: {
  delivery: DeliveryView;
}) {
  // It could not be said: that it is on the screen is how it reaches the user.
  useEffect(() => {
    if (card && state !== 'delivered') void client.shown(deliveryId);
  }, [deliveryId, card, state]);
  const worker = session.value.subagents.find(({ id }) => id === subagentId);
  const words = humanName(label.toLowerCase());
  const title = worker ? worker.title : words.charAt(0).toUpperCase() + words.slice(1);
  const turn =
    state === 'playing'
      ? 'is being told'
      : state === 'delivered'
        ? grade === 'shown'
          ? 'read'
          : 'told'
        : card
          ? 'could not be told'
          : 'waits for a pause';
  const dismiss = (): void => {
    hidden.value = new Set(hidden.value).add(deliveryId);
    if (state !== 'delivered') void client.dismiss(deliveryId);
  };
  return view`<li class=${`card result ${priority === 'urgent' ? 'result-urgent' : ''}`}>
    <header class="card-head"><span class="card-from">${title}</span><span class="card-turn">${turn}</span></header>
    ${state === 'delivered' || state === 'playing' || card ? view`<p class="result-text">${text}</p>` : view`<button class="link-button" type="button" onClick=${() => void client.shown(deliveryId)}>Read it now</button>`}
    <button class="icon-button result-dismiss" type="button" aria-label=${`Dismiss: ${title}`} title="Dismiss" onClick=${dismiss}><${Icon} name="close" /></button>
  </li>`;
}

const connections: readonly SessionState['connection'][] = [
  'created',
  'connecting',
  'active',
  'transferring',
  'reconnecting',
  'suspended',
  'closing',
  'closed',
];
const floors: readonly SessionState['floor'][] = ['nobody', 'user', 'model'];
const works = Object.keys(stateWords) as SubagentView['state'][];

/** Where each actor stands now, in the states of its chart. */
export function Statecharts() {
  const { connection, floor, agent, subagents } = session.value;
  return view`<details class="more charts"><summary class="section-title">Statecharts, live</summary>
    <${Chart} name="Session" states=${connections} active=${connection} />
    <${Chart} name=${`${agent ?? 'Lead agent'}: who speaks`} states=${floors} active=${floor} />
    ${subagents.slice(-SHOWN_ENDED).map((each) => view`<${Chart} key=${each.id} name=${each.title} states=${works} active=${each.state} />`)}
  </details>`;
}

function Chart({
  name,
  states,
  active,
}: {
  name: string;
  states: readonly string[];
  active: string;
}) {
  return view`<div class="chart"><h3>${name}</h3><ol aria-label=${`States of ${name}`}>${states.map(
    (state) =>
      view`<li key=${state} aria-current=${state === active ? 'step' : undefined}>${humanName(state)}</li>`,
  )}</ol></div>`;
}

/** `4 s`, `1:05`. */
function duration(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  return seconds < 60
    ? `${seconds} s`
    : `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}
