// The voice model without a wire passes what every transport must pass.

import { simulatedVoice } from '../../../src/testing/index.ts';
import { runConformance } from '../conformance/support/run-conformance.ts';

runConformance(simulatedVoice());
runConformance(simulatedVoice({ updatesSession: false }, 'simulated voice without updates'));
