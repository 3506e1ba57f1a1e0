// Whether the user can see the page. A host without a page (Node.js, a worker) is considered visible.

const page = globalThis as {
  readonly document?: {
    readonly visibilityState: string;
    addEventListener(type: 'visibilitychange', listener: () => void): void;
    removeEventListener(type: 'visibilitychange', listener: () => void): void;
  };
};

export const screen = {
  isVisible: (): boolean => page.document?.visibilityState !== 'hidden',
  /** Calls the listener whenever the visibility changes. Returns a function that unsubscribes. */
  onVisible(callback: () => void): () => void {
    page.document?.addEventListener('visibilitychange', callback);
    return () => page.document?.removeEventListener('visibilitychange', callback);
  },
};
