// Takes the header comments out of the built files: the package has them in `src`, beside each built file. A license, a shebang
// and directives stay. `npm run build` runs it.

import { globSync, readFileSync, writeFileSync } from 'node:fs';

const HEADER = /^(#!.*\n)?(?:\/\/.*\n|\n)+/;

for (const path of globSync('dist/**/*.js')) {
  const text = readFileSync(path, 'utf8');
  const [header = '', shebang = ''] = HEADER.exec(text) ?? [];
  if (header.length > shebang.length && !/licen[cs]e|copyright/i.test(header))
    writeFileSync(path, `${shebang}${text.slice(header.length)}`);
}
