// Detects a background call for work that is under way already: the model asked again, or a provider
// delivered the call twice under two ids. The configuration decides what follows.
//
// | `duplicates` | the second call                                                        |
// |--------------|------------------------------------------------------------------------|
// | `join`       | begins nothing; the model is told that the result of the first comes   |
// | `reject`     | is refused with DUPLICATE                                              |
// | `replace`    | is done, and the first one is cancelled once the second is accepted    |
// | `confirm`    | is done if the user has said something since it was last held back     |
//
// Owns:     the subagents by their work, and the calls that wait for the user's confirmation.
// Does not: detect calls with different arguments for the same work.

import type { Subagent } from '../../subagent/subagent.ts';
import type { SubagentDefinition } from '../../contracts/config.ts';
import type { SubagentTask } from '../../contracts/task.ts';

/** The answer that the model gets instead of the work. */
export interface HeldBack {
  readonly error: {
    readonly code: 'DUPLICATE';
    readonly message: string;
    readonly retryable: boolean;
  };
  /** The answer to a model whose call was no mistake. */
  readonly output?: Readonly<Record<string, string>>;
}

/** Number of held-back calls that are remembered, the latest. */
const MAX_HELD = 100;

/** Number of entries at which those of ended subagents are forgotten. */
const MAX_BEGUN = 1000;

export class DuplicateCalls {
  readonly #find: (id: string) => Subagent | undefined;
  /** The subagent that was last begun for a work, by the hash of the work. */
  readonly #begun = new Map<number, string>();
  /** The words of the user to which a work was last held back, by the work. */
  readonly #held = new Map<string, string | null>();

  /** `find`: undefined for a subagent that has ended. */
  constructor(find: (id: string) => Subagent | undefined) {
    this.#find = find;
  }

  /** Records an accepted work, and cancels the one before it: only now is nothing lost by that. */
  begun({ duplicates }: SubagentDefinition, task: SubagentTask, subagentId: string): void {
    const work = workOf(task);
    if (duplicates === 'replace') this.#twinOf(work)?.cancel('the same work was asked for anew');
    this.#begun.set(hashOf(work), subagentId);
    if (this.#begun.size % MAX_BEGUN !== 0) return;
    for (const [hash, id] of this.#begun) if (!this.#find(id)) this.#begun.delete(hash);
  }

  /** Records a work that was begun in an earlier process, and continues here. */
  goesOn({ id, task }: Pick<Subagent, 'id' | 'task'>): void {
    this.#begun.set(hashOf(workOf(task)), id);
  }

  /** Checks a call; null: it may be done. `requestId`: the words of the user that the lead agent answers. */
  check(
    { name, duplicates }: SubagentDefinition,
    task: SubagentTask,
    requestId: string | null,
  ): HeldBack | null {
    const work = workOf(task);
    const twin = this.#twinOf(work);
    if (!twin) {
      this.#held.delete(work);
      return null;
    }
    const said = `"${name}" is at work on exactly this already (${twin.id})`;
    switch (duplicates) {
      case 'join':
        return held(said, {
          status: 'already_in_progress',
          subagentId: twin.id,
          message: `${said}. Nothing was started a second time; you will be told its result once.`,
        });
      case 'reject':
        return held(`${said}. Expected to be called once for it`);
      case 'replace':
        return null;
      case 'confirm': {
        const before = this.#held.get(work);
        this.#held.delete(work);
        if (before !== undefined && before !== requestId) return null;
        this.#hold(work, requestId);
        return held(said, {
          status: 'needs_confirmation',
          subagentId: twin.id,
          message: `${said}. Ask the user whether it shall be done a second time; if so, call again.`,
        });
      }
    }
  }

  /** Returns the subagent that works on exactly this. */
  #twinOf(work: string): Subagent | undefined {
    const twin = this.#find(this.#begun.get(hashOf(work)) ?? '');
    return twin && workOf(twin.task) === work ? twin : undefined;
  }

  #hold(work: string, requestId: string | null): void {
    this.#held.set(work, requestId);
    for (const oldest of this.#held.keys()) {
      if (this.#held.size <= MAX_HELD) return;
      this.#held.delete(oldest);
    }
  }
}

function held(message: string, output?: HeldBack['output']): HeldBack {
  const error = { code: 'DUPLICATE', message, retryable: false } as const;
  return output ? { error, output } : { error };
}

/** Identifies a work: the same tool with the same arguments, in whatever order they were written. */
function workOf({ toolName, args }: SubagentTask): string {
  return `${toolName} ${JSON.stringify(sorted(args))}`;
}

/** FNV-1a: short, because one is kept for each subagent; works with the same hash are compared. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1)
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return hash >> 1;
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([key, inner]) => [key, sorted(inner)] as const);
  return Object.fromEntries(entries.toSorted(([a], [b]) => (a < b ? -1 : 1)));
}
