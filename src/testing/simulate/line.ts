// The connection between a session and its voice model, with its faults. The connection can be refused, lost, slow or
// resumed, and the transcripts on it can arrive late. It also records what the model says in each item, and passes the
// user's audio to the model.
//
// Owns:     the connections of one process.
// Does not: interpret the text.
//
// Invariants
//   SIMULATE-LINE-1. A slow connection preserves the order: no event overtakes an earlier one.
//   SIMULATE-LINE-2. A dead process neither receives nor sends anything.

import { readable } from '../conformance/words.ts';
import { Subject } from 'rxjs';
import type { AudioFrame } from '../../voice/audio/audio-frame.ts';
import type {
  Transport,
  TransportConnection,
  TransportEvent,
} from '../../voice/connection/transport.ts';
import { HEARD_AGAIN_MS, LOUDNESS } from '../conformance/client.ts';
import type { ConformanceModel, ConformanceStage } from '../conformance/stage.ts';
import type { SimulatedEnvironment } from '../doubles/simulated-environment.ts';
import type { Faults } from './faults.ts';
import type { SimulatedProcess } from '../doubles/simulated-process.ts';

const SLOW_MS = 1000;
const DROP_WITHIN_MS = 3000;
/** A session stops trying to reconnect after 15 to 31 s. */
const OUTAGE_MS = [20_000, 120_000] as const;
const LATE_MS = 4000;

/** An utterance that the user speaks. */
export interface Utterance {
  readonly words: string;
  readonly startedAt: number;
  readonly durationMs: number;
}

export interface LinePorts {
  readonly environment: SimulatedEnvironment;
  readonly faults: Faults;
  readonly stage: ConformanceStage;
  /** Returns which of the stage's models the next connection uses, as an index. */
  nextModel(): number;
  /** Returns the user's current or latest utterance. */
  utterance(): Utterance | null;
  /** Returns whether the microphone picks up a television. */
  isNoisy(): boolean;
  /** During an outage of the provider, every connection is refused. `begin` starts one that takes `ms` milliseconds. */
  readonly outage: { isOn(): boolean; begin(ms: number): void };
  happened(what: 'opened' | 'resumed' | 'lost' | 'refused'): void;
  /** Called when the session asks the model to speak a message. */
  asked(instructions: string): void;
}

/** The voice model's text of each item, on all connections of all processes. */
export type ItemWords = Map<string, string>;

/** Returns the transport that one process uses. */
export function lineOf(process: SimulatedProcess, ports: LinePorts, words: ItemWords): Transport {
  const { stage, faults } = ports;
  const { name, lead, capabilities } = stage.transport;
  return {
    name,
    lead,
    capabilities,
    connect(configuration, context) {
      if (!process.isAlive) return deaf();
      if (ports.outage.isOn() || faults.strikes('line.refuses')) {
        ports.happened('refused');
        return refused(process);
      }
      ports.happened('opened');
      const index = ports.nextModel();
      const { resume, ...anew } = context;
      const forgets = resume !== undefined && faults.strikes('line.forgets') !== null;
      const connection = stage.transport.connect(configuration, forgets ? anew : context);
      return new Line(process, ports, words, connection, () => stage.models[index]);
    },
  };
}

/** Returns the newest open connection. */
export function openModel(stage: ConformanceStage): ConformanceModel | undefined {
  return stage.models.findLast(({ isOpen }) => isOpen);
}

class Line implements TransportConnection {
  readonly events = new Subject<TransportEvent>();
  readonly audio = new Subject<AudioFrame>();
  readonly #process: SimulatedProcess;
  readonly #ports: LinePorts;
  readonly #words: ItemWords;
  readonly #connection: TransportConnection;
  readonly #model: () => ConformanceModel | undefined;
  /** The late events, and all events that must wait until these have arrived. */
  readonly #behind: (() => void)[] = [];
  #heard: Utterance | null = null;
  #isSlow = false;

  constructor(
    process: SimulatedProcess,
    ports: LinePorts,
    words: ItemWords,
    connection: TransportConnection,
    model: () => ConformanceModel | undefined,
  ) {
    this.#process = process;
    this.#ports = ports;
    this.#words = words;
    this.#connection = connection;
    this.#model = model;
    connection.audio.subscribe((frame) => this.#pass(() => this.audio.next(frame)));
    connection.events.subscribe({
      next: (event) => this.#happened(event),
      complete: () => this.#pass(() => this.events.complete()),
    });
  }

  sendAudio(frame: AudioFrame): void {
    if (!this.#process.isAlive) return;
    this.#hears(frame);
    this.#connection.sendAudio(frame);
  }

  send(command: Parameters<TransportConnection['send']>[0]): void {
    if (!this.#process.isAlive) return;
    if (command.type === 'response.request' && command.instructions !== undefined)
      this.#ports.asked(`${command.instructions}\n${readable(command.about ?? '')}`);
    this.#connection.send(command);
  }

  close(): Promise<void> {
    return this.#process.isAlive ? this.#connection.close() : Promise.resolve();
  }

  #happened(event: TransportEvent): void {
    const { faults } = this.#ports;
    if (event.type === 'assistant.transcribed') this.#note(event);
    if (event.type === 'transport.ready' && event.resumed) this.#ports.happened('resumed');
    if (event.type === 'transport.closed' && event.code !== 1000) this.#ports.happened('lost');
    if (event.type === 'response.started' || event.type === 'utterance.started') {
      const drop = faults.strikes('line.drops');
      if (drop) this.#later(drop.below(DROP_WITHIN_MS), () => this.#model()?.drop());
      const outage = faults.strikes('line.outage');
      if (outage) {
        this.#ports.outage.begin(outage.within(...OUTAGE_MS));
        this.#later(0, () => this.#model()?.drop());
      }
      const slow = faults.strikes('line.slow');
      if (slow) this.#delay(slow.within(1, SLOW_MS));
      if (faults.strikes('line.expires')) this.#model()?.strike('expiry');
    }
    this.#pass(() => this.events.next(event));
  }

  #note(event: Extract<TransportEvent, { type: 'assistant.transcribed' }>): void {
    const { itemId, text, final } = event;
    this.#words.set(itemId, final ? text : (this.#words.get(itemId) ?? '') + text);
  }

  #pass(give: () => void): void {
    const alive = (): void => this.#process.do(give);
    if (this.#isSlow) this.#behind.push(alive);
    else alive();
  }

  #delay(ms: number): void {
    if (this.#isSlow) return;
    this.#isSlow = true;
    this.#later(ms, () => {
      // The model may answer one of these events with a new one, which must arrive after all of them (SIMULATE-LINE-1).
      for (let give = this.#behind.shift(); give; give = this.#behind.shift()) give();
      this.#isSlow = false;
    });
  }

  #later(ms: number, task: () => void): void {
    this.#ports.environment.scheduler.schedule(task, ms);
  }

  /** Passes the utterance to this model when loud audio arrives, but only once. A new connection may hear it again. */
  #hears({ samples }: AudioFrame): void {
    const utterance = this.#ports.utterance();
    const isLoud = samples.length > 0 && (samples[samples.length - 1] ?? 0) >= LOUDNESS;
    if (!isLoud || !utterance || this.#heard === utterance) return;
    this.#heard = utterance;
    const { words, startedAt, durationMs } = utterance;
    const now = this.#ports.environment.clock.now();
    const leftMs = startedAt + durationMs - now;
    const late = this.#ports.faults.strikes('words.late');
    if (this.#ports.isNoisy()) this.#model()?.strike('television');
    void this.#model()?.user.says(words, {
      durationMs: leftMs > 0 ? leftMs : HEARD_AGAIN_MS,
      transcript: late ? { lateMs: late.within(200, LATE_MS) } : 'prompt',
    });
  }
}

function refused({ environment }: SimulatedProcess): TransportConnection {
  const connection = deaf();
  environment.scheduler.schedule(() => {
    connection.events.next({
      type: 'transport.closed',
      code: 1013,
      reason: 'overloaded',
      retryable: true,
    });
    connection.events.complete();
  }, 50);
  return connection;
}

/** A connection that has no model. */
function deaf() {
  return {
    events: new Subject<TransportEvent>(),
    audio: new Subject<AudioFrame>(),
    sendAudio() {},
    send() {},
    close: () => Promise.resolve(),
  };
}
