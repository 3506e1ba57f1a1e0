// A voice model inside the process. It remembers its input, calls the tool that the user names, and says what the
// session requests. About earlier processes, it knows only what the session tells it.

import { Subject } from 'rxjs';
import type { AudioFrame } from '../../../src/voice/audio/audio-frame.ts';
import type { Scheduler } from '../../../src/actors/ports/environment.ts';
import type {
  Transport,
  TransportCommand,
  TransportConfiguration,
  TransportConnection,
  TransportEvent,
} from '../../../src/voice/connection/transport.ts';
import { spokenLead } from '../../../src/voice/spoken-lead.ts';
import { FakeTransport } from '../fake-transport.ts';
import { wishesIn, type Wish } from './world.ts';

const RATE_HZ = 24_000;
export const SPOKEN_MS = 200;
const THINKS_MS = 3;

type Request = Extract<TransportCommand, { type: 'response.request' }>;

/** The ids differ from those of every other process. */
export class LoopTransport implements Transport {
  readonly name = 'loop';
  readonly lead = spokenLead;
  readonly capabilities = new FakeTransport().capabilities;
  readonly #life: number;
  readonly #scheduler: Scheduler;
  #ids = 0;
  connection: LoopConnection | null = null;
  /** The words of each item. */
  readonly texts = new Map<string, string>();

  constructor(life: number, scheduler: Scheduler) {
    this.#life = life;
    this.#scheduler = scheduler;
  }

  connect(_configuration: TransportConfiguration): LoopConnection {
    const connection = new LoopConnection(this, this.#scheduler);
    this.connection = connection;
    this.#scheduler.schedule(() => connection.events.next({ type: 'transport.ready' }), 1);
    return connection;
  }

  next(kind: string): string {
    return `${kind}_${this.#life}_${(this.#ids += 1)}`;
  }
}

class LoopConnection implements TransportConnection {
  readonly events = new Subject<TransportEvent>();
  readonly audio = new Subject<AudioFrame>();
  readonly #transport: LoopTransport;
  readonly #scheduler: Scheduler;
  /** The user's words, keyed by item. */
  readonly #heard = new Map<string, string>();
  /** The requests for which a tool was called. */
  readonly #called = new Set<number>();
  #speaking: { readonly responseId: string; readonly cancel: () => void } | null = null;
  #isClosed = false;

  constructor(transport: LoopTransport, scheduler: Scheduler) {
    this.#transport = transport;
    this.#scheduler = scheduler;
  }

  sendAudio(): void {}

  close(): Promise<void> {
    this.#isClosed = true;
    return Promise.resolve();
  }

  /** The user says something. */
  hear(text: string): void {
    const utteranceId = this.#transport.next('user');
    this.#heard.set(utteranceId, text);
    this.#tell({ type: 'utterance.started', utteranceId, audioStartMs: 0 });
    this.#scheduler.schedule(() => {
      this.#tell({ type: 'utterance.ended', utteranceId });
      this.#tell({ type: 'utterance.transcribed', utteranceId, text, final: true });
    }, 2);
  }

  send(command: TransportCommand): void {
    if (command.type === 'message.add' && command.role === 'user' && command.isNote !== true)
      this.#heard.set(command.itemId, command.text);
    else if (command.type === 'item.delete') this.#heard.delete(command.itemId);
    else if (command.type === 'tool.recall') this.#called.add(argumentOf(command.arguments));
    else if (command.type === 'session.configure') this.#tell({ type: 'session.configured' });
    else if (command.type === 'response.cancel') this.#speaking?.cancel();
    else if (command.type === 'response.request') this.#answer(command);
  }

  #tell(event: TransportEvent): void {
    if (!this.#isClosed) this.events.next(event);
  }

  #answer({ responseKey, instructions, about }: Request): void {
    const responseId = this.#transport.next('resp');
    this.#tell({ type: 'response.started', responseId, responseKey });
    const end = (status: 'completed' | 'cancelled', audio: { itemId: string }[] = []): void => {
      this.#speaking = null;
      this.#tell({
        type: 'response.ended',
        responseId,
        responseKey,
        status,
        reason: null,
        audio: audio.map(({ itemId }) => ({ itemId, durationMs: SPOKEN_MS })),
      });
    };
    const cancelThought = this.#scheduler.schedule(() => {
      const wanted = instructions === undefined ? this.#uncalled() : [];
      if (wanted.length === 0) {
        // The model speaks the requested text with the quotations from its note.
        const text = [instructions ?? 'All right.', about ?? ''].join('\n').trim();
        // Notes quote text as JSON that is escaped so that it contains no tag.
        this.#speak(responseId, text.replaceAll(String.raw`\u003c`, '<'), end);
        return;
      }
      for (const { kind, n } of wanted) {
        this.#called.add(n);
        const callId = this.#transport.next('call');
        this.#tell({
          type: 'tool.called',
          responseId,
          callId,
          name: kind,
          arguments: JSON.stringify({ n }),
        });
      }
      end('completed');
    }, THINKS_MS);
    this.#speaking = {
      responseId,
      cancel: () => {
        cancelThought();
        end('cancelled');
      },
    };
  }

  #uncalled(): Wish[] {
    return [...this.#heard.values()].flatMap(wishesIn).filter(({ n }) => !this.#called.has(n));
  }

  #speak(
    responseId: string,
    text: string,
    end: (status: 'completed' | 'cancelled', audio: { itemId: string }[]) => void,
  ): void {
    if (this.#isClosed) return;
    const itemId = this.#transport.next('item');
    this.#transport.texts.set(itemId, text);
    this.audio.next({
      samples: new Int16Array((RATE_HZ * SPOKEN_MS) / 1000),
      sampleRateHz: RATE_HZ,
      itemId,
      responseId,
    });
    this.#tell({ type: 'assistant.transcribed', itemId, responseId, text, final: true });
    const cancelEnd = this.#scheduler.schedule(() => end('completed', [{ itemId }]), THINKS_MS);
    this.#speaking = {
      responseId,
      cancel: () => {
        cancelEnd();
        end('cancelled', [{ itemId }]);
      },
    };
  }
}

function argumentOf(json: string): number {
  return (JSON.parse(json) as { n: number }).n;
}
