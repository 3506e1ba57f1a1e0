import { localStage } from './support/local-stage.ts';
import { runConformance } from './support/run-conformance.ts';

runConformance(localStage());
