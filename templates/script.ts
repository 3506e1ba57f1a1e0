// NOT A MODEL. Without a key this script answers in place of a model: it can book rides, and nothing else.
// Delete it when you have a key.

import { readNotes, scriptedModel, type Script } from 'offstage/testing';

interface Option {
  readonly label: string;
  readonly description?: string;
}

const HELLO = 'I am a script, not a model, and can book you a ride to the airport.';

/** Repeats what the session tells it to say, and calls the tool when the user wants a ride. */
const lead: Script = ({ prompt, results: [result], toolNames }) => {
  if (result) {
    const output = typeof result === 'string' ? result : JSON.stringify(result);
    return { text: /"message":"([^"]*)"/.exec(output)?.[1] ?? 'All right.' };
  }
  const before = prompt.findLastIndex(({ role }) => role === 'assistant');
  const texts = prompt
    .slice(before + 1)
    .filter(({ role }) => role !== 'tool')
    .map(({ role, content }) => ({ role, text: textOf(content) }));
  const notes = readNotes(texts.map(({ text }) => text).join('\n')).map(({ quotes }) => quotes);
  for (const { result: done, error } of notes)
    if (typeof (done ?? error) === 'string') return { text: String(done ?? error) };
  // The user's words answered the subagent, so the lead agent says nothing.
  if (notes.some(({ words }) => typeof words === 'string')) return { text: '' };
  const words = texts
    .filter(({ role, text }) => role === 'user' && !text.startsWith('['))
    .map(({ text }) => text)
    .join(' ');
  const [choice] = /economy|premium/i.exec(words) ?? [];
  if (choice && !/\bbook\b/i.test(words) && toolNames.includes('settle_question'))
    return {
      calls: [
        {
          name: 'settle_question',
          input: { action: 'answer', optionId: choice.toLowerCase(), quote: words },
        },
      ],
    };
  if (/\b(?:ride|taxi|cab|airport)\b/i.test(words))
    return { calls: [{ name: 'book_ride', input: { destination: 'the airport' } }] };
  const asked = notes.find(({ question }) => typeof question === 'string');
  if (words !== '' || !asked) return { text: HELLO };
  const options = (asked['options'] ?? []) as readonly Option[];
  const choices = options.map(({ label, description = '' }) => `${label}, ${description}`);
  return { text: `${String(asked['question'])} ${choices.join('; ')}.` };
};

function textOf(content: string | readonly object[]): string {
  if (typeof content === 'string') return content;
  return content.map((part) => ('text' in part ? String(part.text) : '')).join('\n');
}

/** Gets the options, asks the user, and books the chosen one. */
const rideBooker: Script = ({ results: [last] }) => {
  if (last === undefined)
    return { calls: [{ name: 'get_ride_options', input: { destination: 'the airport' } }] };
  if (Array.isArray(last))
    return { calls: [{ name: 'ask_user', input: { question: 'Which ride?', options: last } }] };
  const { optionId, status } = last as { readonly optionId?: string; readonly status?: string };
  if (status) return { text: `Your ${optionId} ride to the airport is booked.` };
  if (optionId) return { calls: [{ name: 'confirm_ride', input: { optionId } }] };
  return { text: 'No ride was booked.' };
};

export const script = scriptedModel({ agents: { book_ride: rideBooker }, otherwise: lead });
