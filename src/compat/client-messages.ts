// Client messages in Bodhi's JSON, in both directions. Use them for apps whose clients know these messages and do not
// follow `session.events`. It uses only the public session.
//
// Invariants
//   CLIENT-MESSAGES-1. Each subscriber receives each question and each end of a subagent once. It receives progress
//       only if it has changed. A subscriber receives only later events; earlier state is in `session.store`.
//   CLIENT-MESSAGES-2. A delivery that a client may acknowledge has its `deliveryId`, either in the message that
//       reports it or in a card. Later subscribers receive it as a card until a client has acknowledged it.
//   CLIENT-MESSAGES-3. Each subscriber counts as a listener of the session (`session.listen`).
//   CLIENT-MESSAGES-4. A malformed message is reported and answered with a description of what was expected. It does
//       not affect the session.

import { concat, concatMap, Observable } from 'rxjs';
import { z } from 'zod';
import { checkedBy, type VouchedFor } from '../actors/contracts/identity.ts';
import type { Artifact } from '../actors/contracts/outcome.ts';
import type {
  AnswerReceipt,
  DeliveryView,
  QuestionOption,
  QuestionView,
  SessionEvent,
  SubagentView,
  TranscriptItem,
} from '../actors/contracts/session-views.ts';
import { MAX_IMAGE_BYTES } from '../actors/session/questions/shown-image.ts';
import type { BaseSession } from '../actors/session/view/base-session.ts';
import type { GivenAnswer } from '../actors/subagent/ask-user.ts';
import { fromBase64 } from '../values/base64.ts';
import { anObject, check } from '../values/checks.ts';
import { messageOf, ProtocolError } from '../values/errors.ts';

/** The part of a session that these messages need. */
export type ClientSession = Pick<
  BaseSession,
  | 'answer'
  | 'committed'
  | 'dismiss'
  | 'events'
  | 'listen'
  | 'questionShown'
  | 'reportError'
  | 'sendText'
  | 'showImage'
  | 'shown'
  | 'store'
  | 'subagents'
>;

const aSession = anObject('a session: a TextSession or a VoiceSession', 'listen', 'sendText');

/** Buttons to show next to the text. `ui.response` answers them. */
export type UiPayload =
  | {
      readonly type: 'choice';
      readonly requestId: string;
      readonly data: { readonly options: readonly QuestionOption[] };
    }
  | {
      readonly type: 'confirmation';
      readonly requestId: string;
      readonly data: { readonly text: string; readonly options: readonly QuestionOption[] };
    };

/** A message to a client in Bodhi's JSON. */
export type ClientMessage =
  | {
      readonly type: 'transcript';
      readonly itemId: string;
      readonly role: 'user' | 'assistant';
      readonly text: string;
      readonly partial: boolean;
      /** The text replaces that of an earlier final transcript. */
      readonly corrected: boolean;
      /** The user interrupted the speech: `text` contains only what the user heard. */
      readonly interrupted: boolean;
      /** The text only fills a silence. */
      readonly filler?: boolean;
      /** The delivery that the text reports. Answer with `delivery.shown` once it is on the screen. */
      readonly deliveryId?: string;
      /** The results that the text reports together. */
      readonly deliveryIds?: readonly string[];
    }
  /**
   * A result or notice that the user has not seen and that no text has reported to this client. Answer with
   * `delivery.shown` or `delivery.dismissed`.
   */
  | {
      readonly type: 'delivery.card';
      readonly deliveryId: string;
      readonly subagentId: string | null;
      readonly label: string;
      readonly text: string;
    }
  | { readonly type: 'turn.ended'; readonly turn: number; readonly agentName: string }
  | { readonly type: 'agent.changed'; readonly agentName: string; readonly from: string | null }
  /** A subagent asks, and the user's answer goes to the subagent. A queued question is sent when it is asked. */
  | {
      readonly type: 'subagent.question';
      readonly requestId: string;
      readonly subagentId: string;
      readonly subagentName: string;
      readonly toolCallId: string | null;
      readonly text: string;
    }
  /** The question has ended: remove its buttons. */
  | {
      readonly type: 'subagent.question.closed';
      readonly requestId: string;
      readonly state: 'answered' | 'expired' | 'withdrawn' | 'superseded';
      readonly answer: string | null;
    }
  | { readonly type: 'ui.payload'; readonly payload: UiPayload }
  | {
      readonly type: 'subagent.progress';
      readonly subagentId: string;
      readonly subagentName: string;
      readonly toolCallId: string | null;
      readonly text: string;
    }
  | ({ readonly type: 'subagent.completion' } & SubagentCompletion)
  /** The value that is passed to `sendJsonToClient`. */
  | { readonly type: 'json'; readonly data: unknown };

/** How a subagent ended. */
export interface SubagentCompletion {
  /** The subagent's id. */
  readonly subagentId: string;
  /** The tool call on which the subagent worked, or null. */
  readonly toolCallId: string | null;
  /** How the subagent ended. */
  readonly status: 'success' | 'failure' | 'cancelled';
  /** The result as text for speech, or the reason why there is no result. */
  readonly summaryText: string;
  /** The products that the subagent has created. */
  readonly artifacts: readonly Artifact[];
  /**
   * The configuration's name, the time from start to end, the number of model steps, and the instance's lifetime. The
   * time is in milliseconds.
   */
  readonly metadata: {
    readonly configName: string;
    readonly durationMs: number;
    readonly stepCount: number;
    readonly lifetime: 'ephemeral' | 'session';
  };
}

/** The number of ids of each kind that a subscriber remembers. */
const REMEMBERED = 1000;

/**
 * Returns the messages for one client. The observable is cold: each subscriber is one client, with its own memory of
 * received messages. A client acknowledges each delivery that it has shown. It sends `delivery.shown` with the
 * `deliveryId` of the message to `receiveClientMessage`.
 * @throws {ConfigurationError} `INVALID_ARGUMENT` if `session` is not a session.
 */
export function clientMessages(
  session: Pick<ClientSession, 'events' | 'listen' | 'store'>,
): Observable<ClientMessage> {
  check('clientMessages(session)', aSession, session, 'INVALID_ARGUMENT');
  return new Observable((client) => {
    const told = new Told();
    const { deliveries } = session.store.getSnapshot().context;
    const cards = deliveries.flatMap((delivery) => told.cardOf(delivery));
    const messages = concat(
      cards,
      session.events.pipe(concatMap((event) => told.messagesOf(event))),
    );
    return messages.subscribe(client).add(session.listen());
  });
}

/** The record of what one subscriber has received. */
class Told {
  readonly #finals = new Bounded<string>();
  readonly #questions = new Bounded<string>();
  readonly #progress = new Bounded<string>();
  readonly #ended = new Bounded<boolean>();
  readonly #calls = new Bounded<string | null>();
  /** Deliveries that this client has received in a text or as a card. */
  readonly #deliveries = new Bounded<boolean>();
  readonly #lifetimes = new Bounded<'ephemeral' | 'session'>();

  messagesOf(event: SessionEvent): readonly ClientMessage[] {
    const { type } = event;
    if (type === 'transcript.changed') return [this.#transcript(event.item)];
    if (type === 'turn.ended') return [event];
    if (type === 'question.changed') return this.#question(event.question);
    if (type === 'subagent.changed') return this.#subagent(event.subagent);
    if (type === 'delivery.changed') return this.cardOf(event.delivery);
    if (type === 'client.json') return [{ type: 'json', data: event.data }];
    if (type === 'subagent.delegated') this.#lifetimes.set(event.subagentId, event.lifetime);
    // A failed transfer does not change the lead agent.
    if (type === 'agent.entered' && event.from !== event.agentName)
      return [{ type: 'agent.changed', agentName: event.agentName, from: event.from }];
    return [];
  }

  /** CLIENT-MESSAGES-2 */
  cardOf({ deliveryId, subagentId, label, text, ...view }: DeliveryView): readonly ClientMessage[] {
    const isCard = view.card && view.state === 'pending' && view.kind !== 'question';
    if (!isCard || this.#deliveries.get(deliveryId)) return [];
    this.#deliveries.set(deliveryId, true);
    return [{ type: 'delivery.card', deliveryId, subagentId, label, text }];
  }

  #transcript(item: TranscriptItem): ClientMessage {
    const { id: itemId, role, text, final, interrupted = false, filler } = item;
    const { deliveryId, deliveryIds } = item;
    for (const id of deliveryIds ?? (deliveryId === undefined ? [] : [deliveryId]))
      this.#deliveries.set(id, true);
    const before = this.#finals.get(itemId);
    if (final) this.#finals.set(itemId, text);
    const corrected = before !== undefined && before !== text && !interrupted;
    const message = { itemId, role, text, partial: !final, corrected, interrupted };
    return {
      type: 'transcript',
      ...message,
      ...(filler && { filler }),
      ...(deliveryId !== undefined && { deliveryId }),
      ...(deliveryIds && { deliveryIds }),
    };
  }

  #question(question: QuestionView): readonly ClientMessage[] {
    const { requestId, subagentId, subagentName, state, answer, kind, options } = question;
    const before = this.#questions.get(requestId);
    if (before === state) return [];
    if (state === 'queued' || state === 'parked') return [];
    if (state !== 'presenting' && state !== 'open') {
      this.#questions.set(requestId, state);
      // This client has not received the question.
      if (before === undefined) return [];
      return [{ type: 'subagent.question.closed', requestId, state, answer }];
    }
    if (before !== undefined) return [];
    this.#questions.set(requestId, 'open');
    const toolCallId = this.#calls.get(subagentId) ?? null;
    const text = question.question;
    const payload = payloadOf(requestId, kind, text, options);
    return [
      { type: 'subagent.question', requestId, subagentId, subagentName, toolCallId, text },
      ...(payload ? [{ type: 'ui.payload' as const, payload }] : []),
    ];
  }

  #subagent(view: SubagentView): readonly ClientMessage[] {
    const { id: subagentId, name: subagentName, callId: toolCallId, progress, outcome } = view;
    if (this.#ended.get(subagentId)) return [];
    this.#calls.set(subagentId, toolCallId);
    const messages: ClientMessage[] = [];
    if (progress !== null && progress !== this.#progress.get(subagentId)) {
      this.#progress.set(subagentId, progress);
      const text = progress;
      messages.push({ type: 'subagent.progress', subagentId, subagentName, toolCallId, text });
    }
    if (view.endedAt === null || !outcome) return messages;
    this.#ended.set(subagentId, true);
    const { status, summary, text, error, steps: stepCount, artifacts = [] } = outcome;
    messages.push({
      type: 'subagent.completion',
      subagentId,
      toolCallId,
      status: status === 'completed' ? 'success' : status === 'cancelled' ? status : 'failure',
      summaryText: status === 'completed' ? (summary ?? text) : (error?.message ?? status),
      artifacts,
      metadata: {
        configName: subagentName,
        durationMs: view.endedAt - view.startedAt,
        stepCount,
        lifetime: this.#lifetimes.get(subagentId) ?? 'ephemeral',
      },
    });
    return messages;
  }
}

function payloadOf(
  requestId: string,
  kind: QuestionView['kind'],
  text: string,
  options: readonly QuestionOption[],
): UiPayload | null {
  if (kind === 'approval') return { type: 'confirmation', requestId, data: { text, options } };
  return options.length > 0 ? { type: 'choice', requestId, data: { options } } : null;
}

/** A map that drops its oldest entries. */
class Bounded<T> {
  readonly #entries = new Map<string, T>();

  get(key: string): T | undefined {
    return this.#entries.get(key);
  }

  set(key: string, value: T): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    const [oldest] = this.#entries.keys();
    if (this.#entries.size > REMEMBERED && oldest !== undefined) this.#entries.delete(oldest);
  }
}

const MAX_TEXT_CHARS = 20_000;
const MAX_ID_CHARS = 200;

const id = z.string().min(1).max(MAX_ID_CHARS);
const text = z.string().trim().min(1).max(MAX_TEXT_CHARS);

/** The messages that clients may send. */
const clientInputSchema = z.discriminatedUnion('type', [
  /** A button, an approval, a text, or the fields of a form. Exactly one of them is set. */
  z
    .object({
      type: z.literal('ui.response'),
      requestId: id,
      selectedOptionId: id.optional(),
      approved: z.boolean().optional(),
      /** With `approved: true`: the arguments that replace the call's own. */
      input: z.json().optional(),
      lasts: z.enum(['task', 'session']).optional(),
      text: text.optional(),
      formData: z
        .record(z.string().max(MAX_ID_CHARS), z.json())
        .refine(
          (form) => JSON.stringify(form).length <= MAX_TEXT_CHARS,
          `expected at most ${MAX_TEXT_CHARS} characters of JSON`,
        )
        .optional(),
    })
    .refine(
      ({ selectedOptionId, approved, text: words, formData }) =>
        [selectedOptionId, approved, words, formData].filter((one) => one !== undefined).length ===
        1,
      'expected one of selectedOptionId, approved, text, formData',
    ),
  /** The user types. */
  z.object({ type: z.literal('text_input'), text }),
  /** A question is on the screen, so from now on its buttons are accepted. */
  z.object({ type: z.literal('question.shown'), requestId: id }),
  /** The user has seen a result or a notice. */
  z.object({ type: z.literal('delivery.shown'), deliveryId: id }),
  /** The user does not want to hear a result or a notice. */
  z.object({ type: z.literal('delivery.dismissed'), deliveryId: id }),
  z.object({ type: z.literal('subagent.cancel'), subagentId: id }),
  /** The user shows an image. `data` is the image file, encoded as base64. */
  z.object({
    type: z.literal('image_input'),
    mediaType: z.string().max(MAX_ID_CHARS),
    data: z.base64().max(Math.ceil(MAX_IMAGE_BYTES / 3) * 4),
  }),
]);

/** A client's message in Bodhi's JSON. */
export type ClientInput = z.infer<typeof clientInputSchema>;

/** The receipt for a client's message: accepted, or why it was refused. */
export type ClientReceipt =
  | AnswerReceipt
  | { readonly accepted: false; readonly reason: 'invalid' | 'refused'; readonly message: string };

/**
 * Accepts a message from a client, as JSON text or as a parsed value: `ui.response`, `text_input` and the rest of
 * `ClientInput`. The receipt states whether the message was accepted and, if it was not, why. `by`: the identity of the
 * client's connection, which the app has checked. A message cannot contain an identity.
 * @throws {ConfigurationError} `INVALID_ARGUMENT` if `session` is not a session or an option is unknown (rejects).
 */
export async function receiveClientMessage(
  session: Omit<ClientSession, 'events' | 'listen' | 'store'>,
  message: unknown,
  options: VouchedFor = {},
): Promise<ClientReceipt> {
  check('receiveClientMessage(session)', aSession, session, 'INVALID_ARGUMENT');
  checkedBy('receiveClientMessage(session, message, options)', options);
  const checked = checkedInput(message);
  if (!checked.ok) {
    const { why, cause } = checked;
    const expected = `Expected a message of a client: ${why}`;
    session.reportError(
      new ProtocolError('INVALID_CLIENT_MESSAGE', expected, { raw: message, cause }),
      'client',
    );
    return { accepted: false, reason: 'invalid', message: expected };
  }
  try {
    return await handOver(session, checked.input, options);
  } catch (error) {
    return { accepted: false, reason: 'refused', message: messageOf(error) };
  }
}

type Checked =
  | { readonly ok: true; readonly input: ClientInput }
  | { readonly ok: false; readonly why: string; readonly cause: unknown };

function checkedInput(message: unknown): Checked {
  try {
    const parsed = clientInputSchema.safeParse(asData(message));
    return parsed.success
      ? { ok: true, input: parsed.data }
      : { ok: false, why: z.prettifyError(parsed.error), cause: parsed.error };
  } catch (cause) {
    // A deeply nested value would overflow the stack.
    return { ok: false, why: messageOf(cause), cause };
  }
}

async function handOver(
  session: Omit<ClientSession, 'events' | 'listen' | 'store'>,
  input: ClientInput,
  options: VouchedFor,
): Promise<ClientReceipt> {
  switch (input.type) {
    case 'ui.response':
      return session.answer(input.requestId, answerOf(input), options);
    case 'text_input':
      await session.sendText(input.text, options);
      break;
    case 'question.shown':
      session.questionShown(input.requestId, options);
      break;
    case 'delivery.shown':
      session.shown(input.deliveryId, options);
      break;
    case 'delivery.dismissed':
      session.dismiss(input.deliveryId, options);
      break;
    case 'subagent.cancel': {
      const wasRunning = session.subagents.cancel(input.subagentId, undefined, options);
      if (!wasRunning) return { accepted: false, reason: 'unknown' };
      break;
    }
    case 'image_input': {
      // The schema accepts only base64.
      const data = fromBase64(input.data) ?? new Uint8Array();
      if (session.showImage({ mediaType: input.mediaType, data })) break;
      const message = 'The model is not connected: show the image again when the session is active';
      return { accepted: false, reason: 'refused', message };
    }
  }
  await session.committed();
  return { accepted: true };
}

function answerOf(response: Extract<ClientInput, { type: 'ui.response' }>): GivenAnswer {
  const { selectedOptionId: optionId, approved, input, lasts, text: words, formData } = response;
  if (optionId !== undefined) return { optionId };
  if (approved !== undefined)
    return { approved, ...(input !== undefined && { input }), ...(lasts && { lasts }) };
  // The subagent receives the fields of the form as JSON.
  return { text: words ?? JSON.stringify(formData) };
}

/** Parses a text frame from a socket. The schema then rejects text that is not JSON. */
function asData(message: unknown): unknown {
  if (typeof message !== 'string') return message;
  try {
    return JSON.parse(message) as unknown;
  } catch {
    return message;
  }
}
