// What the units of one process share: time and chance, the journal, the run loop,
// and somebody to tell when something goes wrong.

import type { InspectionEvent } from 'xstate';
import { handleRejection, quietly } from '../../values/errors.ts';
import type { Environment } from '../ports/environment.ts';
import type { Journal } from '../ports/journal.ts';
import { Router } from './router.ts';
import type { OnUnfoldable } from './set-aside.ts';

export interface HostOptions {
  readonly environment: Environment;
  readonly journal: Journal;
  /** Learns of what went wrong without harm: a throwing hook, a journal that is tried again. */
  readonly onError?: ((error: unknown, where: string) => void) | undefined;
  /** Learns of events that no actor could take at that time: late, double, or not for it. */
  readonly onIgnored?: ((unit: string, actor: string, event: { type: string }) => void) | undefined;
  readonly inspect?: ((event: InspectionEvent) => void) | undefined;
  /** What becomes of an entry that cannot be taken in. @defaultValue 'set_aside' */
  readonly onUnfoldable?: OnUnfoldable | undefined;
}

export interface Host {
  readonly environment: Environment;
  readonly journal: Journal;
  readonly router: Router;
  readonly inspect: ((event: InspectionEvent) => void) | undefined;
  readonly onUnfoldable: OnUnfoldable;
  report(error: unknown, where: string): void;
  ignored(unit: string, actor: string, event: { type: string }): void;
}

export function createHost(options: HostOptions): Host {
  const report = quietly(options.onError);
  const host: Host = {
    environment: options.environment,
    journal: options.journal,
    router: new Router((error) => report(error, 'router')),
    inspect: options.inspect && guarded(options.inspect, report),
    onUnfoldable: options.onUnfoldable ?? 'set_aside',
    report,
    ignored(unit, actor, event) {
      callSafely(host, 'onIgnored', () => options.onIgnored?.(unit, actor, event));
    },
  };
  return host;
}

/** Whoever inspects is called in the middle of a transition: what they throw must not end the actor. */
function guarded(
  inspect: NonNullable<HostOptions['inspect']>,
  report: Host['report'],
): NonNullable<HostOptions['inspect']> {
  return (event) => {
    try {
      handleRejection(inspect(event), (error) => report(error, 'inspect'));
    } catch (error) {
      report(error, 'inspect');
    }
  };
}

/** Calls somebody else's code: what it throws or rejects with is reported, and breaks nothing. */
export function callSafely(host: Host, where: string, call: () => unknown): void {
  try {
    handleRejection(call(), (error) => host.report(error, where));
  } catch (error) {
    host.report(error, where);
  }
}
