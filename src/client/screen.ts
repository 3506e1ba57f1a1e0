// Whether the page is looked at. Where there is no page (Node.js, a worker), it always is.

const page = globalThis as {
  readonly document?: {
    readonly visibilityState: string;
    addEventListener(type: 'visibilitychange', listener: () => void): void;
    removeEventListener(type: 'visibilitychange', listener: () => void): void;
  };
};

export const screen = {
  isVisible: (): boolean => page.document?.visibilityState !== 'hidden',
  /** Calls back when the page is looked at, or no longer. Returns what ends that. */
  onVisible(callback: () => void): () => void {
    page.document?.addEventListener('visibilitychange', callback);
    return () => page.document?.removeEventListener('visibilitychange', callback);
  },
};
