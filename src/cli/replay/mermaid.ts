// A session as a sequence diagram of Mermaid: who spoke, called, asked, answered and reported, in order.
//
// MERMAID-1. No text of a session ends its line or its label, or is read as Mermaid's syntax.

import type { ReplayStep } from '../../entries/replay.ts';

/** Long labels make a diagram that nobody can read. */
const MAX_LABEL_CHARS = 60;

/** Returns the source of the diagram. */
export function mermaidOf(steps: Iterable<ReplayStep>): string {
  const lines: string[] = [];
  const subagents: string[] = [];
  const known = new Map<string, string>();
  /** The states of questions and subagents, since facts are told at each change of another part of them. */
  const states = new Map<string, string>();
  const subagent = (id: string): string => {
    const name = known.get(id) ?? `s${known.size + 1}`;
    known.set(id, name);
    return name;
  };
  for (const { entry, changes, setAside } of steps) {
    const event = entry.event as Fields;
    if (event.type === 'subagent.spawned' && setAside === null) {
      const name = subagent(entry.unit);
      subagents.push(`  participant ${name} as ${label(`${event.name ?? ''} ${entry.unit}`)}`);
      const parent = event.parentId ? subagent(event.parentId) : 'lead';
      lines.push(`  ${parent}->>${name}: ${label(event.task?.description ?? 'spawned')}`);
    }
    for (const [fact, value] of Object.entries(changes)) {
      const space = fact.indexOf(' ');
      const [what, id] = [fact.slice(0, space), fact.slice(space + 1)];
      if (value === null) continue;
      if (what === 'user') lines.push(`  user->>lead: ${label(value)}`);
      if (what === 'assistant') lines.push(`  lead->>user: ${label(value)}`);
      if (what === 'tool_call') lines.push(`  lead->>lead: ${label(value)}`);
      if (what === 'question') {
        const [state = '', ...answer] = value.split(': ');
        if (states.get(fact) === state) continue;
        const isNew = !states.has(fact);
        states.set(fact, state);
        const asker = known.get(id.slice(0, id.lastIndexOf('.'))) ?? 'lead';
        if (isNew) lines.push(`  ${asker}->>user: ${label(`asks ${id}`)}`);
        if (state === 'answered') lines.push(`  user->>${asker}: ${label(answer.join(': '))}`);
        else if (!isNew) lines.push(`  Note over user: ${label(`${id} ${state}`)}`);
      }
      if (what === 'subagent') {
        const state = /\b(completed|failed|cancelled)\b/.exec(value)?.[1];
        if (state === undefined || states.get(fact) === state) continue;
        states.set(fact, state);
        const said = value.includes(': ') ? value.slice(value.indexOf(': ') + 2) : state;
        lines.push(`  ${subagent(id)}-->>lead: ${label(`${state}: ${said}`)}`);
      }
    }
  }
  return [
    'sequenceDiagram',
    '  actor user',
    '  participant lead as lead agent',
    ...subagents,
    ...lines,
    '',
  ].join('\n');
}

interface Fields {
  readonly type: string;
  readonly name?: string;
  readonly parentId?: string | null;
  readonly task?: { readonly description?: string };
}

/** MERMAID-1. Entity codes are Mermaid's own way to write what it would read. */
function label(text: string): string {
  const line = Array.from(text.replace(/[\p{Cc}\p{Cf}\s]+/gu, ' ').trim());
  const cut = line.length > MAX_LABEL_CHARS ? [...line.slice(0, MAX_LABEL_CHARS - 1), '…'] : line;
  const shown = cut.map((letter) =>
    /[#;:<>"'`%{}()[\]\\&]/.test(letter) ? `#${letter.codePointAt(0)};` : letter,
  );
  // A bare `end` would close a block that was never opened.
  return (
    shown
      .join('')
      .replace(
        /\bend\b/gi,
        (word) => `${word.slice(0, 1)}#${word.codePointAt(1)};${word.slice(2)}`,
      ) || '…'
  );
}
