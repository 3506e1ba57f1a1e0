// Connects the services of a session to its outbox, its subagents and its events.

import { CapacityError } from '../../../values/errors.ts';
import { THE_LEAD } from '../../contracts/service-types.ts';
import type { Failure } from '../../../machines/index.ts';
import { postNotice } from '../delivery/notices.ts';
import { checkServiceConfigs, type ServiceSubagentConfig } from '../../services/service-config.ts';
import { SessionServices } from '../../services/session-services.ts';
import type { EffectsSession } from './effects-session.ts';

/** @throws {ConfigurationError} for a service that cannot work. */
export function servicesOf(
  session: EffectsSession,
  configs: readonly ServiceSubagentConfig[],
): SessionServices {
  const { host, id } = session;
  return new SessionServices(host, id, checkServiceConfigs(configs), {
    reserve: (eventId) => session.receive('services', { type: 'invocation.wanted', eventId }),
    unreserve: (eventId) => session.receive(`place:${eventId}`, { type: 'place.freed' }),
    hasPlace: (eventId) => session.unit.hasPlace(eventId),
    delegate: (eventId, definition, task) =>
      session.delegation.spawnFor(session.ofCalls, {
        config: definition,
        task,
        caller: THE_LEAD,
        idempotencyKey: `${id}:${eventId}`,
      }),
    outcomeOf(subagentId) {
      const found = session.delegation.check(subagentId, THE_LEAD);
      return found.ok ? found.report.outcome : null;
    },
    cancel: (subagentId, reason) => session.delegation.get(subagentId)?.cancel(reason),
    notify: (notice) => void postNotice(session, { ...notice, reserved: true }),
    dropped: (dropped) => {
      session.projection.emit({ type: 'service.dropped', event: dropped });
      // The end of the session is no failure, nor is a cancellation.
      if (dropped.reason === 'stopped' || dropped.reason === 'cancelled') return;
      const { service, eventId, type, reason } = dropped;
      host.report(
        new CapacityError('EVENT_DROPPED', `${eventId}, ${type}, was not looked at: ${reason}`),
        `service ${service}`,
      );
    },
    changed: (service) => session.projection.emit({ type: 'service.changed', service }),
  });
}

/** The reason for which an invocation has to wait until earlier findings were told. */
export const OUTBOX_FULL: Failure = {
  code: 'OUTBOX_FULL',
  message: 'Too much waits to be heard, or is being made: see maxDeliveries',
  retryable: true,
};
