// Judges a dialogue that has been played: its faults, and how long things took.

import type { Dialogue, WorkEnd } from './dialogue.ts';
import { toolOf } from './play.ts';
import type { DialogueRecord, Utterance } from './record.ts';

/** The kinds of faults, each of which the table counts. */
export type Fault = 'task' | 'dead air' | 'told twice' | 'lost' | 'stuck' | 'error';

export interface Verdict {
  /** Empty if the dialogue went as the person wants. */
  readonly faults: readonly { readonly fault: Fault; readonly why: string }[];
  /** For each line that needs an answer: the time until the first sound of the reply; empty without audio. */
  readonly waitsMs: readonly number[];
  /** The time from the start of an interruption until the lead agent was quieter or silent. */
  readonly yieldsMs: readonly number[];
  /** The time from the start of an interruption until the lead agent was silent. */
  readonly stopsMs: readonly number[];
  /** The silence that each backchannel caused in the lead agent's speech. */
  readonly holesMs: readonly number[];
  /** Whether the recogniser got the important words of each line right; its errors are not faults of the session. */
  readonly isHeardRight: boolean;
}

/** After this much silence, a person asks "hello?". */
export const DEAD_AIR_LIMIT_MS = 6000;

export function judgeDialogue(dialogue: Dialogue, record: DialogueRecord): Verdict {
  const faults: { fault: Fault; why: string }[] = [];
  const blame = (fault: Fault, why: string): void => void faults.push({ fault, why });
  if (record.stuck !== null) blame('stuck', record.stuck);
  for (const why of wrongWork(dialogue.work, record)) blame('task', why);
  for (const why of wrongWords(dialogue, record.said)) blame('task', why);
  for (const error of record.errors) blame('error', error);
  if (!dialogue.asksAgain) for (const why of deliveredTwice(record)) blame('told twice', why);
  for (const why of lost(record)) blame('lost', why);
  const { waitsMs, silent } = waits(dialogue, record);
  const longestMs = Math.max(0, ...waitsMs);
  if (silent !== null) blame('dead air', `nothing was heard after “${silent.text}”`);
  else if (longestMs > DEAD_AIR_LIMIT_MS)
    blame('dead air', `${(longestMs / 1000).toFixed(1)} s of nothing`);
  return {
    faults,
    waitsMs,
    yieldsMs: yielded(dialogue, record),
    stopsMs: interrupted(dialogue, record, false),
    holesMs: interrupted(dialogue, record, true),
    isHeardRight: record.utterances.every((utterance) => isHeard(dialogue, utterance)),
  };
}

function wrongWork(wanted: readonly WorkEnd[], { state }: DialogueRecord): readonly string[] {
  const left = state.subagents.filter(({ parentId }) => parentId === null);
  const missing: string[] = [];
  for (const end of wanted) {
    const index = left.findIndex(
      ({ toolName, state: now, outcome }) =>
        toolName === toolOf(end.work) &&
        now === end.state &&
        (end.result === undefined || end.result.test(outcome?.text ?? '')),
    );
    if (index >= 0) left.splice(index, 1);
    else
      missing.push(`no ${end.work} that is ${end.state}${end.result ? ` with ${end.result}` : ''}`);
  }
  const more = left.map(
    ({ toolName, state: now, outcome }) =>
      `${toolName} is ${now}${outcome?.text ? `: ${outcome.text}` : ''}, which nobody wanted`,
  );
  return [...missing, ...more];
}

/** Data, names of tools and notes from the runtime, which must never be spoken. */
const NO_SPEECH = /[{}_]|\[(?:note|data) |\bsub_\w/;

function wrongWords(
  { said: wanted = [], unsaid = [] }: Dialogue,
  said: readonly string[],
): readonly string[] {
  const wrong: string[] = [];
  let from = 0;
  for (const words of wanted) {
    const index = said.findIndex((text, at) => at >= from && words.test(text));
    if (index < 0) wrong.push(`did not say ${words}`);
    else from = index;
  }
  for (const words of [...unsaid, NO_SPEECH]) {
    const text = said.find((each) => words.test(each));
    if (text !== undefined) wrong.push(`said “${text}”`);
  }
  return wrong;
}

/** A result counts as delivered twice if the lead agent spoke its text in full more than once. */
function deliveredTwice({ state }: DialogueRecord): readonly string[] {
  return state.deliveries
    .filter(({ kind }) => kind === 'result')
    .flatMap(({ text }) => {
      const words = plain(text);
      const whole = state.transcript.filter(
        ({ role, text: said, interrupted = false }) =>
          role === 'assistant' && !interrupted && plain(said).includes(words),
      );
      return words !== '' && whole.length > 1 ? [`“${text}” ${whole.length} times`] : [];
    });
}

/** A result is lost if the session has not delivered it and does not show it on a card at the end. */
function lost({ state }: DialogueRecord): readonly string[] {
  const results = state.deliveries.filter(({ kind }) => kind === 'result');
  const dropped = results
    .filter(({ state: now, card }) => now === 'dropped' && !card)
    .map(({ text }) => `“${text}” was dropped`);
  const never = state.subagents
    .filter(
      ({ parentId, state: now, id }) =>
        parentId === null &&
        now === 'completed' &&
        results.every(({ subagentId }) => subagentId !== id),
    )
    .map(({ toolName }) => `the result of ${toolName} was never offered`);
  return [...dropped, ...never];
}

function waits(
  { lines }: Dialogue,
  { utterances, sounds, endedAt }: DialogueRecord,
): { readonly waitsMs: readonly number[]; readonly silent: Utterance | null } {
  const waitsMs: number[] = [];
  if (sounds.length === 0) return { waitsMs, silent: null };
  for (const [index, utterance] of utterances.entries()) {
    if (lines[utterance.line]?.wantsNothing) continue;
    const next = utterances[index + 1]?.beganAt ?? endedAt;
    const sound = sounds.find(({ to }) => to > utterance.endedAt);
    // The person spoke again without waiting for an answer.
    if (sound === undefined || sound.from >= next) {
      if (next - utterance.endedAt < DEAD_AIR_LIMIT_MS && index + 1 < utterances.length) continue;
      return { waitsMs: [...waitsMs, next - utterance.endedAt], silent: utterance };
    }
    waitsMs.push(Math.max(0, sound.from - utterance.endedAt));
  }
  return { waitsMs, silent: null };
}

/** For each line that interrupted speech: how long the speech continued at full volume. */
function yielded(
  { lines }: Dialogue,
  { utterances, sounds, yielded: times }: DialogueRecord,
): readonly number[] {
  return utterances.flatMap(({ line, beganAt }) => {
    const sound = sounds.find(({ from, to }) => from <= beganAt && to >= beganAt);
    if (!sound || lines[line]?.wantsNothing) return [];
    const at = times.find((time) => time >= beganAt && time <= sound.to);
    return [(at ?? sound.to) - beganAt];
  });
}

/** For each line that interrupted speech: how long the speech continued, or how long it paused. */
function interrupted(
  { lines }: Dialogue,
  { utterances, sounds }: DialogueRecord,
  isListening: boolean,
): readonly number[] {
  return utterances.flatMap(({ line, beganAt }) => {
    if ((lines[line]?.wantsNothing ?? false) !== isListening) return [];
    const index = sounds.findIndex(({ from, to }) => from <= beganAt && to >= beganAt);
    const sound = sounds[index];
    if (!sound) return [];
    if (!isListening) return [sound.to - beganAt];
    const next = sounds[index + 1];
    return next ? [next.from - sound.to] : [0];
  });
}

function isHeard({ lines }: Dialogue, { line, text, heard }: Utterance): boolean {
  const { wantsNothing, matters = text.match(/[\p{L}\d]{4,}/gu) ?? [] } = lines[line] ?? {};
  if (wantsNothing) return true;
  const words = ` ${plain(heard ?? '')} `;
  return matters.every((each) => words.includes(` ${plain(each)} `));
}

/**
 * Normalises a text, because amounts are written with a sign but spoken as words; case and punctuation do not count.
 */
function plain(text: string): string {
  return text
    .toLowerCase()
    .replace(/\$\s?(\d+(?:,\d{3})*)/g, '$1 dollars')
    .replace(/%/g, ' percent')
    .replace(/[^\p{L}\p{N}]+/gu, ' ')
    .trim();
}
