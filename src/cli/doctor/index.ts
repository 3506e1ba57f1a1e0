// The entry `offstage/doctor`: checks the requirements of voices and adapters on this machine, for programs.

export { examine, thisMachine, type Finding, type Machine, type Section } from './findings.ts';
