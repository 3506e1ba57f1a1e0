// A third-party server whose tool does the work of a subagent: the interface that a relay needs, in both generations of the
// protocol. A generation only carries requests: `mcp-relay-session.ts` decides.

import { z } from 'zod';
import { messageOf } from '../../values/errors.ts';
import type { AskedForm } from '../relays/form-fields.ts';

/** The answer to a form. */
export interface FormResult {
  readonly action: 'accept' | 'decline' | 'cancel';
  readonly content?: Readonly<Record<string, string | number | boolean | string[]>>;
}

/** A request of the server for input. */
export interface Asking {
  /** Unique among the requests of one task. */
  readonly key: string;
  readonly form: AskedForm;
  answer(result: FormResult): void;
  /** Aborts when the server no longer waits. */
  readonly signal?: AbortSignal;
}

export interface RemoteTask {
  readonly taskId: string;
  readonly status: 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled';
  readonly message: string;
  /** The interval between readings that the server asks for, in milliseconds. */
  readonly pollMs: number | null;
  /** The result of an ended task. */
  readonly result: CallResult | null;
}

export type Begun =
  | { readonly type: 'task'; readonly task: RemoteTask }
  | { readonly type: 'result'; readonly result: CallResult };

export interface RemoteTool {
  readonly name: string;
  readonly inputSchema: z.infer<typeof inputSchemaSchema>;
  /** In 2025-11-25: whether the tool may, or must, be called as a task. */
  readonly isTask: boolean;
}

/** The connection to one server, for one session. */
export interface RemoteServer {
  /** The server's id for this connection, if the server has sessions: some servers keep tasks for their session only. */
  readonly sessionId: string | null;
  tools(signal: AbortSignal): Promise<readonly RemoteTool[]>;
  /** Calls the tool. Resolves when the task has an id; for a tool without tasks, when the call has ended. */
  call(
    tool: RemoteTool,
    args: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ): Promise<Begun>;
  /** Reads a task. Its requests for input arrive by `asked`. */
  look(taskId: string, signal: AbortSignal): Promise<RemoteTask>;
  cancel(taskId: string): Promise<void>;
  /** `suspended`: the session resumes later, perhaps in another process. */
  close(why: 'ended' | 'suspended'): Promise<void>;
}

/** The callbacks for messages that the server sends unasked. */
export interface Heard {
  asked(taskId: string | null, asking: Asking): void;
  /** Something has changed: the task should be read. */
  changed(): void;
  progress(text: string): void;
  closed(message: string): void;
  report(error: unknown): void;
}

/** The server refuses a request over a working connection. */
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

/** Reads a message of the server. @throws {Error} that names what was expected. */
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

/** Returns the result of a task that ended with a message only. */
export function failure(error: unknown): CallResult {
  const text = typeof error === 'string' ? error : messageOf(error);
  return { content: [{ type: 'text', text }], structuredContent: undefined, isError: true };
}
