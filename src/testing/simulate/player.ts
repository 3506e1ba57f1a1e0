// Plays a script. It advances time and performs each step when it is due. After the last step, it disables all faults
// and waits until all work is done, but not longer than a limit of simulated time.
//
// Owns:     how time passes in a run.
// Does not: judge the result (promises).

import { THE_LEAD } from '../../actors/contracts/service-types.ts';
import type { SessionState } from '../../actors/contracts/session-views.ts';
import { CHANNEL, FINAL, OVER, type RunRecord } from './log/log.ts';
import type { Script, Step } from './log/script.ts';
import { World, type WorldOptions } from './world.ts';

/** For this time after the last step, faults may still fire. */
const AFTERMATH_MS = 30_000;
const ROUND_MS = 1000;
/** The suffixes that distinguish repeated requests from the first one. */
const AGAIN = [', once more', ', a third time', ', a last time'] as const;
/** A run counts as finished after it has had no unfinished work for this time. */
const CALM_MS = 3000;
const CLOSE_WITHIN_MS = 120_000;

export interface PlayOptions extends Omit<WorldOptions, 'meanings'> {
  readonly steps: readonly Step[];
  /** The maximum time from the last fault to the end of all work, in milliseconds. */
  readonly quietWithinMs: number;
}

export async function play(options: PlayOptions): Promise<RunRecord> {
  const { seed, kind, steps, quietWithinMs } = options;
  const meanings = new Map(
    steps.flatMap((step) =>
      step.do === 'say' || step.do === 'type'
        ? [step.words, ...AGAIN.map((again) => `${step.words}${again}`)].map(
            (words) => [words, step.calls] as const,
          )
        : [],
    ),
  );
  const world = new World({ ...options, meanings });
  const { environment, log } = world;
  await world.open();
  await environment.settle();
  for (const step of steps) {
    await environment.advance(Math.max(0, step.at - world.now));
    world.note({ kind: 'step', step });
    perform(world, step);
    await environment.settle();
  }
  await untilCalm(world, AFTERMATH_MS);
  world.faults.disarm();
  world.note({ kind: 'behaves' });
  world.user.behaves();
  await untilCalm(world, quietWithinMs);
  for (const again of AGAIN)
    if (asksAgain(world, steps, again)) await untilCalm(world, quietWithinMs);
  const left = unfinished(world);
  const { state } = world;
  const timersLeft = await close(world);
  const script: Script = { seed, session: kind, steps, strikes: [...world.faults.struck] };
  const { app, startedAt, effects, client, words } = world;
  return {
    script,
    app,
    log,
    startedAt,
    effects: effects.all,
    plays: client.plays,
    // After a false interruption, the item that continues the speech has a different id.
    wordsOf: (itemId) => words.get(itemId) ?? words.get(itemId.replace(/~\d+$/, '')) ?? '',
    state,
    unfinished: left,
    longestSilenceMs: world.longestSilenceMs,
    timersLeft,
    appends: world.journal.appends,
  };
}

/** Advances time by at most `limitMs`, until there has been no unfinished work for a while. */
async function untilCalm(world: World, limitMs: number): Promise<void> {
  for (let ms = 0, calmMs = 0; ms < limitMs && calmMs < CALM_MS; ms += ROUND_MS) {
    await world.environment.advance(ROUND_MS);
    world.listens(ROUND_MS);
    if (!world.faults.isArmed) stopRepeating(world);
    calmMs = unfinished(world).length > 0 ? 0 : calmMs + ROUND_MS;
  }
}

/** Ends the schedules that repeat, so that the run can finish. */
function stopRepeating({ session, state }: World): void {
  for (const { key, everyMs } of state?.schedules ?? [])
    if (everyMs !== undefined) session?.unschedule(key).catch(() => {});
}

/** Repeats one of the user's requests if no subagent has started, for example because the request was lost. */
function asksAgain(world: World, steps: readonly Step[], again: string): boolean {
  const { subagentConfigs = {} } = world.app;
  const request = steps.find(
    (step) => step.do === 'say' && step.calls.some((name) => name in subagentConfigs),
  );
  const hasWorked = world.log.some(
    (entry) => entry.kind === 'event' && entry.event.type === 'subagent.changed',
  );
  if (request?.do !== 'say' || hasWorked) return false;
  // The client may have left just before.
  world.client.comeBack();
  world.user.types(`${request.words}${again}`);
  return true;
}

function perform(world: World, step: Step): void {
  const { session, state, user, client } = world;
  switch (step.do) {
    case 'say':
      user.says(step.words);
      break;
    case 'type':
      user.types(step.words);
      break;
    case 'notify':
      session?.notifyBackground(step.text, { priority: step.priority });
      break;
    case 'cancel': {
      const id = nthOf(working(state), step.nth);
      if (id !== undefined) session?.subagents.cancel(id);
      break;
    }
    case 'dismiss': {
      const waiting = state?.deliveries.filter(
        (one) => !FINAL.has(one.state) && one.kind !== 'question',
      );
      const deliveryId = nthOf(waiting?.map((one) => one.deliveryId) ?? [], step.nth);
      if (deliveryId !== undefined) session?.dismiss(deliveryId);
      break;
    }
    case 'message': {
      const id = nthOf(working(state), step.nth);
      const { text: content, mode } = step;
      if (id !== undefined) session?.subagents.service.send(id, { content, mode }, THE_LEAD);
      break;
    }
    case 'schedule': {
      const { text: say, inMs, everyMs } = step;
      const at = world.environment.clock.now() + inMs;
      session?.schedule({ key: say, say, ...(everyMs ? { everyMs } : { at }) }).catch(() => {});
      break;
    }
    case 'read': {
      const sent = world.effects.all.filter(({ tool }) => tool.startsWith(CHANNEL));
      const { key } = nthOf(sent, step.nth) ?? {};
      if (key !== undefined) session?.reached(key, 'read').catch(() => {});
      break;
    }
    case 'transfer':
      void session?.transfer(step.to);
      break;
    case 'leave':
      client.leave();
      world.maySleep();
      break;
    case 'attach':
      client.comeBack();
      break;
    case 'crash':
      world.crash();
      break;
    case 'drop':
      world.drop();
      break;
  }
}

function working(state: SessionState | null): readonly string[] {
  return state?.subagents.filter(({ endedAt }) => endedAt === null).map(({ id }) => id) ?? [];
}

function nthOf<T>(from: readonly T[], nth: number): T | undefined {
  return from[nth % Math.max(1, from.length)];
}

/** Describes each piece of unfinished work in a sentence. */
function unfinished(world: World): readonly string[] {
  const { session, state, user, client, program } = world;
  if (!session || !state) return ['there is no session'];
  const unanswered = world.answers.waiting(world.now);
  return [
    ...(unanswered === null ? [] : [`the user waits for an answer to ${unanswered}`]),
    ...(state.connection === 'active' ? [] : [`the session is ${state.connection}`]),
    ...state.subagents.flatMap(({ id, state: now, endedAt }) =>
      endedAt === null ? [`${id} is ${now}`] : [],
    ),
    ...state.questions.flatMap(({ requestId, state: now }) =>
      OVER.has(now) ? [] : [`the question ${requestId} is ${now}`],
    ),
    ...state.deliveries.flatMap(({ deliveryId, kind, state: now }) =>
      kind === 'question' || FINAL.has(now) ? [] : [`the ${kind} ${deliveryId} is ${now}`],
    ),
    ...state.schedules.map(({ key, state: now }) => `the schedule ${key} is ${now}`),
    ...session.services
      .list()
      .flatMap(({ name, state: now, waiting }) =>
        now === 'idle' || now === 'stopped'
          ? []
          : [`the service ${name} is ${now}, ${waiting} wait`],
      ),
    ...(program?.unfinished() ?? []),
    ...session.clientCalls
      .list()
      .map(({ name, state: now }) => `the call of ${name} at a page is ${now}`),
    ...session.pendingToolCalls.map((callId) => `the call ${callId} has no result`),
    ...(user.isSpeaking || client.isPlaying ? ['somebody speaks'] : []),
    ...(state.floor === 'nobody' ? [] : [`the floor is the ${state.floor}'s`]),
  ];
}

/** Closes the session and returns the number of timers that remain. */
async function close(world: World): Promise<number> {
  const { session, environment, process, program } = world;
  world.note({ kind: 'closing' });
  if (!session) return 0;
  let isClosed = false;
  const problems: unknown[] = [];
  Promise.all([session.close(), program?.close()]).then(
    () => {
      isClosed = true;
    },
    (problem: unknown) => problems.push(problem),
  );
  await environment.settle();
  for (let ms = 0; ms < CLOSE_WITHIN_MS && !isClosed && problems.length === 0; ms += ROUND_MS)
    await environment.advance(ROUND_MS);
  await environment.settle();
  const left = process.timers;
  await world.close();
  // A session's `close` never rejects, so the rejection comes from the program.
  for (const problem of problems) throw problem;
  return isClosed ? left : Math.max(1, left);
}
