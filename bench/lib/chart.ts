import { xmlText } from "@devplat/base/xml-text";
import { quantity } from "./figures.ts";
import type { Row } from "./row.ts";

const WIDTH = 760;
const LABEL = 300;
const BAR = 16;
const ROW = 52;

/** Horizontal bars, ours over its references, each group scaled to its largest; readable in light and dark. */
export function barChart(title: string, rows: readonly Row[]): string {
  const groups: string[] = [];
  let y = 48;
  for (const row of rows) {
    groups.push(group(row, y));
    y += ROW + (row.others?.length ?? 0) * (BAR + 3);
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y + 8}" font-family="system-ui, sans-serif" font-size="12">
<style>text{fill:#1b2330}.ours{fill:#1f5fbf}.reference{fill:#9aa6b5}@media(prefers-color-scheme:dark){text{fill:#e6ebf1}.ours{fill:#7fb2ff}.reference{fill:#566070}}</style>
<text x="8" y="24" font-size="15" font-weight="600">${xmlText(title)}</text>
${groups.join("")}</svg>
`;
}

function group(row: Row, y: number): string {
  const references = [{ name: row.referenceName, value: row.reference }, ...(row.others ?? [])];
  const largest = Math.max(row.ours.median, ...references.map(({ value }) => value.median), Number.MIN_VALUE);
  const scale = (WIDTH - LABEL - 150) / largest;
  const bar = (value: number, kind: string, top: number, name: string): string => {
    const length = Math.max(1, value * scale);
    return `<rect class="${kind}" x="${LABEL}" y="${top}" width="${length.toFixed(1)}" height="${BAR}" rx="3"/><text x="${(LABEL + length + 6).toFixed(1)}" y="${top + 12}">${xmlText(quantity(value, row.unit))} ${xmlText(name)}</text>`;
  };
  const others = references.map(({ name, value }, at) =>
    bar(value.median, "reference", y + (at + 1) * (BAR + 3), name),
  );
  return `<text x="8" y="${y + 20}">${xmlText(row.what)}</text>${bar(row.ours.median, "ours", y, "ours")}${others.join("")}\n`;
}
