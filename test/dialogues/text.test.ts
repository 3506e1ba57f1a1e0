import { testDialogues } from './exact-stage.ts';

testDialogues('text');
