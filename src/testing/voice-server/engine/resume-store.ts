// What a later connection can go on from: states by the name that a client was given.

export interface ResumeStore<State> {
  save(name: string, state: State): void;
  /** null: nothing of that name, or it was forgotten. */
  find(name: string): State | null;
  /** From now on nothing can be gone on from. */
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
