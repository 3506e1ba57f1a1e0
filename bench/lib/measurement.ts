// A measurement: a task that several contenders do, each time in a new process, and that produces some
// numbers.

/** The contender: Offstage, the work without it (one of two variants), or a peer. */
export type Contender = 'offstage' | 'floor' | 'floor_wrapped' | 'openai_agents';

/** The numbers of one process, by name. */
export type Numbers = Readonly<Record<string, number>>;

export interface Measurement {
  readonly contenders: Partial<Record<Contender, (n: number) => Promise<Numbers>>>;
  readonly sizes: readonly number[];
  /** Options of Node for the processes. @defaultValue none */
  readonly nodeOptions?: readonly string[];
  /** Processes for each contender and size, unless the bench has less time. */
  readonly repetitions: number;
  readonly lines: readonly Line[];
}

/** One figure of the table. */
export interface Line {
  readonly figure: string;
  readonly unit: string;
  /** The name of Offstage's number. */
  readonly number: string;
  /** The contender whose number of the same name is the floor. */
  readonly floor: Exclude<Contender, 'offstage'> | null;
  /** The highest `ratio` to the floor, the highest `value`, or the greatest distance above the floor; null: no goal. */
  readonly goal:
    | { readonly ratio: number }
    | { readonly value: number }
    | { readonly aboveFloor: number }
    | null;
}
