// The network and model faults that a test can cause on one connection. A fault affects only its own connection. If the
// protocol cannot represent a fault, a ConfigurationError `NOT_ON_THIS_WIRE` is thrown, so that no test passes without
// its fault.

/** When a fault happens. If the moment is absent, the fault happens immediately. */
export type FaultMoment =
  /** The delay from now, in milliseconds. */
  | { readonly afterMs: number }
  /** Right after the server has sent this number of additional frames. */
  | { readonly afterFrames: number };

/** The faults that a test can cause in a fake voice server. */
export interface FakeFaults {
  /** The network fails: there is no close frame, so the client sees 1006. Both sides lose the frames in transit. */
  drop(moment?: FaultMoment): void;
  /** The server closes. The real servers use 1007, 1008 and 1011. @defaultValue reason '' */
  close(code: number, reason?: string, moment?: FaultMoment): void;
  /**
   * The session reaches its limit. Realtime: an error `session_expired`, then close; Live: `session.closed` with the
   * reason `expired`, then close; Gemini: close 1011 without notice (see `goAway`).
   */
  expire(moment?: FaultMoment): void;
  /** Gemini only: announces the end of the connection and closes it after `timeLeftMs`. */
  goAway(timeLeftMs: number): void;
  /** Gemini only: the server refuses earlier handles with 1007, and later handles are not resumable. */
  forgetHandles(): void;
  /** Live only: stored sessions can no longer be forked. */
  forgetSessions(): void;

  /** The model never responds. While this fault is on, no turn starts and pending turns stay unanswered. */
  silence(on?: boolean): void;
  /** Realtime only: refuses the next `times` `response.create` events. @defaultValue once, code `server_error` */
  refuseResponses(times?: number, code?: string): void;
  /** Refuses the next `session.update` (Live, Realtime) with this code. @defaultValue `invalid_value` */
  refuseConfiguration(code?: string): void;

  /** After a turn has been cancelled or interrupted, one more piece of its audio and text arrives. */
  deltasAfterCancel(on?: boolean): void;
  /** Each tool call (or delegation) is announced twice. */
  duplicateCalls(on?: boolean): void;
  /** Gemini only: the model cancels these calls. @defaultValue all open calls */
  cancelCalls(callIds?: readonly string[]): void;

  /** Delays each of the server's frames by this time and preserves their order. */
  delayFrames(ms: number): void;
  /** Holds the server's frames and sends them all when the fault is turned off. */
  stall(on?: boolean): void;
  /** Sends a text that is not a valid frame. @defaultValue text that is not JSON */
  malformed(text?: string): void;
  /** Sends a well-formed event whose type the protocol does not know. */
  unknownEvent(type?: string): void;
}
