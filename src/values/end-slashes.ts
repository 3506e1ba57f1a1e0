/** Returns a URL without its trailing slashes. The lookbehind keeps the search linear. */
export function withoutEndSlashes(address: string): string {
  return address.replace(/(?<!\/)\/+$/, '');
}
