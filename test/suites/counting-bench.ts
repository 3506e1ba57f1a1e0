// Counts the calls that a suite's agents make in any process. An agent reports each model call and tool call, and the
// suite counts the call and may delay it.

import { ConformanceError } from '../../src/testing/conformance/conformance-error.ts';

const TOLD_SHOWN = 20;

export class CountedCalls {
  readonly #counts = new Map<string, number>();
  readonly #held = new Map<string, PromiseWithResolvers<void>>();
  readonly #told: string[] = [];

  /** Records an agent's call, such as `a1/charge`, and resolves when the call may proceed. */
  readonly tell = async (what: string): Promise<void> => {
    this.note(what);
    this.#counts.set(what, this.count(what) + 1);
    await this.#held.get(what)?.promise;
  };

  /** Records a line among the calls for error messages. */
  note(line: string): void {
    this.#told.push(line);
  }

  /** All calls and notes, in order. */
  get told(): readonly string[] {
    return this.#told;
  }

  /** Makes calls of this kind wait until the returned function is called. */
  hold(what: string): () => void {
    const held = Promise.withResolvers<void>();
    this.#held.set(what, held);
    return () => {
      if (this.#held.get(what) === held) this.#held.delete(what);
      held.resolve();
    };
  }

  /** Releases every waiting call. */
  releaseAll(): void {
    for (const { resolve } of this.#held.values()) resolve();
  }

  count(what: string): number {
    return this.#counts.get(what) ?? 0;
  }
}

/** The code that the benches of runs and homes share. */
export abstract class CountingBench extends CountedCalls {
  /** The name of the stage for error messages. */
  readonly name: string;

  constructor(name: string) {
    super();
    this.name = name;
  }

  /**
   * Polls `seen` until it returns something. @throws {ConformanceError} if the stage has looked as often as its
   * patience allows.
   */
  abstract until<T>(what: string, seen: () => T | undefined): Promise<T>;
  /** Events other than calls, for error messages. */
  protected abstract readonly besides: string;

  async begun(what: string, times = 1): Promise<void> {
    await this.until(`${what} to be begun ${times} times`, () =>
      this.count(what) >= times ? true : undefined,
    );
  }

  /**
   * @throws {ConformanceError} unless each kind of call of this trip or errand was started exactly as many times as
   * expected.
   */
  expectCounts(whose: string, counts: Readonly<Record<string, number>>): void {
    for (const [what, times] of Object.entries(counts)) {
      const count = this.count(`${whose}/${what}`);
      this.expect(count === times, `${what} of ${whose} to be done ${times} times, got ${count}`);
    }
  }

  expect(isSo: boolean, what: string): void {
    if (!isSo) throw this.failed(what);
  }

  protected failed(what: string): ConformanceError {
    const told = JSON.stringify(this.told.slice(-TOLD_SHOWN));
    return new ConformanceError(`${this.name}: expected ${what}; done: ${told}, ${this.besides}`);
  }
}
