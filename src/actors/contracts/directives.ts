// Standing orders for the lead agent, set and removed by tools and hooks: "speak slowly", "the user is a customer". In
// every response, they come after the agent's instructions.
//
// Owns:     the directives in force, as an immutable value, and their text.
// Does not: send directives to a model, or decide when they end (the lead agent and the records do).
//
// Invariants
//   DIRECTIVES-1. Each key has one value per scope; the agent's value overrides the session's.
//   DIRECTIVES-2. The number of directives and the length of each are limited; directives beyond these limits are
//       refused.
//   DIRECTIVES-3. Each value is written as one entry: none of its lines can be mistaken for another entry.

import { shown } from '../../values/plain-checks.ts';
import { CapacityError, ConfigurationError } from '../../values/errors.ts';
import { indented } from '../../values/clip.ts';

/** `session`: in force until it is removed. `agent`: in force until another agent takes the lead. */
export type DirectiveScope = 'session' | 'agent';

export interface Directive {
  readonly key: string;
  readonly value: string;
  readonly scope: DirectiveScope;
}

/** Sets a standing order for the lead agent; null removes it. */
export type SetDirective = (key: string, value: string | null, scope?: DirectiveScope) => void;

const MAX_DIRECTIVES = 50;
const MAX_KEY_CHARS = 64;
const MAX_VALUE_CHARS = 2000;

export class Directives {
  static readonly none = new Directives([]);

  readonly #all: readonly Directive[];

  private constructor(all: readonly Directive[]) {
    this.#all = all;
  }

  /** Restores directives from a value that `all` returned. */
  static of(all: readonly Directive[]): Directives {
    return new Directives(all);
  }

  /** All directives, whether in force or overridden. */
  get all(): readonly Directive[] {
    return this.#all;
  }

  /** The directives in force, in the order in which their keys were first set (DIRECTIVES-1). */
  get inForce(): readonly Directive[] {
    const byKey = new Map<string, Directive>();
    for (const directive of this.#all)
      if (directive.scope === 'agent' || !byKey.has(directive.key))
        byKey.set(directive.key, directive);
    return [...byKey.values()];
  }

  set(key: string, value: string | null, scope: DirectiveScope): Directives {
    const isThis = (one: Directive): boolean => one.key === key && one.scope === scope;
    if (value === null) return new Directives(this.#all.filter((one) => !isThis(one)));
    const index = this.#all.findIndex(isThis);
    const directive = { key, value, scope };
    return new Directives(index < 0 ? [...this.#all, directive] : this.#all.with(index, directive));
  }

  /** Returns the directives without those of scope `agent`. */
  withoutAgents(): Directives {
    return new Directives(this.#all.filter(({ scope }) => scope !== 'agent'));
  }

  /**
   * Checks that the directive is valid and that there is room for it.
   * @throws {ConfigurationError} `INVALID_DIRECTIVE` if the key, value or scope is invalid.
   * @throws {CapacityError} `DIRECTIVES_FULL` (DIRECTIVES-2).
   */
  check(key: unknown, value: unknown, scope: unknown): void {
    const invalid = (message: string) => new ConfigurationError('INVALID_DIRECTIVE', message);
    if (typeof key !== 'string' || key.trim() === '' || key.length > MAX_KEY_CHARS)
      throw invalid(
        `Expected the key of a directive to have 1 to ${MAX_KEY_CHARS} characters, got ${shown(key)}`,
      );
    if (scope !== 'session' && scope !== 'agent')
      throw invalid(
        `Expected the scope of directive "${key}" to be 'session' or 'agent', got ${shown(scope)}`,
      );
    if (value === null) return;
    if (typeof value !== 'string' || value.trim() === '' || value.length > MAX_VALUE_CHARS)
      throw invalid(
        `Expected directive "${key}" to have 1 to ${MAX_VALUE_CHARS} characters, or to be null, got ${typeof value === 'string' ? `${value.length}` : typeof value}`,
      );
    const isKnown = this.#all.some((one) => one.key === key && one.scope === scope);
    if (!isKnown && this.#all.length >= MAX_DIRECTIVES)
      throw new CapacityError(
        'DIRECTIVES_FULL',
        `${MAX_DIRECTIVES} directives are in force already: take one back to set "${key}"`,
      );
  }
}

/** Returns the lead model's instructions: its language, the agent's instructions, and the directives in force. */
export function leadInstructions(
  instructions: string,
  language: string | undefined,
  directives: readonly Directive[],
): string {
  const parts: string[] = [];
  if (language !== undefined) parts.push(languageDirective(language));
  if (instructions !== '') parts.push(instructions);
  if (directives.length > 0) {
    const lines = directives.map(({ key, value }) => `- ${indented(key)}: ${indented(value)}`);
    parts.push(`# Directives\n${lines.join('\n')}`);
  }
  return parts.join('\n\n');
}

/** Returns the canonical form of a language tag (BCP 47); null if it is invalid. */
export function languageTag(language: string): string | null {
  try {
    return Intl.getCanonicalLocales(language)[0] ?? null;
  } catch {
    return null;
  }
}

function languageDirective(language: string): string {
  const name = new Intl.DisplayNames(['en'], { type: 'language' }).of(language) ?? language;
  return `Speak and write ${name} (${language}), unless the user asks for another language.`;
}
