// The page of the voice demo: what is said on the left, who works offstage on the right. `view` is htm's tag: all that it
// is given is text, never markup.

import { html as view, render } from 'htm/preact';
import { useEffect } from 'preact/hooks';
import { Conversation } from './conversation.ts';
import { Header, Suggestions, Welcome } from './frame.ts';
import { installKeys } from './keys.ts';
import { Questions } from './questions.ts';
import { about, begin, link, mode, request, session, trouble } from './session.ts';
import { Results, Statecharts, Tray } from './wings.ts';

const TROUBLE_MS = 8000;

function App() {
  const { state, reason } = link.value;
  if (state === 'closed' && reason?.code === 'UNAUTHORIZED')
    return view`<${Header} /><main class="notice-page"><h2>This link is not valid any more</h2>
      <p>Each start of the demo may have another link. Open the one that the terminal printed last: it ends with
        <code>#</code> and a long word.</p></main>`;
  if (mode.value === 'none')
    return view`<${Header} /><main class="room room-closed"><${Welcome} /></main><${Trouble} />`;
  return view`<${Header} />
    <main class="room"><${Conversation} /><${Offstage} /></main>
    <${Trouble} />`;
}

/** The right side: who wants an answer, who is at work, what has come back. */
function Offstage() {
  // A user who has spoken needs no hint.
  const isNew = !session.value.transcript.some(({ role }) => role === 'user');
  return view`<aside class="offstage" aria-label="Offstage">
    <${Questions} /><${Tray} /><${Results} /><${Statecharts} />
    <details class="more" open=${isNew}><summary class="section-title">Things to try</summary><${Suggestions} /></details>
    ${
      about.value?.canCrash &&
      view`<p class="hint"><button class="button" type="button" disabled=${link.value.state !== 'open'}
      onClick=${() => void request('/crash', {})}>Kill the server</button> It is started again: questions, work and words go on.</p>`
    }
  </aside>`;
}

/** Errors, for a while; the end of the session, for good. */
function Trouble() {
  const text = trouble.value;
  useEffect(() => {
    const timer = setTimeout(() => (trouble.value = null), TROUBLE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  const { state, reason } = link.value;
  return view`<div class="toasts" role="status">
    ${state === 'closed' && view`<p class="toast">${reason?.message}. Start the demo again to go on.</p>`}
    ${text !== null && view`<p class="toast">${text}</p>`}
  </div>`;
}

begin();
installKeys();
const root = document.getElementById('app');
if (root) render(view`<${App} />`, root);
