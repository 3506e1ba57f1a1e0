// The facilities that the units of one process share: time and chance, the journal, the run loop, and hooks
// for errors.

import type { InspectionEvent } from 'xstate';
import { handleRejection, quietly } from '../../values/errors.ts';
import type { Environment } from '../ports/environment.ts';
import type { Journal } from '../ports/journal.ts';
import { Router } from './router.ts';
import type { OnUnfoldable } from './set-aside.ts';

export interface HostOptions {
  readonly environment: Environment;
  readonly journal: Journal;
  /** Called with errors that did no harm: a throwing hook, a journal append that is retried. */
  readonly onError?: ((error: unknown, where: string) => void) | undefined;
  /** Called with events that no actor could accept at that time: late, duplicate, or not addressed to it. */
  readonly onIgnored?: ((unit: string, actor: string, event: { type: string }) => void) | undefined;
  readonly inspect?: ((event: InspectionEvent) => void) | undefined;
  /** The treatment of an entry that cannot be folded. @defaultValue 'set_aside' */
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

/** Inspectors are called in the middle of a transition: their errors must not end the actor. */
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

/** Calls code of the app: a throw or rejection is reported and has no other effect. */
export function callSafely(host: Host, where: string, call: () => unknown): void {
  try {
    handleRejection(call(), (error) => host.report(error, where));
  } catch (error) {
    host.report(error, where);
  }
}
