// The right side: who wants an answer, who is at work, what has come back.

import { html } from 'htm/preact';
import { about, link, transcript } from '../store.ts';
import { token } from '../voice.ts';
import { Suggestions } from './suggestions.ts';
import { Questions } from './questions.ts';
import { Results } from './results.ts';
import { Tray } from './tray.ts';

export function Offstage() {
  // A user who has spoken needs no hint.
  const isNew = !transcript.value.some(({ role }) => role === 'user');
  return html`
    <aside class="offstage" aria-label="Offstage">
      <${Questions} />
      <${Tray} />
      <${Results} />
      <details class="more" open=${isNew}>
        <summary class="section-title">Things to try</summary>
        <${Suggestions} />
      </details>
      ${about.value?.canCrash && html`<${Crash} />`}
    </aside>
  `;
}

/** Everything goes on: the conversation is in a journal. */
function Crash() {
  const crash = (): void => {
    const headers = { authorization: `Bearer ${token}` };
    // There is no answer: who would give one is gone.
    fetch('/crash', { method: 'POST', headers }).catch(() => undefined);
  };
  return html`
    <p class="hint">
      <button class="button" type="button" disabled=${link.value.state !== 'open'} onClick=${crash}>
        Kill the server
      </button>
      It is started again: questions, work and words go on.
    </p>
  `;
}
