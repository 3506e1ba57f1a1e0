// The right side: who wants an answer, who is at work, what has come back.

import { html } from 'htm/preact';
import { transcript } from '../store.ts';
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
    </aside>
  `;
}
