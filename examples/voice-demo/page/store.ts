// All that the page shows, as signals: the session's views, brought up to date by what
// the server sends, and what this page alone knows.

import { computed, signal } from '@preact/signals';
import type {
  DeliveryView,
  QuestionView,
  SessionEvent,
  SessionState,
  SubagentView,
  TranscriptItem,
} from '../../../src/actors/contracts/session-views.ts';
import type { About, ServerMessage, Suggestion } from '../shared/protocol.ts';

/** How the page and the server stand. */
export type Link =
  | { readonly state: 'connecting' }
  | { readonly state: 'open' }
  /** Lost; the next attempt comes at `retryAt`, on this page's clock. */
  | { readonly state: 'waiting'; readonly retryAt: number }
  /** The link in the address bar is of another start. */
  | { readonly state: 'refused' };

export const link = signal<Link>({ state: 'connecting' });
export const connection = signal<SessionState['connection']>('created');
export const floor = signal<SessionState['floor']>('nobody');
export const transcript = signal<readonly TranscriptItem[]>([]);
export const subagents = signal<readonly SubagentView[]>([]);
export const questions = signal<readonly QuestionView[]>([]);
export const deliveries = signal<readonly DeliveryView[]>([]);
/** The arguments of the lead agent's tool calls, by call. */
export const calls = signal<ReadonlyMap<string, unknown>>(new Map());
/** When something ended, by its id, on this page's clock: it stays in sight for a moment. */
export const endedAt = signal<ReadonlyMap<string, number>>(new Map());
export const about = signal<About | null>(null);
export const suggestions = signal<readonly Suggestion[]>([]);
/** This page is the one that speaks and listens. */
export const ownsVoice = signal(false);
/** Why the session is over, if it is. */
export const ended = signal<string | null>(null);
/** When a button of this page answered a question, by request, on the server's clock: nobody said these words. */
export const answeredHere = signal<ReadonlyMap<string, number>>(new Map());
/** The refusal of an answer, by request. */
export const answerProblems = signal<ReadonlyMap<string, string>>(new Map());
/** Something went wrong; shown for a while. */
export const trouble = signal<string | null>(null);
/** Server's clock minus the page's. */
export const clockOffsetMs = signal(0);
/** The server's time, once a second. */
export const now = signal(Date.now());

export const openQuestions = computed(() =>
  questions.value
    .filter(({ state }) => !isOver(state))
    .toSorted((a, b) => rank(a) - rank(b) || a.askedAt - b.askedAt),
);

export const running = computed(() => subagents.value.filter(({ endedAt: end }) => end === null));

export function isOver(state: QuestionView['state']): boolean {
  return ['answered', 'expired', 'withdrawn', 'superseded'].includes(state);
}

export function applyMessage(message: ServerMessage): void {
  switch (message.type) {
    case 'welcome': {
      const { state } = message;
      clockOffsetMs.value = message.now - Date.now();
      now.value = message.now;
      connection.value = state.connection;
      floor.value = state.floor;
      transcript.value = state.transcript;
      subagents.value = state.subagents;
      questions.value = state.questions;
      deliveries.value = state.deliveries;
      calls.value = new Map(message.calls.map(({ callId, input }) => [callId, input]));
      about.value = message.about;
      suggestions.value = message.suggestions;
      if (state.connection !== 'closed') ended.value = null;
      break;
    }
    case 'session.event':
      clockOffsetMs.value = message.now - Date.now();
      applyEvent(message.event);
      break;
    case 'voice.owner':
      ownsVoice.value = message.own;
      break;
    case 'answer.receipt': {
      const problems = new Map(answerProblems.value);
      const { requestId, receipt } = message;
      if (receipt.accepted) {
        problems.delete(requestId);
        const at = Date.now() + clockOffsetMs.value;
        answeredHere.value = new Map(answeredHere.value).set(requestId, at);
      } else problems.set(requestId, receiptWords[receipt.reason]);
      answerProblems.value = problems;
      break;
    }
    case 'client.error':
      trouble.value = message.message;
      break;
    case 'audio.item':
      break;
  }
}

const receiptWords = {
  not_allowed: 'You may not answer this question.',
  unknown: 'This question is not known any more.',
  queued: 'It is not its turn yet.',
  not_presented: 'It is not being asked right now.',
  over: 'This question is closed.',
  invalid_option: 'That is not one of the options.',
  unclear: 'That did not fit. Please say it in other words, or press a button.',
} as const;

function applyEvent(event: SessionEvent): void {
  switch (event.type) {
    case 'connection.changed':
      connection.value = event.state;
      break;
    case 'floor.changed':
      floor.value = event.floor;
      break;
    case 'transcript.changed':
      transcript.value = upsert(transcript.value, event.item, ({ id }) => id).toSorted(
        (a, b) => a.at - b.at,
      );
      break;
    case 'tool.called':
      calls.value = new Map(calls.value).set(event.callId, event.input);
      break;
    case 'subagent.changed':
      subagents.value = upsert(subagents.value, event.subagent, ({ id }) => id);
      break;
    case 'question.changed':
      if (isOver(event.question.state)) noteEnd(event.question.requestId);
      questions.value = upsert(questions.value, event.question, ({ requestId }) => requestId);
      break;
    case 'delivery.changed':
      deliveries.value = upsert(deliveries.value, event.delivery, ({ deliveryId }) => deliveryId);
      break;
    case 'error.reported':
      trouble.value = event.message;
      break;
    case 'tool.in_doubt':
      trouble.value = `Nobody knows whether "${event.toolName}" was done: look before you repeat it.`;
      break;
    case 'utterance.unanswered':
      trouble.value =
        event.reason === 'no_reply'
          ? 'There is no answer to that. Please say it again.'
          : 'That was not understood yet. Please say it again if nothing comes.';
      break;
    case 'session.suspended':
      ended.value = 'The conversation has moved to another server.';
      break;
    case 'session.ended':
      ended.value = event.error?.message ?? 'The conversation is over.';
      break;
    // Nothing that this page shows.
    case 'agent.entered':
    case 'agent.exited':
    case 'backchannel.heard':
    case 'client.json':
    case 'conversation.summarised':
    case 'limits.changed':
    case 'memory.distilled':
    case 'playout.clear':
    case 'service.changed':
    case 'service.dropped':
    case 'session.recovered':
    case 'speech.interrupted':
    case 'speech.resumed':
    case 'subagent.delegated':
    case 'subagent.ended':
    case 'subagent.progressed':
    case 'tool.answered':
    case 'transfer.completed':
    case 'transfer.failed':
    case 'turn.ended':
    case 'usage.changed':
    case 'user.away':
    case 'user.back':
    case 'utterance.routed':
      break;
  }
}

function noteEnd(id: string): void {
  if (!endedAt.value.has(id)) endedAt.value = new Map(endedAt.value).set(id, Date.now());
}

function upsert<T>(items: readonly T[], item: T, key: (item: T) => string): readonly T[] {
  const index = items.findIndex((each) => key(each) === key(item));
  return index < 0 ? [...items, item] : items.with(index, item);
}

/** The one that is asked comes first; the others in the order of asking. */
function rank({ state }: QuestionView): number {
  return state === 'queued' ? 1 : 0;
}
