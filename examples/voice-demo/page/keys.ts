// The keyboard: Space talks (push to talk) or mutes (open microphone), M mutes, 1 to 9 answer the open question, / goes to
// the text field.

import { choose, client, microphone, openQuestions, toggleMute } from './session.ts';

export function installKeys(): void {
  addEventListener('keydown', (event) => {
    if (event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
    const target = event.target instanceof HTMLElement ? event.target : document.body;
    if (event.key === 'Escape') target.blur();
    if (target.matches('input, textarea')) return;
    // Space presses a button that has the focus.
    if (event.code === 'Space' && !target.matches('button, a, summary, select')) {
      event.preventDefault();
      if (microphone.value.state !== 'on') return;
      if (microphone.value.mode === 'push') client.microphone.hold();
      else toggleMute();
    } else if (event.key === 'm') toggleMute();
    else if (event.key === '/') {
      event.preventDefault();
      document.getElementById('say')?.focus();
    } else if (/^[1-9]$/.test(event.key)) {
      const [question] = openQuestions.value;
      if (question && question.state !== 'queued') choose(question, Number(event.key) - 1);
    }
  });
  addEventListener('keyup', ({ code }) => void (code === 'Space' && client.microphone.release()));
  // A key that is let go elsewhere is not seen here.
  addEventListener('blur', () => client.microphone.release());
}
