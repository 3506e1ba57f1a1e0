// The refusals of working memory.

import type { MemoryRefusal, MemoryRefusalCode } from '../actors/ports/working-memory.ts';

export function refused(code: MemoryRefusalCode, message: string): MemoryRefusal {
  return { ok: false, error: { code, message } };
}
