// The configuration of a voice model and the events that report a lost connection to the session. Pure.

import { transferNote } from '../../actors/conversation/model-messages.ts';
import type { Note } from '../../actors/notes/note.ts';
import type { ConversationItem } from '../../actors/conversation/items.ts';
import type { LeadAgents } from '../../actors/session/lead/lead-agents.ts';
import type { LineClosed } from './link.ts';
import type { TransportConfiguration } from './transport.ts';

/** Returns the instructions and tools of this agent for the model. */
export function configurationOf(agents: LeadAgents, agentName: string): TransportConfiguration {
  return {
    instructions: agents.instructionsOf(agentName),
    tools: [...agents.toolsOf(agentName)].map(([name, { definition, jsonSchema }]) => ({
      name,
      description: definition.description,
      parameters: jsonSchema,
    })),
  };
}

/** Returns the note about a transfer for a model that was connected before it. */
export function handoverNote(
  item: ConversationItem | undefined,
): { readonly itemId: string; readonly note: Note } | null {
  return item?.role === 'transfer' ? { itemId: item.id, note: transferNote(item) } : null;
}

export interface ReconnectDelays {
  /** Delay after the first loss, in milliseconds; doubles each time up to `maxReconnectDelayMs`. */
  readonly reconnectDelayMs: number;
  readonly maxReconnectDelayMs: number;
}

/** Returns the event for a lost connection. `failures`: consecutive ones before this; `chance`: 0 to 1. */
export function lossOf(
  { reason, retryable, code }: LineClosed,
  transportName: string,
  { reconnectDelayMs, maxReconnectDelayMs }: ReconnectDelays,
  failures: number,
  chance: number,
) {
  const delayMs = Math.min(reconnectDelayMs * 2 ** failures, maxReconnectDelayMs);
  return {
    type: 'transport.lost' as const,
    error: {
      code: 'TRANSPORT_LOST',
      message: `The connection to ${transportName} was lost (${code ?? 'no code'}): ${reason}`,
      retryable,
    },
    // Jitter: sessions that were cut off together do not reconnect together.
    retryInMs: retryable ? Math.round(delayMs * (0.5 + chance / 2)) : null,
  };
}
