// The browser interfaces that the parts need. The package is compiled without browser types.

/** A page element. Without browser types, React's element type has no members. */
export type PageElement = HTMLElement & {
  scrollTop: number;
  readonly scrollHeight: number;
  readonly clientHeight: number;
  readonly style: { setProperty(name: string, value: string): void };
  focus(options?: { readonly preventScroll?: boolean }): void;
  contains(other: unknown): boolean;
};

export interface PageKey {
  readonly key: string;
  readonly code: string;
  readonly repeat: boolean;
  readonly ctrlKey: boolean;
  readonly metaKey: boolean;
  readonly altKey: boolean;
  readonly target: unknown;
  preventDefault(): void;
}

type OnKey = (event: PageKey) => void;

/** Globals of a page, which do not exist in Node.js. */
export const page = globalThis as {
  readonly document?: { readonly activeElement: unknown; readonly body: unknown };
  readonly ResizeObserver?: new (changed: () => void) => {
    observe(element: unknown): void;
    disconnect(): void;
  };
  addEventListener?(type: string, listener: OnKey): void;
  removeEventListener?(type: string, listener: OnKey): void;
};

/** Returns whether a key press is meant for the page: no field has the focus, and no modifier key is pressed. */
export function isForPage({ repeat, ctrlKey, metaKey, altKey, target }: PageKey): boolean {
  return !repeat && !ctrlKey && !metaKey && !altKey && !isIn(target, 'input, textarea, select');
}

export function isIn(target: unknown, selector: string): boolean {
  const { closest } = (target ?? {}) as { closest?(selector: string): unknown };
  return Boolean(closest?.call(target, selector));
}

/** Returns the value of the field that dispatched an event. */
export const valueIn = (event: { readonly target: unknown }): string =>
  (event.target as { readonly value: string }).value;
