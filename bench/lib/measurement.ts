// A measurement: a task of several contenders, each time in a
// process of its own, and gives some numbers.

/** The contender: Offstage, the work without it (in one of two manners), or a peer. */
export type Contender = 'offstage' | 'floor' | 'floor_wrapped' | 'openai_agents';

/** The numbers of one process, by name. */
export type Numbers = Readonly<Record<string, number>>;

export interface Measurement {
  readonly contenders: Partial<Record<Contender, (n: number) => Promise<Numbers>>>;
  readonly sizes: readonly number[];
  /** Options of Node for the processes. @defaultValue none */
  readonly nodeOptions?: readonly string[];
  /** Processes for each contender and size, unless there is less time. */
  readonly repetitions: number;
  readonly lines: readonly Line[];
}

/** One figure of the table. */
export interface Line {
  readonly figure: string;
  readonly unit: string;
  /** The name of the number, of Offstage. */
  readonly number: string;
  /** The contender whose number of the same name is the floor. */
  readonly floor: Exclude<Contender, 'offstage'> | null;
  /**
   * How far `ratio` may go, or `value`, or how far above the floor it may lie; null where nothing
   * was promised.
   */
  readonly goal:
    | { readonly ratio: number }
    | { readonly value: number }
    | { readonly aboveFloor: number }
    | null;
}
