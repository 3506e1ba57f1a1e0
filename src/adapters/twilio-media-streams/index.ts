// Telephone calls over Twilio Media Streams: `offstage/twilio`.

export type { CallSession, TwilioCallOptions, TwilioSocket } from './options.ts';
export { isTwilioRequest, type SignedRequest } from './twilio-calls.ts';
export { acceptTwilioCall, type CallEnd, type TwilioCall } from './twilio-call.ts';
export { twilioCalls, type TwilioCalls, type TwilioCallsOptions } from './twilio-calls.ts';
export { streamTwiml } from './twilio-calls.ts';
