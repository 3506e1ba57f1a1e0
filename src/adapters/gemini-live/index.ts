// `offstage/gemini-live`

export { createEphemeralToken, type EphemeralToken } from './ephemeral-token.ts';
export { geminiLive, type GeminiLiveTransport } from './gemini-live.ts';
export type { GeminiLiveOptions } from './options.ts';
