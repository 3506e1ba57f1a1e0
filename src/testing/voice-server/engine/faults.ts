// The faults of one connection: passes the switches of a test to the parts that apply them.

import { ConfigurationError } from '../../../values/errors.ts';
import type { VoiceWire } from './control.ts';
import type { EngineFaults, VoiceEngine } from './engine.ts';
import type { FakeFaults, FaultMoment } from './fault-control.ts';
import type { Outlet } from './outlet.ts';
import type { TurnSource } from './turn-source.ts';

export interface FaultParts {
  readonly wire: VoiceWire;
  readonly flags: EngineFaults;
  readonly engine: VoiceEngine;
  readonly outlet: Outlet;
  readonly turns: TurnSource;
  readonly drop: () => void;
  readonly close: (code: number, reason: string) => void;
  /** Forgets the states that a later connection could resume. */
  readonly forget: () => void;
}

export class ConnectionFaults implements FakeFaults {
  readonly #parts: FaultParts;

  constructor(parts: FaultParts) {
    this.#parts = parts;
  }

  drop(moment?: FaultMoment): void {
    this.#parts.outlet.at(moment, this.#parts.drop);
  }

  close(code: number, reason = '', moment?: FaultMoment): void {
    this.#parts.outlet.at(moment, () => this.#parts.close(code, reason));
  }

  expire(moment?: FaultMoment): void {
    this.#parts.outlet.at(moment, () => this.#parts.engine.expire());
  }

  goAway(timeLeftMs: number): void {
    const { engine } = this.#parts;
    this.#only('goAway', engine.goAway).call(engine, timeLeftMs);
  }

  forgetHandles(): void {
    this.#only('forgetHandles', this.#on('gemini-live', this.#parts.forget))();
  }

  forgetSessions(): void {
    this.#only('forgetSessions', this.#on('openai-live', this.#parts.forget))();
  }

  silence(on = true): void {
    this.#parts.turns.isSilent = on;
  }

  refuseResponses(times = 1, code = 'server_error'): void {
    this.#only(
      'refuseResponses',
      this.#on('openai-realtime', () => {
        this.#parts.flags.refuseResponses = { times, code };
      }),
    )();
  }

  refuseConfiguration(code = 'invalid_value'): void {
    const refuse = (): void => {
      this.#parts.flags.refuseConfiguration = code;
    };
    const hasWord = this.#parts.wire !== 'gemini-live';
    this.#only('refuseConfiguration', hasWord ? refuse : undefined)();
  }

  deltasAfterCancel(on = true): void {
    this.#parts.flags.deltasAfterCancel = on;
  }

  duplicateCalls(on = true): void {
    this.#parts.flags.duplicateCalls = on;
  }

  cancelCalls(callIds?: readonly string[]): void {
    const { engine } = this.#parts;
    this.#only('cancelCalls', engine.cancelCalls).call(engine, callIds);
  }

  delayFrames(ms: number): void {
    this.#parts.outlet.delay(ms);
  }

  stall(on = true): void {
    this.#parts.outlet.stall(on);
  }

  malformed(text = '{"type": "session.'): void {
    this.#parts.outlet.send(text);
  }

  unknownEvent(type = 'session.weather.changed'): void {
    this.#parts.outlet.send(JSON.stringify(this.#parts.engine.unknownEvent(type)));
  }

  #on<Fault>(wire: VoiceWire, fault: Fault): Fault | undefined {
    return this.#parts.wire === wire ? fault : undefined;
  }

  #only<Fault>(name: string, fault: Fault | undefined): Fault {
    if (fault !== undefined) return fault;
    const message = `The wire ${this.#parts.wire} has no fault \`${name}\``;
    throw new ConfigurationError('NOT_ON_THIS_WIRE', message);
  }
}
