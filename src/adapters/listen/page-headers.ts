// The headers of a page and its files, as every server of this package sends them.

/** Nothing of the page is kept, named to another site, guessed, or embedded in a page of another origin. */
export const pageHeaders = {
  'cache-control': 'no-store',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
} as const;

/** Returns a policy that allows these sources and nothing else: no frame, no form, no inline code. */
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
