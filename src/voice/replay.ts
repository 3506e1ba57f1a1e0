// After a reconnect the model starts from nothing: the conversation is told to it
// again, calls that are still open included.

import type { ReplayItem } from '../actors/conversation/replay.ts';
import type { TransportCommand } from './transport.ts';

/**
 * The commands that restore a conversation on a fresh connection. `speaksByItself`: a model that speaks by
 * itself is told not to speak to results that it had before.
 */
export function replay(
  items: readonly ReplayItem[],
  { speaksByItself }: { readonly speaksByItself: boolean },
): readonly TransportCommand[] {
  return items.map((item): TransportCommand => {
    switch (item.type) {
      case 'message':
        return { type: 'message.add', itemId: item.itemId, role: item.role, text: item.text };
      case 'tool_call':
        return {
          type: 'tool.recall',
          callId: item.callId,
          name: item.toolName,
          arguments: item.arguments,
        };
      case 'tool_result':
        return {
          type: 'tool.answer',
          callId: item.callId,
          output: item.output,
          ...(speaksByItself && { silent: true }),
        };
    }
  });
}
