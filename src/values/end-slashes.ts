/** Returns an address without the slashes at its end. The look-behind keeps the search linear. */
export function withoutEndSlashes(address: string): string {
  return address.replace(/(?<!\/)\/+$/, '');
}
