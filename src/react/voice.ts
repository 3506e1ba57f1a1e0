// The parts of `offstage/react` for speaking and typing: a talk button, a choice of talk modes and a text field. They
// have no styles.

'use client';

import { createElement as h, useEffect, useId, useRef, useState } from 'react';
import type { ReactElement, ReactNode } from 'react';
import type { MicrophoneStatus } from '../client/microphone.ts';
import type { ClientStatus } from '../client/line.ts';
import type { SessionClient } from '../client/session-client.ts';
import { messageOf } from '../values/errors.ts';
import { useMicrophone, useSession, useSpeaker } from './hooks.ts';
import { isForPage, isIn, page, valueIn, type PageElement, type PageKey } from './page.ts';

/** The props of `TalkButton`. */
export interface TalkButtonProps {
  /** The session's client. */
  readonly client: SessionClient;
  /** Called when the button is pressed while the microphone is off. @defaultValue starts the microphone */
  readonly onStart?: () => void;
  /** The button's content. @defaultValue its label */
  readonly children?: ReactNode;
  /** The button's texts. @defaultValue English */
  readonly labels?: {
    readonly start?: string;
    readonly hold?: string;
    readonly mute?: string;
    readonly unmute?: string;
  };
}

/**
 * The microphone as one button. It turns the microphone on, and mutes it if it is on. With push to talk, the user holds
 * it with a pointer or a key. `aria-pressed` is true while the server hears the user. The style property `--level`
 * contains the voice's level from 0 to 1.
 */
export function TalkButton({
  client,
  onStart,
  children,
  labels = {},
}: TalkButtonProps): ReactElement {
  const { microphone } = client;
  const { state, mode, isMuted, isOpen } = useMicrophone(client);
  const isPaused = useSpeaker(client).state === 'blocked';
  const button = useRef<PageElement>(null);
  // The level changes 50 times a second, so it is set without rendering.
  useEffect(() => {
    const levels = microphone.level.subscribe((level) =>
      button.current?.style.setProperty(
        '--level',
        microphone.status.get().isOpen ? level.toFixed(2) : '0',
      ),
    );
    return () => levels.unsubscribe();
  }, [microphone]);
  const isOn = state === 'on' && !isPaused;
  const isPushed = isOn && mode === 'push';
  const label = !isOn
    ? (labels.start ?? 'Turn the microphone on')
    : isPushed
      ? (labels.hold ?? 'Hold to talk')
      : isMuted
        ? (labels.unmute ?? 'Unmute the microphone')
        : (labels.mute ?? 'Mute the microphone');
  const press = (): void => {
    if (isOn) {
      if (!isPushed) toggleMute(client);
    } else if (onStart) onStart();
    else {
      if (isPaused) void client.speaker.start();
      void microphone.start();
    }
  };
  const hold = (event: { preventDefault(): void }): void => {
    if (!isPushed) return;
    event.preventDefault();
    microphone.hold();
  };
  const release = (): void => microphone.release();
  return h(
    'button',
    {
      ref: button,
      type: 'button',
      'data-part': 'talk',
      'data-state': state,
      'data-muted': isMuted,
      'aria-pressed': isOpen,
      'aria-label': label,
      title: label,
      onClick: press,
      onPointerDown: hold,
      onPointerUp: release,
      onPointerLeave: release,
      onPointerCancel: release,
      onKeyDown: (event: PageKey) => {
        if (!event.repeat && (event.key === ' ' || event.key === 'Enter')) hold(event);
      },
      onKeyUp: release,
    },
    children ?? label,
  );
}

function toggleMute({ microphone }: SessionClient): void {
  if (microphone.status.get().isMuted) microphone.unmute();
  else microphone.mute();
}

/** Adds keys for the whole page, except in fields: Space is held to talk or mutes the microphone; `m` mutes it. */
export function useTalkKeys(client: SessionClient | null): void {
  useEffect(() => {
    if (!client) return undefined;
    const { microphone } = client;
    const down = (event: PageKey): void => {
      if (!isForPage(event) || microphone.status.get().state !== 'on') return;
      // Space would also press a focused button.
      if (event.code === 'Space' && !isIn(event.target, 'button, a, summary')) {
        event.preventDefault();
        if (microphone.status.get().mode === 'push') microphone.hold();
        else toggleMute(client);
      } else if (event.key === 'm') toggleMute(client);
    };
    const up = ({ code }: PageKey): void => {
      if (code === 'Space') microphone.release();
    };
    // The page does not notice the release of a key while another window has the focus.
    const away = (): void => microphone.release();
    page.addEventListener?.('keydown', down);
    page.addEventListener?.('keyup', up);
    page.addEventListener?.('blur', away);
    return () => {
      page.removeEventListener?.('keydown', down);
      page.removeEventListener?.('keyup', up);
      page.removeEventListener?.('blur', away);
    };
  }, [client]);
}

/** The props of `TalkModes`. */
export interface TalkModesProps {
  /** The session's client. */
  readonly client: SessionClient;
  /** Called when the user has chosen a talk mode. */
  readonly onMode?: (mode: MicrophoneStatus['mode']) => void;
  /** The texts of the talk modes. @defaultValue English */
  readonly labels?: {
    readonly modes?: string;
    readonly open?: string;
    readonly push?: string;
    readonly mute?: string;
  };
}

/**
 * Lets the user choose between an open microphone and push to talk, and mute the microphone. Renders nothing while the
 * microphone is off.
 */
export function TalkModes({ client, onMode, labels = {} }: TalkModesProps): ReactElement | null {
  const { state, mode, isMuted } = useMicrophone(client);
  const name = useId();
  if (state !== 'on') return null;
  const choice = (its: MicrophoneStatus['mode'], label: string): ReactElement =>
    h(
      'label',
      null,
      h('input', {
        type: 'radio',
        name,
        checked: mode === its,
        onChange: () => {
          onMode?.(its);
          void client.microphone.start({ mode: its });
        },
      }),
      ' ',
      label,
    );
  return h(
    'fieldset',
    { 'data-part': 'modes' },
    h('legend', null, labels.modes ?? 'How you talk'),
    choice('open', labels.open ?? 'Open microphone'),
    ' ',
    choice('push', labels.push ?? 'Push to talk'),
    ' ',
    h(
      'label',
      null,
      h('input', { type: 'checkbox', checked: isMuted, onChange: () => toggleMute(client) }),
      ' ',
      labels.mute ?? 'Mute',
    ),
  );
}

/** Tells the user what to do next: speak, allow the microphone, or type. */
export function TalkHint({ client }: { readonly client: SessionClient }): ReactElement {
  const { status } = useSession(client);
  const { state, isMuted, mode } = useMicrophone(client);
  const speaker = useSpeaker(client).state;
  const words = hintOf(status, state, speaker);
  const how = isMuted
    ? 'You are muted.'
    : mode === 'push'
      ? 'Hold the button or Space, and speak.'
      : 'Just speak.';
  return h('p', { role: 'status', 'data-part': 'hint' }, words ?? how);
}

function hintOf(
  { state, ownsVoice }: ClientStatus,
  microphone: MicrophoneStatus['state'],
  speaker: string,
): string | null {
  if (state !== 'open') return 'Waiting for the connection.';
  if (speaker === 'blocked' || microphone === 'blocked')
    return 'The browser has paused the sound. Press the microphone to go on.';
  if (speaker === 'insecure' || microphone === 'insecure')
    return 'This page has no voice, because its address is not https. Type instead.';
  if (!ownsVoice && speaker !== 'off')
    return 'You are heard in another tab; typing works here too.';
  if (microphone === 'asking') return 'The browser asks whether this page may listen.';
  if (microphone === 'denied')
    return 'The microphone was refused: type, or allow it in the address bar.';
  if (microphone === 'missing') return 'There is no microphone: type instead.';
  if (microphone === 'off')
    return speaker === 'silent'
      ? 'Nothing is spoken. Press the microphone to talk.'
      : 'Press the microphone to talk.';
  return speaker === 'silent' ? 'This browser has no sound; read along.' : null;
}

/** The props of `MessageField`. */
export interface MessageFieldProps {
  /** The client that sends the message. */
  readonly client: Pick<SessionClient, 'send'>;
  /** Called with the user's text instead of `client.send`. */
  readonly onSend?: (text: string) => Promise<unknown>;
  /** Whether the field has the focus at first. @defaultValue false */
  readonly autoFocus?: boolean;
  /** The key that moves the focus from the page to the field, such as `/`. @defaultValue none */
  readonly shortcut?: string;
  /** The button's content. @defaultValue its label */
  readonly children?: ReactNode;
  /** The field's texts. @defaultValue English */
  readonly labels?: {
    readonly message?: string;
    readonly placeholder?: string;
    readonly send?: string;
  };
}

/**
 * A text field for messages to the lead agent. Escape leaves the field. If a text could not be sent, it reappears with
 * the reason.
 */
export function MessageField(props: MessageFieldProps): ReactElement {
  const { client, onSend, autoFocus = false, shortcut, children, labels = {} } = props;
  const id = useId();
  const field = useRef<PageElement>(null);
  const [text, setText] = useState('');
  const [problem, setProblem] = useState<string | null>(null);
  const send = labels.send ?? 'Send';
  useEffect(() => {
    if (autoFocus) field.current?.focus();
  }, [autoFocus]);
  useEffect(() => {
    if (shortcut === undefined) return undefined;
    const onKey = (event: PageKey): void => {
      if (event.key !== shortcut || !isForPage(event)) return;
      event.preventDefault();
      field.current?.focus();
    };
    page.addEventListener?.('keydown', onKey);
    return () => page.removeEventListener?.('keydown', onKey);
  }, [shortcut]);
  const submit = async (words: string): Promise<void> => {
    setText('');
    setProblem(null);
    try {
      await (onSend ? onSend(words) : client.send(words));
    } catch (error) {
      setProblem(messageOf(error));
      setText((written) => (written === '' ? words : written));
    }
  };
  return h(
    'form',
    {
      'data-part': 'message',
      onSubmit: (event: { preventDefault(): void }) => {
        event.preventDefault();
        if (text.trim() !== '') void submit(text.trim());
      },
    },
    h('label', { htmlFor: id }, labels.message ?? 'Message'),
    ' ',
    h('input', {
      ref: field,
      id,
      value: text,
      maxLength: 8_000,
      autoComplete: 'off',
      placeholder: labels.placeholder,
      'aria-keyshortcuts': shortcut,
      onChange: (event: { target: unknown }) => setText(valueIn(event)),
      onKeyDown: ({ key, target }: { key: string; target: unknown }) => {
        if (key === 'Escape') (target as { blur(): void }).blur();
      },
    }),
    ' ',
    h(
      'button',
      { type: 'submit', 'aria-label': send, title: send, 'aria-disabled': text.trim() === '' },
      children ?? send,
    ),
    problem !== null && h('p', { role: 'alert' }, problem),
  );
}
