// The states that a later connection can resume, by the name that the client received for each of them.

export interface ResumeStore<State> {
  save(name: string, state: State): void;
  /** Returns the state with this name, or null if there is none or it has been deleted. */
  find(name: string): State | null;
  /** Deletes all states, so that none of them can be resumed. */
  forget(): void;
  readonly isForgetful: boolean;
}

export function createResumeStore<State>(): ResumeStore<State> {
  const states = new Map<string, State>();
  let isForgetful = false;
  return {
    save(name, state) {
      if (!isForgetful) states.set(name, state);
    },
    find: (name) => states.get(name) ?? null,
    forget() {
      isForgetful = true;
      states.clear();
    },
    get isForgetful() {
      return isForgetful;
    },
  };
}
