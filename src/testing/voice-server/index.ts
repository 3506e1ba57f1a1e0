// A faithful fake of three voice servers: OpenAI Realtime, OpenAI Live and Gemini Live.
//
// For tests of transports, sessions and apps: without keys, without a network if one likes,
// in virtual time, and with the faults that a real server has on a bad day. It refuses
// what the real servers are known to refuse, and all that it says is typed against the
// official packages, so that a wire that moves on is an error of the compiler.
//
//   const server = createVoiceServer({ environment: simulatedEnvironment() });
//   const transport = geminiLive({ apiKey: 'any', webSocket: server.webSocket });
//   …connect, then
//   const model = await server.nextConnection();
//   model.willAnswer({ call: 'book_ride', arguments: { to: 'airport' } }, { say: 'On it.' });
//   void model.user.says('Book me a ride.');
//   model.faults.drop({ afterMs: 3_000 });
//
// What its own tests show: that the official clients hold conversations with it, and that
// what it says passes their schemas. What they do not show: that the real servers behave
// so. Sound is a tone and is never listened to; who speaks, and which words, the test
// says. When a real model speaks, what about, and how long it takes, no fake can know.
// Not served: WebRTC, SIP, sideband connections, and Live with delegation to OpenAI's
// own backends.

export { voiceServerStage, type VoiceServerStageOptions } from './conformance-stage.ts';
export { createVoiceServer } from './voice-server.ts';
export { echoBrain } from './engine/turn-source.ts';
export type * from './engine/control.ts';
export type * from './engine/fault-control.ts';
