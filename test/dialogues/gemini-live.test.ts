import { testDialogues } from './exact-stage.ts';

testDialogues('gemini-live');
