// Formats lines of text for a terminal with 100 columns.

export const COLUMNS = 100;

/** Shortens a text to one line of at most `width` characters. */
export function fitted(text: string, width: number): string {
  // Control characters in text from a model or a user would control the terminal.
  const line = text.replace(/[\p{Cc}\p{Cf}\s]+/gu, ' ').trim();
  const letters = Array.from(line);
  return letters.length <= width ? line : `${letters.slice(0, width - 1).join('')}…`;
}

/** Shortens a text to one line and pads it with spaces. */
export function cell(text: string, width: number): string {
  const line = fitted(text, width);
  return line + ' '.repeat(width - Array.from(line).length);
}

/** Arranges texts in lines. A text that is longer than a line is cut off. */
export function filled(texts: readonly string[], between: string, width: number): string[] {
  const lines: string[] = [];
  for (const text of texts.map((one) => fitted(one, width))) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + between.length + text.length <= width)
      lines[lines.length - 1] = last + between + text;
    else lines.push(text);
  }
  return lines;
}

/** A duration as `1:02:03.456`. Hours are omitted if they are zero. */
export function offset(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  const two = (part: number): string => String(part).padStart(2, '0');
  const hours = Math.floor(seconds / 3600);
  const minutes = Math.floor(seconds / 60) % 60;
  const rest = `${two(seconds % 60)}.${String(Math.floor(ms) % 1000).padStart(3, '0')}`;
  return hours > 0 ? `${hours}:${two(minutes)}:${rest}` : `${minutes}:${rest}`;
}

/** `2026-05-12 14:03:11 UTC` */
export function moment(at: number): string {
  return `${new Date(at).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

/** `1 entry`, `2 entries` */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}
