import { testDialogues } from './exact-stage.ts';

testDialogues('openai-live');
