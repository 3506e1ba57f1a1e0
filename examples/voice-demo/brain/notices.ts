// The messages in brackets that the runtime puts into the conversation, read into data.
// What they quote never contains brackets (the runtime replaces them), so a bracket ends them.

/** One choice of a question: `Economy ($12, 5 min)`. */
export interface SpokenOption {
  readonly label: string;
  readonly detail: string | null;
}

export type Notice =
  | {
      readonly type: 'question';
      readonly question: string;
      readonly options: readonly SpokenOption[];
    }
  | { readonly type: 'completed'; readonly toolName: string; readonly result: string }
  | { readonly type: 'failed'; readonly toolName: string; readonly error: string }
  /** Said as it is: an update of a subagent, a webhook's news. */
  | { readonly type: 'news'; readonly label: string; readonly text: string }
  /** The user's words were for someone else. */
  | { readonly type: 'overheard'; readonly words: string }
  | { readonly type: 'cancelled'; readonly toolName: string }
  /** To be known, not to be said. */
  | { readonly type: 'background'; readonly text: string };

const completed =
  /^Background task "(.+?)" completed successfully\. Result: (.*)\. Please inform the user/s;
const failed = /^Background task "(.+?)" failed\. Exact error details: (.*)\. Tell the user/s;
const cancelled = /^Background task "(.+?)" was cancelled: /s;
const overheard = /^The user's words (".*") (?:answered|were about) a question of /s;

/** The one notice that instructions for a single response ask to be said, or null. */
export function readAssignment(instructions: string): Notice | null {
  const quoted = / It was: (\[.*\]?.*)$/s.exec(instructions)?.[1];
  return quoted === undefined ? null : readNotice(quoted);
}

/** The notice that a message is, or null. */
export function readNotice(message: string): Notice | null {
  const text = message.trim();
  const system = /^\[SYSTEM: (.*)\]$/s.exec(text)?.[1];
  // A conversation log may wrap a notice once more.
  if (system !== undefined) return readNotice(system) ?? readSystemNotice(system);
  // What a transport puts where nothing was said.
  if (/^\[The user has not said anything yet\.?\]$/.test(text)) return { type: 'background', text };
  const labelled = /^\[([A-Za-z][^\]:]*)\]: ?(.*)$/s.exec(text);
  if (!labelled) return null;
  const [, label = '', said = ''] = labelled;
  if (label === 'SUBAGENT QUESTION') return readQuestion(said);
  if (label === 'Context summary') return { type: 'background', text: said };
  return { type: 'news', label, text: said };
}

function readSystemNotice(text: string): Notice {
  const done = completed.exec(text);
  if (done) return { type: 'completed', toolName: done[1] ?? '', result: done[2] ?? '' };
  const broken = failed.exec(text);
  if (broken) return { type: 'failed', toolName: broken[1] ?? '', error: broken[2] ?? '' };
  const stopped = cancelled.exec(text);
  if (stopped) return { type: 'cancelled', toolName: stopped[1] ?? '' };
  const words = overheard.exec(text)?.[1];
  if (words !== undefined) return { type: 'overheard', words: unquoted(words) };
  return { type: 'background', text };
}

function readQuestion(text: string): Notice {
  const [, question = text, list = ''] = /^(.*?) Options: (.*)$/s.exec(text) ?? [];
  const options = list
    .split(';')
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .map((part): SpokenOption => {
      const [, label = part, detail = null] = /^(.*?) \((.*)\)$/s.exec(part) ?? [];
      return { label, detail };
    });
  return { type: 'question', question, options };
}

function unquoted(json: string): string {
  try {
    return JSON.parse(json) as string;
  } catch {
    return json;
  }
}
