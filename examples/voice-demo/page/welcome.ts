// The page before the conversation starts: a description, two ways to start, and things to try.

import { html as view } from 'htm/preact';
import { useSession, useSpeaker } from 'offstage/react';
import { suggestions, type About } from './about.ts';
import { client, request, say, start } from './session.ts';

export function Icon({ name }: { name: string }) {
  return view`<svg class="icon" width="20" height="20" aria-hidden="true" focusable="false"><use href=${`/icons.svg#${name}`} /></svg>`;
}

export function Welcome({ about }: { about: About | null }) {
  const speaker = useSpeaker(client).state;
  const isBlocked = speaker === 'blocked';
  const isBusy = speaker === 'starting' || useSession(client).status.state !== 'open';
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
      about &&
      view`<dl class="cast"><div><dt>Transport</dt><dd>${about.transport}</dd></div><div><dt>Lead agent</dt><dd>${about.lead}</dd></div>
      <div><dt>Subagents</dt><dd>${about.subagents}</dd></div><div><dt>Speech</dt><dd>${about.speech}</dd></div></dl>`
    }
  </section>`;
}

const quote = (words: string) =>
  view`<button class="quote" type="button" title="Type this for me" onClick=${() => void say(words)}>“${words}”</button>`;

export function Suggestions() {
  const order = async (): Promise<void> => {
    if (client.speaker.status.get().state === 'off') await start(false);
    await request('/order', { orderId: '1042', status: 'out for delivery', urgent: true });
  };
  return view`<ol class="suggestions">${suggestions.map(
    (one) => view`<li class="suggestion" key=${one.title}><h3>${one.title}</h3>
      ${one.say && quote(one.say)}
      ${one.press && view`<button class="quote" type="button" onClick=${() => void order()}>${one.press}</button>`}
      <p>${one.hint}</p>
      <ul class="next">${one.next?.map((words) => view`<li key=${words}>${quote(words)}</li>`)}</ul></li>`,
  )}</ol>`;
}
