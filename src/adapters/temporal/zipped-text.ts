// Compresses the texts of a run that Temporal stores. A text is deflated with a dictionary of words from journal
// entries and encoded as base64.
//
// Invariants
//   ZIPPED-TEXT-1. Every later version can read a compressed text, because the dictionary of a version never changes.
//   ZIPPED-TEXT-2. A text is stored uncompressed if compression would not make it shorter. A text without the prefix is
//                  returned unchanged.

import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { JobError } from '../../actors/ports/jobs.ts';
import type { RunEntries } from '../../actors/ports/run-engine.ts';
import { messageOf } from '../../values/errors.ts';

/** The prefix of texts that are compressed with the first dictionary. */
const FIRST = 'z1:';

/** ZIPPED-TEXT-1. The most frequent words are at the end. */
const WORDS = Buffer.from(
  [
    '"outcome":{"status":"completed","output":"","text":"","steps":"toolLedger":[{"step":1,"callId":"call_1","toolName":"',
    '"status":"ok","output":{"userResponse":"","calledAt":17,"settledAt":17,"status":"failed","error":{"code":"","message":"","retryable":false}',
    '{"at":17,"waiting":[{"requestId":"sub_.q1","kind":"question","asked":{"requestId":"sub_","subagentId":"sub_","subagentName":"","question":"","options":[],"toolName":"ask_user","input":{"question":"","timeoutMs":600000,"askedAt":17}],"wakeAt":null,"children":[],"outcome":null,"isMore":true,"steps":[{"key":"","name":"tool  of ","once":true},{"name":"model of ","once":false}],"mark":"turn_"}',
    '"definitionVersion":1,"event":{"type":"service.recovered","at":17,"actor":"service"',
    '"event":{"type":"subagent.spawned","name":"","task":{"toolName":"","args":{},"description":""},"parentId":null,"worksFor":"program","agentName":null,"callId":null,"workstreamId":null,"idempotencyKey":"","request":null,"requestedBy":null,"maxDepth":3,"grant":null,"recipe":null,"messages":null,"limits":{"maxSteps":5,"timeoutMs":600000,"maxInputRetries":3},"at":17',
    '"event":{"type":"subagent.prepared","messages":[{"role":"user","content":"[note -] Execute the quoted task.\\n[data -] {\\"task\\":\\"\\"}"}],"marks":"mark_","at":17',
    '"event":{"type":"question.answered","requestId":"sub_.q1","answer":{"userResponse":""},"approved":false,"at":17',
    '"event":{"type":"slot.granted","at":17',
    '"event":{"type":"tool.settled","step":1,"callId":"call_1","outcome":{"status":"error","error":{"code":"","message":""},"modelOutput":{"type":"error-text","value":""}},"at":17',
    '"event":{"type":"tool.settled","step":1,"callId":"call_1","outcome":{"status":"ok","output":{},"modelOutput":{"type":"json","value":{}}},"at":17',
    '"calls":[],"response":{"text":"","assistantMessages":[{"role":"assistant","content":[{"type":"text","text":""}]}],"calls":[],"finish":"stop","usage":{"inputTokens":100,"outputTokens":20,"totalTokens":120,"cachedInputTokens":0,"cacheWriteTokens":0,"reasoningTokens":0}},"at":17',
    '"event":{"type":"model.responded","step":1,"calls":[{"callId":"call_1","kind":"question"}],"response":{"text":"","assistantMessages":[{"role":"assistant","content":[{"type":"tool-call","toolCallId":"call_1","toolName":"","input":{}}]}],"calls":[{"callId":"call_1","toolName":"","input":{},"job":"run"}],"finish":"tool-calls","usage":{"inputTokens":100,"outputTokens":20,"totalTokens":120,"cachedInputTokens":0,"cacheWriteTokens":0,"reasoningTokens":0}},"at":17',
    '}},{"scope":"","unit":"sub_","seq":2,"at":179,"actor":"subagent","definitionVersion":3,"event":{"type":"model.responded","step":1,"calls":[{"callId":"call_1","kind":"tool"}],"response":',
  ].join('\n'),
);

/** Returns the compressed text, or the text itself if that is shorter. */
export function zipped(text: string): string {
  const short = `${FIRST}${deflateRawSync(text, { dictionary: WORDS }).toString('base64')}`;
  // ZIPPED-TEXT-2
  return short.length < text.length || text.startsWith(FIRST) ? short : text;
}

/** @throws {JobError} `JOB_UNREADABLE` if the text was altered */
export function unzipped(text: string): string {
  if (!text.startsWith(FIRST)) return text;
  try {
    const bytes = Buffer.from(text.slice(FIRST.length), 'base64');
    return inflateRawSync(bytes, { dictionary: WORDS }).toString();
  } catch (error) {
    const message = `Temporal gave a text that was changed: ${messageOf(error)}`;
    throw new JobError('JOB_UNREADABLE', message, { retryable: false, cause: error });
  }
}

/** Returns journal entries as compressed text, or unchanged if that is not longer. */
export function zippedEntries(entries: RunEntries): RunEntries {
  const text = JSON.stringify(entries);
  const short = zipped(text);
  return short === text ? entries : short;
}

export function unzippedEntries(entries: RunEntries): RunEntries {
  if (typeof entries !== 'string' || !entries.startsWith(FIRST)) return entries;
  return JSON.parse(unzipped(entries)) as RunEntries;
}
