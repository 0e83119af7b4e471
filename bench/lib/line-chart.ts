/** One line of a chart. */
export interface Series {
  readonly name: string;
  /** `[x, y]`, by x. */
  readonly points: readonly (readonly [number, number])[];
}

const WIDTH = 760;
const HEIGHT = 300;
const LEFT = 70;
const BOTTOM = 46;
const TOP = 44;
const RIGHT = 170;
const COLORS = ["#1f5fbf", "#9aa6b5", "#c2571a"];

/** Lines over a common x axis, both axes from 0; readable in light and dark. */
export function lineChart(title: string, axis: { x: string; y: string }, lines: readonly Series[]): string {
  const all = lines.flatMap(({ points }) => points);
  const most = (at: 0 | 1): number => Math.max(...all.map((point) => point[at]), Number.MIN_VALUE);
  const [maxX, maxY] = [most(0), most(1)];
  const x = (value: number): number => LEFT + (value / maxX) * (WIDTH - LEFT - RIGHT);
  const y = (value: number): number => HEIGHT - BOTTOM - (value / maxY) * (HEIGHT - BOTTOM - TOP);
  const body = lines.map(({ name, points }, at) => {
    const color = COLORS[at % COLORS.length]!;
    const path = points.map((point) => `${x(point[0]).toFixed(1)},${y(point[1]).toFixed(1)}`).join(" ");
    const dots = points.map(
      (point) =>
        `<circle cx="${x(point[0]).toFixed(1)}" cy="${y(point[1]).toFixed(1)}" r="3" fill="${color}"/>`,
    );
    const last = points.at(-1)!;
    return `<polyline points="${path}" fill="none" stroke="${color}" stroke-width="2"/>${dots.join("")}<text x="${x(last[0]) + 8}" y="${y(last[1]) + 4}" fill="${color}">${name}: ${Number(last[1].toPrecision(3))}</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="system-ui, sans-serif" font-size="12">
<style>.label{fill:#1b2330}@media(prefers-color-scheme:dark){.label{fill:#e6ebf1}}</style>
<text class="label" x="8" y="24" font-size="15" font-weight="600">${title}</text>
<line x1="${LEFT}" y1="${y(0)}" x2="${WIDTH - RIGHT}" y2="${y(0)}" stroke="#8893a3"/><line x1="${LEFT}" y1="${TOP}" x2="${LEFT}" y2="${y(0)}" stroke="#8893a3"/>
<text class="label" x="${LEFT}" y="${HEIGHT - 14}">0 … ${Number(maxX.toPrecision(4))} ${axis.x}</text>
<text class="label" x="8" y="${TOP - 6}">${Number(maxY.toPrecision(3))} ${axis.y}</text>
${body.join("\n")}
</svg>
`;
}
