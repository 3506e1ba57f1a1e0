// `offstage/openai-live`

export { openaiLive, type OpenaiLiveTransport } from './openai-live.ts';
export type { OpenaiLiveOptions } from './options.ts';
