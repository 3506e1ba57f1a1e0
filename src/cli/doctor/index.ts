// The entry `offstage/doctor`: lets programs check whether this machine meets the requirements of voices and adapters.

export { examine, thisMachine, type Finding, type Machine, type Section } from './findings.ts';
