import { BRAND } from "../../brand.ts";
import { serviceXml } from "../service-xml.ts";

/** In the description of tasks that `service install` makes. */
export const TASK_MARK = `Written by '${BRAND.command} service install'`;

export interface TaskParts {
  /** Account with its domain: `HOST\ada`. */
  readonly account: string;
  readonly command: readonly string[];
  readonly home: string;
}

/**
 * Definition of a task (Task Scheduler schema 1.2): starts the daemon when the user logs in, and again within a minute when it has
 * ended. `RestartOnFailure` would count only failed starts, so a trigger repeats; a second instance is ignored.
 *
 * The daemon is a console program. conhost.exe gives it a console without a window.
 */
export function taskXml({ account, command, home }: TaskParts): string {
  const run = windowsArguments(["--headless", ...command, "run"]);
  return `<?xml version="1.0" encoding="UTF-16"?>
<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
  <RegistrationInfo>
    <Description>Keeps local files in step with a secrets store. ${serviceXml(TASK_MARK)}.</Description>
  </RegistrationInfo>
  <Triggers>
    <LogonTrigger>
      <Enabled>true</Enabled>
      <Repetition>
        <Interval>PT1M</Interval>
        <StopAtDurationEnd>false</StopAtDurationEnd>
      </Repetition>
      <UserId>${serviceXml(account)}</UserId>
    </LogonTrigger>
  </Triggers>
  <Principals>
    <Principal id="Author">
      <UserId>${serviceXml(account)}</UserId>
      <LogonType>InteractiveToken</LogonType>
      <RunLevel>LeastPrivilege</RunLevel>
    </Principal>
  </Principals>
  <Settings>
    <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>
    <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>
    <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>
    <AllowHardTerminate>true</AllowHardTerminate>
    <StartWhenAvailable>true</StartWhenAvailable>
    <RunOnlyIfNetworkAvailable>false</RunOnlyIfNetworkAvailable>
    <AllowStartOnDemand>true</AllowStartOnDemand>
    <Enabled>true</Enabled>
    <Hidden>false</Hidden>
    <RunOnlyIfIdle>false</RunOnlyIfIdle>
    <WakeToRun>false</WakeToRun>
    <ExecutionTimeLimit>PT0S</ExecutionTimeLimit>
    <Priority>7</Priority>
  </Settings>
  <Actions Context="Author">
    <Exec>
      <Command>%SystemRoot%\\System32\\conhost.exe</Command>
      <Arguments>${serviceXml(run)}</Arguments>
      <WorkingDirectory>${serviceXml(home)}</WorkingDirectory>
    </Exec>
  </Actions>
</Task>
`;
}

/** As schtasks.exe reads a file: UTF-16 with a byte order mark, and line ends of Windows. */
export function taskFile(xml: string): Buffer {
  return Buffer.from(`\uFEFF${xml.replaceAll("\n", "\r\n")}`, "utf16le");
}

/** Words as one command line, from which programs of Windows get the words back (CommandLineToArgvW). */
export function windowsArguments(words: readonly string[]): string {
  return words
    .map((word) => {
      if (word !== "" && !/[\s"]/.test(word)) return word;
      // Backslashes count double before a quote.
      return `"${word.replace(/(\\*)"/g, '$1$1\\"').replace(/(\\+)$/, "$1$1")}"`;
    })
    .join(" ");
}
