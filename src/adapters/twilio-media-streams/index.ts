// Telephone calls over Twilio Media Streams: `offstage/twilio`.

export type { CallSession, TwilioCallOptions, TwilioSocket } from './options.ts';
export { isTwilioRequest, type SignedRequest } from './signature.ts';
export { acceptTwilioCall, type CallEnd, type TwilioCall } from './twilio-call.ts';
export { streamTwiml } from './twiml.ts';
