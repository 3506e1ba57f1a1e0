// The lead agent's sentences, with some variety and suitable for speech.

import type { ChatTopic } from './clause.ts';
import type { Slot } from './requests.ts';

export const abilities =
  'I can book you a ride or a table, make a sales report, or look up an order';

export const greeting = `Hello! ${abilities}. What can I do for you?`;

/** The question for a missing detail. */
export const slotQuestions: Readonly<Record<Exclude<Slot, 'retry'>, string>> = {
  destination: 'Where would you like to go?',
  partySize: 'For how many people?',
  dateRange: 'For which period: last week, last month, or a quarter?',
  work: 'Which one shall I stop?',
};

export const retryQuestion = 'Shall I try again?';

/** The detail that this text asks for, if the text is a question from this file. */
export function slotAskedBy(text: string): Slot | null {
  if (text.includes(retryQuestion)) return 'retry';
  const slots = Object.entries(slotQuestions) as [Exclude<Slot, 'retry'>, string][];
  return slots.find(([, question]) => text.includes(question))?.[0] ?? null;
}

const chatter: Readonly<Record<ChatTopic, readonly string[]>> = {
  greeting: [`Hello! ${abilities}.`, 'Hello again! What can I do for you?', 'Hi! How can I help?'],
  thanks: ["You're welcome.", 'My pleasure.', 'Any time.'],
  help: [
    `${abilities}. You can also ask how things are going, or tell me to stop something.`,
    `${abilities}. Try two at once: I work on both while we talk.`,
  ],
  wellbeing: [
    "I'm very well, thank you. What can I do for you?",
    'All good here. Shall we get something done?',
  ],
  name: [
    "I'm the lead agent of this demo. I talk to you, while others work offstage.",
    "I'm a small program with a voice. The real work happens offstage, and I tell you about it.",
  ],
  joke: [
    'Why did the actor get lost? He had no sense of direction from the wings.',
    'I asked two agents the same question. They are still waiting in line, very politely.',
  ],
  goodbye: ['Goodbye! It was nice talking to you.', 'See you soon!'],
  okay: ['Good. Just tell me when you need something.', 'All right.'],
  yes: ['Fine. What shall it be?', `Happy to. ${abilities}.`],
  no: ['All right.', 'Okay, no problem.'],
  nevermind: ['Okay, never mind.', 'All right, forget it.'],
  quiet: ['Okay.', 'Sure.'],
};

/** A reply to small talk; `turn` counts the earlier replies, so that replies vary. */
export function chatReply(topic: ChatTopic, turn: number): string {
  return vary(chatter[topic], turn);
}

export function cannotDo(wish: string, turn: number): string {
  return vary(
    [`I can't ${wish}, I'm afraid. ${abilities}.`, `Sorry, I can't ${wish}. ${abilities}.`],
    turn,
  );
}

export function notUnderstood(turn: number): string {
  return vary(
    [
      `I'm not sure what you mean. ${abilities}.`,
      `Sorry, I didn't catch that. ${abilities}.`,
      'Could you say that in other words?',
    ],
    turn,
  );
}

export function vary(variants: readonly string[], turn: number): string {
  return variants[turn % variants.length] ?? '';
}

const works: Readonly<Record<string, string>> = {
  book_ride: 'the ride',
  book_table: 'the table',
  generate_report: 'the report',
  refund_order: 'the refund',
  change_menu: 'the menu',
};

/** The name of a background task as it is said in conversation. */
export function workName(toolName: string): string {
  return works[toolName] ?? toolName.replaceAll('_', ' ');
}

/** "a, b and c". */
export function listed(items: readonly string[], conjunction = 'and'): string {
  if (items.length <= 1) return items[0] ?? '';
  return `${items.slice(0, -1).join(', ')} ${conjunction} ${items.at(-1)}`;
}

export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Adds a full stop to a sentence that has no punctuation mark at its end. */
export function sentence(text: string): string {
  const trimmed = text.trim();
  return trimmed === '' || /[.!?…]["”)]?$/.test(trimmed) ? trimmed : `${trimmed}.`;
}

/** The text in speakable form: no markup, units as words, and the arguments of a call without punctuation. */
export function speakable(text: string): string {
  return text
    .replace(/\{(?:"[^"]*":[^{}]*)\}/g, (json) =>
      json.replaceAll(/[{}"]|\\n/g, '').replaceAll(/[:,]/g, ' '),
    )
    .replace(/[*_`#>]+/g, ' ')
    .replace(/^\s*[-•]\s+/gm, '')
    .replace(/\s*\n+\s*/g, ' ')
    .replace(/\$\s?(\d+(?:,\d{3})*(?:\.\d+)?)/g, (_, amount: string) => `${amount} dollars`)
    .replace(/(\d)\s?%/g, '$1 percent')
    .replace(/\b(\d+) min\b\.?/g, (_, n: string) => `${n} minute${n === '1' ? '' : 's'}`)
    .replace(/\s+/g, ' ')
    .trim();
}
