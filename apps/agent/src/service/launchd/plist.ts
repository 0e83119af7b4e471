import { withMark } from "../generated-file.ts";
import { serviceXml } from "../service-xml.ts";

/** Values of a property list that services use (plist(5)). */
type PlistValue = string | number | boolean | readonly PlistValue[] | { readonly [key: string]: PlistValue };

/** Services get a short PATH from launchd. The commands of rules also need programs of Homebrew. */
const PATH = "/opt/homebrew/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";
/** The daemon needs a minute for its end: it completes writes. In seconds. */
const EXIT_SECONDS = 90;
/** Time between two starts, in seconds. */
const RESTART_SECONDS = 10;

export interface AgentPlistParts {
  readonly label: string;
  readonly command: readonly string[];
  readonly variables: Readonly<Record<string, string>>;
  /** File to which standard output and standard error are added. */
  readonly log: string;
}

/** The property list of a launch agent (launchd.plist(5)), with the mark of written files. */
export function agentPlist({ label, command, variables, log }: AgentPlistParts): string {
  const value = {
    Label: label,
    ProgramArguments: [...command, "run"],
    EnvironmentVariables: { PATH, ...variables },
    RunAtLoad: true,
    // As Restart=on-failure of systemd.
    KeepAlive: { SuccessfulExit: false },
    ThrottleInterval: RESTART_SECONDS,
    ExitTimeOut: EXIT_SECONDS,
    // A core file would hold credentials.
    HardResourceLimits: { Core: 0 },
    SoftResourceLimits: { Core: 0 },
    StandardOutPath: log,
    StandardErrorPath: log,
  };
  const text = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
${element(value, "")}
</plist>
`;
  return withMark(text, '<plist version="1.0">\n', (mark) => `<!-- ${mark} -->`);
}

function element(value: PlistValue, indent: string): string {
  if (typeof value === "string") return `${indent}<string>${serviceXml(value)}</string>`;
  if (typeof value === "number") return `${indent}<integer>${value}</integer>`;
  if (typeof value === "boolean") return `${indent}<${value}/>`;
  const inner = `${indent}  `;
  if (isList(value))
    return [`${indent}<array>`, ...value.map((each) => element(each, inner)), `${indent}</array>`].join("\n");
  const entries = Object.entries(value).flatMap(([key, each]) => [
    `${inner}<key>${serviceXml(key)}</key>`,
    element(each, inner),
  ]);
  return [`${indent}<dict>`, ...entries, `${indent}</dict>`].join("\n");
}

function isList(value: PlistValue): value is readonly PlistValue[] {
  return Array.isArray(value);
}
