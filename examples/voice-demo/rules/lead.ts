// Decides what the lead agent says and which tools it calls next. It is stateless: everything is read from the
// conversation, so it can be called again at any time.

import {
  asRecord,
  isPlaceholder,
  textOf,
  type Conversation,
  type Entry,
  type ToolCallEntry,
  type ToolResultEntry,
} from './conversation.ts';
import type { AskedNotice, Notice, SpokenOption } from './notices.ts';
import {
  cannotDo,
  capital,
  chatReply,
  greeting,
  notUnderstood,
  retryQuestion,
  sentence,
  slotAskedBy,
  slotQuestions,
  speakable,
  vary,
  workName,
} from './phrases.ts';
import type { Reply, ToolCall } from './reply.ts';
import type { Request, Work } from './clause.ts';
import { clarified, namedAgain, sayTasks, STEER, steer } from './steer.ts';
import { putOff, understand, type Slot } from './requests.ts';
import { asksForTime, saySettled, settle, wantsAgain, type Settled } from './settle.ts';
import { normalise } from './words.ts';

const sentences = new Intl.Segmenter('en', { granularity: 'sentence' });

const sentencesOf = (text: string): readonly string[] =>
  [...sentences.segment(text)].map(({ segment }) => segment.trim());

/** The text without the sentences that the user heard before interrupting, if the instructions ask for that. */
function goingOn({ instructions, entries }: Conversation, text: string): string {
  if (!instructions.includes('heard the beginning')) return text;
  const heard = new Set(
    entries.flatMap((entry) => (entry.kind === 'assistant' ? sentencesOf(entry.text) : [])),
  );
  const all = sentencesOf(text);
  const rest = all.slice(all.findLastIndex((one) => heard.has(one)) + 1).join(' ');
  if (rest === '' || rest === text) return text;
  return instructions.includes('As I was saying') ? `As I was saying: ${rest}` : rest;
}

/** The text that the instructions ask to say literally; null if there is none. */
function dictatedBy(instructions: string): string | null {
  const [, quoted] = /Say exactly ("(?:[^"\\]|\\.)*")/i.exec(instructions) ?? [];
  return quoted === undefined ? null : (JSON.parse(quoted) as string);
}

/**
 * @param tools names of the tools that may be called now.
 * @param isUnasked a voice model replies on its own, even if the user's words were for a subagent.
 */
export function leadReply(
  conversation: Conversation,
  tools: ReadonlySet<string>,
  isUnasked = false,
): Reply {
  const { entries, assignment } = conversation;
  const turn = entries.filter(({ kind }) => kind === 'assistant').length;
  const dictated = dictatedBy(conversation.instructions);
  if (dictated !== null) return say(dictated);
  if (assignment && isSaid(assignment))
    return say(goingOn(conversation, sayNotice(assignment, turn)));
  const due = dueOf(entries);
  const said: string[] = [];
  const calls: ToolCall[] = [];

  const steered = due.results.filter(({ toolName }) => toolName === STEER);
  for (const result of due.results)
    if (result.toolName !== STEER) said.push(sayResult(result, entries, turn));
  const named = namedAgain(steered, entries);
  if (named.length > 0) calls.push(...named);
  else if (steered.length > 0) said.push(sayTasks(steered, entries));
  const asked = tools.has('settle_question') ? askedIn(entries) : null;
  if (asked?.isOnlyKnownFromAsking && asked.open.length > 0 && asksForTime(due.words))
    return say('Take your time.');
  if (asked?.isOnlyKnownFromAsking && asked.open.length > 0 && wantsAgain(due.words))
    return say('Sure.');
  const settled = asked ? settleByOne(due.utterances, asked) : null;
  if (isUnasked && settled?.named && asked?.isOnlyKnownFromAsking && !asked.isFollowed)
    said.push(`${settled.named.label}. One moment.`);
  else if (settled) calls.push(settled.call);
  const meant = settled ? [] : clarified(due.words, entries);
  calls.push(...meant);
  const words = settled ? settled.rest : meant.length > 0 ? '' : due.words;
  if (words !== '') {
    for (const request of withoutAsides(understand(words, slotOf(entries)))) {
      const reply = answer(request, entries, turn);
      const known = reply.calls.every(({ toolName }) => tools.has(toolName));
      said.push(known ? reply.text : cannotDo('do that now', turn));
      if (known) calls.push(...reply.calls);
    }
  }
  // The user's message is answered first. The runtime then requests another response, which reports the news.
  if (due.words !== '' && said.length + calls.length > 0) return { text: inOneBreath(said), calls };
  // A question comes last, so that the user's next message answers it.
  const isQuestion = (notice: Notice): boolean => notice.type === 'question';
  const notices = [
    ...due.notices.filter((notice) => !isQuestion(notice)),
    ...due.notices.filter(isQuestion),
  ];
  for (const notice of notices) said.push(sayNotice(notice, turn));

  const text = said.filter((part) => part !== '').join(' ');
  return { text: text === '' && calls.length === 0 ? sayAgain(entries) : text, calls };
}

/** The topics of small talk that does nothing but agree or disagree. */
const ASIDES: ReadonlySet<string> = new Set(['okay', 'yes', 'no', 'quiet']);

/** Omits asides if there is a real request; otherwise keeps only the last aside: "okay, no, a table for two". */
function withoutAsides(requests: readonly Request[]): readonly Request[] {
  const isAside = (request: Request): boolean =>
    request.type === 'chat' && ASIDES.has(request.topic);
  const wishes = requests.filter((request) => !isAside(request));
  return wishes.length > 0 ? wishes : requests.slice(-1);
}

/** Joins the parts of a reply and removes repeated sentences. */
function inOneBreath(parts: readonly string[]): string {
  return [...new Set(parts.flatMap(sentencesOf))].join(' ');
}

/** The questions that the user's words may be about. */
function askedIn(entries: readonly Entry[]): AskedNotice | null {
  const index = entries.findLastIndex(
    ({ kind, ...entry }) =>
      kind === 'notice' &&
      'notice' in entry &&
      (entry.notice.type === 'asked' || entry.notice.type === 'question'),
  );
  const found = entries[index];
  if (found?.kind !== 'notice') return null;
  if (found.notice.type === 'asked') return found.notice;
  return found.notice.type === 'question'
    ? askedByMe(found.notice, entries.slice(0, index), entries.slice(index + 1))
    : null;
}

/** The question that a voice model itself asked. The model knows only the text of the question, not its id. */
function askedByMe(
  { subagent, options, isApproval = false }: Extract<Notice, { type: 'question' }>,
  before: readonly Entry[],
  since: readonly Entry[],
): AskedNotice | null {
  const isIts = (toolName: string): boolean => subagent.includes(toolName.split('_').at(-1) ?? '');
  const ended = (some: readonly Entry[]): number =>
    some.filter(
      (entry) =>
        entry.kind === 'notice' && 'toolName' in entry.notice && isIts(entry.notice.toolName),
    ).length;
  // A second ride may finish while the question about this one is open.
  const begun = before.filter(
    (entry) => entry.kind === 'call' && !entry.isRestated && isIts(entry.toolName),
  ).length;
  const isOver = ended(since) > 0 && ended(since) >= begun - ended(before);
  if (isOver) return null;
  const question = {
    subagent,
    options: options.map((option) => ({ ...option, id: option.label })),
    isApproval,
  };
  const open = { open: [question], answered: [] };
  // Not every voice model remembers the answer, so the runtime quotes it.
  const said = since.flatMap((entry) => (entry.kind === 'user' ? [entry.text] : [])).slice(0, -1);
  const quoted = since.flatMap((entry) =>
    entry.kind === 'notice' && entry.notice.type === 'overheard' ? [entry.notice.words] : [],
  );
  const isAnswered = [...said, ...quoted].some(
    (words) => settle(words, { type: 'asked', ...open })?.named,
  );
  // The runtime accepts the user's words as the answer only if nothing else has been said since the question.
  const asking = since.findIndex(({ kind }) => kind === 'assistant');
  const afterwards = since.slice(asking + 1);
  const end = afterwards.findIndex(({ kind }) => kind !== 'assistant');
  const isFollowed = end >= 0 && afterwards.slice(end).some(({ kind }) => kind === 'assistant');
  return {
    type: 'asked',
    ...(isAnswered ? { open: [], answered: [question] } : open),
    isOnlyKnownFromAsking: true,
    isFollowed,
  };
}

export interface Due {
  /** The user's unanswered utterances, joined; `utterances` has them one by one. */
  readonly words: string;
  readonly utterances: readonly string[];
  readonly results: readonly ToolResultEntry[];
  readonly notices: readonly Notice[];
}

/** The user's words and the results that the lead agent has not answered or reported yet. */
export function dueOf(entries: readonly Entry[]): Due {
  const spoke = entries.findLastIndex(({ kind }) => kind === 'assistant');
  const acted = entries.findLastIndex(
    (entry) => entry.kind === 'assistant' || (entry.kind === 'call' && !entry.isRestated),
  );
  const overheard = new Set<string>();
  for (const entry of entries)
    if (entry.kind === 'notice' && entry.notice.type === 'overheard')
      overheard.add(normalise(entry.notice.words));
  const words: string[] = [];
  const results: ToolResultEntry[] = [];
  const notices: Notice[] = [];
  entries.forEach((entry, index) => {
    if (entry.kind === 'user' && index > acted && !overheard.has(normalise(entry.text)))
      words.push(entry.text);
    if (entry.kind === 'result' && index > spoke && !isPlaceholder(entry)) results.push(entry);
    if (entry.kind === 'notice' && index > spoke && isSaid(entry.notice))
      notices.push(entry.notice);
  });
  return { words: words.join(' '), utterances: words, results, notices };
}

/**
 * The last utterance that settles something is used, because a settlement quotes only one; the others are ignored.
 */
function settleByOne(utterances: readonly string[], asked: AskedNotice): Settled | null {
  for (const [at, words] of [...utterances.entries()].toReversed()) {
    const settled = settle(words, asked);
    if (!settled) continue;
    const rest = utterances.toSpliced(at, 1, settled.rest).filter((left) => left !== '');
    return { ...settled, rest: rest.join(' ') };
  }
  return null;
}

function isSaid({ type }: Notice): boolean {
  return type === 'question' || type === 'completed' || type === 'failed' || type === 'news';
}

/** The detail that the lead agent has asked for since the user's previous message. */
function slotOf(entries: readonly Entry[]): Slot | null {
  const spoke = entries.findLastIndex(({ kind }) => kind === 'assistant');
  for (let index = spoke; index >= 0; index--) {
    const entry = entries[index];
    if (entry?.kind === 'user') return null;
    const slot = entry?.kind === 'assistant' ? slotAskedBy(entry.text) : null;
    if (slot) return slot;
  }
  return null;
}

function answer(request: Request, entries: readonly Entry[], turn: number): Reply {
  switch (request.type) {
    case 'ride':
      return request.destination
        ? call('book_ride', { destination: request.destination })
        : say(slotQuestions.destination);
    case 'table':
      return request.partySize
        ? call('book_table', { partySize: request.partySize })
        : say(slotQuestions.partySize);
    case 'report':
      return request.dateRange
        ? call('generate_report', { dateRange: request.dateRange })
        : say(slotQuestions.dateRange);
    case 'order':
      return call('check_order', request.orderId ? { orderId: request.orderId } : {});
    case 'refund':
      return call('refund_order', request.orderId ? { orderId: request.orderId } : {});
    case 'menu':
      return call('change_menu', { task: request.task });
    case 'progress':
      return steerOne('status', request, entries);
    case 'tell':
      return steerOne('tell', request, entries);
    case 'wait':
      return say("Okay, I won't start anything until you say so.");
    case 'again':
      return say(sayLatest(entries));
    case 'cancel':
      return request.work === 'everything'
        ? call(STEER, { action: 'stop' })
        : steerOne('stop', request, entries);
    case 'unsupported':
      return say(cannotDo(request.wish, turn));
    case 'unknown': {
      // The detail was not understood, so the lead agent asks for it again instead of starting over.
      const slot = slotOf(entries);
      return say(slot && slot !== 'retry' ? `Sorry? ${slotQuestions[slot]}` : notUnderstood(turn));
    }
    case 'chat': {
      if (request.topic === 'yes' && slotOf(entries) === 'retry') return retry(entries);
      if (request.topic === 'yes') {
        const [wish] = wishesPutOff(entries);
        if (wish) return answer(wish, entries, turn);
      }
      if (request.topic === 'wellbeing' && unfinished(entries).length > 0)
        return call(STEER, { action: 'status' });
      // If one task is running, the user means that one. If several are running, the runtime asks which one.
      if (request.topic === 'nevermind' && unfinished(entries).length > 0)
        return steerOne('stop', { work: 'unclear' }, entries);
      return say(chatReply(request.topic, turn));
    }
  }
}

interface Meant {
  readonly work: Work;
  readonly about?: string;
  readonly words?: string;
}

function steerOne(action: string, meant: Meant, entries: readonly Entry[]): Reply {
  return { text: '', calls: [steer(action, meant, entries)] };
}

/** The requests before the last utterance, if the user wanted to wait with them. */
function wishesPutOff(entries: readonly Entry[]): readonly Request[] {
  const said = entries.filter((entry) => entry.kind === 'user');
  return putOff(said.at(-2)?.text ?? '');
}

function say(text: string): Reply {
  return { text, calls: [] };
}

function call(toolName: string, input: Readonly<Record<string, unknown>>): Reply {
  return { text: '', calls: [{ toolName, input }] };
}

/** Repeats the latest failed call. */
function retry(entries: readonly Entry[]): Reply {
  const failed = entries.findLast(
    (entry) => entry.kind === 'notice' && entry.notice.type === 'failed',
  );
  const toolName =
    failed?.kind === 'notice' && failed.notice.type === 'failed' ? failed.notice.toolName : '';
  const before = entries.findLast(
    (entry): entry is ToolCallEntry => entry.kind === 'call' && entry.toolName === toolName,
  );
  return before ? call(toolName, before.input) : say('What shall I try again?');
}

/** The background tasks that were started and have not reported their end. */
function unfinished(entries: readonly Entry[]): readonly string[] {
  const open: string[] = [];
  for (const entry of entries) {
    if (entry.kind === 'result' && isPending(entry)) open.push(entry.toolName);
    if (entry.kind !== 'notice') continue;
    const { notice } = entry;
    if (notice.type === 'completed' || notice.type === 'failed' || notice.type === 'cancelled') {
      const index = open.indexOf(notice.toolName);
      if (index >= 0) open.splice(index, 1);
    }
  }
  return [...new Set(open)];
}

function isPending({ output }: ToolResultEntry): boolean {
  return asRecord(output)['status'] === 'still_in_progress';
}

function sayResult(result: ToolResultEntry, entries: readonly Entry[], turn: number): string {
  if (result.error !== null)
    return `That did not work: ${sentence(speakable(result.error))} ${retryQuestion}`;
  const output = asRecord(result.output);
  switch (result.toolName) {
    case 'check_order': {
      const order = asRecord(output['order']);
      if (order['orderId'] !== undefined) {
        const [id, item, status] = [order['orderId'], order['item'], order['status']].map(textOf);
        return `Order ${id}, ${item}, is ${sentence(status ?? '')}`;
      }
      const unknown = output['unknownOrderId'];
      return unknown
        ? `I can't find an order with the number ${textOf(unknown)}.`
        : 'There is no order yet.';
    }
    case 'settle_question': {
      const made = entries.find((entry) => entry.kind === 'call' && entry.callId === result.callId);
      return saySettled(result.output, made?.kind === 'call' ? textOf(made.input['quote']) : '');
    }
    default: {
      if (output['status'] === 'already_in_progress') return "I'm on that already.";
      const text = sentence(speakable(textOf(result.output)));
      return isPending(result) || text === ''
        ? text
        : `${vary(['Here it is.', 'It is done.'], turn)} ${text}`;
    }
  }
}

function sayNotice(notice: Notice, turn: number): string {
  switch (notice.type) {
    case 'question':
      return sayQuestion(speakable(notice.question), notice.options);
    case 'completed': {
      const result = sentence(speakable(notice.result));
      const opener = vary(['I have news about', 'Now about'], turn);
      return `${opener} ${workName(notice.toolName)}. ${result}`;
    }
    case 'failed':
      return `I'm sorry, ${workName(notice.toolName)} did not work out: ${sentence(speakable(notice.error))} ${retryQuestion}`;
    case 'news': {
      const text = sentence(speakable(notice.text));
      return notice.label === 'SUBAGENT UPDATE'
        ? text
        : `${capital(notice.label.toLowerCase())}: ${text}`;
    }
    case 'asked':
    case 'overheard':
    case 'cancelled':
    case 'told':
    case 'background':
      return '';
  }
}

function sayQuestion(question: string, options: readonly SpokenOption[]): string {
  const isNamed = ({ label }: SpokenOption): boolean =>
    ` ${normalise(question)} `.includes(` ${normalise(label)} `);
  if (options.every(isNamed)) return question;
  const choices = options.map(({ label, detail }) =>
    detail ? `${label}, ${speakable(detail)}` : label,
  );
  return `${question} ${choices.slice(0, -1).join('; ')}, or ${choices.at(-1)}?`;
}

/** The text to repeat to the user: the latest result, or else the last reply. */
function sayLatest(entries: readonly Entry[]): string {
  const told = entries.findLast(
    (entry) => entry.kind === 'notice' && entry.notice.type === 'completed',
  );
  if (told?.kind === 'notice' && told.notice.type === 'completed')
    return sentence(speakable(told.notice.result));
  const spoken = entries.findLast((entry) => entry.kind === 'assistant');
  return spoken?.kind === 'assistant' ? spoken.text : greeting;
}

/** Called if there is nothing new to say. The user did not hear the last message, so the lead agent says it again. */
function sayAgain(entries: readonly Entry[]): string {
  const asked = entries.findLastIndex(({ kind }) => kind === 'user');
  if (asked < 0 && owesGreeting(entries)) return greeting;
  const notice = entries.findLast(
    (entry, index) => index > asked && entry.kind === 'notice' && isSaid(entry.notice),
  );
  if (notice?.kind === 'notice') return sayNotice(notice.notice, 0);
  const spoken = entries.findLast((entry) => entry.kind === 'assistant');
  return spoken?.kind === 'assistant' ? spoken.text : greeting;
}

/** Whether the greeting was requested but has not been said yet, because urgent news came first. */
function owesGreeting(entries: readonly Entry[]): boolean {
  const isWanted = entries.some(
    ({ kind, ...entry }) =>
      kind === 'notice' &&
      'notice' in entry &&
      entry.notice.type === 'background' &&
      entry.notice.text.includes('Greet the user'),
  );
  return (
    isWanted && !entries.some((entry) => entry.kind === 'assistant' && entry.text === greeting)
  );
}
