// The entry `offstage/transport`: what a custom transport needs. Importing it loads the voice.

export { spokenLead } from '../voice/spoken-lead.ts';
