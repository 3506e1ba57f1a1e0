import { memoryJournal } from '../../../src/index.ts';
import { redactingJournal } from '../../../src/entries/journal.ts';
import { runJournalConformance } from './support/run-journal-conformance.ts';

const whole = () => memoryJournal({ keep: Infinity });

runJournalConformance({
  name: 'memoryJournal',
  offers: ['scopes', 'readAfter', 'trim', 'forget', 'wakeTimes', 'desk'],
  open: () => ({ journal: whole() }),
});

runJournalConformance({
  name: 'redactingJournal, where there is no secret',
  offers: ['scopes', 'readAfter', 'trim', 'forget', 'wakeTimes', 'desk'],
  open: () => ({ journal: redactingJournal(whole(), { values: ['a-key-of-somebody'] }) }),
});
