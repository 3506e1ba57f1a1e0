// The hooks of `offstage/react`: the parts of a session's state, and the connection that a component opens.
//
// Owns:     the connection of `useSession(options)`, from mount to unmount.
// Does not: copy the state. The state is in `client.store`.
//
// Invariants
//   REACT-1. A hook returns the same object until the selected part changes, which avoids unnecessary renders.
//   REACT-2. A server renders an empty session and does not open a connection. The first render of a hydration also
//            renders an empty session.
//   REACT-3. If StrictMode mounts a component twice, it opens only one connection.

'use client';

import { useEffect, useMemo, useRef, useState, useSyncExternalStore } from 'react';
import type {
  DeliveryView,
  QuestionView,
  SessionState,
  SubagentView,
  TranscriptItem,
} from '../actors/contracts/session-views.ts';
import type { MicrophoneStatus } from '../client/microphone.ts';
import { nodeEnvironment } from '../adapters/node/environment.ts';
import { noStatus, type ClientStatus } from '../client/line.ts';
import { connect, type ConnectOptions, type SessionClient } from '../client/session-client.ts';
import { emptySessionState } from '../actors/contracts/session-views.ts';
import type { SpeakerStatus } from '../client/speaker.ts';
import type { Subscription, WatchableValue } from '../client/watchable.ts';

/** A source of the state of a session: a client, or a session in this process. */
export interface SessionSource {
  /** The store whose changes render the components again. */
  readonly store: {
    getSnapshot(): { readonly context: SessionState };
    subscribe(listener: () => void): Subscription;
  };
}

/** The value that `useSession` returns. */
export interface UsedSession {
  /** Null on a server and until the component is mounted. */
  readonly client: SessionClient | null;
  /** The state of the client's connection to its server. */
  readonly status: ClientStatus;
  /** The state of the session's connection to its model. */
  readonly connection: SessionState['connection'];
  /** Who is speaking now. */
  readonly floor: SessionState['floor'];
  /** The lead agent that is talking with the user. */
  readonly agent: SessionState['agent'];
  /** Who is there, if the server shares it (`share: ['presence.changed']`). */
  readonly present: SessionState['present'];
}

const SECOND_MS = 1_000;
const { clock, scheduler } = nodeEnvironment();
export { scheduler };
/** This machine's clock, as a source of time. */
export const ourTime = { serverNow: () => clock.now() };

const noPresence: SessionState['present'] = Object.freeze([]);
const noMicrophone: MicrophoneStatus = Object.freeze({
  state: 'off',
  isMuted: false,
  mode: 'open',
  isHeld: false,
  isOpen: false,
});
const noAnswers: ReadonlyMap<string, number> = new Map();
const noSpeaker: SpeakerStatus = Object.freeze({ state: 'off' });

/**
 * Connects to a session while the component is mounted. If a client is passed in, the hook uses it and does not close
 * it. The hook reconnects when `url`, `session`, `transport` or a string `token` changes. Other changed options take
 * effect on the next mount. `handle`: the handlers of tools with `runsAt: 'client'`, by tool name, as for
 * `client.handle`. The handler from the latest render is called.
 */
export function useSession(
  connection: SessionClient | ConnectOptions,
  { handle }: { readonly handle?: Handlers } = {},
): UsedSession {
  const client = useConnection(connection);
  useHandlers(client, handle);
  const status = useValue(client?.status, noStatus);
  const state = useSelected(client, ({ connection: it }) => it);
  const floor = useSelected(client, (it) => it.floor);
  const agent = useSelected(client, (it) => it.agent);
  // A server of an earlier version does not send the list.
  const present = useSelected(client, (it) => it.present ?? noPresence);
  return useMemo(
    () => ({ client, status, connection: state, floor, agent, present }),
    [client, status, state, floor, agent, present],
  );
}

/** Returns the transcript ordered by time. */
export function useTranscript(source: SessionSource | null): readonly TranscriptItem[] {
  return useSelected(source, ({ transcript }) => transcript);
}

/** Returns the subagents' questions and approvals. */
export function useQuestions(source: SessionSource | null): readonly QuestionView[] {
  return useSelected(source, ({ questions }) => questions);
}

/** Returns the subagents. Their `parentId` values form a tree. */
export function useSubagents(source: SessionSource | null): readonly SubagentView[] {
  return useSelected(source, ({ subagents }) => subagents);
}

/** Returns the results and notices. */
export function useDeliveries(source: SessionSource | null): readonly DeliveryView[] {
  return useSelected(source, ({ deliveries }) => deliveries);
}

/** Returns the microphone's state. The level changes many times a second, so it is in `client.microphone.level`. */
export function useMicrophone(client: SessionClient | null): MicrophoneStatus {
  return useValue(client?.microphone.status, noMicrophone);
}

/** Returns the speaker's state. `blocked`: the page must start the speaker from a click handler. */
export function useSpeaker(client: SessionClient | null): SpeakerStatus {
  return useValue(client?.speaker.status, noSpeaker);
}

/** Returns the questions that this client has answered, with the server's time of each answer. */
export function useAnswered(client: SessionClient | null): ReadonlyMap<string, number> {
  return useValue(client?.answered, noAnswers);
}

/**
 * Returns the server's time in milliseconds since 1970. All times in a session's state use this clock. The value
 * changes every second while `isRunning` is true. It is 0 on a server and in the first render.
 */
export function useServerTime(client: Pick<SessionClient, 'serverNow'>, isRunning = true): number {
  const [now, setNow] = useState(0);
  useEffect(() => {
    setNow(client.serverNow());
    if (!isRunning) return undefined;
    let cancel: () => void;
    const wait = (): void => {
      cancel = scheduler.schedule(() => {
        setNow(client.serverNow());
        wait();
      }, SECOND_MS);
    };
    wait();
    return () => cancel();
  }, [client, isRunning]);
  return now;
}

function useSelected<T>(source: SessionSource | null, select: (state: SessionState) => T): T {
  const store = source?.store;
  const subscribe = useMemo(
    () => (changed: () => void) => {
      const subscription = store?.subscribe(() => changed());
      return () => subscription?.unsubscribe();
    },
    [store],
  );
  return useSyncExternalStore(
    subscribe,
    () => select(store ? store.getSnapshot().context : emptySessionState),
    () => select(emptySessionState),
  );
}

function useValue<T>(value: WatchableValue<T> | undefined, none: T): T {
  const subscribe = useMemo(
    () => (changed: () => void) => {
      const subscription = value?.subscribe(() => changed());
      return () => subscription?.unsubscribe();
    },
    [value],
  );
  return useSyncExternalStore(
    subscribe,
    () => value?.get() ?? none,
    () => none,
  );
}

type Handlers = Readonly<Record<string, Parameters<SessionClient['handle']>[1]>>;

function useHandlers(client: SessionClient | null, handlers: Handlers = {}): void {
  const latest = useRef(handlers);
  useEffect(() => {
    latest.current = handlers;
  });
  const names = Object.keys(handlers).toSorted().join(' ');
  useEffect(() => {
    if (!client || names === '') return undefined;
    const added = names
      .split(' ')
      .map((name) => client.handle(name, (input, call) => latest.current[name]?.(input, call)));
    return () => {
      for (const remove of added) remove();
    };
  }, [client, names]);
}

interface OwnConnection {
  readonly key: string;
  readonly client: SessionClient;
  isUsed: boolean;
}

function useConnection(given: SessionClient | ConnectOptions): SessionClient | null {
  const key = 'store' in given ? null : keyOf(given);
  const [own, setOwn] = useState<OwnConnection | null>(null);
  const held = useRef<OwnConnection | null>(null);
  const latest = useRef(given);
  useEffect(() => {
    latest.current = given;
  });
  useEffect(() => {
    const options = latest.current;
    if (key === null || 'store' in options) return undefined;
    const before = held.current;
    const entry =
      before?.key === key ? before : { key, client: connect(withLatest(options)), isUsed: true };
    entry.isUsed = true;
    held.current = entry;
    setOwn(entry);
    return () => {
      entry.isUsed = false;
      // StrictMode mounts the component again in the same task.
      void Promise.resolve().then(() => {
        if (entry.isUsed) return;
        entry.client.close();
        if (held.current === entry) held.current = null;
      });
    };
    function withLatest(first: ConnectOptions): ConnectOptions {
      if (typeof first.token !== 'function') return first;
      const firstToken = first.token;
      // An inline function in a component is a new function on each render.
      const token = (): ReturnType<typeof firstToken> => {
        const now = latest.current;
        return 'token' in now && typeof now.token === 'function' ? now.token() : firstToken();
      };
      return { ...first, token };
    }
  }, [key]);
  if ('store' in given) return given;
  return own?.key === key ? own.client : null;
}

/** Reconnects when the key of the options changes. */
function keyOf({ url, session, transport, token }: ConnectOptions): string {
  return JSON.stringify([
    String(url),
    session ?? null,
    transport ?? null,
    typeof token === 'string' ? token : null,
  ]);
}
