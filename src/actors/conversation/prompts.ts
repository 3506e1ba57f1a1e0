// The runtime's notes to the lead model: their sentences and quotations. `notes/` defines their format.

import { isJson } from '../../values/json.ts';
import type { ConversationItem } from './items.ts';
import {
  note,
  noteWith,
  sentence,
  wordsOfApp,
  type Note,
  type Prompt,
  type Quotes,
  type Sentence,
} from '../notes/note.ts';
import type { LedgerEntry } from '../contracts/outcome.ts';
import type { QuestionOption } from '../contracts/session-views.ts';

/** Returns the note that makes the model greet the user; undefined if no greeting is configured. */
export function greetingNote({ greeting }: { readonly greeting?: string }): Note | undefined {
  return greeting === undefined ? undefined : note(wordsOfApp(greeting));
}

/** Returns whether this item is the note for the greeting. */
export function isGreeting(
  item: ConversationItem,
  { greeting }: { readonly greeting?: string },
): boolean {
  if (greeting === undefined || item.role !== 'system') return false;
  const { note: told } = item;
  // An earlier version stored the note as text.
  return told ? told.says === greeting && !told.quotes : item.text === `[SYSTEM: ${greeting}]`;
}

/** Returns the output of a call whose work continues in the background. */
export const pendingAnswer = (message: string) => ({ status: 'still_in_progress', message });

/** The instructions for a lead model about calls that continue in the background. */
export const BACKGROUND_CALLS =
  'A call that returns `still_in_progress` is NOT complete. If you have not told the user yet that you are working on it, tell them, in your own words; otherwise say nothing about it. Until its result comes as a note, do not guess it and do not make the call again.';

/** The default message to the model for a background call, if the connection cannot leave the call open. */
export const DEFAULT_PENDING_MESSAGE = 'I am working on it and will tell you when it is done.';

/** The default message to the model when an inline call is detached. */
export const DETACHED_MESSAGE =
  'This takes longer and continues in the background. If the user does not know that yet, tell them once, in your own words. Reply to anything else that they said. The result comes later by itself: until then, do not guess it and do not make this call again.';

/**
 * Returns the note about a call that the model cancelled when the user spoke, and that continues in the background
 * instead.
 */
export const keptCallNote = (task: string): Note =>
  note(
    sentence`The call that you took back when the user spoke continues in the background. Its result comes later by itself: until then, do not guess it and do not make this call again.`,
    { task },
  );

const ON_SCREEN = sentence`It is on the user's screen. Do not speak about it unless they ask.`;

/** Returns the prompt with another sentence added. */
function promptWith(prompt: Prompt, says: Sentence): Prompt {
  // An earlier version stored the prompt as text.
  return typeof prompt === 'string' ? `${prompt} [SYSTEM: ${says}]` : noteWith(prompt, says);
}

/** Returns the prompt for a result that the model must know but not mention. */
export const silentNote = (prompt: Prompt): Prompt => promptWith(prompt, ON_SCREEN);

const SENT_BEFORE = sentence`While the user was away, it was already sent to them, but it is not known whether they read it. Say so in a few words.`;

/** Returns the prompt for a delivery that one or more channels have already sent to the user. */
export function sentNote(
  prompt: Prompt,
  sent: readonly { readonly by: string; readonly receipt: string }[],
): Prompt {
  const by = sent.filter(({ receipt }) => receipt !== 'failed').map((one) => one.by);
  if (by.length === 0) return prompt;
  const told = promptWith(prompt, SENT_BEFORE);
  return typeof told === 'string'
    ? told
    : { ...told, quotes: { ...told.quotes, sentBy: [...new Set(by)] } };
}

export function cancelledNote(
  task: string,
  reason: string,
  ledger: readonly Pick<LedgerEntry, 'toolName' | 'status'>[] = [],
  input?: unknown,
): Note {
  const cutOff = ledger.filter(({ status }) => status === 'in_flight');
  const names = cutOff.map(({ toolName }) => toolName).join(', ');
  return note(
    sentence`This background task of yours was cancelled. It has no result; nothing else was cancelled.`,
    {
      task,
      // The arguments distinguish this task from other tasks of the same tool that are cancelled at the same time.
      ...(isJson(input) && { arguments: input }),
      reason,
      ...(names !== '' && {
        unknown: `It was running ${names}: whether that was done is not known`,
      }),
    },
  );
}

export function questionPrompt(
  subagent: string,
  question: string,
  options: readonly QuestionOption[],
): Note {
  return note(sentence`SUBAGENT QUESTION to the user.`, {
    subagent,
    question,
    ...(options.length > 0 && { options: options.map(choiceOf) }),
  });
}

/** Returns the prompt that repeats an unanswered question in a few words, with its options, if any. */
export function nudgePrompt(
  subagent: string,
  question: string,
  options: readonly QuestionOption[],
  language: string,
): Note {
  const choices = new Intl.ListFormat(language, { type: 'disjunction' });
  const labels = options.map(({ label }) => label);
  return note(
    sentence`SUBAGENT QUESTION: the user has not answered it yet, and only they can. Ask it again in a few words, and add nothing.`,
    { subagent, question, ...(labels.length > 0 && { short: `${choices.format(labels)}?` }) },
  );
}

const choiceOf = ({ label, description }: QuestionOption): string =>
  description ? `${label}: ${description}` : label;

/**
 * Returns the prompt that asks for an approval. The question is read out word for word, with nothing added, because the
 * user approves exactly the spoken words.
 */
export function approvalPrompt(
  subagent: string,
  question: string,
  { readBack, askedAgain }: { readonly readBack: boolean; readonly askedAgain: boolean },
): Note {
  const why = readBack
    ? sentence` It is read back, as it was not certain what their words were about.`
    : askedAgain
      ? sentence` The answer was not clear.`
      : sentence``;
  return note(
    sentence`SUBAGENT QUESTION, an approval: only the user's own plain yes or no decides.${why}`,
    { subagent, question: readBack ? readBackText(question) : question },
  );
}

/** Returns the note about a question that the session's user may not answer. */
export const besideNote = (subagent: string, question: string): Note =>
  note(
    sentence`SUBAGENT QUESTION, not for the user: only another person can answer it. Do not ask it, and do not settle it. If the user asks about it, say that another person has to answer.`,
    { subagent, question },
  );

export const readBackText = (question: string): string => `To be sure: ${question}`;

export function noticePrompt(label: string, text: string): Note {
  return note(sentence`There is news for the user. Pass it on.`, { label, text });
}

const DUE = sentence`This is due now. Tell the user.`;
const DUE_LATE = sentence`This was due earlier, when the session was not running. Tell the user, and when it was due.`;

/** Returns the note about a message that is due. `late`: when the message was due; absent if it was on time. */
export const duePrompt = (text: string, late?: string): Note =>
  late === undefined ? note(DUE, { text }) : note(DUE_LATE, { text, wasDue: late });

const STILL_OPEN = sentence`The user sees it: do not ask it.`;

/**
 * Returns the note about an open question for a lead agent that does not ask it. The user sees the question, and may be
 * talking about something else.
 */
export const openQuestionNote = (prompt: Prompt): Prompt => promptWith(prompt, STILL_OPEN);

/** The meaning of each `settle_question` action. `explain` is not listed: the model can read the quoted question. */
export const ACTIONS = sentence`answer (text: the answer, or the id of a quoted option), correct (an earlier answer), change (an approval; text: JSON of the changed arguments), decline (a no; text: what they want instead, if anything), cancel (they no longer want the task), later or repeat (the runtime then speaks, not you). quote: the user's exact words.`;

const APPROVALS = sentence` A plain yes to an approval: answer; the runtime then reads it back to the user, and only their yes to that counts. A no: decline. A yes with a change: change; a yes to later calls too: always (text: task or session); both are read back in the same way.`;

/**
 * Returns the note that a lead model reads before it answers, while a question is open or has just been answered. The
 * note is only added to this request; it does not become part of the conversation.
 */
export function questionsNote(
  state: WorkQuotes & Readonly<Record<'open' | 'answered', readonly Quotes[]>>,
  isSteered: boolean,
): Note {
  const ofWork = isSteered
    ? sentence`one, answer from what you know, or say that you do not know it; if about the work, call running_task.`
    : sentence`one, or the work, answer from what you know, or say that you do not know it.`;
  const approvals = state.open.some(({ isApproval }) => isApproval) ? APPROVALS : sentence``;
  return note(
    state.open.length > 0
      ? sentence`Open questions of subagents. If the user's words below answer, change, put off or end one, call settle_question: ${ACTIONS}${approvals} Then reply to anything else that they said. If they only ask about ${ofWork}${ofAlways(state)}`
      : sentence`The user has just answered these questions of subagents. If their words below change an answer, call settle_question with the action correct.${ofAlways(state)}`,
    withoutEmpty(state),
  );
}

/** Omits empty lists. */
function withoutEmpty(lists: Readonly<Record<string, readonly Quotes[string][]>>): Quotes {
  return Object.fromEntries(Object.entries(lists).filter(([, list]) => list.length > 0));
}

/**
 * Returns the note about background work that a lead model reads before it answers; like `questionsNote`, it is only
 * added to this request. `isSteered`: whether the model has the tool `running_task`.
 */
export function workNote(work: WorkQuotes, isSteered: boolean): Note {
  const how = isSteered
    ? sentence`Use running_task to check it, to add to it or to stop it.`
    : sentence`To add to it or stop it, use a tool of yours that does that, if you have one.`;
  return note(
    sentence`Work runs in the background. Mention it only if the user's words below ask about it or change it. ${how}${ofAlways(work)}`,
    withoutEmpty(work),
  );
}

type WorkQuotes = Readonly<
  Record<'running' | 'waitsToBeTold' | 'beingTold' | 'always', readonly Quotes[string][]>
>;

/** Returns the sentence about lasting approvals, if there are any. */
const ofAlways = ({ always }: WorkQuotes) =>
  always.length > 0
    ? sentence` The user lets what is in always run without a question; if they want to be asked again, call settle_question: revoke.`
    : sentence``;

/** The sentence for words that answered a subagent's question. */
export const ANSWERED = sentence`These words answered a subagent: do not reply to them.`;

/**
 * Returns the note about the user's words that were passed to a subagent. `isAnswer`: whether the words answered the
 * subagent's question; if not, the question is still open.
 */
export function overheardNote(words: string, subagent: string, isAnswer = true): Note {
  return note(
    isAnswer
      ? ANSWERED
      : sentence`These words did not settle a subagent's question, which the runtime asks again: do not reply to them.`,
    { words, subagent },
  );
}

/** Returns the note about words that a subagent received as the user's answer and returned. */
export function returnedNote(words: string, reason: string, subagent: string): Note {
  return note(
    sentence`A subagent gives these words of the user back: they do not answer its question. They are for you: respond to them now. The runtime asks the question again; you do not.`,
    { words, reason, subagent },
  );
}

/** Sent to a lead model whose reply to the user was cut off by an urgent delivery. */
export const OWED_REPLY_NOTE = note(
  sentence`Your answer to what the user said was cut off for this. Give it now.`,
);

/**
 * Sent to a lead model that read the user's latest words during a delivery, so that it may not have answered them.
 */
export const READ_WORDS_NOTE = note(
  sentence`You had read the user's last words when you wrote this. If it does not answer them, answer them now. Else say nothing.`,
);

/** Returns the directives as a note, for a model whose instructions cannot be changed during a session. */
export function directivesNote(
  directives: readonly { readonly key: string; readonly value: string }[],
): Note {
  return note(sentence`These directives hold from now on, and no earlier ones.`, {
    directives: Object.fromEntries(directives.map(({ key, value }) => [key, value])),
  });
}

/** Shared, so that all results of one kind have the same sentence. */
export const completedSentence = sentence`Tell the user this result.`;

export const failedSentence = sentence`A background task failed and is over. Tell the user in plain words what did not work, without codes or internals, and suggest what to do next.`;

/** Sent to a lead model that made another delivery before it received the result of a call. */
export const LATE_ANSWER_NOTE = note(
  sentence`A call has its result now: it stands above, with the call. Go on with the answer to the user.`,
);

/**
 * Sent to a lead model whose process ended between two calls of one response. The journal contains only the calls made
 * before that.
 */
export const CUT_OFF_NOTE = note(
  sentence`You were cut off while you answered. Only the calls that stand above were made. If you meant to make another one, make it now; repeat none of those.`,
);

/** Returns the note about a call that was not repeated, because it had already been made for the same delivery. */
export function alreadyCalledNote(tool: string): Note {
  return note(
    sentence`You have called this tool with these arguments already: it was not called again. What it came to stands above.`,
    { tool },
  );
}

export function inputTimeoutMessage(attempt: number, max: number): string {
  return `The user did not respond in time. You may re-ask, or go on without an answer. (attempt ${attempt}/${max})`;
}
