// `offstage/transport`: what a transport of your own brings. It loads the voice.

export { spokenLead } from '../voice/spoken-lead.ts';
