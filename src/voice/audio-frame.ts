// One stretch of sound, as it travels between the user's device, the session and
// the model. Frames are small (20 to 100 ms) and are never events of a machine.

/** A stretch of mono sound: signed 16-bit samples at `sampleRateHz`. */
export interface AudioFrame {
  /** Int16 samples, one channel, full scale ±32767. Owned by the receiver; never reused by the sender. */
  readonly samples: Int16Array;
  /** 24000 on the OpenAI Realtime wire; 8000 to 48000 are accepted from a client. */
  readonly sampleRateHz: number;
  /**
   * Audio of the model names the conversation item that it belongs to; what goes on after a false
   * interruption has a name of its own (`<id>~2`). Audio of the user has none, nor has what is no
   * speech: it is played, and not reported.
   */
  readonly itemId?: string;
  /** The response that made it; a frame of a cancelled response is dropped. */
  readonly responseId?: string;
}

/** How long a frame sounds, in milliseconds. */
export function frameDurationMs(frame: Pick<AudioFrame, 'samples' | 'sampleRateHz'>): number {
  return (frame.samples.length * 1000) / frame.sampleRateHz;
}
