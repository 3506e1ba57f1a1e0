// A faithful fake of three voice servers: OpenAI Realtime, OpenAI Live and Gemini Live.
//
// It is for tests of transports, sessions and apps. They need no keys and no network, run in virtual time, and can
// cause the faults of a real server. The fake refuses the messages that the real servers are known to refuse. All of
// its events are typed against the official packages, so a change in a protocol causes a compile error.
//
//   const server = createVoiceServer({ environment: simulatedEnvironment() });
//   const transport = geminiLive({ apiKey: 'any', webSocket: server.webSocket });
//   …connect, then
//   const model = await server.nextConnection();
//   model.willAnswer({ call: 'book_ride', arguments: { to: 'airport' } }, { say: 'On it.' });
//   void model.user.says('Book me a ride.');
//   model.faults.drop({ afterMs: 3_000 });
//
// The fake's tests show that the official clients can hold conversations with it, and that its events pass their
// schemas. They cannot show that the real servers behave in the same way. The audio is a tone, and nothing recognises
// speech in it. The test decides who speaks and what they say. A fake cannot know when a real model speaks, what it
// speaks about, or for how long. Not served: WebRTC, SIP, sideband connections, and Live with delegation to OpenAI's
// backends.

export { voiceServerStage } from './conformance-stage.ts';
export { createVoiceServer } from './voice-server.ts';
export { echoResponder } from './engine/echo-responder.ts';
export type {
  FakeItem,
  FakeReply,
  FakeVoiceModel,
  ListenOptions,
  ReceivedFrame,
  UserSpeech,
  VoiceCause,
  VoiceResponder,
  VoiceServer,
  VoiceServerAddress,
  VoiceServerOptions,
  VoiceStep,
  VoiceTurn,
  VoiceWire,
} from './engine/control.ts';
