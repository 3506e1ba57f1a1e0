// The four things to try.

import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import type { Suggestion } from '../../shared/protocol.ts';
import { suggestions } from '../store.ts';
import { send, stage, start } from '../voice.ts';
import { Icon } from './icon.ts';

export function Suggestions() {
  return html`
    <ol class="suggestions">
      ${suggestions.value.map(
        (suggestion) => html`<${Item} key=${suggestion.title} suggestion=${suggestion} />`,
      )}
    </ol>
  `;
}

function Item({ suggestion: { title, hint, say, run } }: { suggestion: Suggestion }) {
  return html`
    <li class="suggestion">
      <h3>${title}</h3>
      ${
        say !== undefined &&
        html`<button
          class="quote"
          type="button"
          title="Type this for me"
          onClick=${() => void type(say)}
        >
          “${say}”
        </button>`
      }
      <p>${hint}</p>
      ${run !== undefined && html`<${Command} command=${run} />`}
    </li>
  `;
}

/** Says it by keyboard, for who would rather not speak. */
async function type(text: string): Promise<void> {
  if (stage.value !== 'on') await start(false);
  send({ type: 'text.send', text });
}

function Command({ command }: { command: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(command);
    setCopied(true);
    setTimeout(() => setCopied(false), 2000);
  };
  return html`
    <div class="command">
      <code tabindex="0">${command}</code>
      <button
        class="icon-button"
        type="button"
        aria-label="Copy the command"
        title="Copy the command"
        onClick=${() => void copy()}
      >
        <${Icon} name=${isCopied ? 'check' : 'copy'} />
      </button>
      <span class="visually-hidden" role="status">${isCopied ? 'Copied' : ''}</span>
    </div>
  `;
}
