// Telephone calls over Twilio Media Streams: `offstage/twilio`.

export type { CallSession, TwilioCallOptions, TwilioSocket } from './options.ts';
export { isTwilioRequest } from './twilio-calls.ts';
export { acceptTwilioCall, type CallEnd, type TwilioCall } from './twilio-call.ts';
export { twilioCalls, type TwilioCalls } from './twilio-calls.ts';
export { streamTwiml } from './twilio-calls.ts';
