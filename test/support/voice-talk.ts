// A voice conversation with scripted subagents and a voice model that the test controls. The counterpart of
// `text-talk.ts`: the test speaks for the user, the lead agent and the client's loudspeaker.

import type { SessionEvent } from '../../src/index.ts';
import { VoiceSession, type VoiceSessionOptions } from '../../src/voice-session.ts';
import { simulatedEnvironment } from '../../src/testing/index.ts';
import { FakeTransport, type FakeConnection } from './fake-transport.ts';
import { agentsOf, castOf, configsOf, type TalkOptions } from './text-talk.ts';

export type VoiceTalkOptions = Omit<TalkOptions, 'lead' | 'runtime'> &
  Partial<
    Pick<
      VoiceSessionOptions,
      'voice' | 'runtime' | 'delegationModel' | 'thinkingSound' | 'filler' | 'acknowledgement'
    >
  > & {
    readonly transport?: FakeTransport;
  };

/** The pause after which a message is delivered: `quietMs` and a little more. */
const PAUSE_MS = 400;

export function voiceTalk(options: VoiceTalkOptions = {}) {
  const {
    subagents: _,
    tools: __,
    greeting: ___,
    onModelCall: ____,
    agent: _____,
    others: ______,
    ...rest
  } = options;
  const environment =
    (options.environment as ReturnType<typeof simulatedEnvironment> | undefined) ??
    simulatedEnvironment();
  const transport = options.transport ?? new FakeTransport();
  const errors: { error: unknown; where: string }[] = [];
  const session = new VoiceSession({
    ...(options.runtime ? {} : { environment }),
    ...rest,
    transport,
    model: castOf(options),
    agents: agentsOf(options),
    subagentConfigs: configsOf(options),
    hooks: {
      ...options.hooks,
      onError: options.hooks?.onError ?? ((error, where) => errors.push({ error, where })),
    },
  });
  const events: SessionEvent[] = [];
  session.events.subscribe((event) => events.push(event));
  const model = (): FakeConnection => transport.current;
  const state = () => session.store.getSnapshot().context;
  const talk = {
    environment,
    transport,
    session,
    events,
    errors,
    model,
    state,
    leave: (): void => {},
    async start() {
      talk.leave = session.attach();
      await session.start();
      await environment.settle();
    },
    /** Speaks as the user. */
    async say(text: string) {
      const id = model().utterance(text);
      await environment.settle();
      return id;
    },
    /** Plays an item as the client does, completely by default. */
    async play(itemId: string, playedMs = 1000) {
      session.playout.next({ itemId, playedMs });
      await environment.settle();
    },
    /** Speaks as the lead agent on request, to the end. */
    async speak(text: string) {
      await talk.play(model().speak(text));
    },
    /** Makes the lead agent call tools without arguments, and say `word` if it is asked to. */
    async use(...names: string[]) {
      await talk.say(`use ${names.join(' and ')}`);
      model().call(
        ...names.map((name) => {
          calls += 1;
          return { callId: `call_${calls}`, name, arguments: '{}' };
        }),
      );
      await environment.settle();
      if (model().openRequests.length > 0) await talk.speak('I am on it.');
    },
    /** Makes the lead agent settle the question that has the floor with a tool call. */
    async settles(settled: { readonly quote: string; readonly [more: string]: unknown }) {
      calls += 1;
      const json = JSON.stringify({ action: 'answer', ...settled });
      model().call({ callId: `call_${calls}`, name: 'settle_question', arguments: json });
      await environment.settle();
    },
    /** Lets a moment of silence pass. */
    pause: () => environment.advance(PAUSE_MS),
    /** Returns the message that the lead agent is asked to speak, or null if there is none. */
    asked: () => {
      const [request] = model().openRequests;
      if (!request) return null;
      const { instructions = 'reply', about } = request;
      return about === undefined ? instructions : `${instructions}\n${about}`;
    },
    result: () => state().deliveries.findLast(({ kind }) => kind === 'result'),
    question: () => state().questions.at(-1),
    async close() {
      const closed = session.close();
      await environment.advance(60_000);
      await closed;
    },
  };
  let calls = 0;
  return talk;
}
