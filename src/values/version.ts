// The version of this package, which its programs send to other systems. A test compares it with
// package.json.

export const OFFSTAGE_VERSION = '0.1.0';
