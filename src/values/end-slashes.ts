/** Returns a URL without its trailing slashes. The look-behind keeps the search linear. */
export function withoutEndSlashes(address: string): string {
  return address.replace(/(?<!\/)\/+$/, '');
}
