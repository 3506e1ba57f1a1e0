// Name, connection, what it leads to, theme.

import { html } from 'htm/preact';
import { about, connection, link, now, ownsVoice } from '../store.ts';
import { theme, toggleTheme } from '../theme.ts';
import { reconnect, stage, takeVoice } from '../voice.ts';
import { Icon } from './icon.ts';

export function Header() {
  return html`
    <header class="header">
      <h1 class="brand"><img src="/page/icon.svg" alt="" width="24" height="24" /> Offstage</h1>
      <${Line} />
      <${Status} />
      <button
        class="icon-button"
        type="button"
        aria-label=${theme.value === 'dark' ? 'Light colours' : 'Dark colours'}
        title=${theme.value === 'dark' ? 'Light colours' : 'Dark colours'}
        onClick=${toggleTheme}
      >
        <${Icon} name=${theme.value === 'dark' ? 'sun' : 'moon'} />
      </button>
    </header>
  `;
}

/** The models behind the session. */
function Line() {
  const cast = about.value;
  if (!cast) return null;
  return html`
    <p class="line" aria-label="The voice">
      <span>${cast.transport}</span>
      <span class="line-model" title=${cast.lead}>${cast.lead}</span>
    </p>
  `;
}

function Status() {
  const { tone, words } = status();
  const waits = link.value.state === 'waiting';
  const elsewhere = stage.value === 'on' && link.value.state === 'open' && !ownsVoice.value;
  return html`
    <div class="status">
      <p class=${`status-line status-${tone}`} role="status"><i aria-hidden="true"></i>${words}</p>
      ${waits && html`<button class="link-button" type="button" onClick=${reconnect}>Now</button>`}
      ${
        elsewhere &&
        html`<button class="link-button" type="button" onClick=${takeVoice}>Talk here</button>`
      }
    </div>
  `;
}

function status(): { readonly tone: 'good' | 'busy' | 'bad'; readonly words: string } {
  const at = link.value;
  switch (at.state) {
    case 'connecting':
      return { tone: 'busy', words: 'Connecting' };
    case 'refused':
      return { tone: 'bad', words: 'Not admitted' };
    case 'waiting': {
      // `now` is read so that the seconds count down.
      const seconds = now.value && Math.ceil(Math.max(0, at.retryAt - Date.now()) / 1000);
      return { tone: 'bad', words: `No connection, next try in ${seconds} s` };
    }
    case 'open':
      break;
  }
  if (stage.value === 'on' && !ownsVoice.value)
    return { tone: 'busy', words: 'The voice is in another tab' };
  switch (connection.value) {
    case 'created':
      return { tone: 'good', words: 'Ready' };
    case 'active':
      return { tone: 'good', words: 'Connected' };
    case 'connecting':
      return { tone: 'busy', words: 'The lead agent is coming' };
    case 'reconnecting':
    case 'transferring':
      return { tone: 'busy', words: 'The lead agent is reconnecting' };
    case 'suspended':
      return { tone: 'busy', words: 'The session goes on elsewhere' };
    case 'closing':
    case 'closed':
      return { tone: 'bad', words: 'The session is over' };
  }
}
