// An external server whose tool does a subagent's work. The relay uses this interface, which is implemented for both
// protocol versions. The implementations only transfer requests: `mcp-relay-session.ts` decides.

import { z } from 'zod';
import { messageOf } from '../../values/errors.ts';
import type { AskedForm } from '../relays/form-fields.ts';

/** The answer to a form. */
export interface FormResult {
  readonly action: 'accept' | 'decline' | 'cancel';
  readonly content?: Readonly<Record<string, string | number | boolean | string[]>>;
}

/** The server's request for input. */
export interface Asking {
  /** Unique among the requests of the task. */
  readonly key: string;
  readonly form: AskedForm;
  answer(result: FormResult): void;
  /** Aborted when the server no longer waits for the input. */
  readonly signal?: AbortSignal;
}

export interface RemoteTask {
  readonly taskId: string;
  readonly status: 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled';
  readonly message: string;
  /** The polling interval that the server requests, in milliseconds. */
  readonly pollMs: number | null;
  /** The result of a task that has ended. */
  readonly result: CallResult | null;
}

export type Begun =
  | { readonly type: 'task'; readonly task: RemoteTask }
  | { readonly type: 'result'; readonly result: CallResult };

export interface RemoteTool {
  readonly name: string;
  readonly inputSchema: z.infer<typeof inputSchemaSchema>;
  /** In 2025-11-25: whether the tool may or must be called as a task. */
  readonly isTask: boolean;
}

/** One session's connection to a server. */
export interface RemoteServer {
  /** The server's session id if the server has sessions. Some servers store tasks only within a session. */
  readonly sessionId: string | null;
  tools(signal: AbortSignal): Promise<readonly RemoteTool[]>;
  /** Calls the tool. Resolves when the task has an id or, for a tool without task support, when the call has ended. */
  call(
    tool: RemoteTool,
    args: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ): Promise<Begun>;
  /** Reads a task. The input requests of the call arrive through `asked`. */
  look(taskId: string, signal: AbortSignal): Promise<RemoteTask>;
  cancel(taskId: string): Promise<void>;
  /** `suspended`: the session will be resumed later, possibly in another process. */
  close(why: 'ended' | 'suspended'): Promise<void>;
}

/** Callbacks for unsolicited messages from the server. */
export interface Heard {
  asked(taskId: string | null, asking: Asking): void;
  /** Called when the task has changed, so that it is read again. */
  changed(): void;
  progress(text: string): void;
  closed(message: string): void;
  report(error: unknown): void;
}

/** The server has refused a request, but the connection is still usable. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
}

const record = z.record(z.string(), z.unknown());
const inputSchemaSchema = z.looseObject({
  properties: z.record(z.string(), record).optional(),
  required: z.array(z.string()).optional(),
});
const toolSchema = z.looseObject({
  name: z.string(),
  inputSchema: inputSchemaSchema,
  execution: z.looseObject({ taskSupport: z.string().optional() }).nullish(),
});
const toolsSchema = z.looseObject({ tools: z.array(toolSchema), nextCursor: z.string().nullish() });

const contentSchema = z.looseObject({
  type: z.string(),
  text: z.string().optional(),
  data: z.string().optional(),
  mimeType: z.string().optional(),
  uri: z.string().optional(),
  name: z.string().optional(),
  resource: z
    .looseObject({
      uri: z.string().optional(),
      mimeType: z.string().optional(),
      text: z.string().optional(),
      blob: z.string().optional(),
    })
    .optional(),
});
export const callResultSchema = z.looseObject({
  content: z.array(contentSchema).default([]),
  structuredContent: z.unknown().optional(),
  isError: z.boolean().nullish(),
});
export type CallResult = z.infer<typeof callResultSchema>;

export const taskSchema = z.looseObject({
  taskId: z.string().min(1).max(500),
  status: z.enum(['working', 'input_required', 'completed', 'failed', 'cancelled']),
  statusMessage: z.string().nullish(),
});

/** Parses a message from the server. @throws {Error} whose message names what was expected. */
export function read<Schema extends z.ZodType>(schema: Schema, given: unknown): z.output<Schema> {
  const { success, data, error } = schema.safeParse(given);
  if (success) return data;
  throw new Error(`its message cannot be read: ${z.prettifyError(error)}`);
}

const MAX_PAGES = 20;

/** Reads all pages of `tools/list`. */
export async function allTools(
  page: (params: { readonly cursor?: string }) => Promise<unknown>,
): Promise<readonly RemoteTool[]> {
  const all: RemoteTool[] = [];
  let cursor: string | null = null;
  for (let pages = 0; pages < MAX_PAGES; pages += 1) {
    const given: unknown = await page(cursor === null ? {} : { cursor });
    const { tools, nextCursor }: z.infer<typeof toolsSchema> = read(toolsSchema, given);
    for (const { name, inputSchema, execution } of tools) {
      const isTask = ['optional', 'required'].includes(execution?.taskSupport ?? '');
      all.push({ name, inputSchema, isTask });
    }
    cursor = nextCursor ?? null;
    if (cursor === null) break;
  }
  return all;
}

/** Returns the result of a failed task, which consists of only the error message. */
export function failure(error: unknown): CallResult {
  const text = typeof error === 'string' ? error : messageOf(error);
  return { content: [{ type: 'text', text }], structuredContent: undefined, isError: true };
}
