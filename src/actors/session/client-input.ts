// What a client says, as JSON: checked here, and handed to the session. What does not fit
// is answered with what was expected, and reported; it never harms the session.

import { z } from 'zod';
import { messageOf, ProtocolError } from '../../errors.ts';
import type { AnswerReceipt } from '../session-views.ts';
import type { GivenAnswer } from '../subagent/ask-user.ts';

const MAX_TEXT_CHARS = 20_000;
const MAX_ID_CHARS = 200;

const id = z.string().min(1).max(MAX_ID_CHARS);
const text = z.string().trim().min(1).max(MAX_TEXT_CHARS);

/** What clients may send. */
export const clientInputSchema = z.discriminatedUnion('type', [
  /** A button, a consent, words, or the fields of a form; one of them. */
  z
    .object({
      type: z.literal('ui.response'),
      requestId: id,
      selectedOptionId: id.optional(),
      approved: z.boolean().optional(),
      text: text.optional(),
      formData: z.record(z.string().max(MAX_ID_CHARS), z.json()).optional(),
    })
    .refine(
      ({ selectedOptionId, approved, text: words, formData }) =>
        [selectedOptionId, approved, words, formData].filter((one) => one !== undefined).length ===
        1,
      'expected one of selectedOptionId, approved, text, formData',
    ),
  /** The user types. */
  z.object({ type: z.literal('text_input'), text }),
  /** A question is on the screen: its buttons count from now. */
  z.object({ type: z.literal('question.shown'), requestId: id }),
  /** A result or notice was seen. */
  z.object({ type: z.literal('delivery.shown'), deliveryId: id }),
  /** The user does not want to hear it. */
  z.object({ type: z.literal('delivery.dismissed'), deliveryId: id }),
  z.object({ type: z.literal('subagent.cancel'), subagentId: id }),
]);

export type ClientInput = z.infer<typeof clientInputSchema>;

/** What became of a client's message. */
export type ClientReceipt =
  | AnswerReceipt
  | { readonly accepted: false; readonly reason: 'invalid' | 'refused'; readonly message: string };

/** What a client's message may do. */
export interface ClientDoor {
  answer(requestId: string, answer: GivenAnswer): Promise<AnswerReceipt>;
  say(text: string): Promise<void>;
  questionShown(requestId: string): void;
  shown(deliveryId: string): void;
  dismiss(deliveryId: string): void;
  cancelSubagent(subagentId: string): boolean;
  reportError(error: unknown, where: string): void;
}

/** Takes a message of a client, parsed or as text. Never rejects. */
export async function receiveFromClient(
  door: ClientDoor,
  message: unknown,
): Promise<ClientReceipt> {
  const parsed = clientInputSchema.safeParse(asData(message));
  if (!parsed.success) {
    const expected = `Expected a message of a client: ${z.prettifyError(parsed.error)}`;
    door.reportError(
      new ProtocolError('INVALID_CLIENT_MESSAGE', expected, { raw: message, cause: parsed.error }),
      'client',
    );
    return { accepted: false, reason: 'invalid', message: expected };
  }
  try {
    return await handOver(door, parsed.data);
  } catch (error) {
    return { accepted: false, reason: 'refused', message: messageOf(error) };
  }
}

async function handOver(door: ClientDoor, input: ClientInput): Promise<ClientReceipt> {
  switch (input.type) {
    case 'ui.response':
      return door.answer(input.requestId, answerOf(input));
    case 'text_input':
      await door.say(input.text);
      break;
    case 'question.shown':
      door.questionShown(input.requestId);
      break;
    case 'delivery.shown':
      door.shown(input.deliveryId);
      break;
    case 'delivery.dismissed':
      door.dismiss(input.deliveryId);
      break;
    case 'subagent.cancel':
      if (!door.cancelSubagent(input.subagentId)) return { accepted: false, reason: 'unknown' };
      break;
  }
  return { accepted: true };
}

function answerOf(response: Extract<ClientInput, { type: 'ui.response' }>): GivenAnswer {
  const { selectedOptionId: optionId, approved, text: words, formData } = response;
  if (optionId !== undefined) return { optionId };
  if (approved !== undefined) return { approved };
  // The subagent reads what the user filled in.
  return { text: words ?? JSON.stringify(formData) };
}

/** A frame of a socket is text; what is no JSON is told as what it is. */
function asData(message: unknown): unknown {
  if (typeof message !== 'string') return message;
  try {
    return JSON.parse(message) as unknown;
  } catch {
    return message;
  }
}
