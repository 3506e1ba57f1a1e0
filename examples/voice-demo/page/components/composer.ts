// The controls with which the user speaks and types.

import { html } from 'htm/preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { link, ownsVoice } from '../store.ts';
import {
  askForMicrophone,
  isListening,
  isMuted,
  isPushing,
  isSilent,
  level,
  microphone,
  send,
  talkMode,
  type TalkMode,
} from '../voice.ts';
import { Icon } from './icon.ts';

const MAX_TEXT_CHARS = 2000;

export function Composer() {
  return html`
    <div class="composer">
      <div class="composer-row">
        <${TalkButton} />
        <${TextField} />
      </div>
      <div class="composer-row composer-modes">
        ${microphone.value === 'on' && html`<${Modes} />`}
        <p class="hint" role="status">${hint()}</p>
      </div>
    </div>
  `;
}

function TalkButton() {
  const ring = useRef<HTMLSpanElement>(null);
  // Fifty times a second: past the renderer, straight to the style.
  useEffect(
    () =>
      level.subscribe((value) => {
        ring.current?.style.setProperty('--level', isListening.peek() ? value.toFixed(2) : '0');
      }),
    [],
  );
  const isOn = microphone.value === 'on';
  const pushes = isOn && talkMode.value === 'push';
  const hold = (event: Event): void => {
    event.preventDefault();
    if (pushes) isPushing.value = true;
  };
  const release = (): void => {
    isPushing.value = false;
  };
  const press = (): void => {
    if (!isOn) void askForMicrophone();
    else if (!pushes) isMuted.value = !isMuted.value;
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (pushes && !event.repeat && (event.key === ' ' || event.key === 'Enter')) hold(event);
  };
  const isShut = !isOn || isMuted.value;
  return html`
    <button
      class=${`talk ${isListening.value ? 'talk-live' : ''}`}
      type="button"
      aria-pressed=${isListening.value}
      aria-label=${talkLabel(isOn, pushes)}
      title=${talkLabel(isOn, pushes)}
      aria-keyshortcuts="Space"
      onClick=${press}
      onPointerDown=${(event: PointerEvent) => pushes && hold(event)}
      onPointerUp=${release}
      onPointerLeave=${release}
      onPointerCancel=${release}
      onKeyDown=${onKeyDown}
      onKeyUp=${release}
    >
      <span class="talk-ring" ref=${ring} aria-hidden="true"></span>
      <${Icon} name=${isShut ? 'mic-off' : 'mic'} />
    </button>
  `;
}

function talkLabel(isOn: boolean, pushes: boolean): string {
  if (!isOn) return 'Turn the microphone on';
  if (pushes) return 'Hold to talk';
  return isMuted.value ? 'Unmute the microphone' : 'Mute the microphone';
}

function Modes() {
  const modes: readonly (readonly [TalkMode, string])[] = [
    ['open', 'Open microphone'],
    ['push', 'Push to talk'],
  ];
  return html`
    <fieldset class="modes">
      <legend class="visually-hidden">How you talk</legend>
      ${modes.map(
        ([mode, label]) => html`
          <label class="mode" key=${mode}>
            <input
              type="radio"
              name="talk-mode"
              checked=${talkMode.value === mode}
              onChange=${() => {
                talkMode.value = mode;
              }}
            />
            <span>${label}</span>
          </label>
        `,
      )}
      <label class="mode">
        <input
          type="checkbox"
          checked=${isMuted.value}
          aria-keyshortcuts="M"
          onChange=${() => {
            isMuted.value = !isMuted.value;
          }}
        />
        <span>Mute</span>
      </label>
    </fieldset>
  `;
}

function hint(): string {
  if (link.value.state !== 'open') return 'Waiting for the connection.';
  if (!ownsVoice.value) return 'You are heard in another tab; typing works here too.';
  if (isSilent.value) return 'This browser has no sound; read along.';
  switch (microphone.value) {
    case 'asking':
      return 'The browser asks whether this page may listen.';
    case 'denied':
      return 'The microphone was refused: type, or allow it in the address bar.';
    case 'missing':
      return 'There is no microphone: type instead.';
    case 'off':
      return 'Press the microphone to talk.';
    case 'on':
      if (isMuted.value) return 'You are muted.';
      return talkMode.value === 'push' ? 'Hold the button or Space, and speak.' : 'Just speak.';
  }
}

function TextField() {
  const [text, setText] = useState('');
  const field = useRef<HTMLInputElement>(null);
  // The button that was pressed to type is gone: the keyboard goes on here.
  useEffect(() => {
    if (microphone.peek() === 'off') field.current?.focus();
  }, []);
  const isConnected = link.value.state === 'open';
  const submit = (event: Event): void => {
    event.preventDefault();
    const said = text.trim();
    if (said !== '' && send({ type: 'text.send', text: said })) setText('');
  };
  return html`
    <form class="say" onSubmit=${submit}>
      <label class="visually-hidden" for="say">Type to the lead agent</label>
      <input
        id="say"
        ref=${field}
        type="text"
        autocomplete="off"
        maxlength=${MAX_TEXT_CHARS}
        placeholder="Or type here"
        aria-keyshortcuts="/"
        value=${text}
        onInput=${({ currentTarget }: { currentTarget: HTMLInputElement }) =>
          setText(currentTarget.value)}
      />
      <button
        class="icon-button"
        type="submit"
        aria-label="Send"
        title="Send"
        disabled=${!isConnected || text.trim() === ''}
      >
        <${Icon} name="send" />
      </button>
    </form>
  `;
}
