// Compares the actions that a subagent's report claims with the calls that the runtime observed.
//
// The check finds claimed side effects in English. It reads only the reporter's statements about itself, because
// reports are full of other people's actions, quotations and drafts. If a report ends before the work it announces
// ("Now let me save the results."), the subagent was cut off or ended its turn too early.
//
// Owns:     the comparison of the report's claims with the calls in the ledger, and the words for side effects.
// Does not: understand the report. A judge model can do that in every language, and it may add objections
//           (judge-claims.ts).
//
// Invariants
//   FIND-CLAIMS-1. A doubtful statement does not count as a claim, because a description of data must not accuse a
//       subagent.
//   VERIFY-CLAIMS-2. A claim is unverified only if no successful call can have caused it. A tool whose effects are
//       neither declared nor clear from its name may have any effect.
//   VERIFY-CLAIMS-3. A call that failed, was denied or was not run has no effect.

import type {
  ClaimVerification,
  LedgerEntry,
  Outcome,
  UnverifiedClaim,
} from '../actors/contracts/outcome.ts';
import { clip, head } from '../values/clip.ts';
import { ownValue } from '../values/own-value.ts';

/** The side effects of tools, by name: `{ send_mail: ['email.sent'], look_up: [] }`. Absent if not declared. */
export type DeclaredEffects = Readonly<Record<string, readonly string[] | undefined>>;

/** The runtime's own tools have no external effects. */
const OWN: DeclaredEffects = {
  ask_user: [],
  complete_task: [],
  report_progress: [],
  request_input: [],
};

/**
 * Checks a report's claims of side effects against the ledger of tool calls. The check is deterministic, conservative
 * and English only: a description of data is not a claim.
 */
export function verifyClaims(
  { text, toolLedger }: Pick<Outcome, 'text' | 'toolLedger'>,
  declared: DeclaredEffects = {},
): ClaimVerification {
  const effects = { ...OWN, ...declared };
  const hasLooked = toolLedger.some(succeeded);
  // "Your flight has been booked" may be a quotation of a tool's result.
  const claims = findClaims(text).filter((claim) => !claim.passive || !hasLooked);
  const unverified = claims.flatMap((claim): UnverifiedClaim[] => {
    const fitting = toolLedger.filter((entry) => canHaveDone(entry, claim, effects));
    if (fitting.some(succeeded)) return [];
    const failed = fitting.at(-1);
    const base = { claim: claim.text };
    return [
      failed
        ? { ...base, reason: 'failed', toolName: failed.toolName }
        : { ...base, reason: 'no_call' },
    ];
  });
  const incomplete = isUnfinished(text);
  return {
    verified: unverified.length === 0 && !incomplete,
    claims: claims.map((claim) => claim.text),
    unverified,
    incomplete,
  };
}

/** Returns the effects that AI SDK tools declare in the property `effects` of their definitions. */
export function effectsOf(tools: Readonly<Record<string, unknown>>): DeclaredEffects {
  const declared = Object.entries(tools).flatMap(([name, held]) => {
    const effects = typeof held === 'object' && held !== null && 'effects' in held && held.effects;
    return Array.isArray(effects) ? [[name, effects.map(String)] as const] : [];
  });
  return Object.fromEntries(declared);
}

function canHaveDone({ toolName }: LedgerEntry, claim: Claim, effects: DeclaredEffects): boolean {
  const { verb, words } = claim;
  const declared = ownValue(effects, toolName);
  if (declared)
    return declared.some((effect) => {
      const { word, noun } = declaredEffect(effect);
      const kinds = effectVerb(word)?.kinds;
      // Only the tool's author uses this verb, so the noun determines the effect.
      return kinds ? kinds.some((kind) => verb.kinds.includes(kind)) : words.includes(noun);
    });
  const nature = toolNature(toolName);
  if (nature.reads) return false;
  return (
    nature.unclear ||
    verb.kinds.some((kind) => nature.kinds.has(kind)) ||
    // A call of `create_invoice` may also have sent the invoice.
    nature.words.some((word) => word.length > 3 && words.includes(word))
  );
}

const REFUSING = ['ok', 'success', 'saved', 'sent', 'deleted', 'created', 'booked', 'completed'];
const failedText = /^\s*(?:error\b|failed\b|(?:http\S*\s+)?[45]\d\d\b)/i;

/** Returns whether the call ran and its output does not report a failure. */
function succeeded({ status, output }: LedgerEntry): boolean {
  if (status !== 'ok') return false;
  if (typeof output === 'string') return !failedText.test(output);
  if (typeof output !== 'object' || output === null) return output !== false;
  const told = output as Readonly<Record<string, unknown>>;
  if (told['isError'] === true || Boolean(told['error'])) return false;
  if (typeof told['status'] === 'string' && /^(?:error|fail|rejected|denied)/i.test(told['status']))
    return false;
  return !REFUSING.some((name) => told[name] === false);
}

/** The general kind of a side effect. A verb may have two kinds. */
type EffectKind = 'send' | 'write' | 'book' | 'delete';

interface EffectVerb {
  readonly kinds: readonly EffectKind[];
  /** Prefixes of words in tool names that indicate this effect. */
  readonly stems: readonly string[];
  /**
   * Whether the verb claims an effect only if its object is something outside the report. A report also "adds" a number
   * or "updates" a plan.
   */
  readonly needsThing: boolean;
}

const rows: readonly [
  past: string,
  kinds: EffectKind | readonly EffectKind[],
  stems: string,
  needsThing?: 'thing',
][] = [
  ['sent|resent', 'send', 'send sent dispatch'],
  ['emailed|e-mailed', 'send', 'email mail'],
  ['mailed', 'send', 'mail'],
  ['messaged|texted', 'send', 'message text sms'],
  ['notified|alerted', 'send', 'notif alert'],
  ['forwarded', 'send', 'forward'],
  ['replied', 'send', 'repl respond answer'],
  ['invited', ['send', 'book'], 'invit'],
  ['submitted', ['send', 'write'], 'submit file'],
  ['posted|published|tweeted', ['send', 'write'], 'post publish tweet'],
  ['shared', ['send', 'write'], 'share', 'thing'],
  ['saved|stored', 'write', 'save stor persist remember'],
  ['uploaded', ['write', 'send'], 'upload'],
  ['exported', 'write', 'export', 'thing'],
  ['deployed|installed|committed', 'write', 'deploy install commit push releas'],
  ['created', ['write', 'book'], 'creat new', 'thing'],
  ['added', ['write', 'book'], 'add insert append', 'thing'],
  [
    'updated|renamed|moved',
    ['write', 'book', 'delete'],
    'updat edit modif renam mov patch',
    'thing',
  ],
  ['recorded|logged|registered', 'write', 'record log regist', 'thing'],
  ['enabled|disabled|configured', 'write', 'enabl disabl config set toggl', 'thing'],
  ['booked|reserved|rebooked', 'book', 'book reserv'],
  ['scheduled|rescheduled', ['book', 'write'], 'schedul calendar appoint'],
  ['ordered|bought|purchased', 'book', 'order buy purchas checkout cart'],
  ['paid|transferred|charged|refunded', ['book', 'send'], 'pay paid transfer charg refund'],
  ['subscribed|rented', 'book', 'subscri rent'],
  ['deleted|erased', 'delete', 'delet eras remov drop clear purg'],
  ['removed', ['delete', 'write'], 'remov delet', 'thing'],
  ['cancelled|canceled|revoked', ['delete', 'book'], 'cancel revok'],
  ['unsubscribed|archived', ['delete', 'write'], 'unsubscri archiv'],
];

const verbs = new Map<string, EffectVerb>(
  rows.flatMap(([past, kinds, stems, thing]) =>
    past.split('|').map((word): [string, EffectVerb] => [
      word,
      {
        kinds: typeof kinds === 'string' ? [kinds] : kinds,
        stems: stems.split(' '),
        needsThing: thing === 'thing',
      },
    ]),
  ),
);

/** A pattern that matches all words that claim an effect. */
const CLAIMING = [...verbs.keys()].toSorted((a, b) => b.length - a.length).join('|');

/** Returns the effect that this past-tense verb claims. */
function effectVerb(past: string): EffectVerb | undefined {
  return verbs.get(past.toLowerCase());
}

/** Objects outside a report. Creating one of these is a side effect; creating a list is not. */
const THINGS: ReadonlySet<string> = new Set(
  (
    'account accounts alarm appointment appointments basket board booking bookings branch calendar cart channel ' +
    'contact contacts crm customer database email entry event events file files folder invoice invoices issue issues ' +
    'memory meeting meetings note notes order orders playlist profile record records reminder reminders repository ' +
    'reservation row rows server setting settings sheet spreadsheet subscription table-booking ticket tickets timer user users wiki'
  ).split(' '),
);

const READING = new Set(
  (
    'get list search find read fetch lookup look check query view show load describe browse count calculate compute ' +
    'convert summarize summarise analyze analyse compare translate extract parse scan inspect monitor status info ' +
    'weather forecast web wikipedia retrieve recall ask request_input report_progress think plan verify validate test'
  ).split(' '),
);

/** Verbs that may have any effect. The effects of a tool whose name has such a verb are unclear. */
const ANYTHING = new Set(
  (
    'run execute exec call invoke perform do make use http post put patch api request curl browser computer shell bash ' +
    'terminal command python javascript code script sql mcp action tool workflow operate control'
  ).split(' '),
);

/** The side effects that the name of a tool indicates. */
interface ToolNature {
  readonly words: readonly string[];
  /** The tool only reads. */
  readonly reads: boolean;
  /** The name does not show the effects. */
  readonly unclear: boolean;
  readonly kinds: ReadonlySet<EffectKind>;
}

function toolNature(toolName: string): ToolNature {
  const words = toolName
    .replace(/([a-z\d])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z\d]+/)
    .filter((word) => word !== '');
  const kinds = new Set<EffectKind>();
  for (const word of words)
    for (const verb of verbs.values())
      if (verb.stems.some((stem) => word.startsWith(stem)))
        for (const kind of verb.kinds) kinds.add(kind);
  // The verb is the first or the last word of the name: `search_orders`, `order_status`.
  const reads = READING.has(words[0] ?? '') || READING.has(words.at(-1) ?? '');
  const unclear = words.some((word) => ANYTHING.has(word)) || kinds.size === 0;
  return { words, reads: reads && !words.some((word) => ANYTHING.has(word)), unclear, kinds };
}

/** Splits a declared effect such as `email.sent`. Its last part is the verb with which a report claims the effect. */
function declaredEffect(effect: string): { readonly word: string; readonly noun: string } {
  const parts = effect.toLowerCase().split(/[.:/\s]+/);
  return { word: parts.at(-1) ?? '', noun: parts.at(-2) ?? '' };
}

interface Claim {
  /** The original sentence, at most 300 characters of it. */
  readonly text: string;
  readonly verb: EffectVerb;
  /** The words after the verb, in lower case; they name the object of the action. */
  readonly words: readonly string[];
  /** Whether the claim is in the passive: "has been sent". */
  readonly passive: boolean;
}

const MAX_READ_CHARS = 20_000;
const MAX_CLAIMS = 10;
const MAX_READ_SENTENCE_CHARS = 1000;
const MAX_SENTENCE_CHARS = 300;

const VERB = `(?<verb>${CLAIMING})`;
const ADVERBS = '(?:(?:now|also|just|already|then|successfully|finally|since|both) )*';
const OBJECT = '(?= (?:the|an?|your|it|them|this|that|these|those|all|both|two|three|\\d+)\\b)';

const firstPerson = new RegExp(`\\b(?:I|we)(?:['’]ve| have)? ${ADVERBS}${VERB}\\b`, 'i');
/** "I found a flight and booked it": no other subject may stand between the verbs. */
const coordinated = new RegExp(
  `\\bI(?:['’]ve| have)? \\w+(?:(?! that\\b| who\\b| which\\b| he\\b| she\\b| they\\b| it (?:was|is|has)\\b)[^;:])*? and ${ADVERBS}${VERB}${OBJECT}`,
  'i',
);
/** "Booked the flight.", "Done: sent it." */
const elliptical = new RegExp(
  `^(?:(?:all )?(?:done|finished|ok(?:ay)?|success|great)[.!:,;—–-]* +)?${ADVERBS}${VERB}${OBJECT}`,
  'i',
);
/** "Your flight has been booked", "The mail was successfully sent". A plain "was sent" also occurs in data. */
const passive = new RegExp(
  `\\byour (?:[\\w-]+ ){1,5}?(?:has|have) been ${ADVERBS}${VERB}\\b` +
    `|\\b(?:has|have|was|were|been) (?:been )?successfully (?<verb2>${CLAIMING})\\b`,
  'i',
);

const hypothetical =
  /\b(?:if|once|when|unless|until|whether|before|after|would|could|should|might|may|can)\b/i;
const nothing =
  /^ (?:(?:nothing|no|none|neither|money|time|you|attention|up to|by|about)\b|\$|€|£|[\d.]+ ?%)/i;

/** Returns the claims of a report in order, at most ten. */
function findClaims(text: string): Claim[] {
  const all = sentencesIn(ownWords(head(text, MAX_READ_CHARS)));
  const claims: Claim[] = [];
  all.forEach(({ sentence, isItem }, index) => {
    const isOutermost = !isItem && (index === 0 || index === all.length - 1);
    const claim = claimIn(sentence, isOutermost);
    if (claim && claims.length < MAX_CLAIMS) claims.push(claim);
  });
  return claims;
}

function claimIn(sentence: string, isOutermost: boolean): Claim | null {
  if (sentence.endsWith('?') || quotedSpeech.test(sentence)) return null;
  for (const pattern of [firstPerson, coordinated, ...(isOutermost ? [elliptical] : []), passive]) {
    const match = pattern.exec(sentence);
    const past = match?.groups?.['verb'] ?? match?.groups?.['verb2'];
    const verb = past === undefined ? undefined : effectVerb(past);
    if (!match || !verb || past === undefined) continue;
    const after = sentence.slice(match.index + match[0].length);
    if (hypothetical.test(sentence.slice(0, match.index)) || nothing.test(after)) continue;
    if (/^ordered$/i.test(past) && /\bby\b/.test(after)) continue;
    const words = sentence.toLowerCase().match(/[\p{L}\p{N}-]+/gu) ?? [];
    if (verb.needsThing && !words.some((word) => THINGS.has(word))) continue;
    return {
      text: clip(sentence, MAX_SENTENCE_CHARS),
      verb,
      words,
      passive: pattern === passive,
    };
  }
  return null;
}

/** Matches "Anna: I sent it.", but not "Status: I sent it." */
const quotedSpeech =
  /^(?!(?:done|result|results|summary|status|note|update|answer|ok|okay|report|final answer|actions?(?: taken)?)\b)[\p{L}\p{N} .'’_-]{1,40}: (?:I|we)\b/iu;

/** Returns the text without code, quotations and letters, because the reporter does not state these itself. */
function ownWords(text: string): string {
  const plain = text
    .replace(/```[\s\S]*?(?:```|$)|`[^`\n]*`/g, ' … ')
    .replace(/^[ \t]*>.*$/gm, ' ')
    .replace(/"[^"\n]{0,2000}"|“[^“”]{0,2000}”|«[^«»]{0,2000}»/g, ' … ');
  return withoutLetters(plain.split('\n')).join('\n');
}

const SALUTATION = /^[ \t*]*(?:dear|hi|hello|hey)\b.{0,61}$/i;
const SIGN_OFF = /^[ \t]*(?:best|kind|warm|regards|sincerely|cheers|thanks|yours)\b/i;

/** Removes letters. A letter extends from its salutation to the line after the sign-off, or to the end of the text. */
function withoutLetters(lines: readonly string[]): readonly string[] {
  const kept: string[] = [];
  for (let index = 0; index < lines.length; index += 1) {
    const line = lines[index] as string;
    const isLetter = SALUTATION.test(line.trimEnd());
    kept.push(isLetter ? ' … ' : line);
    if (!isLetter) continue;
    do index += 1;
    while (index < lines.length && !SIGN_OFF.test(lines[index] as string));
    index += 1;
  }
  return kept;
}

interface Sentence {
  readonly sentence: string;
  /** Whether the sentence belongs to a list or a table. */
  readonly isItem: boolean;
}

function sentencesIn(text: string): Sentence[] {
  return text.split('\n').flatMap((line) => {
    const isItem = /^\s*(?:[-*+•|]|\d+[.)])\s/.test(line);
    const plain = line
      .replace(/^\s*(?:#{1,6}|[-*+•|]|\d+[.)])\s+/, '')
      .replace(/\*\*|__/g, '')
      .trim();
    const parts = plain === '' ? [] : plain.split(/(?<=[.!?])\s+(?=\S)/);
    return parts.map((sentence) => ({ sentence: head(sentence, MAX_READ_SENTENCE_CHARS), isItem }));
  });
}

const ACTIONS =
  'save|write|store|send|create|compile|check|search|look|fetch|read|analy[sz]e|start|begin|continue|proceed|try|do|run|get|gather|find|use|call|update|add|book|reserve|order|verify|review|summari[sz]e|put|make|generate|draft|calculate|compute|open|click|collect|prepare|build|examine|investigate|query|retrieve|download|upload|test|finish|complete|work|take|move|explore|dig';

const opening = String.raw`(?:(?:ok(?:ay)?|alright|great|good|perfect|now|next|first|then|so|finally|and|with that)[,.!:]?\s+)*`;
const announcement = new RegExp(
  String.raw`^${opening}(?:let me|let us|let['’]s|I['’]ll|I will|I['’]m going to|I am going to|I need to|I should)\s+(?:now |next |then |first |also |just |quickly |go ahead and |start by |proceed to |begin by )*(?:${ACTIONS})(?:e?ing)?\b`,
  'i',
);

/** An offer is a complete ending, and so is a promise that depends on someone else. */
const depends =
  /\b(?:if|once|when|whenever|unless|until|as soon as|after you|upon|would you|let you know|let me know)\b|\?$/i;

/** Returns whether the last sentence only announces the next action. */
export function isUnfinished(text: string): boolean {
  const said = ownWords(text.slice(-MAX_READ_CHARS)).trimEnd();
  const last = said
    .slice(-600)
    .split(/(?<=[.!?])\s+|\n+/)
    .findLast((sentence) => /[\p{L}]/u.test(sentence))
    ?.replace(/^\s*(?:[-*+•>]|\d+[.)])\s+/, '')
    .replace(/\*\*|__/g, '')
    .trim();
  return last !== undefined && announcement.test(last) && !depends.test(last);
}
