import { assetContent } from "@devplat/base/asset-content";
import { BRAND } from "../../brand.ts";
import type { SocketName } from "../../surfaces/listening/activation.ts";
import { withMark } from "../generated-file.ts";
import { serviceRefused } from "../service.ts";

/** The unit of the daemon. */
export const SERVICE_UNIT = "agent.service";
/** The unit that runs fusermount3 for the daemon. */
export const MOUNT_UNIT = "agent-mount.service";
/** Units of sockets, in the order of the documents. */
export const SOCKET_UNITS: Readonly<Record<SocketName, string>> = {
  api: "agent-api.socket",
  peer: "agent-peer.socket",
  agent: "agent-ssh.socket",
  docker: "agent-docker.socket",
  mount: "agent-mount.socket",
};

/** The units, as the packages install them too. A bundle has them inside. */
const UNIT_FILES: ReadonlyMap<string, URL> = new Map([
  [SERVICE_UNIT, new URL("../../../../../deploy/systemd/user/agent.service", import.meta.url)],
  [MOUNT_UNIT, new URL("../../../../../deploy/systemd/user/agent-mount.service", import.meta.url)],
  [SOCKET_UNITS.mount, new URL("../../../../../deploy/systemd/user/agent-mount.socket", import.meta.url)],
  [SOCKET_UNITS.api, new URL("../../../../../deploy/systemd/user/agent-api.socket", import.meta.url)],
  [SOCKET_UNITS.peer, new URL("../../../../../deploy/systemd/user/agent-peer.socket", import.meta.url)],
  [SOCKET_UNITS.agent, new URL("../../../../../deploy/systemd/user/agent-ssh.socket", import.meta.url)],
  [SOCKET_UNITS.docker, new URL("../../../../../deploy/systemd/user/agent-docker.socket", import.meta.url)],
]);

/**
 * Arguments of `systemctl stop` for these units, call by call. The daemon needs the mount helper to unmount, so that stops last.
 */
export function stopCalls(names: readonly string[]): readonly (readonly string[])[] {
  const isHelper = (name: string): boolean => name === SOCKET_UNITS.mount || name === MOUNT_UNIT;
  return [names.filter((name) => !isHelper(name)), names.filter(isHelper)]
    .filter((some) => some.length > 0)
    .map((some) => ["stop", ...some]);
}

/** Names of all units. */
export const UNIT_NAMES: readonly string[] = [...UNIT_FILES.keys()];

/** The program in the files, where packages install it. */
export const PACKAGED_PROGRAM = `/usr/bin/${BRAND.command}`;

/**
 * Texts of the units for a program in another place, by name.
 *
 * @throws AgentError `service_refused` if systemd cannot start a program with this path
 */
export function unitTexts(
  command: readonly string[],
  variables: Readonly<Record<string, string>>,
): ReadonlyMap<string, string> {
  const program = commandLine(command);
  const lines = Object.entries(variables).map(
    ([name, value]) => `Environment=${quoted(`${name}=${value}`)}\n`,
  );
  const texts = new Map<string, string>();
  for (const [name, file] of UNIT_FILES) {
    const text = assetContent(file)
      .toString()
      .replace(/^(Exec\w+=)(\S+)/gm, (line, key: string, path: string) =>
        path === PACKAGED_PROGRAM ? `${key}${program}` : line,
      )
      .replace(/^(?=ExecStart=)/m, () => lines.join(""));
    const ownChanges = `Put changes into a drop-in: systemctl --user edit ${name}`;
    texts.set(
      name,
      withMark(text, "[Unit]\n", (mark) => `# ${mark}. ${ownChanges}`),
    );
  }
  return texts;
}

// eslint-disable-next-line no-control-regex -- a line break would begin a new setting
const CONTROL = /[\u0000-\u001f\u007f]/;

/** Characters that systemd refuses in the path of a program, however they are quoted (string_is_safe in its sources). */
// eslint-disable-next-line no-control-regex -- control characters are what is looked for
const UNUSABLE = /[\u0000-\u001f\u007f"'\\]/;

/** A command line for `ExecStart=` (systemd.service(5), "Command lines"). */
export function commandLine([path = "", ...args]: readonly string[]): string {
  if (UNUSABLE.test(path) || !path.startsWith("/")) {
    throw serviceRefused(
      `Cannot make a service of ${path}: systemd takes no quotes, backslashes and control characters in the path of a program`,
      "Put the program into another folder, and run it from there.",
    );
  }
  // Variables are replaced in arguments, and not in the path.
  return [quoted(path), ...args.map((word) => quoted(word).replaceAll("$", "$$$$"))].join(" ");
}

/** A word in quotes, if it needs them, without specifiers (systemd.syntax(7), "Quoting"). */
function quoted(word: string): string {
  if (CONTROL.test(word)) {
    throw serviceRefused(
      `Cannot make a service with ${JSON.stringify(word)}: it has control characters`,
      "Put the program into another folder, and run it from there.",
    );
  }
  const escaped = word.replaceAll("%", "%%");
  if (/^[\w@%+=:,./-]+$/.test(escaped)) return escaped;
  return `"${escaped.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}
