// Rules of this repository that the linter does not provide.

import { importDirection } from './import-direction.ts';
import { names } from './names.ts';
import { noAmbientDate } from './no-ambient-date.ts';
import { noSpreadIntoEvent } from './no-spread-into-event.ts';
import { rxjsNeedsScheduler } from './rxjs-needs-scheduler.ts';
import { testTitles } from './test-titles.ts';

export default {
  meta: { name: 'offstage' },
  rules: {
    'import-direction': importDirection,
    names,
    'no-ambient-date': noAmbientDate,
    'no-spread-into-event': noSpreadIntoEvent,
    'rxjs-needs-scheduler': rxjsNeedsScheduler,
    'test-titles': testTitles,
  },
};
