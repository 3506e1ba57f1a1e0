// The entry `offstage/doctor`: finds the requirements of voices and adapters that this machine meets or lacks, for programs.

export { examine, thisMachine, type Finding, type Machine, type Section } from './findings.ts';
