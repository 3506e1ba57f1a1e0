// The messages that a viewer sees, passed on by the receiver of `@statelyai/inspect`.

import { createWebSocketReceiver, type StatelyInspectionEvent } from '@statelyai/inspect';
import type {
  ActorMessage,
  EventMessage,
  InspectorMessage,
  SnapshotMessage,
} from '../../../../src/adapters/inspect/index.ts';

export interface Seen {
  readonly messages: readonly InspectorMessage[];
  readonly ids: readonly string[];
  /** The latest registration of an actor. */
  actor(sessionId: string): ActorMessage | undefined;
  events(sessionId: string): readonly EventMessage[];
  snapshots(sessionId: string): readonly SnapshotMessage[];
  /** Resolves when the condition holds, which is checked at each message. */
  until(condition: (seen: Seen) => boolean): Promise<void>;
  /** A sink for these messages. */
  readonly take: (message: InspectorMessage) => void;
}

export function seen(): Seen {
  const messages: InspectorMessage[] = [];
  const waiting = new Set<() => void>();
  const of = <K extends InspectorMessage['type']>(type: K, sessionId: string) =>
    messages.filter(
      (message): message is Extract<InspectorMessage, { type: K }> =>
        message.type === type && message.sessionId === sessionId,
    );
  const self: Seen = {
    messages,
    get ids() {
      return [...new Set(messages.map(({ sessionId }) => sessionId))];
    },
    actor: (sessionId) => of('@xstate.actor', sessionId).at(-1),
    events: (sessionId) => of('@xstate.event', sessionId),
    snapshots: (sessionId) => of('@xstate.snapshot', sessionId),
    until: (condition) =>
      new Promise((resolve) => {
        const look = (): void => {
          if (!condition(self)) return;
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
        look();
      }),
    take: (message) => {
      messages.push(message);
      for (const look of waiting) look();
    },
  };
  return self;
}

/** Watches a relay with the package's own receiver. */
export function receive(streamUrl: string): Seen {
  const self = seen();
  createWebSocketReceiver({ server: streamUrl }).subscribe((message: StatelyInspectionEvent) =>
    self.take(message as unknown as InspectorMessage),
  );
  return self;
}
