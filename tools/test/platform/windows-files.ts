import fs, { mkdirSync, type PathLike } from "node:fs";
import { posix, win32 } from "node:path";
import { promisify } from "node:util";

/** Functions whose second argument is a path, too. */
const TWO_PATHS = /^(?:rename|link|symlink|copyFile|cp)(?:Sync)?$/;
/** Functions whose result is a path. */
const GIVES_PATH = /^(?:readlink|realpath|mkdtemp)(?:Sync)?$/;
const PATH_FIRST =
  /^(?:access|appendFile|chmod|chown|copyFile|cp|createReadStream|createWriteStream|exists|lchown|link|lstat|lutimes|mkdir|mkdtemp|open|opendir|readFile|readdir|readlink|realpath|rename|rm|rmdir|stat|statfs|symlink|truncate|unlink|utimes|watch|watchFile|writeFile)(?:Sync)?$/;

const STARTS_PROGRAM = /^(?:exec|execFile|execFileSync|execSync|fork|spawn|spawnSync)$/;

type AnyFunction = (this: unknown, ...args: unknown[]) => unknown;

/**
 * The file system under paths of Windows: drive `C:` is a folder of this host. Names, letter case, access lists and open files stay
 * those of this host.
 */
export class WindowsFiles {
  readonly #drive: string;

  /** @param drive real folder that is `C:\` */
  constructor(drive: string) {
    this.#drive = drive;
  }

  /** @returns the path as Windows has it */
  makeFolder(...names: readonly string[]): string {
    mkdirSync(posix.join(this.#drive, ...names), { recursive: true, mode: 0o700 });
    return win32.join("C:\\", ...names);
  }

  real(path: string): string {
    const text = path.replace(/^\\\\\?\\/, "").replaceAll("\\", "/");
    return /^c:/i.test(text) ? posix.join(this.#drive, text.slice(2)) : text;
  }

  shown(path: string): string {
    if (path === this.#drive || path.startsWith(`${this.#drive}/`))
      return win32.join("C:\\", path.slice(this.#drive.length));
    return path.startsWith("/") ? path.replaceAll("/", "\\") : path;
  }

  /** A module such as `node:fs`, whose functions take and give paths of Windows. */
  wrap<T extends object>(module: T): T {
    const entries = Object.entries(module).map(([name, value]: [string, unknown]) => {
      if (name === "promises") return [name, this.wrap(value as object)];
      return [
        name,
        typeof value === "function" && PATH_FIRST.test(name) ? this.#wrapOne(name, value) : value,
      ];
    });
    return Object.fromEntries(entries) as T;
  }

  /** The class of `node:sqlite`, for files with paths of Windows. */
  wrapDatabase<C extends new (path: PathLike, ...more: never[]) => object>(database: C): C {
    const real = (path: PathLike): PathLike => this.#realPath(path) as PathLike;
    return new Proxy(database, {
      construct: (target, [path, ...more]: [PathLike, ...never[]], newTarget) =>
        Reflect.construct(target, [real(path), ...more], newTarget) as object,
    });
  }

  /** `node:child_process`, whose programs get paths of this host. They see this system, not Windows. */
  wrapPrograms<T extends object>(module: T): T {
    const real = (value: unknown): unknown => {
      if (typeof value === "string") return isWindowsPath(value) ? this.real(value) : value;
      return Array.isArray(value) ? value.map(real) : value;
    };
    const realVariable = ([name, value]: [string, unknown]): [string, unknown] => {
      if (name !== "PATH" || typeof value !== "string") return [name, real(value)];
      return [name, value.split(win32.delimiter).map(real).join(posix.delimiter)];
    };
    const realOptions = (options: object): object => {
      const { cwd, env } = options as { readonly cwd?: unknown; readonly env?: object };
      return {
        ...options,
        ...(cwd === undefined ? {} : { cwd: real(cwd) }),
        ...(env === undefined ? {} : { env: Object.fromEntries(Object.entries(env).map(realVariable)) }),
      };
    };
    const mapped = (args: readonly unknown[]): unknown[] =>
      args.map((arg) =>
        typeof arg === "object" && arg !== null && !Array.isArray(arg) ? realOptions(arg) : real(arg),
      );
    const entries = Object.entries(module).map(([name, value]: [string, unknown]) => {
      if (!STARTS_PROGRAM.test(name)) return [name, value];
      const call: AnyFunction = (...args) => (value as AnyFunction)(...mapped(args));
      const promised = (value as Record<symbol, AnyFunction | undefined>)[promisify.custom];
      if (promised !== undefined)
        Object.defineProperty(call, promisify.custom, {
          value: (...args: unknown[]) => promised(...mapped(args)),
        });
      return [name, call];
    });
    return Object.fromEntries(entries) as T;
  }

  #realPath(value: unknown): unknown {
    return typeof value === "string" && value !== "" && value !== ":memory:" ? this.real(value) : value;
  }

  #wrapOne(name: string, original: unknown): unknown {
    const shown = (value: unknown): unknown => (typeof value === "string" ? this.shown(value) : value);
    const call: AnyFunction = (...args) => {
      const mapped = args.map((arg, index) =>
        index === 0 || (index === 1 && TWO_PATHS.test(name)) ? this.#realPath(arg) : arg,
      );
      const result: unknown = (original as AnyFunction).apply(fs, mapped);
      if (!GIVES_PATH.test(name)) return result;
      return result instanceof Promise ? result.then(shown) : shown(result);
    };
    return Object.assign(call, original);
  }
}

/** Not the names of pipes, and not other text. */
function isWindowsPath(text: string): boolean {
  return /^(?:c:\\|\\[^\\])/i.test(text);
}
