// A conversation by voice, in real time unless the app gives another.

import { withRuntime, type RuntimeChoice } from './real-time.ts';
import {
  VoiceSession as CoreVoiceSession,
  type VoiceSessionOptions as CoreVoiceSessionOptions,
} from './voice/voice-session.ts';

export { withVoice } from './voice/voiced/with-voice.ts';

/** The options of a `VoiceSession`, which creates its own runtime in real time unless it is given one. */
export type VoiceSessionOptions = Omit<CoreVoiceSessionOptions, 'runtime'> & RuntimeChoice;

/** A conversation by voice. */
export class VoiceSession extends CoreVoiceSession {
  /** @throws {ConfigurationError} for options that cannot work together. */
  constructor(options: VoiceSessionOptions) {
    super(withRuntime('new VoiceSession(options)', options));
  }
}
