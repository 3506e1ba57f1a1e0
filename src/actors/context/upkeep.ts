// Keeps the conversation within its limits and extracts facts from it, between and during turns.
//
// Owns:     when the conversation is summarised and when facts are extracted (one job of each kind at a time), which
//           items are summarised, and which facts are new or replace known ones.
// Does not: write summaries or facts, or store the conversation or the facts (the records and the memory do).
//
// Invariants
//   UPKEEP-1. Upkeep never blocks a turn; a failed job is reported and retried after a later turn.
//   UPKEEP-2. A summary covers only the items that were passed to the summariser; items that were added or changed in
//       the meantime are kept.
//   UPKEEP-3. Every item is distilled once, even if it is about to be summarised or is among the last items of the
//       session.
//   UPKEEP-4. A known fact is not stored again.
//   UPKEEP-5. Each job takes at most `timeoutMs`.

import { z } from 'zod';
import type { ConversationLog } from '../conversation/conversation.ts';
import {
  charsOf,
  isMessage,
  isOpen,
  resultsIn,
  stepsIn,
  type ConversationItem,
} from '../conversation/items.ts';
import { clip } from '../../values/clip.ts';
import type { MemoryFact, MemoryStore } from '../ports/memory-store.ts';
import { raceAbort } from '../../values/race-abort.ts';
import type { ModelCalls } from '../contracts/usage.ts';
import { inSpanOf, type Host } from '../runtime/host.ts';
import { CancelledError, isA, OffstageError } from '../../values/errors.ts';
import type { FactSource } from './context-snapshot.ts';
import {
  distilledFactSchema,
  transcriptOf,
  type MemoryDistiller,
  type Summarise,
} from './model-upkeep.ts';
import type { Environment } from '../ports/environment.ts';

export interface UpkeepOptions {
  readonly summarise: Summarise | null;
  /** The conversation is summarised when it exceeds this fraction (from 0 to 1) of its limit. */
  readonly summariseAbove: number;
  /** The number of newest items that are never summarised. */
  readonly keepItems: number;
  readonly distil: MemoryDistiller | null;
  /** The number of turns between distillations. */
  readonly distilEveryTurns: number;
  /** The time limit for a summary or a distillation, in milliseconds. */
  readonly timeoutMs: number;
}

/** The members of the session that upkeep uses. */
export interface UpkeepSession {
  readonly id: string;
  readonly host: Host;
  /** The memory for facts; undefined if there is none. */
  readonly facts: FactSource | undefined;
  conversation(): ConversationLog;
  readonly calls: ModelCalls;
  summarised(summary: string, covers: readonly string[]): void;
  remembered(facts: readonly MemoryFact[]): void;
}

interface Job {
  readonly ended: Promise<void>;
  readonly controller: AbortController;
}

/** The fractions of the conversation's character limit that the summary and the kept items may take up. */
const SUMMARY_SHARE = 0.1;
const KEPT_SHARE = 0.25;
const KNOWN_FACTS = 50;
const QUERY_CHARS = 2000;

export class Upkeep {
  readonly #options: UpkeepOptions;
  readonly #session: UpkeepSession;
  readonly #jobs = new Map<'summary' | 'memory', Job>();
  /** The ids of the items that have been distilled and are still in the conversation. */
  #read: ReadonlySet<string> = new Set();
  #turnsSince = 0;
  #ending: Promise<void> | null = null;

  constructor(session: UpkeepSession, options: UpkeepOptions) {
    this.#session = session;
    this.#options = options;
  }

  /** Whether a summary or a distillation is running. */
  get isBusy(): boolean {
    return this.#jobs.size > 0;
  }

  /** Records that all items were distilled and upkeep ended when the session was suspended (UPKEEP-3). */
  wasEnded(): void {
    this.#read = new Set(this.#finished.map(({ id }) => id));
  }

  turnEnded(): void {
    const { distilEveryTurns, summariseAbove } = this.#options;
    this.#turnsSince += 1;
    const isFull = this.#session.conversation().load >= summariseAbove;
    if (isFull || this.#turnsSince >= distilEveryTurns) this.#distil();
    if (isFull) this.#summarise();
  }

  /**
   * Ends upkeep: distils the last items, and starts no more summaries. Resolves when upkeep has ended. Never rejects;
   * repeated calls return the same promise.
   */
  end(): Promise<void> {
    this.#ending ??= (async () => {
      // The session is ending, so no model would read the summary.
      this.#jobs.get('summary')?.controller.abort(new CancelledError('the session was closed'));
      await this.#jobsEnded();
      this.#distil();
      await this.#jobsEnded();
    })();
    return this.#ending;
  }

  #summarise(): void {
    const { summarise, keepItems } = this.#options;
    if (!summarise || this.#ending) return;
    const then = this.#session.conversation();
    const { maxChars } = then.limits;
    const items = itemsToSummarise(then, { keepItems, keepChars: maxChars * KEPT_SHARE });
    if (items.length === 0) return;
    const mostChars = Math.ceil(maxChars * SUMMARY_SHARE);
    this.#run('summary', async (signal) => {
      const { environment } = this.#session.host;
      const text = await raceAbort(
        summarise({
          previous: then.summary,
          items,
          maxChars: mostChars,
          signal,
          environment,
          calls: this.#session.calls,
        }),
        signal,
      );
      if (typeof text !== 'string' || text.trim() === '')
        throw new OffstageError('NO_SUMMARY', `Expected a summary, got ${JSON.stringify(text)}`);
      const covers = stillCovered(items, this.#session.conversation());
      this.#session.summarised(clip(text.trim(), mostChars), covers);
    });
  }

  get #finished(): readonly ConversationItem[] {
    const { items } = this.#session.conversation();
    const results = resultsIn(items);
    return items.filter((item) => !isOpen(item, results));
  }

  #distil(): void {
    const { distil } = this.#options;
    const { facts, host } = this.#session;
    if (!distil || !facts || this.#jobs.has('memory')) return;
    const finished = this.#finished;
    const items = finished.filter(({ id }) => !this.#read.has(id));
    if (!items.some((item) => item.role === 'user')) return;
    this.#turnsSince = 0;
    this.#run('memory', async (signal) => {
      const { memory: store, scope } = facts;
      const latest = transcriptOf(lastOf(items, QUERY_CHARS), QUERY_CHARS);
      const query = latest.map(({ text }) => text).join('\n');
      const known = await raceAbort(store.facts({ scope, query, limit: KNOWN_FACTS }), signal);
      const { environment } = host;
      const { calls } = this.#session;
      const found = await raceAbort(distil({ items, known, signal, environment, calls }), signal);
      const remembered = await rememberFacts(found, {
        store,
        scope,
        source: this.#session.id,
        environment,
        known,
        signal,
      });
      this.#read = new Set(finished.map(({ id }) => id));
      if (remembered.length > 0) this.#session.remembered(remembered);
    });
  }

  #run(kind: 'summary' | 'memory', work: (signal: AbortSignal) => Promise<void>): void {
    if (this.#jobs.has(kind)) return;
    const { host } = this.#session;
    const { timeoutMs } = this.#options;
    const controller = new AbortController();
    const cancel = host.environment.scheduler.schedule(() => {
      const message = `Expected it to be done within ${timeoutMs} ms`;
      controller.abort(new OffstageError('UPKEEP_TIMEOUT', message));
    }, timeoutMs);
    const { id } = this.#session;
    const of = { scope: id, unit: id };
    const ended = inSpanOf(host, of, () => work(controller.signal))
      .catch((error: unknown) => {
        if (!isA(error, CancelledError)) host.report(error, kind);
      })
      .then(() => {
        cancel();
        this.#jobs.delete(kind);
      });
    this.#jobs.set(kind, { ended, controller });
  }

  async #jobsEnded(): Promise<void> {
    await Promise.all([...this.#jobs.values()].map(({ ended }) => ended));
  }
}

interface Recent {
  /** The maximum number of newest items that are kept unchanged. */
  readonly keepItems: number;
  /** The maximum total length of these items, in characters. */
  readonly keepChars: number;
}

/** Returns the finished items that are older than the kept ones; the items of one step stay together. */
export function itemsToSummarise(
  { items }: ConversationLog,
  { keepItems, keepChars }: Recent,
): readonly ConversationItem[] {
  let kept = 0;
  let chars = 0;
  while (kept < items.length && kept < keepItems) {
    chars += charsOf(items[items.length - 1 - kept] as ConversationItem);
    if (chars > keepChars && kept > 0) break;
    kept += 1;
  }
  const old = new Set(items.slice(0, items.length - kept));
  const results = resultsIn(items);
  const steps = stepsIn(items);
  return [...old].filter((item) =>
    steps.get(item)?.every((one) => old.has(one) && !isOpen(one, results)),
  );
}

/** Returns the ids of the summarised items whose text is unchanged; items corrected in the meantime are omitted. */
export function stillCovered(
  summarised: readonly ConversationItem[],
  now: ConversationLog,
): readonly string[] {
  return summarised.flatMap((then) => {
    const item = now.get(then.id);
    if (!item) return [];
    return isMessage(then) && isMessage(item) && then.text !== item.text ? [] : [item.id];
  });
}

/** Returns the newest items with at most this many characters. */
function lastOf(items: readonly ConversationItem[], maxChars: number): readonly ConversationItem[] {
  let chars = 0;
  const first = items.findLastIndex((item) => (chars += charsOf(item)) > maxChars);
  return items.slice(first + 1);
}

interface Where {
  readonly store: MemoryStore;
  readonly scope: string;
  /** The session in which the facts were found. */
  readonly source: string;
  readonly environment: Environment;
  /** The known facts that the distiller may replace. */
  readonly known: readonly MemoryFact[];
  readonly signal: AbortSignal;
}

/**
 * Stores the facts that are not known yet, in order, and returns them.
 * @throws {OffstageError} `INVALID_FACT` for an invalid fact; the memory's error; `signal.reason`.
 */
export async function rememberFacts(found: unknown, where: Where): Promise<readonly MemoryFact[]> {
  const parsed = z.array(distilledFactSchema).safeParse(found);
  if (!parsed.success)
    throw new OffstageError('INVALID_FACT', `Expected facts: ${z.prettifyError(parsed.error)}`, {
      cause: parsed.error,
    });
  const { store, scope, source, environment, known, signal } = where;
  const remembered: MemoryFact[] = [];
  for (const { text, category, replaces } of parsed.data) {
    // If the memory contains the fact, a query with the fact's own text finds it.
    const alike = await raceAbort(store.facts({ scope, query: text, limit: 5 }), signal);
    if (alike.some((fact) => sameWords(fact.text, text))) continue;
    // Only a fact that was passed to the distiller can be replaced, and only once: a made-up id creates a new fact.
    const isKnown = known.some((fact) => fact.id === replaces);
    const isTaken = remembered.some((fact) => fact.id === replaces);
    const id = isKnown && !isTaken ? (replaces as string) : environment.ids.next('fact');
    const at = environment.clock.now();
    const fact = { id, scope, text, at, source, ...(category === undefined ? {} : { category }) };
    await raceAbort(store.remember(fact), signal);
    remembered.push(fact);
  }
  return remembered;
}

/** Returns whether two texts differ only in case, white space and punctuation. */
function sameWords(one: string, other: string): boolean {
  return wordsOf(one) === wordsOf(other);
}

function wordsOf(text: string): string {
  return (
    text
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu)
      ?.join(' ') ?? text.trim()
  );
}
