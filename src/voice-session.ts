// A voice conversation, in real time unless the app provides another environment. Its transport provides the code that
// runs the session, so that a text-only program does not load any file from `voice`.

import type { Observable, Observer } from 'rxjs';
import type { ClientSource } from './actors/contracts/identity.ts';
import type { ShownImage } from './actors/session/questions/shown-image.ts';
import { BaseSession } from './actors/session/view/base-session.ts';
import { withRuntime, type RuntimeChoice } from './real-time.ts';
import { ConfigurationError } from './values/errors.ts';
import { checkIsObject, notAnObject } from './values/plain-checks.ts';
import type { AudioFrame } from './voice/audio/audio-frame.ts';
import type { Transport } from './voice/connection/transport.ts';
import type {
  PlayoutReport,
  SpokenLead,
  VoiceSessionOptions as CoreVoiceSessionOptions,
} from './voice/spoken-lead.ts';
import type { VoicedTransport, WithVoiceOptions } from './voice/voiced/with-voice.ts';

/** The options of a `VoiceSession`, which creates its own real-time runtime unless the app passes one. */
export type VoiceSessionOptions = Omit<CoreVoiceSessionOptions, 'runtime'> & RuntimeChoice;

const NEW = 'new VoiceSession(options)';
const EXAMPLE =
  "new VoiceSession({ transport: openaiRealtime({ apiKey }), agents: [{ name: 'lead', instructions: 'You help the user.' }] })";

/** A conversation by voice. */
export class VoiceSession extends BaseSession {
  /** The user's audio: mono, 8 to 48 kHz, at the rate stated in each frame. */
  readonly audioIn: Observer<AudioFrame>;
  /** The client's playout reports: about every 100 ms, at the end of an item, and after `playout.clear`. */
  readonly playout: Observer<PlayoutReport>;
  /** The model's audio; each frame has the `itemId` that playout reports must name. This observable is hot. */
  readonly audioOut: Observable<AudioFrame>;
  readonly #lead: ReturnType<SpokenLead['open']>['lead'];

  /** @throws {ConfigurationError} if options contradict each other */
  constructor(options: VoiceSessionOptions) {
    const given = withRuntime(NEW, options);
    checkIsObject(NEW, given, EXAMPLE);
    const { core, lead, audioIn, playout, audioOut } = leadOf(given.transport).open(given);
    super(core);
    this.audioIn = audioIn;
    this.playout = playout;
    this.audioOut = audioOut;
    this.#lead = lead;
  }

  /**
   * Shows a picture to the lead model without requesting a response. The picture is not stored: subagents, and a model
   * on a later connection, only learn that a picture was shown. Returns whether it was shown; false while the model is
   * not connected.
   * @throws {ConfigurationError} `IMAGES_NOT_ACCEPTED` if the transport does not accept pictures, `INVALID_IMAGE` for a
   *   type or size other than `ShownImage` allows.
   */
  override showImage(image: ShownImage): boolean {
    this.checkRoom();
    return this.#lead.showImage(image);
  }

  /**
   * Connects now while `connection` is `resting` or `refused`; does nothing otherwise. For an app that knows that its
   * provider is available again, or that has renewed the transport's key.
   * @throws {CapacityError} `MAILBOX_FULL` while 10,000 of the session's events wait for the journal.
   */
  reconnect(): void {
    this.checkRoom();
    this.#lead.reconnect();
  }

  override attach(options: ClientSource = {}): () => void {
    const leave = super.attach(options);
    if (this.isAttached) this.#lead.clientAttached();
    return () => {
      const wasAttached = this.isAttached;
      leave();
      if (wasAttached && !this.isAttached) this.#lead.clientDetached();
    };
  }
}

/**
 * Gives a text model a voice, over any transport whose `capabilities.output` is `text`, such as
 * `openaiRealtime({ output: 'text' })`: the model's text is split into sentences, each is synthesised ahead of
 * playback, and the part that the user did not hear is removed from the model's memory. If the voice fails, the
 * response fails: its delivery is offered again.
 *
 * @throws {ConfigurationError} `INVALID_OPTION`, or `TEXT_OUTPUT_NEEDED` if the transport's model speaks by itself
 */
export function withVoice(transport: Transport, options: WithVoiceOptions): VoicedTransport {
  return leadOf(transport).withVoice(transport, options);
}

/** @throws {ConfigurationError} if the value is not a transport or has no `lead` */
function leadOf(transport: Transport): SpokenLead {
  const problem = notAnObject(transport) ?? missingIn(transport);
  if (problem === null && isSpokenLead(transport.lead)) return transport.lead;
  throw new ConfigurationError(
    'INVALID_OPTION',
    `Expected \`transport\` to be a transport such as openaiRealtime({ apiKey }), got ${problem ?? WITHOUT_LEAD}`,
  );
}

const WITHOUT_LEAD =
  'one without `lead`. In a transport of your own, write `lead: spokenLead` of offstage/transport';

function missingIn({ connect, capabilities }: Transport): string | null {
  if (typeof connect !== 'function') return 'an object without `connect`';
  return notAnObject(capabilities) === null ? null : 'an object without `capabilities`';
}

function isSpokenLead(lead: Transport['lead'] | undefined): lead is SpokenLead {
  return lead?.leadsBy === 'voice' && 'open' in lead;
}
