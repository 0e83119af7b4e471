import { tableLines, visible } from "@devplat/base/terminal";
import { BRAND } from "../../brand.ts";
import type { CommandStatus, DockerStatus } from "../../status.ts";

/** The Docker Volumes block. Shown also with the section off, while a file sends an engine to a socket that no program serves. */
export function volumeLines({ docker, daemon }: Pick<CommandStatus, "docker" | "daemon">): string[] {
  if (docker === undefined) return [];
  const { enabled, socket, volume_dir: folder, next_volume_dir: next, registrations, error } = docker;
  return [
    "",
    "Docker Volumes",
    `  Plugin socket: ${socket}${enabled ? "" : " (docker.enabled is false: no program serves it)"}`,
    `  Volume folder: ${folder}`,
    ...(next === null
      ? []
      : [
          `  Next folder:   ${next}: remove the containers that have volumes, then run '${BRAND.command} reload'`,
        ]),
    ...registrations.flatMap(({ path, expected, state }) => [
      `  Registration:  ${path}`,
      `  Expected line: ${expected}`,
      `  State:         ${state}`,
    ]),
    ...(error === null ? [] : [`  Error:         ${visible(error)}`]),
    ...(enabled && daemon?.running !== false ? volumeTable(docker) : []),
  ];
}

/** One line for each volume. */
export function volumeTable({ volumes }: Pick<DockerStatus, "volumes">): string[] {
  if (volumes.length === 0) return ["  No volumes."];
  const rows = volumes.map(({ name, mounts, secrets, refresh, error }) => [
    visible(name),
    String(mounts),
    String(secrets),
    refresh,
    visible(error ?? ""),
  ]);
  return tableLines(["VOLUME", "MOUNTS", "SECRETS", "REFRESH", "ERROR"], rows).map((line) => `  ${line}`);
}
