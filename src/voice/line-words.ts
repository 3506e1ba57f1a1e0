// What a voice model is told of who it is, and what a session is told of a line that was
// lost. Pure.

import { transferText } from '../actors/conversation/model-messages.ts';
import type { ConversationItem } from '../actors/conversation/items.ts';
import type { Leads } from '../actors/session/leads.ts';
import type { LineClosed } from './link.ts';
import type { TransportCommand, TransportConfiguration } from './transport.ts';

/** Who the model shall be: the instructions and tools of this agent. */
export function configurationOf(leads: Leads, agentName: string): TransportConfiguration {
  return {
    instructions: leads.instructionsOf(agentName),
    tools: [...leads.toolsOf(agentName)].map(([name, { definition, jsonSchema }]) => ({
      name,
      description: definition.description,
      parameters: jsonSchema,
    })),
  };
}

/** That the conversation was handed over, for a model that was there before. */
export function transferNote(
  item: ConversationItem | undefined,
): Extract<TransportCommand, { type: 'message.add' }> | null {
  if (item?.role !== 'transfer') return null;
  return { type: 'message.add', itemId: item.id, role: 'system', text: transferText(item) };
}

export interface ReconnectDelays {
  /** After the first loss, in milliseconds; doubles each time up to `maxReconnectDelayMs`. */
  readonly reconnectDelayMs: number;
  readonly maxReconnectDelayMs: number;
}

/** The line is lost, as the session is told. `failures`: in a row, before this one; `chance`: 0 to 1. */
export function lossOf(
  { reason, retryable, code }: LineClosed,
  transportName: string,
  { reconnectDelayMs, maxReconnectDelayMs }: ReconnectDelays,
  failures: number,
  chance: number,
) {
  const delayMs = Math.min(reconnectDelayMs * 2 ** failures, maxReconnectDelayMs);
  return {
    type: 'transport.lost',
    error: {
      code: 'TRANSPORT_LOST',
      message: `The connection to ${transportName} was lost (${code ?? 'no code'}): ${reason}`,
      retryable,
    },
    // Jitter: sessions that were cut off together do not come back together.
    retryInMs: retryable ? Math.round(delayMs * (0.5 + chance / 2)) : null,
  };
}
