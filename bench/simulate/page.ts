import { resolve } from "node:path";
import { findRow, type Results } from "../lib/find-row.ts";
import { quantity } from "../lib/figures.ts";
import { ratioOf } from "../lib/report.ts";
import type { AnsweredLoad, Answers } from "./answers.ts";
import { P99_SECONDS } from "./answers.ts";
import { KIND_NAMES, KINDS } from "./model/kinds.ts";
import type { Outcome } from "./model/outcome.ts";
import { bottleneckText, enoughText, linesOf, percent, signed } from "./table.ts";

/** Page about the model. A part of it is written from the answers and the results. */
export const SCALE_PAGE = resolve(import.meta.dirname, "../../docs/scale.md");

/** Inputs of the list of the ones that matter most, and resources of the list of the busiest ones. */
const SHOWN_EFFECTS = 6;
const SHOWN_RESOURCES = 6;

/** The written part of the page. */
export function scaleText(results: Results, answers: Answers): string {
  return [...answers.loads.flatMap(loadText), ...inputsText(answers), ...errorsText(results)].join("\n");
}

function loadText(load: AnsweredLoad): string[] {
  const { jobsPerHour, scenario, enough, others, effects } = load;
  const outcomes = [
    ...others.filter(({ instances }) => instances !== enough.instances),
    enough.outcome,
  ].toSorted((one, other) => one.instances - other.instances);
  const count = scenario.repositories.count.toLocaleString("en-US");
  return [
    `## ${jobsPerHour.toLocaleString("en-US")} jobs in an hour`,
    "",
    `With ${count} repositories, and a delay of at most ${P99_SECONDS} s (p99): ${enoughText(enough)}`,
    "",
    bottleneckText(enough.outcome),
    "",
    ...outcomeTable(outcomes),
    "",
    "Use of the busiest resources:",
    "",
    `| Resource | ${outcomes.map(header).join(" | ")} |`,
    `|---|${outcomes.map(() => "---").join("|")}|`,
    ...resourceRows(outcomes),
    "",
    "Effect of each input if it is raised by half, the largest first:",
    "",
    "| Input | Busiest resource of an instance | Delay, p99 | Egress |",
    "|---|---|---|---|",
    ...effects
      .slice(0, SHOWN_EFFECTS)
      .map(
        ({ input, busiest, delay, egress }) =>
          `| ${input} | ${signed(busiest)} | ${signed(delay)} | ${signed(egress)} |`,
      ),
    "",
  ];
}

function header({ instances }: Outcome): string {
  return `${instances} instance${instances === 1 ? "" : "s"}`;
}

function outcomeTable(outcomes: readonly Outcome[]): string[] {
  const columns = outcomes.map((outcome) => new Map(linesOf(outcome)));
  const [, ...names] = linesOf(outcomes.at(-1)!).map(([what]) => what);
  return [
    `| | ${outcomes.map(header).join(" | ")} |`,
    `|---|${outcomes.map(() => "---").join("|")}|`,
    ...names.map((name) => `| ${name} | ${columns.map((column) => column.get(name) ?? "").join(" | ")} |`),
  ];
}

function resourceRows(outcomes: readonly Outcome[]): string[] {
  const last = outcomes.at(-1)!;
  return last.utilisations.slice(0, SHOWN_RESOURCES).map(({ resource }) => {
    const cells = outcomes.map(({ utilisations }) => {
      const found = utilisations.find((each) => each.resource === resource);
      return found === undefined ? "" : percent(found);
    });
    return `| ${resource} | ${cells.join(" | ")} |`;
  });
}

/** Measured costs, each with its source. */
function inputsText({ costs }: Answers): string[] {
  const link = (name: string): string => `[${name}](../bench/results/${name}.md)`;
  const seconds = (value: number): string => quantity(value, "s");
  const perMegabyte = (value: number): string => `${quantity(value * 1e6, "s")} for each MB`;
  const line = ({ fixed, perByte }: { fixed: number; perByte: number }): string =>
    perByte === 0 ? seconds(fixed) : `${seconds(fixed)} and ${perMegabyte(perByte)}`;
  const megabytes = (value: number): string => `${Number((value / 1e6).toPrecision(3))} MB`;
  const rows: readonly (readonly [string, string, string])[] = [
    ["CPU of `info/refs`", seconds(costs.info), "scale-costs"],
    ["CPU of `ls-refs`", seconds(costs.lsRefs), "scale-costs"],
    ...KINDS.flatMap((kind) => [
      [
        `CPU of a stored response, ${KIND_NAMES[kind]}`,
        line(costs.repeat[kind]),
        kind === "full" ? "clone" : "kinds",
      ] as const,
      [
        `CPU of its first use, from the mirror`,
        line(costs.built[kind]),
        kind === "full" ? "git-store-serve" : "kinds",
      ] as const,
    ]),
    [
      "CPU of writing a response at its second use",
      perMegabyte(costs.second.full.perByte - costs.repeat.full.perByte),
      "disk",
    ],
    ["CPU of taking a push into the mirror", seconds(costs.pushFill), "scale-costs"],
    ["CPU of a first clone and the fill of the mirror", line(costs.cold), "fill"],
    ["mirror from the bucket to the disk", line(costs.hydrate), "object-mirror"],
    ["CPU of an upload to the bucket", line(costs.upload), "object-mirror"],
    [
      "bytes of a clone with depth 1, of a full one",
      `${Math.round(costs.size.shallow * 100)} %`,
      "git-store-serve",
    ],
    [
      "bytes of a clone with blob:none, of a full one",
      `${Math.round(costs.size.blobless * 100)} %`,
      "git-store-serve",
    ],
    [
      "PUTs for a mirror, a push, a response",
      [costs.bucket.mirrorUpload, costs.bucket.pushUpload, costs.bucket.responseUpload]
        .map((value) => Number(value.toPrecision(2)))
        .join(", "),
      "scale-costs",
    ],
    [
      "GETs for a mirror at another instance",
      String(Number(costs.bucket.hydration.toPrecision(2))),
      "scale-costs",
    ],
    [
      "transactions of an idle instance in a second",
      String(Number(costs.database.backgroundPerSecond.toPrecision(2))),
      "scale-costs",
    ],
    [
      "transactions of a fetch from the code host",
      String(Number(costs.database.ledFetch.toPrecision(2))),
      "scale-costs",
    ],
    [
      "memory: idle, for a fill, for each response",
      [costs.memory.idle, costs.memory.fill, costs.memory.response].map(megabytes).join(", "),
      "concurrent",
    ],
  ];
  return [
    "## Measured inputs",
    "",
    "| Cost | Value | Result |",
    "|---|---|---|",
    ...rows.map(([what, value, result]) => `| ${what} | ${value} | ${link(result)} |`),
    "",
  ];
}

const LOADS = ["half load", "full load"];
const COUNTS = ["1 instance", "2 instances", "4 instances"];
const ERROR_FIGURES = [
  "jobs in a second",
  "time of a job, p50",
  "time of a job, p99",
  "egress",
  "cores of all instances",
  "requests to the code host in a second",
  "requests to the bucket in a second",
  "transactions in a second",
];

/** The model next to the real runs, with its error. */
function errorsText(results: Results): string[] {
  const cell = (count: string, load: string, figure: string): string => {
    const row = findRow(
      results,
      "scale",
      new RegExp(`^${count}, ${load}: ${figure}$`),
      `write ${SCALE_PAGE}`,
    );
    const error = 1 / ratioOf(row) - 1;
    return `${quantity(row.ours.median, row.unit)}, ${quantity(row.reference.median, row.unit)} (${signed(error)})`;
  };
  return [
    "## Errors",
    "",
    "Measured, then the model, and the error of the model in brackets:",
    ...LOADS.flatMap((load) => [
      "",
      `| ${load} | ${COUNTS.join(" | ")} |`,
      `|---|${COUNTS.map(() => "---").join("|")}|`,
      ...ERROR_FIGURES.map(
        (figure) => `| ${figure} | ${COUNTS.map((count) => cell(count, load, figure)).join(" | ")} |`,
      ),
    ]),
    "",
    "[The result](../bench/results/scale.md) has the method, and [scale-costs](../bench/results/scale-costs.md) the runs that the model",
    "was made from.",
  ];
}
