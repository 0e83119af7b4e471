/** Names of devices, which Windows finds in every folder and with every extension. */
const DEVICE_NAME = /^(?:con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(?:\..*)?$/i;

/**
 * Why a path is refused on Windows, or undefined. Refused is each second name of a file: a rule that may not write
 * `authorized_keys` must not write `authorized_keys.`, `authorized_keys::$DATA` or `AUTHOR~1` either.
 * @param path absolute, or what follows `~/`
 */
export function windowsPathFault(path: string, isBelowHome: boolean): string | undefined {
  if (isBelowHome) return nameFault(path);
  return rootFault(path) ?? nameFault(path.replace(/^[A-Za-z]:/, ""));
}

/** A path without a drive depends on the current one. */
function rootFault(path: string): string | undefined {
  if (/^[\\/]{2}[.?](?:[\\/]|$)/.test(path)) return "must not begin with \\\\.\\ or \\\\?\\";
  if (/^[\\/]{2}/.test(path)) return "must not be on another host";
  return /^[\\/]/.test(path) ? "expected a drive, such as C:\\" : undefined;
}

function nameFault(path: string): string | undefined {
  for (const name of path.split(/[\\/]/)) {
    // eslint-disable-next-line no-control-regex -- control characters are what is looked for
    if (/[\u0000-\u001f<>:"|?*]/.test(name)) return "holds a character that Windows does not allow in names";
    if (/[. ]$/.test(name)) return "must not hold a name that ends in a dot or a space";
    if (DEVICE_NAME.test(name)) return "must not hold the name of a device, such as NUL";
    if (/^[^.]{1,6}~\d+(?:\.[^.]{0,3})?$/.test(name)) return "must not hold a short name, such as PROGRA~1";
  }
  return undefined;
}
