// The entry `offstage/doctor`, which lets programs check the requirements of voices and adapters on this machine.

export { examine, thisMachine, type Finding, type Machine, type Section } from './findings.ts';
