// Uses elkjs to lay out the statecharts that the inspector shows for each session, and writes
// src/inspector/laid-out-charts.ts. `--check` compares instead.

import { readFileSync, writeFileSync } from 'node:fs';
import elkjs, { type ElkExtendedEdge, type ElkNode } from 'elkjs';
import { graphOf, shownMachines } from '../src/inspector/charts.ts';

const elk = new elkjs.default();
const placed: Record<string, unknown> = {};
for (const [name, machine] of Object.entries(shownMachines)) {
  const graph = graphOf(machine);
  if (!graph) throw new Error(`The chart of ${name} is too large for a picture`);
  const { width, height, children, edges } = await elk.layout(JSON.parse(JSON.stringify(graph)));
  placed[name] = { width, height, children: children?.map(boxOf), edges: edges?.map(arrowOf) };
}
const json = JSON.stringify(placed, (_key, value: unknown) =>
  typeof value === 'number' ? Math.round(value) : value,
);

/** Returns the fields of a box that the page uses. */
function boxOf({ x, y, width, height, children }: ElkNode): object {
  return { x, y, width, height, children: children?.map(boxOf) };
}

/**
 * Returns the fields of an arrow that the page uses. The corners are stored as one string, which takes a third of the
 * space.
 */
function arrowOf({ sources, targets, labels, sections = [] }: ElkExtendedEdge): object {
  const corners = sections.flatMap(({ startPoint, bendPoints = [], endPoint }) => [
    startPoint,
    ...bendPoints,
    endPoint,
  ]);
  const line = corners.map(({ x, y }) => `${Math.round(x)} ${Math.round(y)}`).join('L');
  return { sources, targets, line, labels: labels?.map(({ text, x, y }) => ({ text, x, y })) };
}

const path = new URL('../src/inspector/laid-out-charts.ts', import.meta.url);
const source = `// The charts of ./charts.ts as ELK has placed them: \`npm run charts\` writes this file.

/** Keyed by the chart's name, as JSON. */
export const laidOutCharts: string =
  '${json.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}';
`;
if (!process.argv.includes('--check')) writeFileSync(path, source);
else if (readFileSync(path, 'utf8') !== source) {
  console.error(
    'src/inspector/laid-out-charts.ts is not of these machines: `npm run charts` writes it anew.',
  );
  process.exitCode = 1;
}
