// The chat in a page: the messages, the questions with their buttons, and the subagents that are at work.

import type { SessionClient } from 'offstage/client';

const part = (id: string): HTMLElement =>
  document.querySelector<HTMLElement>(`#${id}`) ?? document.body;
const element = (tag: string, text: string): HTMLElement =>
  Object.assign(document.createElement(tag), { textContent: text });

/** Shows the session of this client in the page, and sends what is typed and clicked. */
export function show(client: SessionClient): void {
  client.store.subscribe(({ context: { transcript, questions, subagents } }) => {
    part('transcript').replaceChildren(
      ...transcript.map(({ role, text }) =>
        element('p', `${role === 'user' ? 'You' : 'Assistant'}: ${text}`),
      ),
    );
    for (const { deliveryId } of transcript) if (deliveryId) void client.shown(deliveryId);
    part('subagents').replaceChildren(
      ...subagents
        .filter(({ endedAt }) => endedAt === null)
        .map(({ title, state, progress }) =>
          element(
            'p',
            `${title}: ${progress ?? (state === 'waiting_for_input' ? 'waits for you' : 'at work')}`,
          ),
        ),
    );
    const open = questions.filter(({ state }) => state === 'presenting' || state === 'open');
    const shown = part('questions').dataset;
    const ids = open.map(({ requestId }) => requestId).join();
    if (shown['ids'] === ids) return; // unchanged buttons stay in place and keep the focus
    shown['ids'] = ids;
    part('questions').replaceChildren(
      ...open.map(({ requestId, question, kind, options, mayAnswer = true }) => {
        void client.questionShown(requestId); // from now on a click on its buttons counts
        const card = element('article', question);
        if (!mayAnswer) card.append(element('p', 'Only another person can answer this.'));
        const buttons: readonly { id: string; label: string; description?: string }[] =
          kind === 'approval'
            ? [
                { id: 'yes', label: 'Approve' },
                { id: 'no', label: 'Decline' },
              ]
            : options;
        for (const { id, label, description } of buttons) {
          const button = element('button', description ? `${label} (${description})` : label);
          button.toggleAttribute('disabled', !mayAnswer);
          button.addEventListener(
            'click',
            () =>
              void client.answer(
                requestId,
                kind === 'approval' ? { approved: id === 'yes' } : { optionId: id },
              ),
          );
          card.append(button);
        }
        return card;
      }),
    );
  });
  client.status.subscribe(({ state, reason }) => {
    part('status').textContent =
      state === 'open'
        ? ''
        : reason?.code === 'UNAUTHORIZED'
          ? 'Open the link that has the token.'
          : (reason?.message ?? 'Connecting …');
  });
  part('form').addEventListener('submit', (event) => {
    event.preventDefault();
    const field = part('text') as HTMLInputElement;
    if (field.value.trim() !== '') void client.send(field.value);
    field.value = '';
  });
}
