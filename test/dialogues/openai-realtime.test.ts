import { testDialogues } from './exact-stage.ts';

testDialogues('openai-realtime');
