// The parts of `offstage/react` that show the connection state and failures. They have no styles.

'use client';

import { createElement as h, useEffect, useRef, useState, type ReactElement } from 'react';
import type { SessionState } from '../actors/contracts/session-views.ts';
import type { ClientStatus } from '../client/line.ts';
import type { SessionClient } from '../client/session-client.ts';
import { ourTime, scheduler, useServerTime, useSession } from './hooks.ts';

/** The props of `ConnectionStatus`. */
export interface ConnectionStatusProps {
  /** The session's client. */
  readonly client: SessionClient;
  /** Moves the voice to this page. The button appears while another client has the voice. @defaultValue no button */
  readonly onTakeVoice?: () => void;
  /** The texts. @defaultValue English */
  readonly labels?: {
    readonly retry?: string;
    readonly takeVoice?: string;
    /** The lead agent's name as it appears in the texts. @defaultValue 'The assistant' */
    readonly agent?: string;
  };
}

/** Shows the state of the connections between page, server and lead agent. `data-tone` is `good`, `busy` or `bad`. */
export function ConnectionStatus(props: ConnectionStatusProps): ReactElement {
  const { client, onTakeVoice, labels = {} } = props;
  const { status, connection } = useSession(client);
  const isWaiting = status.state === 'waiting';
  // `retryAt` is a time on this machine's clock and not on the server's.
  const now = useServerTime(ourTime, isWaiting);
  const seconds = Math.ceil(Math.max(0, (status.retryAt ?? 0) - now) / 1000);
  const isElsewhere =
    onTakeVoice !== undefined && status.state === 'open' && status.hasVoice && !status.ownsVoice;
  const [tone, words] = standingOf(status, connection, seconds, isElsewhere);
  return h(
    'div',
    { 'data-part': 'connection' },
    h(
      'p',
      { role: 'status', 'data-part': 'status', 'data-tone': tone },
      words.replace('%', () => labels.agent ?? 'The assistant'),
    ),
    isWaiting &&
      h('button', { type: 'button', onClick: () => client.reconnect() }, labels.retry ?? 'Now'),
    isElsewhere &&
      h('button', { type: 'button', onClick: onTakeVoice }, labels.takeVoice ?? 'Talk here'),
  );
}

/** The props of `Alerts`. */
export interface AlertsProps {
  /** The session's client. */
  readonly client: SessionClient;
  /** How long an alert is shown, in milliseconds. @defaultValue 8000 */
  readonly forMs?: number;
  /** The texts. @defaultValue English */
  readonly labels?: {
    /** The session has ended. `reason` comes from the server. */
    readonly closed?: (reason: string) => string;
    readonly unanswered?: string;
    /** A crash interrupted a call, so its outcome is unknown. */
    readonly inDoubt?: (toolName: string) => string;
  };
}

/**
 * Shows alerts: an utterance without an answer, a call with an unknown outcome, an error, or the end of the session.
 * The server sends errors and calls with an unknown outcome only if the `share` option of `serve` lists these events.
 */
export function Alerts({ client, forMs = 8_000, labels = {} }: AlertsProps): ReactElement {
  const { status } = useSession(client);
  const [text, setText] = useState<string | null>(null);
  const latest = useRef(labels);
  useEffect(() => {
    latest.current = labels;
  });
  useEffect(() => {
    const events = client.events.subscribe((event) => {
      const { unanswered, inDoubt } = latest.current;
      if (event.type === 'error.reported') setText(event.message);
      if (event.type === 'tool.in_doubt')
        setText(
          inDoubt?.(event.toolName) ??
            `Nobody knows whether "${event.toolName}" was done: look before you repeat it.`,
        );
      if (event.type === 'utterance.unanswered')
        setText(unanswered ?? 'There is no answer to that. Please say it again.');
    });
    return () => events.unsubscribe();
  }, [client]);
  useEffect(
    () => (text === null ? undefined : scheduler.schedule(() => setText(null), forMs)),
    [text, forMs],
  );
  const reason = status.state === 'closed' ? (status.reason?.message ?? 'It was closed') : null;
  return h(
    'div',
    { role: 'status', 'data-part': 'alerts' },
    reason !== null && h('p', null, labels.closed?.(reason) ?? `${reason}.`),
    text !== null && h('p', null, text),
  );
}

const sessions: Readonly<
  Record<SessionState['connection'], readonly [tone: 'good' | 'busy' | 'bad', words: string]>
> = {
  created: ['good', 'Ready'],
  active: ['good', 'Connected'],
  connecting: ['busy', '% is coming'],
  reconnecting: ['busy', '% is reconnecting'],
  resting: ['bad', '% cannot be reached now'],
  refused: ['bad', '% cannot be reached'],
  transferring: ['busy', '% hands over to another'],
  suspended: ['busy', 'The session goes on elsewhere'],
  closing: ['bad', 'The session is over'],
  closed: ['bad', 'The session is over'],
};

/** The codes with which a server refuses the whole client. */
const refusals: Readonly<Record<string, (typeof sessions)['created']>> = {
  UNAUTHORIZED: ['bad', 'Not admitted'],
  HOST_REFUSED: ['bad', 'The server is not served under this name'],
  ORIGIN_REFUSED: ['bad', 'The server does not serve this page'],
};

function standingOf(
  { state, reason }: ClientStatus,
  connection: SessionState['connection'],
  seconds: number,
  isElsewhere: boolean,
): (typeof sessions)['created'] {
  if (state === 'connecting') return ['busy', 'Connecting'];
  if (state === 'waiting') return ['bad', `No connection, next try in ${seconds} s`];
  if (state === 'closed') return refusals[reason?.code ?? ''] ?? sessions.closed;
  return isElsewhere ? ['busy', 'The voice is in another tab'] : sessions[connection];
}
