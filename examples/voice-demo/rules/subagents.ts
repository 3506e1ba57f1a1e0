// Decides the next step of a subagent: which tool to call with which input, or what to answer. The prompt contains the
// task; everything else is read from the tool results.

import { findDateRange } from '../agents/date-range.ts';
import { destinationOf, guestsOf } from './clause.ts';
import { asRecord, textOf, type Conversation, type ToolResultEntry } from './conversation.ts';
import { capital, sentence } from './phrases.ts';
import type { Reply } from './reply.ts';
import { choose, normalise } from './words.ts';

interface Task {
  readonly toolName: string;
  readonly args: Readonly<Record<string, unknown>>;
  /** The results of one tool, oldest first. */
  results(toolName: string): readonly ToolResultEntry[];
  /** The arguments of the call that returned this result. */
  inputOf(result: ToolResultEntry): Readonly<Record<string, unknown>>;
  /** The user's additions and changes since then, oldest first. */
  readonly told: readonly string[];
}

/** The task in a subagent's prompt, or null if the prompt is not a subagent's. */
export function readTask({
  instructions,
  entries,
  task,
}: Pick<Conversation, 'instructions' | 'entries' | 'task'>): Task | null {
  const toolName = /^# Task\nYou do the work of the tool (\S+) /m.exec(instructions)?.[1];
  if (toolName === undefined) return null;
  return {
    toolName,
    args: task?.arguments ?? {},
    results: (name) =>
      entries.filter(
        (entry): entry is ToolResultEntry => entry.kind === 'result' && entry.toolName === name,
      ),
    inputOf({ callId }) {
      const made = entries.find((entry) => entry.kind === 'call' && entry.callId === callId);
      return made?.kind === 'call' ? made.input : {};
    },
    told: entries.flatMap((entry) =>
      entry.kind === 'notice' && entry.notice.type === 'told' ? [entry.notice.message] : [],
    ),
  };
}

export function subagentReply(task: Task): Reply {
  switch (task.toolName) {
    case 'book_ride':
      return bookRide(task);
    case 'book_table':
      return bookTable(task);
    case 'generate_report':
      return generateReport(task);
    case 'refund_order':
      return refundOrder(task);
    default:
      return answer(`I don't know how to do "${task.toolName}".`);
  }
}

function bookRide(task: Task): Reply {
  const confirms = task.results('confirm_ride').at(-1);
  const changed = task.told.map(destinationOf).findLast((place) => place !== null);
  const asked = changed ?? textOf(task.args['destination']);
  // A booked ride is not changed.
  const destination = confirms ? textOf(task.inputOf(confirms)['destination']) : asked;
  const quote = task
    .results('get_ride_options')
    .findLast((result) => task.inputOf(result)['destination'] === destination);
  if (!quote) return call('get_ride_options', { destination });
  if (quote.error !== null) return answer(`There is no ride to ${destination}: ${quote.error}`);
  const rides = recordsIn(asRecord(quote.output)['options']);
  if (confirms) {
    if (confirms.error !== null) return answer(`The ride was not booked: ${confirms.error}`);
    const booking = asRecord(confirms.output);
    const ride = asRecord(booking['option']);
    return answer(
      `Your ${textOf(ride['name'])} ride to ${destination} is booked. ` +
        `${textOf(booking['driver'])} comes in ${textOf(ride['etaMinutes'])} minutes ` +
        `in ${textOf(booking['car'])}, for $${textOf(ride['priceUsd'])}.`,
    );
  }
  return chooseOne(task, {
    question: `Which ride to ${destination} would you like?`,
    choices: rides.map((ride) => ({
      id: textOf(ride['id']),
      label: textOf(ride['name']),
      description: `$${textOf(ride['priceUsd'])}, in ${textOf(ride['etaMinutes'])} min`,
    })),
    onChosen: (rideId) => call('confirm_ride', { destination, rideId }),
    onDeclined: `All right, no ride to ${destination} then.`,
  });
}

function bookTable(task: Task): Reply {
  const reserves = task.results('reserve_table').at(-1);
  const changed = task.told.map(guestsOf).findLast((size) => size !== null);
  const asked = changed ?? Number(task.args['partySize']);
  // A reserved table is not changed.
  const partySize = reserves ? Number(task.inputOf(reserves)['partySize']) : asked;
  const found = task
    .results('find_tables')
    .findLast((result) => task.inputOf(result)['partySize'] === partySize);
  if (!found) return call('find_tables', { partySize });
  if (found.error !== null) return answer(`There is no table: ${found.error}`);
  const tables = recordsIn(asRecord(found.output)['tables']);
  if (reserves) {
    if (reserves.error !== null) return answer(`The table was not reserved: ${reserves.error}`);
    const table = asRecord(asRecord(reserves.output)['option']);
    return answer(
      `Your table for ${partySize} at the ${textOf(table['name'])} is reserved for ` +
        `${textOf(table['time'])}, ${textOf(table['setting'])}.`,
    );
  }
  return chooseOne(task, {
    question: `Which table for ${partySize} would you like?`,
    choices: tables.map((table) => ({
      id: textOf(table['id']),
      label: textOf(table['name']),
      description: `${textOf(table['time'])}, ${textOf(table['setting'])}`,
    })),
    onChosen: (tableId) => call('reserve_table', { partySize, tableId }),
    onDeclined: 'All right, no table then.',
  });
}

interface Choice {
  readonly id: string;
  readonly label: string;
  readonly description: string;
}

/**
 * Asks the user until an answer matches. If the user stays silent, it asks again until it reaches the runtime's limit.
 */
function chooseOne(
  task: Task,
  {
    question,
    choices,
    onChosen,
    onDeclined,
  }: {
    readonly question: string;
    readonly choices: readonly Choice[];
    readonly onChosen: (id: string) => Reply;
    readonly onDeclined: string;
  },
): Reply {
  const ask = (text: string): Reply => call('ask_user', { question: text, options: choices });
  const last = task.results('ask_user').at(-1);
  if (!last) return ask(question);
  if (last.error !== null) return ask(`Are you still there? ${question}`);
  const { userResponse, optionId } = asRecord(last.output);
  const words = textOf(userResponse);
  const chosen =
    choices.find(({ id }) => id === optionId) ?? choose(words, choices, ({ label }) => label);
  if (chosen) return onChosen(chosen.id);
  if (/\b(?:no|none|neither|cancel|forget it|never ?mind|stop)\b/.test(normalise(words)))
    return answer(onDeclined);
  return ask(`I didn't get "${words}". ${question}`);
}

/** The periods of a report: those in the original request, with later additions and changes. */
function periodsOf({ args, told }: Task): readonly string[] {
  let periods = [textOf(args['dateRange'])];
  for (const words of told) {
    const without = words.replace(/\bnot (?:for |in )?(?:the )?/gi, 'not ');
    const refused = /\bnot\b/i.test(without)
      ? findDateRange(without.split(/\bnot\b/i)[1] ?? '')
      : null;
    const rest = refused === null ? words : words.toLowerCase().replace(refused, '');
    const period = findDateRange(rest);
    if (period === null) continue;
    const isInstead =
      refused !== null ||
      /\b(?:make (?:it|that)|change|switch|instead|rather|meant?)\b/i.test(words);
    periods = isInstead ? [period] : [...periods.filter((one) => one !== period), period];
  }
  return periods;
}

function generateReport(task: Task): Reply {
  const read: string[] = [];
  for (const dateRange of periodsOf(task)) {
    const resolved = task
      .results('resolve_dates')
      .findLast((result) => task.inputOf(result)['dateRange'] === dateRange);
    if (!resolved) return call('resolve_dates', { dateRange });
    if (resolved.error !== null) return answer(resolved.error);
    const period = asRecord(resolved.output);
    const before = asRecord(period['before']);
    const figuresOf = (days: Readonly<Record<string, unknown>>) =>
      task.results('query_analytics').find((result) => {
        const { from, to } = task.inputOf(result);
        return from === days['from'] && to === days['to'];
      });
    const missing = [period, before].filter((days) => !figuresOf(days));
    if (missing.length > 0)
      return {
        text: '',
        calls: missing.map(({ from, to }) => ({
          toolName: 'query_analytics',
          input: { from, to },
        })),
      };
    const [now, then] = [figuresOf(period), figuresOf(before)];
    const error = now?.error ?? then?.error;
    if (error) return answer(`The sales could not be read: ${error}`);
    read.push(reportText(textOf(period['label']), asRecord(now?.output), asRecord(then?.output)));
  }
  return answer(read.join(' '));
}

function refundOrder(task: Task): Reply {
  const number = task.args['orderId'];
  const looked = task.results('find_order').at(-1);
  if (!looked) return call('find_order', number === undefined ? {} : { order: number });
  if (looked.error !== null) return answer(`The order could not be looked up: ${looked.error}`);
  const found = asRecord(asRecord(looked.output)['found']);
  const order = textOf(found['orderId']);
  if (order === '') return answer("I can't find that order, so there is nothing to refund.");
  if (found['status'] === 'refunded') return answer(`Order ${order} was refunded before.`);
  const refunded = task.results('refund').at(-1);
  if (!refunded) return call('refund', { order, dollars: found['paidUsd'] });
  const what = `order ${order}, ${textOf(found['item'])}`;
  if (refunded.isDenied) return answer(`All right, ${what}, is not refunded.`);
  if (refunded.error !== null) return answer(`It was not refunded: ${refunded.error}`);
  // If the user changed the call, its result comes with a note.
  const output = asRecord(refunded.output);
  const { dollars } = asRecord(output['result'] ?? output);
  return answer(`You get $${textOf(dollars)} back for ${what}.`);
}

function reportText(
  label: string,
  now: Readonly<Record<string, unknown>>,
  then: Readonly<Record<string, unknown>>,
): string {
  const revenue = Number(now['revenueUsd']);
  const change = Math.round((revenue / Math.max(1, Number(then['revenueUsd'])) - 1) * 100);
  const best = asRecord(now['bestDay']);
  const product = recordsIn(now['byProduct']).toSorted(
    (a, b) => Number(b['revenueUsd']) - Number(a['revenueUsd']),
  )[0];
  const trend =
    change === 0 ? 'the same as' : `${Math.abs(change)}% ${change > 0 ? 'more' : 'less'} than in`;
  return [
    `${capital(label)} brought $${thousands(revenue)} from ${thousands(Number(now['orders']))} orders,`,
    `${trend} the period before.`,
    `The best day was ${spokenDay(textOf(best['date']))} with $${thousands(Number(best['revenueUsd']))},`,
    `and ${textOf(product?.['product']).toLowerCase()} sold best.`,
  ].join(' ');
}

function thousands(amount: number): string {
  return Math.round(amount).toLocaleString('en-US');
}

function spokenDay(day: string): string {
  return new Date(day).toLocaleDateString('en-US', {
    month: 'long',
    day: 'numeric',
    timeZone: 'UTC',
  });
}

function recordsIn(value: unknown): readonly Readonly<Record<string, unknown>>[] {
  return Array.isArray(value) ? value.map(asRecord) : [];
}

function call(toolName: string, input: Readonly<Record<string, unknown>>): Reply {
  return { text: '', calls: [{ toolName, input }] };
}

function answer(text: string): Reply {
  return { text: sentence(text), calls: [] };
}
