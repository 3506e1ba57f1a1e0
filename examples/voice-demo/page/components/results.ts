// Results and news. What still waits to be said keeps its words to itself until it is
// said, or until the user would rather read it.

import { signal } from '@preact/signals';
import { html } from 'htm/preact';
import { useEffect } from 'preact/hooks';
import type { DeliveryView } from '../../../../src/actors/contracts/session-views.ts';
import { humanName, taskTitle } from '../format.ts';
import { calls, deliveries, subagents } from '../store.ts';
import { send } from '../voice.ts';
import { Icon } from './icon.ts';

const MAX_SHOWN = 8;

/** Waved away on this page, after they were told. */
const hidden = signal<ReadonlySet<string>>(new Set());

export function Results() {
  const shown = deliveries.value
    .filter(
      ({ deliveryId, kind, state }) =>
        (kind === 'result' || kind === 'notice') &&
        state !== 'dismissed' &&
        state !== 'dropped' &&
        !hidden.value.has(deliveryId),
    )
    .toSorted((a, b) => b.at - a.at)
    .slice(0, MAX_SHOWN);
  if (shown.length === 0) return null;
  return html`
    <section class="results" aria-label="Results">
      <h2 class="section-title">Results</h2>
      <ul class="cards" aria-live="polite">
        ${shown.map((delivery) => html`<${Card} key=${delivery.deliveryId} delivery=${delivery} />`)}
      </ul>
    </section>
  `;
}

function Card({ delivery }: { delivery: DeliveryView }) {
  const { deliveryId, text, state, card, priority } = delivery;
  const isTold = state === 'delivered' || state === 'playing' || card;
  // It could not be said: that it is on the screen is how it reaches the user.
  useEffect(() => {
    if (card && state !== 'delivered') send({ type: 'delivery.shown', deliveryId });
  }, [deliveryId, card, state]);
  const dismiss = (): void => {
    hidden.value = new Set(hidden.value).add(deliveryId);
    if (state !== 'delivered') send({ type: 'delivery.dismiss', deliveryId });
  };
  return html`
    <li class=${`card result ${priority === 'urgent' ? 'result-urgent' : ''}`}>
      <header class="card-head">
        <span class="card-from">${titleOf(delivery)}</span>
        <span class="card-turn">${stateWords(delivery)}</span>
      </header>
      ${
        isTold
          ? html`<p class="result-text">${text}</p>`
          : html`<button
              class="link-button"
              type="button"
              onClick=${() => send({ type: 'delivery.shown', deliveryId })}
            >
              Read it now
            </button>`
      }
      <button
        class="icon-button result-dismiss"
        type="button"
        aria-label=${`Dismiss: ${titleOf(delivery)}`}
        title="Dismiss"
        onClick=${dismiss}
      >
        <${Icon} name="close" />
      </button>
    </li>
  `;
}

function titleOf({ subagentId, label }: DeliveryView): string {
  const subagent = subagents.value.find(({ id }) => id === subagentId);
  if (subagent) return taskTitle(subagent, calls.value.get(subagent.callId ?? ''));
  const words = humanName(label.toLowerCase());
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function stateWords({ state, grade, card }: DeliveryView): string {
  if (state === 'playing') return 'is being told';
  if (state === 'delivered') return grade === 'shown' ? 'read' : 'told';
  if (card) return 'could not be told';
  return 'waits for a pause';
}
