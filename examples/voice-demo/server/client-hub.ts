// Joins the pages to the one session. Everybody sees everything and may type and click;
// only one page speaks and listens: the one that was attached last.
//
// CLIENT-HUB-1. The session begins when the first page is attached: nobody is greeted before somebody is
//     there, and no connection to a provider stands idle. It has a client exactly while a page is.
//     What is typed before it has begun waits for it.
// CLIENT-HUB-2. When the voice moves to another page, the session sees its client leave and another
//     come, so that what was cut off is said again.
// CLIENT-HUB-3. What a page that is not the owner plays or hears does not reach the session.
// CLIENT-HUB-4. A page misses nothing: what happens while its welcome is prepared follows the welcome.

import type { Subscription } from 'rxjs';
import type { WebSocket } from 'ws';
import { messageOf } from '../../../src/values/errors.ts';
import type { Environment } from '../../../src/actors/ports/environment.ts';
import { resampleFrames } from '../../../src/voice/index.ts';
import type { SessionFace } from '../session-face.ts';
import { SPEECH_RATE_HZ } from '../shared/audio-packet.ts';
import type {
  About,
  CallInput,
  ClientMessage,
  ServerMessage,
  Suggestion,
} from '../shared/protocol.ts';
import { ClientConnection } from './client-connection.ts';
import type { ServerLimits } from './limits.ts';

/** As many as a session remembers of the subagents that worked for them. */
const KEPT_CALLS = 100;

export interface HubOptions {
  readonly session: SessionFace;
  readonly environment: Environment;
  readonly limits: ServerLimits;
  readonly about: About;
  readonly suggestions: readonly Suggestion[];
  readonly log: (line: string) => void;
}

export class ClientHub {
  readonly #options: HubOptions;
  readonly #clients = new Set<ClientConnection>();
  /** Events from before a page got the whole state. */
  readonly #unwelcomed = new Map<ClientConnection, ServerMessage[]>();
  /** Those that can play sound, the owner of the voice last. */
  readonly #attached: ClientConnection[] = [];
  readonly #subscriptions: readonly Subscription[];
  /** Resolves when the session is there, or has failed to come. */
  #begun: Promise<void> | null = null;
  #calls: readonly CallInput[] = [];
  #owner: ClientConnection | null = null;
  #detach: (() => void) | null = null;
  #whenEmpty: () => void = () => undefined;

  constructor(options: HubOptions) {
    this.#options = options;
    const { session, environment } = options;
    this.#subscriptions = [
      session.audioOut
        .pipe(resampleFrames(SPEECH_RATE_HZ))
        .subscribe((frame) => this.#owner?.sendAudio(frame)),
      session.events.subscribe((event) => {
        if (event.type === 'tool.called') this.#keepCall(event);
        const message = { type: 'session.event', now: environment.clock.now(), event } as const;
        for (const client of this.#clients) {
          const waiting = this.#unwelcomed.get(client);
          if (waiting) waiting.push(message);
          else client.send(message);
        }
      }),
    ];
  }

  get size(): number {
    return this.#clients.size;
  }

  add(socket: WebSocket): void {
    const { session, environment, limits, about, suggestions } = this.#options;
    const client = new ClientConnection(socket, environment, limits, {
      message: (from, message) => this.#handle(from, message),
      audio: (from, frame) => {
        if (from === this.#owner) session.audioIn.next(frame);
      },
      left: (from) => this.#remove(from),
    });
    this.#clients.add(client);
    // The store follows the events within a turn of the event loop.
    this.#unwelcomed.set(client, []);
    environment.scheduler.yieldThen(() => {
      const missed = this.#unwelcomed.get(client) ?? [];
      this.#unwelcomed.delete(client);
      client.send({
        type: 'welcome',
        now: environment.clock.now(),
        state: session.store.getSnapshot().context,
        calls: this.#calls,
        about,
        suggestions,
      });
      for (const message of missed) client.send(message);
    });
  }

  /** Closes all connections; those that do not answer are cut. */
  async close(graceMs = 500): Promise<void> {
    for (const subscription of this.#subscriptions) subscription.unsubscribe();
    this.#attached.length = 0;
    this.#release();
    for (const client of this.#clients) client.close();
    const { scheduler } = this.#options.environment;
    await new Promise<void>((resolve) => {
      const cut = scheduler.schedule(() => {
        for (const client of this.#clients) client.terminate();
        resolve();
      }, graceMs);
      this.#whenEmpty = () => {
        cut();
        resolve();
      };
      if (this.#clients.size === 0) this.#whenEmpty();
    });
  }

  async #handle(from: ClientConnection, message: ClientMessage): Promise<void> {
    const { session } = this.#options;
    switch (message.type) {
      case 'client.attach':
        this.#setOwner(from);
        break;
      case 'text.send':
        // Text that is typed as the page opens waits until the session has started.
        await this.#begun;
        await session.sendText(message.text);
        break;
      case 'question.answer': {
        const { requestId, answer } = message;
        const receipt = await session.answer(requestId, answer);
        from.send({ type: 'answer.receipt', requestId, receipt });
        break;
      }
      case 'question.shown':
        session.questionShown(message.requestId);
        break;
      case 'delivery.shown':
        session.shown(message.deliveryId);
        break;
      case 'delivery.dismiss':
        session.dismiss(message.deliveryId);
        break;
      case 'subagent.cancel':
        session.subagents.cancel(message.subagentId, 'the user pressed Stop');
        break;
      case 'playout.report':
        if (from === this.#owner)
          session.playout.next({ itemId: message.itemId, playedMs: message.playedMs });
        break;
      case 'microphone.open':
        // The connection keeps the rate itself.
        break;
    }
  }

  #setOwner(client: ClientConnection): void {
    this.#forget(client);
    this.#attached.push(client);
    if (client === this.#owner) return;
    this.#release();
    this.#owner = client;
    this.#detach = this.#options.session.attach();
    this.#begin();
    client.send({ type: 'voice.owner', own: true });
  }

  #begin(): void {
    const { session, log } = this.#options;
    this.#begun ??= session
      .start()
      .catch((error: unknown) => log(`The session did not begin: ${messageOf(error)}`));
  }

  #release(): void {
    this.#owner?.send({ type: 'voice.owner', own: false });
    this.#owner = null;
    this.#detach?.();
    this.#detach = null;
  }

  #remove(client: ClientConnection): void {
    this.#clients.delete(client);
    this.#unwelcomed.delete(client);
    this.#forget(client);
    if (client === this.#owner) {
      this.#release();
      const next = this.#attached.at(-1);
      if (next) this.#setOwner(next);
    }
    if (this.#clients.size === 0) this.#whenEmpty();
  }

  #keepCall({ callId, input }: CallInput): void {
    this.#calls = [...this.#calls, { callId, input }].slice(-KEPT_CALLS);
  }

  #forget(client: ClientConnection): void {
    const index = this.#attached.indexOf(client);
    if (index >= 0) this.#attached.splice(index, 1);
  }
}
