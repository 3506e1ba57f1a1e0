// The keyboard: Space talks (push to talk) or mutes (open microphone), M mutes, 1 to 9
// answer the open question, / goes to the text field.

import { openQuestions } from './store.ts';
import { isMuted, isPushing, microphone, send, talkMode } from './voice.ts';

export function installKeys(): void {
  addEventListener('keydown', (event) => {
    if (event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === 'Escape') (document.activeElement as HTMLElement | null)?.blur();
    if (isTyping(event.target)) return;
    if (event.code === 'Space' && !isControl(event.target)) {
      event.preventDefault();
      if (microphone.value !== 'on') return;
      if (talkMode.value === 'push') isPushing.value = true;
      else isMuted.value = !isMuted.value;
    } else if (event.key === 'm') {
      isMuted.value = !isMuted.value;
    } else if (event.key === '/') {
      event.preventDefault();
      document.getElementById('say')?.focus();
    } else if (/^[1-9]$/.test(event.key)) {
      answerWith(Number(event.key) - 1);
    }
  });
  addEventListener('keyup', (event) => {
    if (event.code === 'Space') isPushing.value = false;
  });
  // A key that is let go elsewhere is not seen here.
  addEventListener('blur', () => {
    isPushing.value = false;
  });
}

function answerWith(index: number): void {
  const question = openQuestions.value[0];
  if (!question || question.state === 'queued') return;
  const option = question.options[index];
  if (!option) return;
  const { requestId, kind } = question;
  const answer = kind === 'approval' ? { approved: index === 0 } : { optionId: option.id };
  send({ type: 'question.answer', requestId, answer });
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.matches('input, textarea, [contenteditable]');
}

/** Space presses a button that has the focus. */
function isControl(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.matches('button, a, summary, select');
}
