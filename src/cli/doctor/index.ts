// `offstage/doctor`: what this machine has and lacks for the voices and adapters, for programs that choose one.

export { examine, thisMachine, type Finding, type Machine, type Section } from './findings.ts';
