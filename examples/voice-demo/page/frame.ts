// The head of the page, and what it shows before anything has begun.

import { html as view } from 'htm/preact';
import { suggestions } from './about.ts';
import {
  about,
  client,
  link,
  mode,
  now,
  request,
  say,
  session,
  speaker,
  start,
  theme,
} from './session.ts';

export function Icon({ name }: { name: string }) {
  return view`<svg class="icon" width="20" height="20" aria-hidden="true" focusable="false"><use href=${`/page/icons.svg#${name}`} /></svg>`;
}

export function Header() {
  const [tone, words] = standing();
  const other = theme.value === 'dark' ? 'light' : 'dark';
  const isElsewhere = mode.value !== 'none' && link.value.state === 'open' && !link.value.ownsVoice;
  const label = `${other === 'dark' ? 'Dark' : 'Light'} colours`;
  const toggle = (): void => localStorage.setItem('theme', (theme.value = other));
  return view`<header class="header">
    <h1 class="brand"><img src="/page/icon.svg" alt="" width="24" height="24" /> Offstage</h1>
    ${
      about.value &&
      view`<p class="line" role="group" aria-label="The voice"><span>${about.value.transport}</span>
      <span class="line-model" title=${about.value.lead}>${about.value.lead}</span></p>`
    }
    <div class="status">
      <p class=${`status-line status-${tone}`} role="status"><i aria-hidden="true"></i>${words}</p>
      ${
        link.value.state === 'waiting' &&
        view`<button class="link-button" type="button" onClick=${() => client.reconnect()}>Now</button>`
      }
      ${
        isElsewhere &&
        view`<button class="link-button" type="button"
        onClick=${() => void client.speaker.start({ silent: mode.value === 'text' })}>Talk here</button>`
      }
    </div>
    <button class="icon-button" type="button" aria-label=${label} title=${label} onClick=${toggle}>
      <${Icon} name=${other === 'dark' ? 'moon' : 'sun'} /></button>
  </header>`;
}

/** How this page, the server and the lead agent are connected. */
function standing(): readonly [tone: 'good' | 'busy' | 'bad', words: string] {
  const { state, retryAt, ownsVoice, reason } = link.value;
  if (state === 'connecting') return ['busy', 'Connecting'];
  if (state === 'closed')
    return ['bad', reason?.code === 'UNAUTHORIZED' ? 'Not admitted' : 'The session is over'];
  if (state === 'waiting') {
    // `now` is read so that the seconds count down.
    const seconds = Math.ceil(Math.max(0, now.value && (retryAt ?? 0) - Date.now()) / 1000);
    return ['bad', `No connection, next try in ${seconds} s`];
  }
  if (mode.value !== 'none' && !ownsVoice) return ['busy', 'The voice is in another tab'];
  const { connection } = session.value;
  if (connection === 'created') return ['good', 'Ready'];
  if (connection === 'active') return ['good', 'Connected'];
  if (connection === 'connecting') return ['busy', 'The lead agent is coming'];
  if (connection === 'suspended') return ['busy', 'The session goes on elsewhere'];
  if (connection === 'reconnecting' || connection === 'transferring')
    return ['busy', 'The lead agent is reconnecting'];
  return ['bad', 'The session is over'];
}

export function Welcome() {
  const isBlocked = speaker.value.state === 'blocked';
  const isBusy = speaker.value.state === 'starting' || link.value.state !== 'open';
  const cast = about.value;
  return view`<section class="welcome" aria-label="Welcome">
    <h2>Talk to one.<br />The others work offstage.</h2>
    <p class="lede">A lead agent chats with you, by voice or by text. What takes time it hands to subagents, which work in
      the background, ask you when they must, and report when there is a pause.</p>
    <div class="welcome-actions">
      <button class="button button-primary" type="button" disabled=${isBusy} onClick=${() => void start(true)}>
        <${Icon} name="mic" />${isBlocked ? 'Go on talking' : 'Start talking'}</button>
      <button class="button" type="button" disabled=${isBusy} onClick=${() => void start(false)}>Type instead</button>
    </div>
    ${isBlocked && view`<p class="hint" role="status">The browser wants a click before there is sound.</p>`}
    <h3 class="section-title">Things to try</h3>
    <${Suggestions} />
    ${
      cast &&
      view`<dl class="cast"><div><dt>Transport</dt><dd>${cast.transport}</dd></div><div><dt>Lead agent</dt><dd>${cast.lead}</dd></div>
      <div><dt>Subagents</dt><dd>${cast.subagents}</dd></div><div><dt>Speech</dt><dd>${cast.speech}</dd></div></dl>`
    }
  </section>`;
}

export function Suggestions() {
  const order = async (): Promise<void> => {
    if (mode.value === 'none') await start(false);
    await request('/order', { orderId: '1042', status: 'out for delivery', urgent: true });
  };
  return view`<ol class="suggestions">${suggestions.map(
    ({
      title,
      hint,
      say: words,
      press,
    }) => view`<li class="suggestion" key=${title}><h3>${title}</h3>
      ${words && view`<button class="quote" type="button" title="Type this for me" onClick=${() => void say(words)}>“${words}”</button>`}
      ${press && view`<button class="quote" type="button" onClick=${() => void order()}>${press}</button>`}
      <p>${hint}</p></li>`,
  )}</ol>`;
}
