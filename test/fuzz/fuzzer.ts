// Calls the whole public API with random hostile arguments, and runs whole sessions with hostile methods. It asserts:
//
//   FUZZ-1. Every thrown error or rejection is an `OffstageError` or an error from the caller.
//   FUZZ-2. Every error is caught, and every rejection is handled.
//   FUZZ-3. Every promise of the API settles, and every session can be closed.
//   FUZZ-4. The next process can open what a session wrote, even with another journal object.
//
// Each case has its own source of randomness: `--case N` repeats one case.

import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isA, isError } from '../../src/values/errors.ts';
import { memoryJournal, OffstageError } from '../../src/index.ts';
import { sqliteJournal } from '../../src/adapters/sqlite-journal/index.ts';
import type { Journal } from '../../src/actors/ports/journal.ts';
import { chanceOf, type Chance } from '../../src/testing/doubles/chance.ts';
import type { SimulatedEnvironment } from '../../src/testing/index.ts';
import { calls as toolCalls, say, steps } from '../support/subagent-runs.ts';
import { textTalk } from '../support/text-talk.ts';
import { voiceTalk } from '../support/voice-talk.ts';
import { HostileError, hostileValue, inWords } from './hostile-values.ts';
import { newEnvironment, publicSurface, type Callable } from './public-surface.ts';

export interface FuzzOptions {
  readonly calls: number;
  readonly seed: number;
  /** Runs only this case. */
  readonly only?: number;
  readonly onProgress?: (calls: number) => void;
}

export interface Violation {
  readonly case: number;
  readonly what: string;
  readonly why: string;
}

export interface FuzzReport {
  readonly calls: number;
  readonly cases: number;
  readonly sessions: number;
  readonly functions: number;
  /** The number of calls per outcome. */
  readonly endings: Readonly<Record<string, number>>;
  readonly violations: readonly Violation[];
}

/** A folder in memory if the machine has one, because flushing to a disk takes time. */
function folder(): string {
  return existsSync('/dev/shm') ? '/dev/shm' : tmpdir();
}

/** The simulated waits after which everything must have settled. Together they are longer than any default. */
const WAITS_MS = [0, 0, 1_000, 60_000, 600_000, 3_600_000] as const;
/** The number of waits for a call that may be waiting for its caller. */
const FEW_WAITS = 3;

class Fuzzer {
  readonly #options: FuzzOptions;
  readonly #directory = mkdtempSync(join(folder(), 'offstage-fuzz-'));
  readonly #endings: Record<string, number> = {};
  readonly #violations: Violation[] = [];
  readonly #called = new Set<string>();
  #case = 0;
  #calls = 0;
  #sessions = 0;
  /** The call that is running, to be named if an error is not caught. */
  #doing = 'nothing';

  constructor(options: FuzzOptions) {
    this.#options = options;
  }

  async run(): Promise<FuzzReport> {
    const { callables, unknown } = await publicSurface();
    for (const why of unknown) this.#violated('the table', why);
    // Paths in hostile options point to a temporary folder.
    const home = process.cwd();
    const inner = join(this.#directory, 'a', 'b', 'c');
    mkdirSync(inner, { recursive: true });
    process.chdir(inner);
    const { fetch } = globalThis;
    // No request leaves this machine, whatever URL a hostile option contains.
    globalThis.fetch = (_address, { signal = null } = {}) =>
      Promise.reject((signal?.aborted ? signal.reason : new TypeError('fetch failed')) as Error);
    const stray = (error: unknown): void =>
      this.#violated(this.#doing, `not caught by anybody: ${stackOf(error)}`);
    process.on('uncaughtException', stray);
    process.on('unhandledRejection', stray);
    try {
      const { calls, seed, only } = this.#options;
      for (this.#case = only ?? 0; this.#calls < calls; this.#case += 1) {
        const chance = chanceOf(seed, this.#case);
        if (this.#case % 20 === 19) await this.#session(chance);
        else await this.#function(chance.pick(callables), chance);
        if (Object.hasOwn(Object.prototype, 'polluted')) {
          this.#violated(this.#doing, 'it has polluted Object.prototype');
          delete (Object.prototype as { polluted?: unknown }).polluted;
        }
        this.#options.onProgress?.(this.#calls);
        if (only !== undefined) break;
      }
      // Pending promises may still reject.
      for (let turn = 0; turn < 20; turn += 1)
        await new Promise((resolve) => setImmediate(resolve));
    } finally {
      process.off('uncaughtException', stray);
      process.off('unhandledRejection', stray);
      globalThis.fetch = fetch;
      process.chdir(home);
      rmSync(this.#directory, { recursive: true, force: true });
    }
    return {
      calls: this.#calls,
      cases: this.#case,
      sessions: this.#sessions,
      functions: this.#called.size,
      endings: this.#endings,
      violations: this.#violations,
    };
  }

  async #function(callable: Callable, chance: Chance): Promise<void> {
    const environment = newEnvironment(this.#case);
    const valid = callable.args({ environment, directory: this.#directory, number: this.#case });
    const { args, ...wrong } = callable.isCostly ? garbage(chance) : mutated(valid, chance);
    const mayWait = wrong.mayWait || callable.isOutside === true;
    this.#called.add(callable.name);
    const made = await this.#call(callable.name, () => callable.call(...args), {
      args,
      environment,
      mayWait,
      trusts: callable.trusts !== undefined,
    });
    if (typeof made !== 'object' || made === null) return;
    const trusts = callable.walks === 'trusts';
    if (callable.walks) await this.#walk(callable.name, made, environment, chance, 6, { trusts });
    await this.#end(callable.name, made, environment, mayWait);
  }

  /** Calls the methods of a returned object in random order. */
  async #walk(
    name: string,
    made: object,
    environment: SimulatedEnvironment,
    chance: Chance,
    count: number,
    {
      idsOf = () => [],
      trusts = false,
    }: { idsOf?: () => readonly unknown[]; trusts?: boolean } = {},
  ): Promise<void> {
    const methods = methodsOf(made);
    if (methods.length === 0) return;
    for (let done = 0; done < count; done += 1) {
      const { path, call } = chance.pick(methods);
      const args = Array.from({ length: chance.below(4) }, () => likelyOrHostile(chance, idsOf()));
      const options = { args, environment, mayWait: true, trusts };
      await this.#call(`${name}${path}`, () => call(args), options);
    }
  }

  async #end(name: string, made: object, environment: SimulatedEnvironment, mayWait: boolean) {
    for (const method of ['close', 'stop', 'cancel']) {
      const end = (made as Record<string, unknown>)[method];
      if (typeof end !== 'function' || end.length > 0) continue;
      await this.#call(`${name}.${method}`, () => Reflect.apply(end, made, []) as unknown, {
        args: [],
        environment,
        mayWait,
      });
      return;
    }
  }

  async #session(chance: Chance): Promise<void> {
    this.#sessions += 1;
    const isVoice = chance.happens(0.4);
    const isFile = chance.happens(0.2);
    const path = join(this.#directory, `session-${this.#case}.db`);
    const environment = newEnvironment(this.#case);
    let journal: Journal = isFile ? sqliteJournal({ path, environment }) : memoryJournal();
    const id = `session-${this.#case}`;
    const open = () => {
      const options = { sessionId: id, journal, environment, subagents: cast };
      return isVoice ? voiceTalk(options) : textTalk(options);
    };
    const name = isVoice ? 'VoiceSession' : 'TextSession';
    const talk = open();
    const { session } = talk;
    // A client is listening; without one, the output would wait.
    if ('parts' in session) session.parts.subscribe();
    const leave = session.attach();
    const idsOf = (): readonly unknown[] => {
      const { questions, deliveries, subagents } = session.store.getSnapshot().context;
      return [
        ...questions.map(({ requestId }) => requestId),
        ...deliveries.map(({ deliveryId }) => deliveryId),
        ...subagents.map((one) => one.id),
      ];
    };
    await this.#call(`${name}.start`, () => session.start(), { args: [], environment });
    const rounds = chance.within(1, 5);
    for (let round = 0; round < rounds; round += 1) {
      const words = chance.pick(['use ride', 'use report', 'hello', 'use ride and report', 'yes']);
      await this.#call(`${name}.sendText`, () => session.sendText(words), {
        args: [words],
        environment,
      });
      await this.#pass(environment, chance.pick([0, 10, 2_000]));
      await this.#walk(name, session, environment, chance, chance.within(1, 8), { idsOf });
    }
    leave();
    for (const { error } of talk.errors)
      if (isError(error) && !isAllowed(error))
        this.#violated(`${name}, reported to onError`, stackOf(error));
    await this.#call(`${name}.close`, () => session.close(), { args: [], environment });
    if (isFile) {
      (journal as ReturnType<typeof sqliteJournal>).close();
      journal = sqliteJournal({ path, environment });
    }
    const again = open();
    await this.#call(`${name}.start, by the next process`, () => again.session.start(), {
      args: [],
      environment,
      mustSucceed: true,
    });
    await this.#call(`${name}.close, by the next process`, () => again.session.close(), {
      args: [],
      environment,
      mustSucceed: true,
    });
    if (isFile) (journal as ReturnType<typeof sqliteJournal>).close();
  }

  /** Makes one call, waits until it settles, and checks the outcome. */
  async #call(
    name: string,
    call: () => unknown,
    given: {
      readonly args: readonly unknown[];
      readonly environment: SimulatedEnvironment;
      /** The caller passed a value that never settles or never ends. */
      readonly mayWait?: boolean;
      readonly trusts?: boolean;
      readonly mustSucceed?: boolean;
    },
  ): Promise<unknown> {
    const { args, environment, mayWait = false, trusts = false, mustSucceed = false } = given;
    this.#calls += 1;
    const what = (): string => `${name}(${args.map(inWords).join(', ')})`;
    this.#doing = name;
    let state: 'pending' | 'returned' | 'threw' = 'pending';
    let value: unknown;
    const settled = (async () => {
      try {
        value = await settledValue(call());
        state = 'returned';
      } catch (error) {
        value = error;
        state = 'threw';
      }
    })();
    void settled;
    for (const waitMs of mayWait ? WAITS_MS.slice(0, FEW_WAITS) : WAITS_MS) {
      if (state !== 'pending') break;
      await this.#pass(environment, waitMs);
    }
    const end = state as typeof state | 'returned' | 'threw';
    if (end === 'pending') {
      this.#count('waits');
      if (!mayWait) this.#violated(what(), 'it never settles');
      return undefined;
    }
    if (end === 'threw') {
      this.#count(isError(value) && value instanceof OffstageError ? value.code : 'another error');
      if (mustSucceed || !(trusts || isAllowed(value))) this.#violated(what(), stackOf(value));
      return undefined;
    }
    this.#count('fine');
    return value;
  }

  /** Advances the time. An error that a timer throws reaches no caller. */
  async #pass(environment: SimulatedEnvironment, ms: number): Promise<void> {
    try {
      await environment.advance(ms);
    } catch (error) {
      this.#violated(this.#doing, `thrown by a timer: ${stackOf(error)}`);
    }
  }

  #count(ending: string): void {
    this.#endings[ending] = (this.#endings[ending] ?? 0) + 1;
  }

  #violated(what: string, why: string): void {
    this.#violations.push({ case: this.#case, what, why });
  }
}

export function fuzz(options: FuzzOptions): Promise<FuzzReport> {
  return new Fuzzer(options).run();
}

const cast = {
  ride: {
    script: steps(
      toolCalls([
        'ask_user',
        { question: 'Economy?', options: [{ id: 'economy', label: 'Economy' }] },
      ]),
      say('Booked.'),
    ),
    config: { interactive: true },
  },
  report: { script: steps(say('42 sales')) },
};

function isAllowed(error: unknown): boolean {
  for (let each = error; isError(each); each = each.cause)
    if (each instanceof OffstageError || each instanceof HostileError) return true;
  return false;
}

/** Returns a result once it has settled. Reads a streamed result for a while. */
async function settledValue(given: unknown): Promise<unknown> {
  if (isA(given, Promise)) return given;
  if (typeof given !== 'object' || given === null) return given;
  // A value that the caller passed may come back and be unreadable.
  if (!isReadable(given)) return null;
  if (Symbol.asyncIterator in given && 'return' in given) {
    const reader = given as AsyncGenerator;
    for (let read = 0; read < 20; read += 1) if ((await reader.next()).done) break;
    await reader.return(undefined);
  } else if (Symbol.iterator in given && 'next' in given) {
    const reader = given as Generator;
    for (let read = 0; read < 20; read += 1) if (reader.next().done) break;
  }
  return given;
}

function isReadable(value: object): boolean {
  try {
    return Reflect.ownKeys(value).length >= 0 && Object.getPrototypeOf(value) !== undefined;
  } catch {
    return false;
  }
}

interface Method {
  readonly path: string;
  readonly call: (args: readonly unknown[]) => unknown;
}

/** The parts of sessions and services that belong to this library; the other parts belong to RxJS and XState. */
const PARTS = new Set(['subagents', 'services', 'audioIn', 'playout', 'session']);
/** Methods that never finish or are an alias. */
const NOT_CALLED = new Set([
  'constructor', 'toString', 'pipe', 'subscribe',
  // Methods of the class behind `SubagentService`. Recovery calls them with the entries that it has read.
  'restore', 'resume', 'settleRequest', 'repeatEnds', 'whenEnded',
]); // prettier-ignore

function methodsOf(made: object, path = ''): readonly Method[] {
  const methods: Method[] = [];
  const names = new Set<string>();
  for (
    let at: object | null = made;
    at && at !== Object.prototype;
    at = Object.getPrototypeOf(at) as object | null
  )
    for (const name of Object.getOwnPropertyNames(at)) names.add(name);
  for (const name of names) {
    if (NOT_CALLED.has(name)) continue;
    let value: unknown;
    try {
      value = (made as Record<string, unknown>)[name];
    } catch {
      continue;
    }
    if (typeof value === 'function')
      methods.push({
        path: `${path}.${name}`,
        call: (args) => Reflect.apply(value as () => unknown, made, args as unknown[]),
      });
    else if (PARTS.has(name) && typeof value === 'object' && value !== null)
      methods.push(...methodsOf(value, `${path}.${name}`));
  }
  return methods;
}

function likelyOrHostile(chance: Chance, ids: readonly unknown[]): unknown {
  if (chance.happens(0.5)) return hostileValue(chance);
  return chance.pick<unknown>([
    ...ids,
    ...ids,
    'economy',
    { optionId: 'economy' },
    { text: 'economy' },
    { approved: true },
    { text: hostileValue(chance) },
    { approved: hostileValue(chance) },
    { type: 'text.send', text: 'hello' },
    { type: 'question.answer', requestId: ids[0], answer: { text: hostileValue(chance) } },
    { type: 'question.answer', requestId: hostileValue(chance), answer: hostileValue(chance) },
    { type: 'delivery.shown', deliveryId: ids.at(-1) },
    { type: hostileValue(chance) },
    { itemId: 'item', playedMs: 10 },
    { itemId: hostileValue(chance), playedMs: hostileValue(chance) },
    { samples: new Int16Array(480), sampleRateHz: 24_000 },
    { samples: hostileValue(chance), sampleRateHz: hostileValue(chance) },
    { priority: hostileValue(chance) },
    'hello',
    1,
  ]);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** Names of other functions' options: valid names in the wrong place. */
const OPTION_NAMES = [
  'name', 'id', 'model', 'environment', 'journal', 'limits', 'hooks', 'tools', 'agents', 'subagentConfigs', 'timeout', 'signal',
  'budget', 'memory', 'runtime', 'services', 'inspect', 'now', 'maxBytes', 'instructions', 'onError', 'context', 'language',
  'deliveries', 'transport', 'voice', 'url', 'path', 'keep', 'token', 'apiKey', 'scheduler', 'clock', 'redact', 'unknownOption',
]; // prettier-ignore

/** Arguments that start no work. */
function garbage(chance: Chance): { readonly args: readonly unknown[]; readonly mayWait: boolean } {
  return { args: [null, ...(chance.happens(0.5) ? [hostileValue(chance)] : [])], mayWait: true };
}

/** The valid arguments with one of them replaced by a wrong value. */
function mutated(
  valid: readonly unknown[],
  chance: Chance,
): { readonly args: readonly unknown[]; readonly mayWait: boolean } {
  const wrong = hostileValue(chance);
  // A hostile function or promise may never finish, so waiting for it is not a fault of this library.
  const mayWait = typeof wrong === 'function' || typeof wrong === 'object';
  const dice = chance.next();
  if (dice < 0.1 || valid.length === 0) return { args: valid, mayWait: true };
  const at = chance.below(valid.length);
  const replaced = (value: unknown): readonly unknown[] =>
    valid.map((each, index) => (index === at ? value : each));
  const target = valid[at];
  if (dice < 0.65 && isRecord(target)) {
    const key = chance.pick([...Object.keys(target), ...Object.keys(target), ...OPTION_NAMES]);
    const inner = target[key];
    const value =
      isRecord(inner) && chance.happens(0.3)
        ? { ...inner, [chance.pick([...Object.keys(inner), ...OPTION_NAMES])]: wrong }
        : wrong;
    const isTime =
      key === 'environment' || key === 'runtime' || key === 'scheduler' || key === 'clock';
    return { args: replaced({ ...target, [key]: value }), mayWait: mayWait || isTime };
  }
  if (dice < 0.9) return { args: replaced(wrong), mayWait: true };
  if (dice < 0.95) return { args: valid.slice(0, at), mayWait: true };
  const count = chance.below(5);
  return { args: Array.from({ length: count }, () => hostileValue(chance)), mayWait: true };
}

function stackOf(error: unknown): string {
  try {
    if (!(error instanceof Error)) return `thrown: ${inWords(error)}`;
    const [, ...lines] = (error.stack ?? '').split('\n');
    const own = lines.filter((line) => line.includes('/src/')).slice(0, 3);
    return [
      `${error.name}: ${error.message.slice(0, 160)}`,
      ...own.map((line) => line.trim()),
    ].join(' | ');
  } catch {
    return 'an error that cannot be read';
  }
}
