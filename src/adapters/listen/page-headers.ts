// The headers that every server in this package sends with a page and its files.

/** Browsers do not store the page, send a referrer or guess types, and other origins cannot embed the page. */
export const pageHeaders = {
  'cache-control': 'no-store',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
} as const;

/** Returns a policy that allows only these sources and permits no frames, forms or inline code. */
export function contentSecurityPolicy(sources: Readonly<Record<string, string>>): string {
  const allowed = Object.entries(sources).map(([kind, from]) => `${kind}-src ${from}`);
  return [
    "default-src 'none'",
    ...allowed,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}
