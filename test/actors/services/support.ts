// A service without a session: the test decides the outcome of each invocation.

import { createHost } from '../../../src/actors/runtime/host.ts';
import type {
  EmitEvent,
  EventReceipt,
  EventSourceConfig,
  EventSourceContext,
  ExternalEvent,
} from '../../../src/actors/ports/event-source.ts';
import type { CheckedEvent } from '../../../src/actors/services/service-events.ts';
import {
  checkServiceConfig,
  type ServiceSubagentConfig,
} from '../../../src/actors/services/service-config.ts';
import { Service } from '../../../src/actors/services/service.ts';
import type { Outcome } from '../../../src/actors/contracts/outcome.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';
import { gatedJournal } from '../../support/journals.ts';
import { completedOutcome } from '../../support/outcomes.ts';
import type { DroppedEvent, ServiceView } from '../../../src/actors/contracts/session-views.ts';

export const order = (data: unknown = {}, rest: Partial<ExternalEvent> = {}): ExternalEvent => ({
  source: 'shop',
  type: 'order.status_changed',
  data,
  ...rest,
});

/** A source under the test's control. */
export class ManualSource implements EventSourceConfig {
  readonly name: string;
  starts = 0;
  stops = 0;
  emit: EmitEvent = () => Promise.reject(new Error('It was not started'));
  signal = new AbortController().signal;
  context!: EventSourceContext;
  /** Called in `start` after it has stored its arguments. */
  onStart: () => void | Promise<void> = () => undefined;
  onStop: () => void | Promise<void> = () => undefined;

  constructor(name = 'shop') {
    this.name = name;
  }

  start(...[emit, signal, context]: Parameters<EventSourceConfig['start']>): void | Promise<void> {
    this.starts += 1;
    this.emit = emit;
    this.signal = signal;
    this.context = context;
    return this.onStart();
  }

  stop(): void | Promise<void> {
    this.stops += 1;
    return this.onStop();
  }
}

export function serviceStage(
  config: Partial<ServiceSubagentConfig> = {},
  {
    autoEnd = false,
    onChanged,
  }: { readonly autoEnd?: boolean; readonly onChanged?: (own: Service) => void } = {},
) {
  const environment = simulatedEnvironment();
  const errors: unknown[] = [];
  const journal = gatedJournal();
  const host = createHost({ environment, journal, onError: (error) => errors.push(error) });
  const source = new ManualSource();
  const invoked: { eventId: string; event: CheckedEvent }[] = [];
  const left: string[] = [];
  const told: { text: string | null; priority: string }[] = [];
  const dropped: DroppedEvent[] = [];
  const views: ServiceView[] = [];
  const definition = checkServiceConfig({
    agent: { name: 'order_monitor', instructions: 'Monitor orders.' },
    eventSources: [source],
    ...config,
  });
  const service = new Service(host, 'ses', definition, {
    invoke: (own, eventId, event) => {
      invoked.push({ eventId, event });
      if (autoEnd) own.ended(eventId, completedOutcome(`seen ${JSON.stringify(event.data)}`));
    },
    leave: (eventId) => left.push(eventId),
    tell: (_own, _eventId, { priority }, text) => told.push({ text, priority }),
    isOwed: () => true,
    dropped: (one) => dropped.push(one),
    changed: (view) => {
      views.push(view);
      onChanged?.(service);
    },
  });
  return {
    environment,
    journal,
    host,
    source,
    service,
    errors,
    invoked,
    left,
    told,
    dropped,
    views,
    async start() {
      service.start();
      await environment.settle();
    },
    async emit(event: unknown): Promise<EventReceipt> {
      const receipt = await source.emit(event as ExternalEvent);
      await environment.settle();
      return receipt;
    },
    async end(outcome: Outcome | string) {
      const { eventId = '' } = invoked.at(-1) ?? {};
      service.ended(eventId, typeof outcome === 'string' ? completedOutcome(outcome) : outcome);
      await environment.settle();
    },
    /** Stops the service, and returns true once nothing of it is left. */
    stop() {
      let isStopped = false;
      service.stop();
      service.whenStopped(() => (isStopped = true));
      return () => isStopped;
    },
  };
}
