// Texts that inform the voice model of everything for which the protocol has no field, such as the app's abilities,
// typed messages, requests, and when to speak. Pure functions.

import { note, sentence } from '../../actors/notes/note.ts';
import type { NoteWriter } from '../../actors/notes/note-marks.ts';
import type {
  TransportCommand,
  TransportConfiguration,
  TransportTool,
} from '../../voice/connection/transport.ts';

/** Returns a session's instructions: the agent's own instructions, and the tasks that can be delegated. */
export function startInstructions({ instructions, tools }: TransportConfiguration): string {
  return `${instructions}\n\n${delegationPolicy(tools)}`.trim();
}

function delegationPolicy(tools: readonly TransportTool[]): string {
  if (tools.length === 0) {
    return 'Delegation policy: There is no backend. Do not delegate anything.';
  }
  return [
    'Delegation policy: You have a backend, and cannot do or look up anything yourself. It can:',
    ...tools.map((tool) => `- ${tool.name}: ${tool.description}${detailsOf(tool)}`),
    '',
    'Delegate when a request needs one of these, and when a correction changes what was asked ' +
      'for before. Delegate before you answer what depends on it. Do not guess a result while ' +
      'you wait for it, and call nothing done before a result says so.',
    'Delegate also what the user answers to a question of the backend. Do not delegate what you can answer from the ' +
      'conversation. A delegation is acknowledged for you ("One moment."), which also tells the user that you are working on ' +
      'it: say no such words yourself, unless you are asked to.',
  ].join('\n');
}

function detailsOf({ parameters }: TransportTool): string {
  const { properties } = parameters;
  if (typeof properties !== 'object' || properties === null) return '';
  const names = Object.keys(properties);
  return names.length === 0 ? '' : ` (details: ${names.join(', ')})`;
}

type Told = Extract<
  TransportCommand,
  { type: 'message.add' } | { type: 'tool.recall' } | { type: 'tool.answer' }
>;

/** Returns a text that informs the model of the command's content without making it speak. */
export function toldAs(command: Told): string {
  switch (command.type) {
    case 'message.add':
      return messageText(command);
    case 'tool.recall':
      return (
        command.told ??
        quotedCall({ callId: command.callId, tool: command.name, arguments: command.arguments })
      );
    case 'tool.answer':
      return command.told ?? quotedCall({ callId: command.callId, output: command.output });
  }
}

function quotedCall(call: Readonly<Record<string, string>>): string {
  return `The backend: ${JSON.stringify(call)}`;
}

function messageText({ role, text, isNote }: Extract<Told, { type: 'message.add' }>): string {
  if (role === 'system' || isNote) return text;
  return `${role === 'user' ? 'The user writes' : 'You said'}: ${JSON.stringify(text)}`;
}

const NOW = sentence`Do not wait for the user to speak first. Say it once; after that, pause and listen.`;

const REPLY_NOW = sentence`If you have not yet replied to the user's last words, or not yet told them a result above, do so now. Otherwise say nothing. ${NOW}`;

/** Returns a text that makes the model speak now. `instructions`: a note with the content to speak about. */
export function speakNow(notes: NoteWriter, instructions?: string, about?: string): string {
  if (instructions === undefined) return notes.text(note(REPLY_NOW), 'reply now');
  return `${instructions} ${NOW}${about === undefined ? '' : `\n${about}`}`;
}

/** Makes the model speak about content that it has just read. */
export const FOLLOW_NOW = note(sentence`Do now, aloud, what the last note above says. ${NOW}`);

/** The response to a delegation that results in no call. */
export const TAKEN_CARE_OF = note(
  sentence`This is taken care of: there is nothing to do, and nothing to say about it.`,
);
