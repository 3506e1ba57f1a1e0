// The subagents at work, and the ended ones.

import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import type { SubagentView } from '../../../../src/actors/contracts/session-views.ts';
import { duration, humanName, taskTitle } from '../format.ts';
import { calls, now, running, subagents } from '../store.ts';
import { send } from '../voice.ts';
import { Icon } from './icon.ts';

const SHOWN_ENDED = 4;

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
  const ended = subagents.value
    .filter(({ endedAt }) => endedAt !== null)
    .toSorted((a, b) => (b.endedAt ?? 0) - (a.endedAt ?? 0));
  return html`
    <section class="tray" aria-label="Subagents">
      <h2 class="section-title">Offstage</h2>
      ${
        subagents.value.length === 0 &&
        html`<p class="empty">Nobody is at work. Ask for a ride, a table or a report.</p>`
      }
      <ul class="cards">
        ${running.value.map((view) => html`<${AtWork} key=${view.id} view=${view} />`)}
      </ul>
      <ul class="ended">
        ${ended.slice(0, SHOWN_ENDED).map((view) => html`<${Ended} key=${view.id} view=${view} />`)}
      </ul>
      ${
        ended.length > SHOWN_ENDED &&
        html`<p class="hint">and ${ended.length - SHOWN_ENDED} before</p>`
      }
    </section>
  `;
}

function titleOf(view: SubagentView): string {
  return taskTitle(view, calls.value.get(view.callId ?? ''));
}

function AtWork({ view }: { view: SubagentView }) {
  const [isStopping, setStopping] = useState(false);
  const { id, name, state, progress, startedAt } = view;
  const stop = (): void => {
    if (send({ type: 'subagent.cancel', subagentId: id })) setStopping(true);
  };
  return html`
    <li class=${`card worker worker-${state}`}>
      <i class="pulse" aria-hidden="true"></i>
      <div class="worker-text">
        <h3>${titleOf(view)}</h3>
        <p class=${progress === null ? 'worker-name' : ''}>${progress ?? humanName(name)}</p>
        <p class="facts">
          <span>${isStopping ? 'stopping' : stateWords[state]}</span>
          <span><time>${duration(now.value - startedAt)}</time></span>
        </p>
      </div>
      <button
        class="icon-button"
        type="button"
        aria-label=${`Stop: ${titleOf(view)}`}
        title="Stop"
        disabled=${isStopping}
        onClick=${stop}
      >
        <${Icon} name="stop" />
      </button>
    </li>
  `;
}

function Ended({ view }: { view: SubagentView }) {
  const { state, startedAt, endedAt, outcome } = view;
  return html`
    <li class=${`ended-${state}`} title=${outcome?.error?.message ?? ''}>
      <${Icon} name=${state === 'completed' ? 'check' : 'close'} />
      <span class="ended-title">${titleOf(view)}</span>
      <span class="facts"
        ><span>${stateWords[state]}</span><span>${duration((endedAt ?? 0) - startedAt)}</span></span
      >
    </li>
  `;
}
