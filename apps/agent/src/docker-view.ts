import { z } from "zod";

/*
 * Container volumes as the JSON API, the pages and `agent status --json` show them. Never a value.
 */

const text = z.string();
const count = z.int().nonnegative();

export const registrationSchema = z.object({
  engine: z.enum(["docker", "docker-rootless", "podman", "podman-rootless"]),
  path: text,
  expected: text.describe("The line that the file should hold"),
  state: z.enum(["absent", "agrees", "names a different socket"]),
});
export type Registration = z.infer<typeof registrationSchema>;

export const dockerStatusSchema = z
  .object({
    enabled: z.boolean(),
    socket: text.describe("The plugin's socket"),
    volume_dir: text.describe("Folder of the files of volumes, as it is in use"),
    next_volume_dir: text
      .nullable()
      .describe(
        "docker.volume_dir, if containers still have volumes in another folder. A reload without them applies it",
      ),
    registrations: z.array(registrationSchema).describe("The files that send engines to the socket"),
    volumes: z
      .array(
        z.object({
          name: text,
          mounts: count,
          secrets: count.describe("Secrets in the files; 0 while it is not mounted"),
          paths: z.array(text).describe("Paths of secrets, and of folders, which end in a slash"),
          layout: z.enum(["json", "fields"]),
          refresh: z.enum(["events", "poll", "probing"]),
          error: text.nullable(),
        }),
      )
      .describe("Empty if the daemon is not running"),
    error: text.nullable().describe("Why the plugin does not serve"),
  })
  .meta({ id: "DockerStatus" });
export type DockerStatus = z.infer<typeof dockerStatusSchema>;
