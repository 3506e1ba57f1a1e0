// Before it begins: what this is, how to start, what to try.

import { html } from 'htm/preact';
import { about, link } from '../store.ts';
import { stage, start } from '../voice.ts';
import { Icon } from './icon.ts';
import { Suggestions } from './suggestions.ts';

export function Welcome() {
  const isBlocked = stage.value === 'blocked';
  const isBusy = stage.value === 'starting' || link.value.state !== 'open';
  return html`
    <div class="welcome">
      <h2>Talk to one.<br />The others work offstage.</h2>
      <p class="lede">
        A lead agent chats with you, by voice or by text. What takes time it hands to subagents,
        which work in the background, ask you when they must, and report when there is a pause.
      </p>
      <div class="welcome-actions">
        <button
          class="button button-primary"
          type="button"
          disabled=${isBusy}
          onClick=${() => void start(true)}
        >
          <${Icon} name="mic" />${isBlocked ? 'Go on talking' : 'Start talking'}
        </button>
        <button class="button" type="button" disabled=${isBusy} onClick=${() => void start(false)}>
          Type instead
        </button>
      </div>
      ${
        isBlocked &&
        html`<p class="hint" role="status">The browser wants a click before there is sound.</p>`
      }
      <h3 class="section-title">Four things to try</h3>
      <${Suggestions} />
      <${Cast} />
    </div>
  `;
}

function Cast() {
  const cast = about.value;
  if (!cast) return null;
  return html`
    <dl class="cast">
      <div>
        <dt>Transport</dt>
        <dd>${cast.transport}</dd>
      </div>
      <div>
        <dt>Lead agent</dt>
        <dd>${cast.lead}</dd>
      </div>
      <div>
        <dt>Subagents</dt>
        <dd>${cast.subagents}</dd>
      </div>
      <div>
        <dt>Speech</dt>
        <dd>${cast.speech}</dd>
      </div>
    </dl>
  `;
}
