// A complete voice session on a stage: its user, its client, its subagents and the log of its events.
//
// Owns:     the session, and how time passes.
// Does not: judge (promises, port-duties) or know what a case tests.

import type { Journal } from '../../actors/ports/journal.ts';
import { memoryJournal } from '../../actors/runtime/memory-journal.ts';
import type { SessionState } from '../../actors/contracts/session-views.ts';
import type { VoiceSession } from '../../voice-session.ts';
import {
  simulatedEnvironment,
  type SimulatedEnvironment,
} from '../doubles/simulated-environment.ts';
import { SimulatedProcess } from '../doubles/simulated-process.ts';
import { Client, HEARD_AGAIN_MS, TICK_MS } from './client.ts';
import type { Play } from './loudspeaker.ts';
import { LeadScript } from './lead-script.ts';
import {
  newSession,
  outputsIn,
  tellableIn,
  type TalkOptions,
  type LogEntry,
} from './session-of-case.ts';
import type {
  ConformanceResponder,
  ConformanceModel,
  ConformanceSetup,
  ConformanceStage,
  ConformanceTranscript,
} from './stage.ts';
import { WireTap, type TappedConnection } from './wire-tap.ts';
import { ConformanceError } from './conformance-error.ts';
import { plain } from './words.ts';
/** The addressee: the lead model, which answers or `calls`; a subagent; or no party that could hear it. */
export type Addressee = 'lead' | 'call' | 'subagent' | 'nobody';

/** A text that the user has spoken or typed. */
export interface Said {
  readonly text: string;
  readonly to: Addressee;
  readonly at: number;
}

export interface Speech {
  /** @defaultValue `call` if the text makes the lead model call a tool, otherwise `lead` */
  readonly to?: Addressee;
  /** @defaultValue 'prompt' */
  readonly transcript?: ConformanceTranscript;
  /** In milliseconds. @defaultValue 1200 */
  readonly durationMs?: number;
}

const DEFAULT_SPEECH_MS = 1200;
const DEFAULT_LIMIT_MS = 120_000;
/** If no event happens for this long, the conversation counts as finished. */
const CALM_MS = 3000;

export class Talk {
  readonly environment: SimulatedEnvironment;
  readonly tap: WireTap;
  session: VoiceSession;
  readonly client: Client;
  readonly said: readonly Said[];
  readonly options: TalkOptions;
  /** The connections that the session left open when it ended. */
  leftOpen = 0;
  readonly #stage: ConformanceStage;
  readonly #script: LeadScript;
  readonly #journal = memoryJournal({ keep: Infinity });
  readonly #log: LogEntry[] = [];
  #process: SimulatedProcess;
  /** The connections whose model has heard the latest utterance. */
  readonly #heardOn = new Set<TappedConnection>();
  #endsAt: number | null = null;
  #leave: () => void = () => {};

  private constructor(
    stage: ConformanceStage,
    environment: SimulatedEnvironment,
    script: LeadScript,
    options: TalkOptions,
  ) {
    this.#stage = stage;
    this.#script = script;
    this.environment = environment;
    this.options = options;
    this.tap = new WireTap(stage.transport);
    this.said = [];
    this.#process = new SimulatedProcess(1, environment);
    this.session = this.#newSession();
    this.client = new Client(this.session, environment);
  }

  #newSession(): VoiceSession {
    const process = this.#process;
    const { environment } = process;
    const runtime = { environment, journal: journalOf(process, this.#journal) };
    const session = newSession(this.tap, runtime, this.#script, this.options);
    session.events.subscribe((event) => {
      if (process.isAlive) this.#log.push({ at: this.now, event });
    });
    return session;
  }

  /** Kills the session's process. A new process then continues from the journal, with a new connection. */
  async restart(): Promise<void> {
    this.#process.kill();
    this.loseConnection();
    await this.pass(1000);
    this.#process = new SimulatedProcess(this.#process.number + 1, this.environment);
    this.session = this.#newSession();
    this.client.join(this.session);
    await this.#begin();
  }

  async #begin(): Promise<void> {
    this.#leave = this.session.attach();
    const started = this.session.start();
    await this.until('the session is there', ({ connection }) => connection === 'active');
    await started;
  }

  /** Sets up the stage and starts the session. */
  static async begin(setup: ConformanceSetup, options: TalkOptions): Promise<Talk> {
    const environment = simulatedEnvironment();
    const begun: { talk?: Talk } = {};
    const script = new LeadScript((words) => options.calls?.[words], {
      thinksMs: options.thinksMs ?? 0,
      tellsAfterMs: options.tellsAfterMs ?? 0,
      adds: options.adds ?? '',
      replies: options.replies ?? {},
      delegates: () => begun.talk?.tap.capabilities.toolCalls === 'delegation',
      tellable: () => (begun.talk ? tellableIn(begun.talk.state) : []),
      found: () => outputsIn(begun.talk?.log ?? []),
    });
    let wordless = options.wordlessTurns ?? 0;
    const respond: ConformanceResponder = (turn) =>
      (wordless -= 1) >= 0 ? [] : script.respond(turn);
    const stage = await setup.open({ environment, respond });
    const talk = new Talk(stage, environment, script, options);
    begun.talk = talk;
    await talk.#begin();
    return talk;
  }

  get log(): readonly LogEntry[] {
    return this.#log;
  }

  get now(): number {
    return this.environment.clock.now();
  }

  get state(): SessionState {
    return this.session.store.getSnapshot().context;
  }

  get capabilities(): WireTap['capabilities'] {
    return this.tap.capabilities;
  }

  /** The newest connection, as the model sees it. */
  get model(): ConformanceModel {
    const model = this.#stage.models.at(-1);
    if (model) return model;
    throw new ConformanceError('The transport has opened no connection');
  }

  get models(): readonly ConformanceModel[] {
    return this.#stage.models;
  }

  /** The user speaks and is heard to the end. */
  async says(text: string, speech: Speech = {}): Promise<void> {
    const ended = this.beginsToSay(text, speech);
    await this.pass(speech.durationMs ?? DEFAULT_SPEECH_MS);
    await ended;
    await this.environment.settle();
  }

  /** The user starts to speak. Resolves when enough time has passed for the speech to end. */
  beginsToSay(
    text: string,
    { to, transcript = 'prompt', durationMs = DEFAULT_SPEECH_MS }: Speech = {},
  ): Promise<void> {
    this.#heard(text, to);
    this.client.isLoud = true;
    const connection = this.tap.connections.at(-1);
    this.#heardOn.clear();
    if (connection) this.#heardOn.add(connection);
    this.environment.scheduler.schedule(() => {
      this.client.isLoud = false;
    }, durationMs);
    return this.model.user.says(text, { durationMs, transcript });
  }

  async types(text: string, to?: Addressee): Promise<void> {
    this.#heard(text, to);
    await this.session.sendText(text);
    await this.environment.settle();
  }

  /** Breaks the network connection. */
  loseConnection(): void {
    for (const model of this.models) if (model.isOpen) model.drop();
  }

  async pass(ms: number): Promise<void> {
    for (let leftMs = ms; leftMs > 0; leftMs -= TICK_MS) {
      await this.environment.advance(Math.min(TICK_MS, leftMs));
      this.#hearAgain();
    }
  }

  /**
   * Lets time pass until the condition is true.
   * @throws {ConformanceError} if the condition is still false after `limitMs`
   */
  async until(
    what: string,
    isSo: (state: SessionState, talk: Talk) => boolean,
    limitMs = DEFAULT_LIMIT_MS,
  ): Promise<void> {
    const end = this.now + limitMs;
    await this.environment.settle();
    while (!isSo(this.state, this)) {
      if (this.now >= end)
        throw new ConformanceError(`Waited for ${limitMs / 1000} s: ${what}\n${this.story()}`);
      await this.pass(TICK_MS);
    }
  }

  /** Waits until everything has been said and no more events arrive. */
  async calm(limitMs = DEFAULT_LIMIT_MS): Promise<void> {
    let calmSince = Number.POSITIVE_INFINITY;
    await this.until(
      'nothing happens any more',
      ({ connection, floor, deliveries, subagents }) => {
        const isCalm =
          connection === 'active' &&
          floor === 'nobody' &&
          !this.client.isPlaying &&
          subagents.every(
            ({ state, endedAt }) => endedAt !== null || state === 'waiting_for_input',
          ) &&
          deliveries.every(
            ({ state, card, kind }) =>
              card || kind === 'question' || !['pending', 'offered', 'playing'].includes(state),
          );
        calmSince = isCalm ? Math.min(calmSince, this.now) : Number.POSITIVE_INFINITY;
        return this.now - calmSince >= CALM_MS;
      },
      limitMs,
    );
  }

  /** Returns everything that the model said in an item, whether it was played or not. */
  wordsOf(itemId: string): string {
    let words = '';
    for (const { passed } of this.tap.connections)
      for (const entry of passed) {
        if (!('event' in entry) || entry.event.type !== 'assistant.transcribed') continue;
        const { event } = entry;
        if (event.itemId !== itemId) continue;
        if (event.final) return event.text;
        words += event.text;
      }
    return words;
  }

  /** Returns the delivery that presents this text to the user. */
  deliveryOf(text: string): SessionState['deliveries'][number] | undefined {
    return this.state.deliveries.findLast((delivery) => delivery.text.includes(text));
  }

  /** Returns the items that contain this text, in the order in which the user heard them. */
  playsOf(text: string): readonly Play[] {
    return this.client.plays.filter(({ itemId }) =>
      plain(this.wordsOf(itemId)).includes(plain(text)),
    );
  }

  /** Waits until the user starts to hear this text. */
  hears(text: string): Promise<void> {
    return this.until(`${JSON.stringify(text)} is heard`, () =>
      this.playsOf(text).some(({ playedMs, isCleared }) => playedMs > 0 && !isCleared),
    );
  }

  /** Waits until this text has been delivered. */
  isDelivered(text: string): Promise<void> {
    return this.until(
      `${JSON.stringify(text)} is told`,
      () => this.deliveryOf(text)?.state === 'delivered',
    );
  }

  /** @throws {ConformanceError} if the condition is false */
  check(what: string, isSo: boolean): void {
    if (!isSo) throw new ConformanceError(`Expected: ${what}\n${this.story()}`);
  }

  /** Describes the latest events, for a failure message. */
  story(): string {
    const lines = this.log
      .filter(({ event }) => event.type !== 'transcript.changed' || event.item.final)
      .slice(-40)
      .map(
        ({ at, event }) =>
          `  ${at - (this.log[0]?.at ?? at)} ms ${JSON.stringify(event).slice(0, 260)}`,
      );
    return `The session ended its log with:\n${lines.join('\n')}`;
  }

  /** The events before the session ended. */
  get logBeforeEnd(): readonly LogEntry[] {
    return this.log.slice(0, this.#endsAt ?? this.log.length);
  }

  /** Ends the session and the stage. */
  async end(): Promise<void> {
    this.#endsAt = this.log.length;
    const closed = this.session.close();
    await this.pass(60_000);
    await closed;
    this.client.stop();
    this.#leave();
    this.leftOpen = this.models.filter(({ isOpen }) => isOpen).length;
    await this.#stage.close?.();
    await this.environment.settle();
  }

  /**
   * Replays the user's audio on a new connection. Speech that the old connection did not transcribe is sent again, so
   * that the model can hear it.
   */
  #hearAgain(): void {
    const connection = this.tap.connections.at(-1);
    const last = this.said.at(-1);
    if (!connection || connection.loudSince === null || !last || this.#heardOn.has(connection))
      return;
    const isReady = connection.passed.some(
      (entry) => 'event' in entry && entry.event.type === 'transport.ready',
    );
    if (!isReady || connection.isHungUp) return;
    this.#heardOn.add(connection);
    void this.model.user.says(last.text, { durationMs: HEARD_AGAIN_MS, transcript: 'prompt' });
  }

  #heard(text: string, to: Addressee | undefined): void {
    const isCall = this.options.calls?.[text] !== undefined;
    (this.said as Said[]).push({ text, to: to ?? (isCall ? 'call' : 'lead'), at: this.now });
    this.#script.heard(text);
  }
}

/** The journal as one process sees it: once the process is dead, its appends never settle. */
const journalOf = (process: SimulatedProcess, journal: Journal): Journal => ({
  ...journal,
  append: (entry) => (process.isAlive ? journal.append(entry) : new Promise(() => {})),
});
