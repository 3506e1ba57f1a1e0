// The page: what is said on the left, what goes on offstage on the right.

import { html } from 'htm/preact';
import { useEffect } from 'preact/hooks';
import { ended, link, trouble } from '../store.ts';
import { stage } from '../voice.ts';
import { Composer } from './composer.ts';
import { Header } from './header.ts';
import { Offstage } from './offstage.ts';
import { Transcript } from './transcript.ts';
import { Welcome } from './welcome.ts';

const TROUBLE_MS = 8000;

export function App() {
  if (link.value.state === 'refused') return html`<${Header} /><${Refused} />`;
  const hasBegun = stage.value === 'on';
  return html`
    <${Header} />
    <main class=${hasBegun ? 'room' : 'room room-closed'}>
      <section class="stage" aria-label="Conversation">
        ${hasBegun ? html`<${Transcript} />` : html`<${Welcome} />`}
        ${hasBegun && html`<${Composer} />`}
      </section>
      ${hasBegun && html`<${Offstage} />`}
    </main>
    <${Trouble} />
  `;
}

function Refused() {
  return html`
    <main class="notice-page">
      <h2>This link is not valid any more</h2>
      <p>
        Each start of the demo has a link of its own. Open the one that the terminal printed last:
        it ends with <code>#</code> and a long word.
      </p>
    </main>
  `;
}

/** Errors, for a while; the end of the session, for good. */
function Trouble() {
  const text = trouble.value;
  useEffect(() => {
    if (text === null) return;
    const timer = setTimeout(() => {
      trouble.value = null;
    }, TROUBLE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  const over = ended.value;
  return html`
    <div class="toasts" role="status">
      ${
        over !== null &&
        html`<p class="toast">
          The session has ended. ${/[.!?]$/.test(over) ? over : `${over}.`} Start the demo again to
          go on.
        </p>`
      }
      ${text !== null && html`<p class="toast">${text}</p>`}
    </div>
  `;
}
