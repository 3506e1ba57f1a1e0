// A simulated world: one conversation, the processes that run it one after another, and everything that outlives them
// (the journal, the effects of tools, the client, the user and the voice model).
//
// Owns:     when processes start and die, and the log.
// Does not: decide what happens (script, faults) or judge it (promises).
//
// Invariants
//   WORLD-1. A dead process is released: the world no longer calls it, its timers do not fire, and its output is
//       discarded. The next process has the same options and journal.

import { createRuntime, type Runtime } from '../../actors/admission/runtime.ts';
import type { SessionState } from '../../actors/contracts/session-views.ts';
import type { SnapshotPolicy } from '../../actors/runtime/scope-journal.ts';
import { TextSession } from '../../actors/session/view/text-session.ts';
import { messageOf } from '../../values/errors.ts';
import { VoiceSession } from '../../voice-session.ts';
import { LeadScript } from '../conformance/lead-script.ts';
import { outputsIn, tellableIn } from '../conformance/session-of-case.ts';
import type { ConformanceSetup, ConformanceStage } from '../conformance/stage.ts';
import { chanceOf } from '../doubles/chance.ts';
import {
  simulatedEnvironment,
  type SimulatedEnvironment,
} from '../doubles/simulated-environment.ts';
import { Client, type Talking } from './client.ts';
import { Effects } from './effects.ts';
import { Faults } from './faults.ts';
import { JobEngine } from './job-engine.ts';
import { lineOf, openModel, type ItemWords } from './line.ts';
import type { AnySession, SimulatedApp, SimulatedProgram } from './log/app.ts';
import type { FaultPlan, Strike } from './log/fault-points.ts';
import type { Happening, LogEntry } from './log/log.ts';
import { pagesOf, type Pages } from './pages.ts';
import { AnswerWatch } from './promises/answered.ts';
import { SimulatedProcess } from '../doubles/simulated-process.ts';
import { appIn, sessionModelIn, voiceCalls, type AppStage } from './staged-app.ts';
import { User } from './user.ts';
import { WorldJournal } from './world-journal.ts';

const SESSION_ID = 'session_1';
const DOWN_MS = 2000;
const MOST_TAKEN = 12;
const MOST_MS_TO_SLEEP = 8000;
const MOST_MS_ASLEEP = 30_000;
const MOST_BETWEEN_SNAPSHOTS = 60;

export interface WorldOptions extends Pick<AppStage, 'seed' | 'app' | 'models' | 'meanings'> {
  readonly kind: 'text' | 'voice';
  readonly voice: ConformanceSetup;
  readonly faults: FaultPlan | readonly Strike[];
  readonly alwaysRehydrates: boolean;
  /** The snapshot policy, or null to derive one from the seed. */
  readonly snapshots: SnapshotPolicy | null;
}

export class World {
  readonly environment: SimulatedEnvironment;
  readonly faults: Faults;
  readonly journal: WorldJournal;
  readonly effects: Effects;
  readonly client: Client;
  readonly user: User;
  readonly log: LogEntry[] = [];
  readonly answers = new AnswerWatch();
  readonly words: ItemWords = new Map();
  readonly startedAt: number;
  /** The app in the newest process. */
  app: SimulatedApp;
  readonly #options: WorldOptions;
  readonly #ofApp: AppStage;
  readonly #lead: LeadScript | null;
  readonly #engine: JobEngine;
  readonly #pages: Pages;
  #stage: ConformanceStage | null = null;
  #process: SimulatedProcess;
  #session: AnySession | null = null;
  #program: SimulatedProgram | null = null;
  #subscription: { unsubscribe(): void } | null = null;
  #lastState: SessionState | null = null;
  #connections = 0;
  #outageUntil = 0;
  #silenceMs = 0;
  #longestSilenceMs = 0;
  /** The number of entries that this process has written. */
  #taken = 0;
  #isUp = false;

  constructor(options: WorldOptions) {
    const { seed, kind } = options;
    this.#options = options;
    this.environment = simulatedEnvironment({ seed });
    this.startedAt = this.environment.clock.now();
    this.faults = new Faults(seed, options.faults, (strike) =>
      this.note({ kind: 'fault', strike }),
    );
    this.effects = new Effects(this.faults, () => this.now);
    this.journal = new WorldJournal({
      environment: this.environment,
      faults: this.faults,
      crash: () => this.crash(),
      kept: (entry) => {
        this.note({ kind: 'kept', entry });
        if (options.alwaysRehydrates) this.#rehydrateSoon();
      },
    });
    const note = (happening: Happening): void => this.note(happening);
    this.client = new Client(seed, this.environment, note, (isThere) =>
      isThere ? this.#pages.connect() : this.#pages.leave(),
    );
    const { environment, faults, effects, client } = this;
    const shared = { seed, environment, faults, note, app: () => this.app };
    this.user = new User({ ...shared, kind, client, session: () => this.#session });
    this.#pages = pagesOf({
      ...shared,
      effects,
      session: () => (client.isThere ? this.#session : null),
    });
    this.#process = new SimulatedProcess(1, this.environment);
    this.#ofApp = { ...options, faults: this.faults, effects: this.effects, note };
    this.app = appIn(this.#ofApp, this.#process);
    this.#lead = kind === 'voice' ? this.#newLead() : null;
    this.#engine = new JobEngine(this.#ofApp, this.environment);
  }

  /** Creates the stage and starts the first process. */
  async open(): Promise<void> {
    const lead = this.#lead;
    if (lead)
      this.#stage = await this.#options.voice.open({
        environment: this.environment,
        respond: (turn) => (this.faults.strikes('lead.empty') ? [] : lead.respond(turn)),
      });
    this.#begin();
  }

  get session(): AnySession | null {
    return this.#session;
  }

  /** The program that this process runs together with the session. */
  get program(): SimulatedProgram | null {
    return this.#program;
  }

  get process(): SimulatedProcess {
    return this.#process;
  }

  /** Milliseconds since the start of the run. */
  get now(): number {
    return this.environment.clock.now() - this.startedAt;
  }

  /** The session's state, or the last one that it showed. */
  get state(): SessionState | null {
    if (this.#session) this.#lastState = this.#session.store.getSnapshot().context;
    return this.#lastState;
  }

  get longestSilenceMs(): number {
    return this.#longestSilenceMs;
  }

  /** Counts this time as silence if a delivery is due and a client is listening. */
  listens(ms: number): void {
    const { state, client, user } = this;
    const isHeard = client.isThere && !client.isPlaying && !user.isSpeaking;
    // A question that waits for its turn is pending as soon as channels may send it.
    const queued = state?.questions.filter((one) => one.state === 'queued') ?? [];
    const isDue = state?.deliveries.some(
      ({ deliveryId, state: now, card }) =>
        now === 'pending' && !card && !queued.some(({ requestId }) => requestId === deliveryId),
    );
    const isThere = this.#session !== null && state?.connection === 'active';
    const isSilent = isThere && isHeard && isDue === true;
    this.#silenceMs = isSilent ? this.#silenceMs + ms : 0;
    this.#longestSilenceMs = Math.max(this.#longestSilenceMs, this.#silenceMs);
  }

  note(happening: Happening): void {
    if (happening.kind === 'said' && happening.words !== '') this.#lead?.heard(happening.words);
    const entry = { at: this.now, process: this.#process.number, ...happening };
    this.log.push(entry);
    this.answers.take(entry);
  }

  /** Kills the process immediately, and starts another one soon after. */
  crash(downMs?: number): void {
    const process = this.#process;
    if (!process.isAlive) return;
    const chance = chanceOf(this.#options.seed, 'crash', process.number);
    process.kill();
    this.note({ kind: 'crashed' });
    this.#leaveProcess();
    this.journal.settleCrash(chance.next());
    for (const model of this.#stage?.models ?? []) if (model.isOpen) model.drop();
    this.#beginLater(downMs ?? chance.within(1, DOWN_MS));
  }

  #leaveProcess(): void {
    this.#process.kill();
    this.#subscription?.unsubscribe();
    this.#session = null;
    this.#program = null;
    this.#isUp = false;
    this.#taken = 0;
    this.client.meets(null);
    this.user.forgets();
  }

  #beginLater(downMs: number): void {
    const next = this.#process.number + 1;
    this.environment.scheduler.schedule(() => {
      this.#process = new SimulatedProcess(next, this.environment);
      this.app = appIn(this.#ofApp, this.#process);
      this.#begin();
    }, downMs);
  }

  /** Called when the client has left. In some runs, this hibernates the session after it has become idle. */
  maySleep(): void {
    const process = this.#process;
    const chance = chanceOf(this.#options.seed, 'sleep', this.now);
    if (!chance.happens(0.7)) return;
    this.environment.scheduler.schedule(
      () => {
        const isMeant = process === this.#process && process.isAlive;
        if (isMeant && this.#session?.isIdle) void this.#sleep(this.#session);
      },
      chance.within(1, MOST_MS_TO_SLEEP),
    );
  }

  async #sleep(session: AnySession): Promise<void> {
    const process = this.#process;
    this.note({ kind: 'slept' });
    await session.hibernate();
    // The process may have died in the meantime.
    if (!process.isAlive) return;
    this.#leaveProcess();
    this.#beginLater(
      chanceOf(this.#options.seed, 'woken', process.number).within(1, MOST_MS_ASLEEP),
    );
  }

  /** Drops the connection to the voice model. */
  drop(): void {
    const model = this.#stage && openModel(this.#stage);
    model?.drop();
  }

  /** Closes the session and then the world. */
  async close(): Promise<void> {
    this.#subscription?.unsubscribe();
    this.client.meets(null);
    await this.#stage?.close?.();
  }

  #begin(): void {
    const process = this.#process;
    this.note({ kind: 'started' });
    const runtime = createRuntime({
      environment: process.environment,
      journal: this.journal.of(process),
      jobs: this.#engine.jobs,
      snapshots: this.#snapshots,
    });
    const talking = this.#talk(process, runtime);
    const { session } = talking;
    this.#session = session;
    this.#subscription = session.events.subscribe((event) => {
      this.note({ kind: 'event', event });
      if (event.type === 'connection.changed') this.#isUp = event.state === 'active';
      this.user.sees(event);
      this.#pages.sees(event);
    });
    // A text session counts as attached until a first client has attached and left.
    const wasThere = this.client.isThere;
    this.client.meets(talking);
    const leave = wasThere ? null : session.attach();
    leave?.();
    session.start().catch((error: unknown) => {
      if (process.isAlive) this.note({ kind: 'notStarted', why: messageOf(error) });
    });
    this.#program = this.app.program?.({ runtime, session }) ?? null;
  }

  #talk(process: SimulatedProcess, runtime: Runtime): Talking {
    const { kind } = this.#options;
    const { voice, thinkingSound, promptStyle, program: _, ...app } = this.app;
    const options = {
      ...app,
      sessionId: SESSION_ID,
      runtime,
      model: sessionModelIn(this.#ofApp, process),
    };
    if (kind === 'text')
      return {
        kind,
        session: new TextSession({ ...options, ...(promptStyle && { promptStyle }) }),
      };
    const stage = this.#stage as ConformanceStage;
    const transport = lineOf(
      process,
      {
        environment: this.environment,
        faults: this.faults,
        stage,
        nextModel: () => this.#connections++,
        outage: this.#outage,
        utterance: () => this.user.utterance,
        isNoisy: () => this.user.hasTelevision(),
        asked: (instructions) => this.note({ kind: 'asked', instructions }),
        happened: (what) => this.note({ kind: 'line', what }),
      },
      this.words,
    );
    const session = new VoiceSession({
      ...options,
      transport,
      delegationModel: options.model,
      ...(voice && { voice }),
      ...(thinkingSound && { thinkingSound }),
    });
    return { kind, session, sampleRateHz: transport.capabilities.inputSampleRateHz };
  }

  readonly #outage = {
    isOn: (): boolean => this.now < this.#outageUntil,
    begin: (ms: number): void => {
      this.#outageUntil = this.now + ms;
    },
  };

  /**
   * Snapshots are frequent enough that even short conversations have some. For some seeds, the entries before a
   * snapshot are trimmed.
   */
  get #snapshots(): SnapshotPolicy {
    const { seed, snapshots } = this.#options;
    const chance = chanceOf(seed, 'snapshots');
    const afterEntries = chance.within(1, MOST_BETWEEN_SNAPSHOTS);
    return snapshots ?? { afterEntries, trim: chance.happens(0.5) };
  }

  /** Creates the lead model's script. Like a provider's model, it outlives processes. */
  #newLead(): LeadScript {
    return new LeadScript(voiceCalls(this.#ofApp, this.app), {
      thinksMs: 0,
      tellsAfterMs: 0,
      adds: '',
      replies: {},
      delegates: () => this.#stage?.transport.capabilities.toolCalls === 'delegation',
      tellable: () => (this.state ? tellableIn(this.state) : []),
      found: () =>
        outputsIn(
          this.log.flatMap(({ at, ...entry }) =>
            entry.kind === 'event' ? [{ at, event: entry.event }] : [],
          ),
        ),
    });
  }

  /**
   * Releases the idle process after it has accepted a few entries. Across all runs, this happens between any two
   * messages.
   */
  #rehydrateSoon(): void {
    const process = this.#process;
    if (!this.#isUp || !this.faults.isArmed) return;
    this.#taken += 1;
    const { seed } = this.#options;
    // This takes one or more entries, so that work that needs several entries can be completed.
    const enough = chanceOf(seed, 'rehydrate', process.number).within(1, MOST_TAKEN);
    if (this.#taken !== enough) return;
    this.environment.scheduler.schedule(() => {
      if (process.isAlive) this.crash(0);
    }, 1);
  }
}
