// The entry `offstage/transport`: everything that a custom transport needs. Importing it loads the voice code.

export { spokenLead } from '../voice/spoken-lead.ts';
