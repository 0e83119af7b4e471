import { z } from "zod";

/** Filesystems of the kernel, below which no folder can be made. */
const KERNEL_FOLDERS = ["proc", "sys"];

/** Path of the folder of the mount. A relative path would depend on the folder in which the daemon was started. */
export const mountpointPath = z.string().superRefine((path, context) => {
  const message = mountpointFault(path);
  if (message !== undefined) context.addIssue({ code: "custom", message });
});

/** Why nothing can be mounted at a configured path; undefined if it may be possible. The folder itself is looked at later. */
function mountpointFault(path: string): string | undefined {
  const [first, ...rest] = path.split("/");
  if (path === "" || (first !== "" && first !== "~"))
    return "expected a path from / or ~/, such as ~/.daemon";
  const segments = rest.filter((segment) => segment !== "");
  if (segments.length === 0) {
    const folder = first === "~" ? "the home folder" : "the root folder";
    return `must be a folder of its own, such as ~/.daemon: a mount would hide ${folder}`;
  }
  if (segments.some((segment) => segment === "." || segment === ".."))
    return "must not hold . or .. segments";
  if (first === "" && KERNEL_FOLDERS.includes(segments[0] ?? ""))
    return `must not be below /${segments[0]}, where no folder can be made`;
  return undefined;
}
