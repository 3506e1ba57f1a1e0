// Words about the open question of a subagent, as the lead agent settles them: by the runtime's tool
// `settle_question`. Everything else in the utterance is left for the other rules.

import { asRecord, textOf } from './conversation.ts';
import type { AskedNotice, SpokenOption } from './notices.ts';
import type { ToolCall } from './reply.ts';
import { listed } from './phrases.ts';
import { workIn } from './clause.ts';
import { normalise, numberIn } from './words.ts';

interface Settled {
  readonly call: ToolCall;
  /** The words that are about something else. */
  readonly rest: string;
}

/** What the words settle; null: they are about something else. */
export function settle(words: string, { open, answered }: AskedNotice): Settled | null {
  const plain = normalise(words);
  const [question] = open;
  const made = (action: string, more: object = {}, quote = words, rest = ''): Settled => ({
    call: { toolName: 'settle_question', input: { action, quote, ...more } },
    rest,
  });
  if (!question) {
    const [before] = answered;
    const option = before && namedIn(plain, before.options);
    const corrects = /\b(?:meant?|rather|actually|instead|make (?:it|that)|sorry)\b/.test(plain);
    if (!before || !option || !corrects) return null;
    return made('correct', { questionId: before.id, optionId: option.id });
  }
  const of = { questionId: question.id };
  const isAsking = /\b(?:which|whats|what|how|is|does)\b/.test(plain);
  const best = bestIn(plain, question.options);
  if (best) return isAsking ? made('explain', of) : made('answer', { ...of, optionId: best.id });
  const work = workIn(plain);
  const isOwn = work === 'unclear' || question.subagent.includes(work);
  if (isOwn && /\b(?:cancel|forget|drop|any ?more|no longer|dont (?:want|need))\b/.test(plain))
    return made('cancel', of);
  if (/^(?:not now|later|some other time|ask me later)\b/.test(plain)) return made('later', of);
  if (/^(?:sorry|pardon|excuse me)?(?: what| say that again| what did you say)?$/.test(plain))
    return made('repeat', of);
  if (/\bdifference\b|\bwhats? (?:the )?(?:options?|choices?)\b/.test(plain))
    return made('explain', of);
  const clauses = words.split(/[,.;!]\s+(?:and\s+)?|\s+and\s+/i);
  const at = clauses.findIndex((clause) => namedIn(normalise(clause), question.options));
  const option = namedIn(normalise(clauses[at] ?? ''), question.options);
  if (!option || isAsking) return null;
  const rest = clauses.filter((_, index) => index !== at).join(', ');
  return made('answer', { ...of, optionId: option.id }, clauses[at], rest);
}

function namedIn(plain: string, options: readonly SpokenOption[]): SpokenOption | null {
  const named = options.filter(({ label }) => ` ${plain} `.includes(` ${normalise(label)} `));
  return named.length === 1 ? (named[0] ?? null) : null;
}

/** "The cheaper one", "the quickest". */
function bestIn(plain: string, options: readonly SpokenOption[]): SpokenOption | null {
  const by = (unit: RegExp, sign: number): SpokenOption | null => {
    const valued = options.flatMap((option) => {
      const part = (option.detail ?? '').split(',').find((piece) => unit.test(piece));
      const value = part === undefined ? null : numberIn(normalise(part.replace('$', '')));
      return value === null ? [] : [{ option, value: value * sign }];
    });
    return valued.toSorted((a, b) => a.value - b.value)[0]?.option ?? null;
  };
  if (/\bcheap(?:er|est)?\b|\bless expensive\b/.test(plain)) return by(/\$|dollar/, 1);
  if (/\b(?:expensive|dearer|dearest)\b/.test(plain)) return by(/\$|dollar/, -1);
  return /\b(?:quick|fast|soon)(?:er|est)?\b/.test(plain) ? by(/min/, 1) : null;
}

/** What the lead agent says to the result of the tool. */
export function saySettled(output: unknown): string {
  const { status, tell, explain } = asRecord(output);
  switch (status) {
    case 'answered':
      return 'All right. One moment.';
    case 'corrected':
      return 'All right, I have changed that.';
    case 'cancelled':
      return "Okay, I've dropped that.";
    case 'put_off':
      return 'Okay, whenever you like.';
    case 'explain_now': {
      const { options } = asRecord(explain);
      const all = Array.isArray(options) ? options.map(asRecord) : [];
      return `There is ${listed(all.map(({ label, description }) => `${textOf(label)}, ${textOf(description ?? '')}`))}. Which one?`;
    }
    case 'refused':
      return textOf(tell).includes('too late')
        ? 'I am sorry, it is too late to change that.'
        : 'Sorry, I did not get that. What would you like?';
    default:
      return '';
  }
}
