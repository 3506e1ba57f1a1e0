// Overrides the client's setup with the configuration that an ephemeral token fixes.

import { InvalidMessage, parseGeminiFrame, type Setup } from './client-messages.ts';

/** Merges the setups: fields of `fixed` win over the client's. @throws {InvalidMessage} */
export function overlay(asked: Setup, fixed: unknown): Setup {
  const setup = merge(asked, fixed);
  const message = parseGeminiFrame(JSON.stringify({ setup }));
  if (message.type !== 'setup') throw new InvalidMessage('Request contains an invalid argument.');
  return message.value;
}

function merge(under: unknown, over: unknown): unknown {
  if (!isObject(under) || !isObject(over)) return over ?? under;
  const merged: Record<string, unknown> = { ...under };
  for (const [key, value] of Object.entries(over)) merged[key] = merge(under[key], value);
  return merged;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
