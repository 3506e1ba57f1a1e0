// Durations as protobuf writes them in JSON: seconds with an `s`.

/** Returns the milliseconds of a text such as `9.5s`; null for any other text. */
export function durationMs(text: string | null | undefined): number | null {
  const seconds = /^(\d+(?:\.\d+)?)s$/.exec(text ?? '')?.[1];
  return seconds === undefined ? null : Math.round(Number(seconds) * 1000);
}
