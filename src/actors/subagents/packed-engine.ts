// Jobs and runs whose texts are stored in the engine in packed form (packing.ts): `packedEngine` for the program that
// requests them, and `packedHandler` for the worker. The engine sees names, keys and times, and for a run also its id,
// the name of its configuration, and the ids of requests.
//
// Invariants
//   PACKED-ENGINE-1. The engine receives the following only in packed form: the bodies, results and failure messages of
//       jobs; the tasks, users, limits, journals, questions, answers, messages, reasons and outcomes of runs.
//   PACKED-ENGINE-2. A text that cannot be unpacked ends the run as lost (`JOB_UNREADABLE`). If the claim store is
//       unreachable, the engine repeats the turn.
//   PACKED-ENGINE-3. A run's claims are stored until the run is deleted, because later turns read the entries of all
//       earlier turns.

import { z } from 'zod';
import { propertiesOf } from '../../values/json.ts';
import { aFunction, anObject, check } from '../../values/checks.ts';
import { isA, messageOf } from '../../values/errors.ts';
import { raceAbort } from '../../values/race-abort.ts';
import {
  JobError,
  readFrom,
  type JobEnd,
  type JobHandler,
  type JobRefusal,
  type Jobs,
} from '../ports/jobs.ts';
import type { JournalEntry } from '../ports/journal.ts';
import type {
  RunAnswer,
  RunEngine,
  RunEntries,
  RunHandler,
  RunMessage,
  RunNews,
  RunOrder,
  RunStep,
  RunTurn,
  RunTurnEnd,
  RunView,
  RunWait,
  TakenMessage,
} from '../ports/run-engine.ts';
import { isPacked, Packer, unreadable, type JobPacking } from '../runtime/packing.ts';
import { lostBy } from './refusal.ts';

/** The places in a job that contain texts (PACKING-5). */
const bodyOf = (key: string): string => `${key}/body`;
const endOf = (key: string): string => `${key}/end`;

const jobsSchema = z.looseObject({
  name: z.string(),
  keepsResults: z.boolean(),
  // The limit may be Infinity, which zod's number type does not accept.
  maxBytes: z.union([z.number(), z.literal(Infinity)]),
  run: aFunction,
  cancel: aFunction,
  ended: aFunction.optional(),
  forget: aFunction.optional(),
});

const runsSchema = z.looseObject({
  name: z.string(),
  start: aFunction,
  view: aFunction,
  answer: aFunction,
  message: aFunction.optional(),
  cancel: aFunction,
  forget: aFunction.optional(),
});

// `runWorker` refuses unknown fields.
const bodySchema: z.ZodType<Pick<RunOrder, 'task' | 'by' | 'above'>> = z.looseObject({
  task: z.looseObject({
    description: z.string(),
    toolName: z.string(),
    args: z.record(z.string(), z.unknown()),
  }),
  by: z.string().exactOptional(),
  above: z
    .looseObject({
      depth: z.number(),
      denied: z.array(z.string()),
      answerableBy: z.array(z.string()).exactOptional(),
    })
    .exactOptional(),
});
const entriesSchema = z.array(
  z.custom<JournalEntry>((entry) => typeof entry === 'object' && entry !== null && 'unit' in entry),
);
const answerSchema = z.looseObject({});
const messageSchema = z.object({ content: z.string(), by: z.string().exactOptional() });
const objectSchema = z.looseObject({});
const packedSchema = z.strictObject({ packed: z.string() });

/** The places in a run that contain texts (PACKING-5). */
const PLACES = {
  order: (id: string) => `${id}/run:order`,
  digest: (id: string) => `${id}/run:digest`,
  answer: (id: string, requestId: string) => `${id}/run:answer:${requestId}`,
  message: (id: string, messageId: string) => `${id}/run:message:${messageId}`,
  asked: (id: string, requestId: string) => `${id}/run:asked:${requestId}`,
  journal: (id: string) => `${id}/run:journal`,
  outcome: (id: string) => `${id}/run:outcome`,
  // An engine may pass a run's reason to its children, so the place does not contain the run's id.
  reason: () => 'run:cancel',
};

/**
 * Packs the texts of jobs or runs before they reach the engine, and unpacks the engine's answers. For `createRuntime({
 * jobs })` and `runSubagent({ engine })`.
 * @throws {ConfigurationError} if an option is unknown or invalid.
 */
export function packedEngine(engine: Jobs, packing: JobPacking): Jobs;
export function packedEngine(engine: RunEngine, packing: JobPacking): RunEngine;
export function packedEngine(engine: Jobs | RunEngine, packing: JobPacking): Jobs | RunEngine {
  check(
    'packedEngine(engine, …)',
    anObject('an engine such as restateJobs({ … }) or restateRuns({ … })', 'cancel'),
    engine,
  );
  const packer = new Packer('packedEngine(…, packing)', packing);
  if ('run' in engine) {
    check('packedEngine(engine, …)', jobsSchema, engine);
    return packedJobs(engine, packer, packing.claims);
  }
  check('packedEngine(engine, …)', runsSchema, engine);
  return packedRuns(engine, packer, packing.claims);
}

/**
 * Unpacks the bodies of jobs or the turns of runs at a worker, and packs their results. Wraps `jobWorker({ … })` or
 * `runWorker({ … })`.
 * @throws {ConfigurationError} if an option is unknown or invalid.
 */
export function packedHandler(handler: JobHandler, packing: JobPacking): JobHandler;
export function packedHandler(handler: RunHandler, packing: JobPacking): RunHandler;
export function packedHandler(
  handler: JobHandler | RunHandler,
  packing: JobPacking,
): JobHandler | RunHandler {
  const what = 'a handler such as that of jobWorker({ … }) or runWorker({ … })';
  const isOfJobs = anObject(what, 'do').safeParse(handler).success;
  if (!isOfJobs) check('packedHandler(handler, …)', anObject(what, 'turn', 'step'), handler);
  const packer = new Packer('packedHandler(…, packing)', packing);
  return 'do' in handler ? packedJobHandler(handler, packer) : packedRunHandler(handler, packer);
}

function packedJobs(jobs: Jobs, packer: Packer, claims: JobPacking['claims']): Jobs {
  const { ended, forget } = jobs;
  return {
    name: jobs.name,
    steps: jobs.steps,
    keepsResults: jobs.keepsResults,
    maxBytes: jobs.maxBytes,
    async run(job, { signal, said }) {
      signal.throwIfAborted();
      const body = await raceAbort(packer.pack(bodyOf(job.key), job.body), signal);
      // The texts that a running job sends are not packed, so if the packer seals texts, none of them are sent.
      const hear = packer.isSealing ? undefined : said;
      const end = await jobs.run({ ...job, body }, { signal, said: hear });
      return raceAbort(unpackedEnd(packer, job.key, end), signal);
    },
    cancel: (key) => jobs.cancel(key),
    async ended(prefix) {
      await ended?.call(jobs, prefix);
      await claims?.forget?.(prefix);
    },
    ...(forget
      ? {
          async forget(prefix: string) {
            await forget.call(jobs, prefix);
            await claims?.forget?.(prefix);
          },
        }
      : {}),
  };
}

function packedJobHandler(handler: JobHandler, packer: Packer): JobHandler {
  return {
    async do(job, signal, said): Promise<JobEnd | JobRefusal> {
      let body: string;
      try {
        body = await raceAbort(packer.unpack(job.body, bodyOf(job.key)), signal);
      } catch (error) {
        if (signal.aborted || !isA(error, JobError)) throw error;
        const { code, message, retryable } = error;
        // A worker with another version may have the key.
        return retryable
          ? { failed: { code, message, retryable } }
          : { refused: { code, message } };
      }
      const end = await handler.do({ ...job, body }, signal, packer.isSealing ? undefined : said);
      try {
        return await raceAbort(packedEnd(packer, job.key, end), signal);
      } catch (error) {
        // The work has been done, but its result cannot be packed.
        if ('done' in end && job.once && !signal.aborted) return { lost: true };
        if (signal.aborted || !isA(error, JobError)) throw error;
        const { code, message, retryable } = error;
        return { failed: { code, message, retryable } };
      }
    },
  };
}

function packedRuns(engine: RunEngine, packer: Packer, claims: JobPacking['claims']): RunEngine {
  const texts = new RunTexts(packer);
  const { message: take, forget, lookMs } = engine;
  return {
    name: engine.name,
    ...(lookMs === undefined ? {} : { lookMs }),
    start: async (order) => engine.start(await texts.packOrder(order)),
    async view(id, after, signal) {
      const view = await engine.view(id, after, signal);
      // The view does not contain anything new, so nothing is unpacked.
      if (view.turn <= after && view.outcome === null)
        return { ...view, waiting: [], digest: undefined };
      return raceAbort(texts.unpackView(id, view), signal);
    },
    answer: async (id, answer) => engine.answer(id, await texts.packAnswer(id, answer)),
    ...(take
      ? {
          message: async (id: string, message: RunMessage) =>
            take.call(engine, id, await texts.packMessage(id, message)),
        }
      : {}),
    cancel: async (id, reason) => engine.cancel(id, await texts.packReason(id, reason)),
    ...(forget
      ? {
          async forget(id: string) {
            const ids = await forget.call(engine, id);
            for (const one of new Set([id, ...ids])) await claims?.forget?.(`${one}/`);
            return ids;
          },
        }
      : {}),
  };
}

function packedRunHandler(handler: RunHandler, packer: Packer): RunHandler {
  const texts = new RunTexts(packer);
  const steps = packedJobHandler({ do: (job, signal) => handler.step(job, signal) }, packer);
  return {
    step: (job, signal) => steps.do(job, signal),
    holds: (turn) => handler.holds?.(turn) ?? false,
    async turn(turn, signal) {
      let end: RunTurnEnd;
      try {
        const isHeld = handler.holds?.(turn) ?? false;
        const given = await raceAbort(texts.unpackTurn(turn, isHeld), signal);
        end = await handler.turn(given, texts.readableReason(signal));
      } catch (error) {
        if (signal.aborted || !isA(error, JobError) || error.retryable) throw error;
        //   PACKED-ENGINE-2. The time is irrelevant, because the run is not waiting for anything.
        end = { at: 0, journal: [], waiting: [], wakeAt: null, outcome: lostBy(error) };
      }
      if (end.missing) return end;
      return texts.packEnd(turn, end);
    },
  };
}

class RunTexts {
  readonly #packer: Packer;

  constructor(packer: Packer) {
    this.#packer = packer;
  }

  /** PACKED-ENGINE-1 */
  async packOrder({ id, config, task, by, above, trace, digest }: RunOrder): Promise<RunOrder> {
    const packed = await this.#packer.packJson(PLACES.order(id), { task, by, above });
    const hidden = { description: '', toolName: config, args: {} };
    const own = digest && { digest: await this.#packer.packJson(PLACES.digest(id), digest) };
    return { id, config, task: hidden, packed, ...(trace && { trace }), ...own };
  }

  async packAnswer(id: string, { requestId, given, content }: RunAnswer): Promise<RunAnswer> {
    return {
      requestId,
      packed: await this.#packer.packJson(PLACES.answer(id, requestId), { given, content }),
    };
  }

  async packMessage(runId: string, { id, mode, content, by }: RunMessage): Promise<RunMessage> {
    const packed = await this.#packer.packJson(PLACES.message(runId, id), { content, by });
    return { id, mode, content: '', packed };
  }

  packReason(id: string, reason: string): Promise<string> {
    return this.#packer.packJson(PLACES.reason(), reason, `${id}/run:cancel`);
  }

  async unpackView(id: string, view: RunView): Promise<RunView> {
    const waiting = await Promise.all(view.waiting.map((wait) => this.#unpackWait(id, wait)));
    const outcome = view.outcome && (await this.#unpackObject(view.outcome, PLACES.outcome(id)));
    const digest =
      view.digest && (await this.#unpackJson(view.digest, PLACES.digest(id), z.string()));
    return { ...view, waiting, outcome, digest };
  }

  /** Unpacks a turn. `isHeld`: the handler already has the journal. */
  async unpackTurn(turn: RunTurn, isHeld: boolean): Promise<RunTurn> {
    const { order, journal, since = [], waiting, news, messages } = turn;
    const { id } = order;
    const unpacked = async (entries: RunEntries): Promise<RunEntries> =>
      isHeld || entries.length === 0 ? [] : this.#unpackEntries(id, entries);
    return {
      ...turn,
      order: await this.#unpackOrder(order),
      journal: await unpacked(journal),
      since: await Promise.all(since.map(unpacked)),
      waiting: await Promise.all(waiting.map((wait) => this.#unpackWait(id, wait))),
      news: await this.#unpackNews(id, news),
      ...(messages
        ? { messages: await Promise.all(messages.map((one) => this.#unpackMessage(id, one))) }
        : {}),
    };
  }

  async packEnd({ order, number }: RunTurn, end: RunTurnEnd): Promise<RunTurnEnd> {
    const { journal, waiting, children, steps, outcome } = end;
    const beginning = `${order.id}/run:${number}/`;
    const packed = async (
      name: string,
      place: string,
      json: object,
    ): Promise<{ readonly packed: string }> => ({
      packed: await this.#packer.packJson(place, json, `${beginning}${name}`),
    });
    if (typeof journal === 'string') throw unreadable('the journal is packed twice');
    return {
      ...end,
      journal:
        outcome === null && journal.length > 0
          ? await this.#packer.packEntries(PLACES.journal(order.id), journal, `${beginning}journal`)
          : [],
      ...(steps ? { steps: await Promise.all(steps.map((step) => this.#packStep(step))) } : {}),
      waiting: await Promise.all(
        waiting.map(async (wait) => {
          const { requestId, asked } = wait;
          const place = PLACES.asked(order.id, requestId);
          return { ...wait, asked: await packed(requestId, place, asked) };
        }),
      ),
      ...(children
        ? {
            children: await Promise.all(
              children.map(async (child) => ({
                ...child,
                order: await this.packOrder(child.order),
              })),
            ),
          }
        : {}),
      outcome: outcome && (await packed('outcome', PLACES.outcome(order.id), outcome)),
    };
  }

  /** Packs a step's body for `packedHandler`, like `packedJobs`. */
  async #packStep(step: RunStep): Promise<RunStep> {
    const { key, body } = step;
    return body === undefined
      ? step
      : { ...step, body: await this.#packer.pack(bodyOf(key), body) };
  }

  /** Returns a signal whose abort reason is unpacked. A turn that is cancelled receives the reason as text. */
  readableReason(signal: AbortSignal): AbortSignal {
    const controller = new AbortController();
    const abort = async (): Promise<void> => {
      const { reason } = propertiesOf(signal);
      if (!isA(reason, JobError)) return controller.abort(reason);
      const { code, retryable } = reason;
      const message = await this.#unpackReason(reason.message).catch(() => 'cancelled');
      controller.abort(new JobError(code, message, { retryable }));
    };
    if (signal.aborted) void abort();
    else signal.addEventListener('abort', () => void abort(), { once: true });
    return controller.signal;
  }

  async #unpackOrder({ id, config, packed, trace }: RunOrder): Promise<RunOrder> {
    if (packed === undefined) throw unreadable('the run was begun without packedRuns(…)');
    const body = await this.#unpackJson(packed, PLACES.order(id), bodySchema);
    return { ...body, id, config, ...(trace && { trace }) };
  }

  async #unpackEntries(id: string, journal: RunEntries): Promise<readonly JournalEntry[]> {
    if (typeof journal !== 'string') throw unreadable('the journal is not packed');
    return this.#unpackJson(journal, PLACES.journal(id), entriesSchema);
  }

  async #unpackWait(id: string, wait: RunWait): Promise<RunWait> {
    const place = PLACES.asked(id, wait.requestId);
    return { ...wait, asked: await this.#unpackObject(wait.asked, place) };
  }

  async #unpackMessage(runId: string, message: TakenMessage): Promise<TakenMessage> {
    const { nth, id, mode, packed } = message;
    if (packed === undefined) throw unreadable('the message is not packed');
    const place = PLACES.message(runId, id);
    return { nth, id, mode, ...(await this.#unpackJson(packed, place, messageSchema)) };
  }

  async #unpackNews(id: string, news: RunNews): Promise<RunNews> {
    if (news.type === 'answered') {
      const { requestId, packed } = news.answer;
      if (packed === undefined) throw unreadable('the answer is not packed');
      const answer = await this.#unpackJson(packed, PLACES.answer(id, requestId), answerSchema);
      return { type: 'answered', answer: { ...answer, requestId } };
    }
    if (news.type === 'ended')
      return {
        type: 'ended',
        ends: await Promise.all(
          news.ends.map(async ({ key, end }) => ({
            key,
            end: await unpackedEnd(this.#packer, key, end),
          })),
        ),
      };
    if (news.type === 'child')
      return {
        ...news,
        outcome: news.outcome && (await this.#unpackObject(news.outcome, PLACES.outcome(news.id))),
      };
    if (news.type === 'cancelled')
      return { type: 'cancelled', reason: await this.#unpackReason(news.reason) };
    return news;
  }

  /** Unpacks a reason. Reasons that the engine itself gives are not packed. */
  async #unpackReason(reason: string): Promise<string> {
    return isPacked(reason) ? this.#unpackJson(reason, PLACES.reason(), z.string()) : reason;
  }

  #unpackObject(object: object, place: string): Promise<object> {
    const { success, data } = packedSchema.safeParse(object);
    if (!success) throw unreadable('it is not packed');
    return this.#unpackJson(data.packed, place, objectSchema);
  }

  async #unpackJson<Schema extends z.ZodType>(
    text: string,
    place: string,
    schema: Schema,
  ): Promise<z.output<Schema>> {
    const bare = await this.#packer.unpack(text, place);
    let json: unknown;
    try {
      json = JSON.parse(bare);
    } catch {
      throw unreadable('it holds no JSON');
    }
    return readFrom('The engine', schema, json);
  }
}

/**
 * Packs the result of a job. A failure message may contain text from a user or provider, so it is packed too.
 */
async function packedEnd<End extends JobEnd | JobRefusal>(
  packer: Packer,
  key: string,
  end: End,
): Promise<End | JobEnd> {
  if ('done' in end) return { done: await packer.pack(endOf(key), end.done) };
  if (!('failed' in end) || !packer.isHiding) return end;
  const message = await packer.packJson(endOf(key), end.failed.message);
  return { failed: { ...end.failed, message } };
}

async function unpackedEnd(packer: Packer, key: string, end: JobEnd): Promise<JobEnd> {
  if ('done' in end) return { done: await packer.unpack(end.done, endOf(key)) };
  // Failures that the engine itself reports are not packed.
  if (!('failed' in end) || !isPacked(end.failed.message)) return end;
  const message = await unpackedMessage(packer, key, end.failed.message);
  return { failed: { ...end.failed, message } };
}

/** Unpacks a failure message. If the message cannot be unpacked, the failure keeps its code. */
async function unpackedMessage(packer: Packer, key: string, packed: string): Promise<string> {
  try {
    return String(JSON.parse(await packer.unpack(packed, endOf(key))));
  } catch (error) {
    if (isA(error, JobError) && error.retryable) throw error;
    return `Its message cannot be read: ${messageOf(error)}`;
  }
}
