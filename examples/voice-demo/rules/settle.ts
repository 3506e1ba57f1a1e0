// Decides how to answer a subagent's open question with the user's words through the runtime's tool `settle_question`.
// The rest of the utterance is left to the other rules.

import { asRecord, textOf } from './conversation.ts';
import type { AskedNotice, AskedQuestion, SpokenOption } from './notices.ts';
import type { ToolCall } from './reply.ts';
import { listed } from './phrases.ts';
import { readClause, workIn } from './clause.ts';
import { understand } from './requests.ts';
import { normalise, numberIn } from './words.ts';

export interface Settled {
  readonly call: ToolCall;
  /** The option that the utterance names, if it names nothing else. */
  readonly named?: SpokenOption;
  /** The part of the utterance that is about something else. */
  readonly rest: string;
}

/** How the utterance settles the question; null if it is about something else. */
export function settle(words: string, { open, answered }: AskedNotice): Settled | null {
  const plain = normalise(words);
  const [question] = open;
  const made = (action: string, more: object = {}, quote = words, rest = ''): Settled => ({
    call: { toolName: 'settle_question', input: { action, quote, ...more } },
    rest,
  });
  if (!question) {
    const [before] = answered;
    const option = before && (namedIn(plain, before.options) ?? bestIn(plain, before.options));
    const corrects = /\b(?:meant?|rather|actually|instead|make (?:it|that)|sorry)\b/.test(plain);
    if (!before || !option || !corrects) return null;
    return made('correct', { ...idOf(before), optionId: option.id });
  }
  const of = idOf(question);
  const { options } = question;
  if (question.isApproval) {
    const dollars = changedAmount(plain);
    if (dollars !== null) return made('change', { ...of, text: JSON.stringify({ dollars }) });
  }
  const isAsking = /\b(?:which|whats|what|how|does)\b|^is\b/.test(plain);
  const best = bestIn(plain, options);
  if (best) return isAsking ? made('explain', of) : made('answer', { ...of, optionId: best.id });
  const work = workIn(plain);
  const isOwn = work === 'unclear' || question.subagent.includes(work);
  if (isOwn && /\b(?:cancel|forget|drop|any ?more|no longer|dont (?:want|need))\b/.test(plain))
    return made('cancel', of);
  if (/^(?:not now|later|some other time|ask me later)\b/.test(plain)) return made('later', of);
  if (wantsAgain(words)) return made('repeat', of);
  if (/\bdifference\b|\bwhats? (?:the )?(?:options?|choices?)\b/.test(plain))
    return made('explain', of);
  if (
    /^(?:no )?(?:neither|none)(?: of (?:them|these|those|the (?:two|three)))?(?: please)?$/.test(
      plain,
    )
  )
    return made('answer', { ...of, text: words });
  if (
    /\bhow (?:much|long)\b|\bwhat (?:does|is the price|would)\b/.test(plain) &&
    labelledIn(plain, options)
  )
    return made('explain', of);
  if (isAsking) return null;
  const left = leftOver(plain, options);
  if (left) return made('answer', { ...of, optionId: left.id });
  const instead = changedTask(words, question.subagent);
  if (instead) return made('cancel', of, words, instead);
  const clauses = words.split(/[,.;!]\s+(?:and\s+)?|\s+and\s+/i);
  // The last named option counts: "Premium, sorry, I mean economy".
  const at = clauses.findLastIndex((clause) => optionIn(clause, options) !== null);
  const option = optionIn(clauses[at] ?? '', options);
  if (!option) return null;
  const rest = clauses
    .filter((clause, index) => index !== at && !isFiller(clause) && !optionIn(clause, options))
    .join(', ');
  const answer = made('answer', { ...of, optionId: option.id }, clauses[at], rest);
  // "Economy, no weight premium" was misheard, and the runtime does not accept it as an option.
  const plainly = normalise(clauses[at] ?? '').replace(normalise(option.label), '');
  const isNamed =
    namedIn(normalise(clauses[at] ?? ''), options) !== null && !/\b(?:no|not)\b/.test(plainly);
  return rest === '' && isNamed ? { ...answer, named: option } : answer;
}

/** "Sorry, what?", "say that again". */
export function wantsAgain(words: string): boolean {
  return /^(?:sorry|pardon|excuse me|(?:sorry )?(?:what|(?:please |(?:can|could|would) you (?:please )?)?(?:say|repeat) (?:that|it)(?: again)?|what did you say))(?: please)?$/.test(
    normalise(words),
  );
}

/** "Let me think", "hold on": the question stays open. */
export function asksForTime(words: string): boolean {
  return /^(?:um+ |uh+ |well )?(?:let me (?:think|see)|hold on|wait|one (?:moment|second)|(?:just )?a (?:moment|second|minute)|give me a (?:moment|second|minute))\b/.test(
    normalise(words),
  );
}

function idOf({ id }: AskedQuestion): { readonly questionId?: string } {
  return id === undefined ? {} : { questionId: id };
}

/** The amount in "yes, but only two hundred dollars"; null if the user does not change the amount. */
function changedAmount(plain: string): number | null {
  if (!/\b(?:but|only|just|make (?:it|that)|instead|not)\b/.test(plain)) return null;
  const amounts = [...inDigits(plain).matchAll(/\b(\d+)( hundred)?(?: and)?( \d+)?\b/g)].map(
    ([, number = '', hundreds, rest]) => Number(number) * (hundreds ? 100 : 1) + Number(rest ?? 0),
  );
  return amounts.at(-1) ?? null;
}

/** Phrases that ask for nothing: "please", "sorry, I mean". */
function isFiller(clause: string): boolean {
  return /^(?:(?:please|thanks|thank you|sorry|no|wait|hold on|actually|i (?:mean|meant|think|guess)|(?:scratch|strike) that|on second thought|um+|uh+|er|well|then|yes|yeah|okay|ok)(?: |$))*$/.test(
    normalise(clause),
  );
}

/** "To the station instead", "sorry, we are five": a new request with the changed detail; null if there is none. */
function changedTask(words: string, subagent: string): string | null {
  const plain = normalise(words);
  if (!/\b(?:instead|rather|actually|sorry|make it|we are|were|there are)\b/.test(plain))
    return null;
  const detail = words.replace(
    /\b(?:instead|rather|actually|sorry|no|wait|make it|please|i meant?)\b[,.!]?\s*/gi,
    '',
  );
  const slot = subagent.includes('ride') ? 'destination' : 'partySize';
  if (slot === 'destination' && !/^\W*to\b/i.test(detail)) return null;
  if (slot === 'partySize' && !/\b(?:we|there|people|of us|guests|persons)\b/i.test(detail))
    return null;
  const [changed] = understand(detail, slot);
  if (changed?.type === 'ride' && changed.destination !== null)
    return `Book me a ride to ${changed.destination}`;
  if (changed?.type === 'table' && changed.partySize !== null)
    return `Book a table for ${changed.partySize} people`;
  return null;
}

/** "Not economy, the other one": the option that is left when the others have been refused. */
function leftOver(plain: string, options: readonly SpokenOption[]): SpokenOption | null {
  const refused = options.filter(({ label }) =>
    new RegExp(`\\b(?:not|no|dont want) (?:the )?${normalise(label)}\\b`).test(plain),
  );
  return refused.length === 0 ? null : only(options.filter((option) => !refused.includes(option)));
}

/**
 * The option that a clause names by its label, by its place in the list, or by words that only its description
 * contains.
 */
function optionIn(clause: string, options: readonly SpokenOption[]): SpokenOption | null {
  const plain = normalise(clause);
  const labelled = labelledIn(plain, options);
  if (labelled) return labelled;
  const request = readClause(clause);
  const isWish =
    request.type !== 'unknown' && (request.type !== 'chat' || request.topic === 'joke');
  return isWish ? null : (namedIn(plain, options) ?? describedIn(clause, options));
}

const only = (fitting: readonly SpokenOption[]): SpokenOption | null =>
  fitting.length === 1 ? (fitting[0] ?? null) : null;

function labelledIn(plain: string, options: readonly SpokenOption[]): SpokenOption | null {
  return only(options.filter(({ label }) => ` ${plain} `.includes(` ${normalise(label)} `)));
}

const places = [
  /\b(?:first|former)\b/,
  /(?<!\b(?:a|one|just) )\bsecond\b/,
  /\bthird\b/,
  /\bfourth\b/,
];

/** By its label, its place in the list or its price, as in the runtime. */
function namedIn(plain: string, options: readonly SpokenOption[]): SpokenOption | null {
  const labelled = labelledIn(plain, options);
  if (labelled) return labelled;
  const place = places.findIndex((pattern) => pattern.test(plain));
  if (place >= 0) return options[place] ?? null;
  const number = /\b(?:number|option) (\d)\b/.exec(inDigits(plain))?.[1];
  if (number !== undefined) return options[Number(number) - 1] ?? null;
  if (/\b(?:last|latter)\b/.test(plain)) return options.at(-1) ?? null;
  const price = /\b(\d+) (?:dollars?|bucks)\b/.exec(inDigits(plain))?.[1];
  return price === undefined
    ? null
    : only(options.filter(({ detail }) => detail?.split(/[^\w$]+/).includes(`$${price}`)));
}

/** "The one by the window", "at half past eight": words that appear in the description of only one option. */
function describedIn(clause: string, options: readonly SpokenOption[]): SpokenOption | null {
  const said = new Set(inDigits(normalise(clause)).split(' '));
  const contents = options.map(
    ({ label, detail }) =>
      new Set(
        inDigits(normalise(`${label} ${detail ?? ''}`))
          .split(' ')
          .filter((word) => !commonWords.has(word)),
      ),
  );
  return only(
    options.filter((_, index) =>
      [...(contents[index] ?? [])].some(
        (word) =>
          said.has(word) &&
          contents.every((content, other) => other === index || !content.has(word)),
      ),
    ),
  );
}

const commonWords = new Set(
  'a an the in on at by for with of to and or one 1 min minutes pm am dollars'.split(' '),
);

const tens = ['twenty', 'thirty', 'forty', 'fifty'];
const teens = 'eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen'.split(
  ' ',
);
const ones = 'one two three four five six seven eight nine ten'.split(' ');

/** Numbers and times in digits: "half past eight" is 8 30, "twenty four" is 24. */
function inDigits(plain: string): string {
  return plain
    .replace(
      /\b(half|quarter) past (\w+)\b/g,
      (_, part, hour) => `${hour} ${part === 'half' ? 30 : 15}`,
    )
    .replace(
      new RegExp(`\\b(${tens.join('|')})(?: (${ones.slice(0, 9).join('|')}))?\\b`, 'g'),
      (_, ten: string, one?: string) =>
        String(10 * (tens.indexOf(ten) + 2) + (one === undefined ? 0 : ones.indexOf(one) + 1)),
    )
    .replace(new RegExp(`\\b(?:${teens.join('|')})\\b`, 'g'), (teen) =>
      String(teens.indexOf(teen) + 11),
    )
    .replace(new RegExp(`\\b(?:${ones.join('|')})\\b`, 'g'), (one) =>
      String(ones.indexOf(one) + 1),
    );
}

/** "The cheaper one", "whichever is the quickest". */
function bestIn(plain: string, options: readonly SpokenOption[]): SpokenOption | null {
  const by = (unit: RegExp, sign: number): SpokenOption | null => {
    const valued = options.flatMap((option) => {
      const part = (option.detail ?? '').split(',').find((piece) => unit.test(piece));
      const value = part === undefined ? null : numberIn(normalise(part.replace('$', '')));
      return value === null ? [] : [{ option, value: value * sign }];
    });
    return valued.toSorted((a, b) => a.value - b.value)[0]?.option ?? null;
  };
  if (/\bcheap(?:er|est)?\b|\bless expensive\b|\bcosts? (?:less|the least)\b/.test(plain))
    return by(/\$|dollar/, 1);
  if (/\b(?:expensive|dearer|dearest)\b|\bcosts? (?:more|the most)\b/.test(plain))
    return by(/\$|dollar/, -1);
  if (/\b(?:earlier|earliest)\b/.test(plain)) return by(/\b[ap]m\b/i, 1);
  if (/\b(?:later one|latest)\b/.test(plain)) return by(/\b[ap]m\b/i, -1);
  return /\b(?:quick|fast|soon)(?:er|est)?\b/.test(plain) ? by(/min/, 1) : null;
}

/**
 * Returns the lead agent's reply to the tool's result. `quote`: the user's words for which the call was made.
 */
export function saySettled(output: unknown, quote = ''): string {
  const { status, reason, tell, explain } = asRecord(output);
  switch (status) {
    case 'answered':
      return 'All right. One moment.';
    // The runtime reads the call back.
    case 'read_back_first':
      return 'One moment.';
    case 'corrected':
      return 'All right, I have changed that.';
    case 'cancelled':
      return "Okay, I've dropped that.";
    case 'put_off':
      return 'Okay, whenever you like.';
    case 'explain_now': {
      const { options } = asRecord(explain);
      const all = (Array.isArray(options) ? options : []).map((option) => {
        const { label, description } = asRecord(option);
        return { label: textOf(label), detail: textOf(description ?? '') };
      });
      const said = ({ label, detail }: SpokenOption): string => `${label}, ${detail}`;
      const best = bestIn(normalise(quote), all);
      if (best) return `That is ${said(best)}. Which one would you like?`;
      return `There is ${listed(all.map(said))}. Which one?`;
    }
    case 'refused':
      // The user pressed a button while speaking.
      if (reason === 'already_settled') return 'That is settled already.';
      return textOf(tell).includes('too late')
        ? 'I am sorry, it is too late to change that.'
        : 'Sorry, I did not get that. What would you like?';
    default:
      return '';
  }
}
