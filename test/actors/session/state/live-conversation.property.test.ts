// A conversation item that is read separately while it is being spoken equals the item in the whole conversation,
// whatever was said, cut or committed before.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { LiveConversation } from '../../../../src/actors/session/state/live-conversation.ts';
import type { ConversationEvent } from '../../../../src/actors/contracts/records.ts';

const NOTE_ID = 'note';
const IDS = ['a', 'b', NOTE_ID];
const MAX_ITEM_CHARS = 12;

const itemId = fc.constantFrom(...IDS);
const text = fc.string({ maxLength: MAX_ITEM_CHARS + 4 });
const steps = fc.array(
  fc.oneof(
    fc.record({ type: fc.constant('saying'), itemId, text }),
    fc.record({ type: fc.constantFrom('assistant.said', 'assistant.cut'), itemId, text }),
    fc.record({ type: fc.constant('conversation.noted'), itemId, text }),
    fc.record({ type: fc.constant('commit') }),
    fc.record({ type: fc.constant('read') }),
  ),
  { maxLength: 40 },
);

test('LIVE-CONVERSATION-2, LIVE-CONVERSATION-3: returns the item that the conversation stores for an id', () => {
  fc.assert(
    fc.property(steps, (all) => {
      const limits = { maxItemChars: MAX_ITEM_CHARS };
      const conversation = new LiveConversation(limits, () => undefined);
      const told: ConversationEvent[] = [];
      let saidAt = 0;
      for (const step of all) {
        saidAt += 1;
        if (step.type === 'commit') {
          const event = told.shift();
          if (event) conversation.fold(event);
        } else if (step.type === 'read') void conversation.log;
        else if ('itemId' in step) {
          const { type, itemId: id, text: words } = step;
          // As on a wire, each id stands for one kind of item.
          const isNote = id === NOTE_ID;
          if (type === 'saying' && !isNote) {
            const known = conversation.log.get(id);
            const isOpen = !known || (known.role === 'assistant' && known.partial);
            if (isOpen) conversation.saying(id, words, known?.at ?? saidAt);
          } else if (type === 'assistant.said' && !isNote)
            told.push(conversation.expect({ type, itemId: id, text: words, saidAt }));
          else if (type === 'assistant.cut' && !isNote)
            told.push(
              conversation.expect({ type, itemId: id, text: words, audioHeardMs: 1, saidAt }),
            );
          else if (type === 'conversation.noted' && isNote)
            told.push(
              conversation.expect({ type, itemId: id, role: 'system', text: words, saidAt }),
            );
        }
        const alone = IDS.map((id) => conversation.item(id));
        expect(alone).toEqual(IDS.map((id) => conversation.log.get(id)));
      }
    }),
  );
});
