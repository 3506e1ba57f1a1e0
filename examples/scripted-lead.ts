// The lead agent of the examples. It calls the tools that the text asks for, and repeats what notes say. In your
// program, this is a model.

import { readNotes, type Script, type ScriptedCall, type ScriptedPrompt } from 'offstage/testing';

/** `callsFor`: returns the tools that a user's text asks for; none for small talk. */
export function scriptedLead(callsFor: (text: string) => readonly ScriptedCall[]): Script {
  return ({ user, prompt }) => {
    const answers = answersIn(prompt);
    if (answers.length > 0) return { text: [...new Set(answers.map(announced))].join(' ') };
    const told = readNotes(user).flatMap(({ quotes }) => newsIn(quotes));
    if (told.length > 0) return { text: `News: ${told.join(' And: ')}` };
    const calls = callsFor(wordsIn(prompt));
    return calls.length > 0 ? { calls } : { text: 'I see.' };
  };
}

/** Returns what the user has said since the lead agent last spoke, without later notes about a question. */
function wordsIn(prompt: ScriptedPrompt['prompt']): string {
  return prompt
    .slice(prompt.findLastIndex(({ role }) => role === 'assistant') + 1)
    .flatMap(({ role, content }) => (role === 'user' ? [textOf(content)] : []))
    .filter((text) => readNotes(text).length === 0)
    .join(' ');
}

function textOf(content: Extract<ScriptedPrompt['prompt'][number], { role: 'user' }>['content']) {
  return content.map((part) => (part.type === 'text' ? part.text : '')).join('');
}

/** Returns the results and errors that a note quotes, for one task or several. */
function newsIn({ result, error, results }: Readonly<Record<string, unknown>>): readonly string[] {
  if (Array.isArray(results)) return results.flatMap((each) => newsIn(each as object as never));
  return [result, error].filter((text) => typeof text === 'string');
}

/** Returns the results of the agent's calls since the user last spoke; none if the agent has already replied. */
function answersIn(prompt: ScriptedPrompt['prompt']): unknown[] {
  if (prompt.at(-1)?.role !== 'tool') return [];
  const asked = prompt.findLastIndex(({ role }) => role === 'user');
  return prompt
    .slice(asked)
    .flatMap(({ content }) =>
      typeof content === 'string'
        ? []
        : content.flatMap((part) =>
            part.type === 'tool-result' && 'value' in part.output ? [part.output.value] : [],
          ),
    );
}

/** Returns the text to say at once: the pending message of a background call, or the output of any other call. */
function announced(result: unknown): string {
  const { message } = (result ?? {}) as { readonly message?: string };
  return message ?? (typeof result === 'string' ? result : JSON.stringify(result));
}
