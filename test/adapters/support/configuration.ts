// The lead model's configuration in the tests of the wires.

import type { TransportConfiguration } from '../../../src/voice/connection/transport.ts';

export const configuration: TransportConfiguration = {
  instructions: 'Be brief.',
  tools: [
    {
      name: 'book_ride',
      description: 'Books a ride',
      parameters: { type: 'object', properties: { to: { type: 'string' }, when: {} } },
    },
  ],
};
