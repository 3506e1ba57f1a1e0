// What a client says, as JSON: checked here, and handed to the session. What does not fit
// is answered with what was expected, and reported; it never harms the session.

import { z } from 'zod';
import { fromBase64 } from '../../../values/base64.ts';
import { messageOf, ProtocolError } from '../../../values/errors.ts';
import type { AnswerReceipt } from '../../contracts/session-views.ts';
import type { GivenAnswer } from '../../subagent/ask-user.ts';
import { MAX_IMAGE_BYTES, type ShownImage } from './shown-image.ts';

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
  /** A question is on the screen: its buttons count from now. */
  z.object({ type: z.literal('question.shown'), requestId: id }),
  /** A result or notice was seen. */
  z.object({ type: z.literal('delivery.shown'), deliveryId: id }),
  /** The user does not want to hear it. */
  z.object({ type: z.literal('delivery.dismissed'), deliveryId: id }),
  z.object({ type: z.literal('subagent.cancel'), subagentId: id }),
  /** The user shows a picture; `data` is its file in base64. */
  z.object({
    type: z.literal('image_input'),
    mediaType: z.string().max(MAX_ID_CHARS),
    data: z.base64().max(Math.ceil(MAX_IMAGE_BYTES / 3) * 4),
  }),
]);

export type ClientInput = z.infer<typeof clientInputSchema>;

/** What became of a client's message. */
export type ClientReceipt =
  | AnswerReceipt
  | { readonly accepted: false; readonly reason: 'invalid' | 'refused'; readonly message: string };

/** What a client's message may do. */
export interface ClientDoor {
  /** Throws where the session does not keep up: clients are not trusted to wait. */
  checkRoom(): void;
  answer(requestId: string, answer: GivenAnswer): Promise<AnswerReceipt>;
  say(text: string): Promise<void>;
  questionShown(requestId: string): void;
  shown(deliveryId: string): void;
  dismiss(deliveryId: string): void;
  cancelSubagent(subagentId: string): boolean;
  /** False: the model is not on the line. Throws where it takes no pictures, or not this one. */
  showImage(image: ShownImage): boolean;
  reportError(error: unknown, where: string): void;
}

/** Takes a message of a client, parsed or as text. Never rejects. */
export async function receiveFromClient(
  door: ClientDoor,
  message: unknown,
): Promise<ClientReceipt> {
  const checked = check(message);
  if (!checked.ok) {
    const { why, cause } = checked;
    const expected = `Expected a message of a client: ${why}`;
    door.reportError(
      new ProtocolError('INVALID_CLIENT_MESSAGE', expected, { raw: message, cause }),
      'client',
    );
    return { accepted: false, reason: 'invalid', message: expected };
  }
  try {
    door.checkRoom();
    return await handOver(door, checked.input);
  } catch (error) {
    return { accepted: false, reason: 'refused', message: messageOf(error) };
  }
}

type Checked =
  | { readonly ok: true; readonly input: ClientInput }
  | { readonly ok: false; readonly why: string; readonly cause: unknown };

function check(message: unknown): Checked {
  try {
    const parsed = clientInputSchema.safeParse(asData(message));
    return parsed.success
      ? { ok: true, input: parsed.data }
      : { ok: false, why: z.prettifyError(parsed.error), cause: parsed.error };
  } catch (cause) {
    // So deeply nested that nobody can even look at it: the stack overflows.
    return { ok: false, why: messageOf(cause), cause };
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
    case 'image_input': {
      // The schema has refused what is no base64.
      const data = fromBase64(input.data) ?? new Uint8Array();
      if (door.showImage({ mediaType: input.mediaType, data })) break;
      const message = 'The model is not on the line: show it again when the session is active';
      return { accepted: false, reason: 'refused', message };
    }
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
