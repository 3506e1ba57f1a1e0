// Plays a dialogue on a stage: waits for the moment of each line, says the line, and waits for the end.

import type { Dialogue, When, Work } from './dialogue.ts';
import type { DialogueRecord, DialogueStage, Utterance } from './record.ts';

const tools: Readonly<Record<Work, string>> = {
  ride: 'book_ride',
  table: 'book_table',
  report: 'generate_report',
  refund: 'refund_order',
};

const STEP_MS = 100;
const DEFAULT_OVER_MS = 700;
/** The longest that a line waits for its moment. */
const PATIENCE_MS = 45_000;
/** The time without an event after which nothing more will happen. */
const CALM_MS = 2500;

export async function playDialogue(
  stage: DialogueStage,
  dialogue: Dialogue,
): Promise<DialogueRecord> {
  const utterances: Utterance[] = [];
  let stuck: string | null = null;
  for (const [index, { says, when = 'calm' }] of dialogue.lines.entries()) {
    if (!(await comes(stage, when))) {
      stuck = `never came: ${JSON.stringify(when)}, for “${says}”`;
      break;
    }
    const known = new Set(stage.state.transcript.map(({ id }) => id));
    const times = await stage.says(says);
    utterances.push({ line: index, text: says, heard: null, ...times });
    // The transcript of a line may arrive late, so this waits for it before the next line.
    await until(stage, 3000, () => heardSince(stage, known) !== null);
    utterances[index] = {
      ...(utterances[index] as Utterance),
      heard: heardSince(stage, known),
    };
  }
  if (!(await comes(stage, 'calm')) && stuck === null) stuck = 'never calm';
  const { state, now: endedAt } = stage;
  return { utterances, state, stuck, endedAt, ...(await stage.finish()) };
}

async function comes(stage: DialogueStage, when: When): Promise<boolean> {
  if (when === 'calm') return isCalm(stage);
  if ('afterMs' in when) {
    await stage.pass(when.afterMs);
    return true;
  }
  if ('asked' in when) return until(stage, PATIENCE_MS, () => hasAsked(stage, when.asked));
  if ('running' in when)
    return until(
      stage,
      PATIENCE_MS,
      () =>
        stage.state.floor === 'nobody' &&
        stage.sounds !== true &&
        ofWork(stage, when.running).some(({ endedAt, step }) => endedAt === null && step > 0),
    );
  if ('told' in when) return until(stage, PATIENCE_MS, () => isDelivered(stage, when.told));
  return comesOver(stage, when);
}

async function comesOver(
  stage: DialogueStage,
  when: Extract<When, { readonly ms?: number }>,
): Promise<boolean> {
  const isSo = (): boolean => {
    if ('overReply' in when) return stage.sounds ?? stage.state.transcript.length > 0;
    const isQuestion = 'overQuestion' in when;
    const work = isQuestion ? when.overQuestion : when.overResult;
    // On a stage without audio, the whole question or result counts as that moment.
    if (stage.sounds === null) return isQuestion ? hasAsked(stage, work) : isDelivered(stage, work);
    const ids = new Set(ofWork(stage, work).map(({ id }) => id));
    return stage.state.deliveries.some(
      ({ kind, state, subagentId }) =>
        kind === (isQuestion ? 'question' : 'result') &&
        state === 'playing' &&
        subagentId !== null &&
        ids.has(subagentId),
    );
  };
  if (!(await until(stage, PATIENCE_MS, isSo))) return false;
  if (stage.sounds !== null) await stage.pass(when.ms ?? DEFAULT_OVER_MS);
  return true;
}

async function isCalm(stage: DialogueStage): Promise<boolean> {
  let since = Number.POSITIVE_INFINITY;
  return until(stage, 2 * PATIENCE_MS, () => {
    const { connection, floor, deliveries, subagents, questions } = stage.state;
    const quiet =
      connection === 'active' &&
      floor === 'nobody' &&
      stage.sounds !== true &&
      subagents.every(({ state, endedAt }) => endedAt !== null || state === 'waiting_for_input') &&
      questions.every(({ state }) => state !== 'presenting') &&
      // While a question is open, other questions wait in the queue.
      (questions.every(({ state }) => state !== 'queued') ||
        questions.some(({ state }) => state === 'open')) &&
      deliveries.every(
        ({ state, card, kind }) =>
          card || kind === 'question' || !['pending', 'offered', 'playing'].includes(state),
      );
    since = quiet ? Math.min(since, stage.now) : Number.POSITIVE_INFINITY;
    return stage.now - since >= CALM_MS;
  });
}

async function until(stage: DialogueStage, limitMs: number, isSo: () => boolean): Promise<boolean> {
  const end = stage.now + limitMs;
  while (!isSo()) {
    if (stage.now >= end) return false;
    await stage.pass(STEP_MS);
  }
  return true;
}

function ofWork({ state }: DialogueStage, work: Work) {
  return state.subagents.filter(({ toolName }) => toolName === tools[work]);
}

function hasAsked(stage: DialogueStage, work: Work): boolean {
  const ids = new Set(ofWork(stage, work).map(({ id }) => id));
  return stage.state.questions.some(
    ({ subagentId, state }) => state === 'open' && ids.has(subagentId),
  );
}

function isDelivered(stage: DialogueStage, work: Work): boolean {
  const ids = new Set(ofWork(stage, work).map(({ id }) => id));
  return stage.state.deliveries.some(
    ({ kind, state, subagentId }) =>
      kind === 'result' && state === 'delivered' && subagentId !== null && ids.has(subagentId),
  );
}

function heardSince({ state }: DialogueStage, known: ReadonlySet<string>): string | null {
  const lines = state.transcript.filter(
    ({ id, role, final, text }) => role === 'user' && final && text !== '' && !known.has(id),
  );
  return lines.length === 0 ? null : lines.map(({ text }) => text).join(' ');
}

export function toolOf(work: Work): string {
  return tools[work];
}
